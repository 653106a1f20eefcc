package objects

import (
	"context"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// A sequence orders writes of any objects, on all servers over the store. Its record is replaced by each of its
// writes, in the same commit, on condition that it is the record that the write saw; so no other write of the
// sequence comes between the reads of a write and its commit. Write.Sequence names the sequence of a write of the
// server itself; admission plugins use Request.Serialize.

// joinSequence makes the write the next one of a sequence: when it returns, the caches show the last one.
func (s *Store) joinSequence(ctx context.Context, a *attempt, key string) error {
	if slices.ContainsFunc(a.required, func(p *precondition) bool { return p.Key == key }) {
		return nil
	}
	last, err := s.lastOf(ctx, key)
	if err != nil {
		return err
	}
	a.require(&precondition{Write: storage.Write{Key: key, Value: []byte(a.Version.StorageKey(a.Key)), Expect: last}, reason: becauseSerial})
	return nil
}

// lastOf returns the revision of the last write of a sequence, 0 if there is none, when the caches show it.
func (s *Store) lastOf(ctx context.Context, key string) (storage.Revision, error) {
	last, err := s.mark(ctx, key)
	if err != nil {
		return 0, err
	}
	return last.Revision, s.wait(ctx, last.Revision)
}

// admitting sets the request that admission decides for an attempt.
func (a *attempt) admitting(s *Store, r *admission.Request) {
	a.request = r
	r.Serialize = func(ctx context.Context, sequence meta.Key) error {
		return s.joinSequence(ctx, a, resource.SequenceKey(sequence))
	}
}

// sweepSequences removes the sequences of namespaces without stored objects. A write that read such a sequence
// before either conflicts with the removal or is the first write to an empty namespace, where a new sequence
// admits no more than the old one did.
func (s *Store) sweepSequences(ctx context.Context) error {
	return s.sweepEmptied(ctx, resource.SequencePrefix, func(rest string) string {
		namespace, _, _ := strings.Cut(rest, ":")
		return namespace
	})
}
