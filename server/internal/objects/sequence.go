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

// A sequence orders writes that admission plugins serialize, see admission.Request. Its record in the
// store is replaced by each of these writes, in the same commit, on condition that it is the
// record that admission saw: so no other write of the sequence comes between.

// ask notes the request about which admission is asked for an attempt.
func (a *attempt) ask(s *Store, r *admission.Request) {
	a.request = r
	r.Serialize = func(ctx context.Context, sequence meta.Key) error {
		key := resource.SequenceKey(sequence)
		if slices.ContainsFunc(a.serial, func(w storage.Write) bool { return w.Key == key }) {
			return nil
		}
		last, err := s.lastOf(ctx, sequence)
		if err != nil {
			return err
		}
		a.serial = append(a.serial, storage.Write{Key: key, Value: []byte(a.Version.StorageKey(a.Key)), Expect: last})
		return nil
	}
}

// lastOf returns the revision of the last write of a sequence, 0 if there is none, when the caches
// show that write.
func (s *Store) lastOf(ctx context.Context, sequence meta.Key) (storage.Revision, error) {
	last, err := s.mark(ctx, resource.SequenceKey(sequence))
	if err != nil {
		return 0, err
	}
	return last.Revision, s.wait(ctx, last.Revision)
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
