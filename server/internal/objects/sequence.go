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

// A sequence is an order of writes of any objects, across all servers that share the store. The sequence has a
// record. Each of its writes replaces the record in its own commit, on condition that the record is unchanged since
// the write began. So no other write of the sequence is committed between the reads of a write and its commit.
// Write.Sequence names the sequence of a write of the server itself; admission plugins use Request.Serialize.

// joinSequence makes the write of an attempt the next one of a sequence. When it returns, the caches show the
// previous write.
func (s *Store) joinSequence(ctx context.Context, a *attempt, key string) error {
	if slices.ContainsFunc(a.required, func(p *precondition) bool { return p.Key == key }) {
		return nil
	}
	last, err := s.lastOf(ctx, key)
	if err != nil {
		return err
	}
	a.require(&precondition{Write: storage.Write{Key: key, Value: []byte(a.Version.StorageKey(a.Key)), Expect: last}, reason: becauseSequence})
	return nil
}

// lastOf returns the revision of the last write of a sequence, or 0 if there is none. When it returns, the caches
// show that write.
func (s *Store) lastOf(ctx context.Context, key string) (storage.Revision, error) {
	last, err := s.currentRecord(ctx, key)
	if err != nil {
		return 0, err
	}
	return last.Revision, s.wait(ctx, last.Revision)
}

// setRequest sets the admission request of an attempt.
func (a *attempt) setRequest(s *Store, r *admission.Request) {
	a.request = r
	r.Serialize = func(ctx context.Context, sequence meta.Key) error {
		return s.joinSequence(ctx, a, resource.SequenceKey(sequence))
	}
}

// sweepSequences deletes the records of sequences in namespaces without stored objects. This is safe for a write that
// read such a record before: either it conflicts with the deletion, or it is the first write to an empty namespace,
// where a new sequence admits no more than the old one did.
func (s *Store) sweepSequences(ctx context.Context) error {
	return s.sweepEmptied(ctx, resource.SequencePrefix, func(rest string) string {
		namespace, _, _ := strings.Cut(rest, ":")
		return namespace
	})
}
