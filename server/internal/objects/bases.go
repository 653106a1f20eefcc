package objects

import (
	"context"
	"errors"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// bases returns the comparisons with what admission's word rests on.
func (a *attempt) bases() (ws []storage.Write, err error) {
	if a.request == nil {
		return nil, nil
	}
	for _, b := range a.request.Bases {
		w := storage.Write{Key: resource.StorageKey(b.Resource, keyOf(b.Object)), Guard: true}
		if w.Expect, err = ParseRevision(b.Object.ResourceVersion()); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(ws, func(other storage.Write) bool { return other.Key == w.Key }) {
			ws = append(ws, w)
		}
	}
	return ws, nil
}

func keyOf(obj *meta.Object) meta.Key { return meta.Key{Namespace: obj.Namespace(), Name: obj.Name()} }

// commitRebased makes the write of an attempt that was refused, if that was since what
// admission's word rests on has changed, and the word holds all the same. It is not asked for
// again: who is asked may be the one who changes that, each time. What is reserved begins with
// the bases.
func (s *Store) commitRebased(ctx context.Context, a *attempt, refused error, change storage.Write, reserved []storage.Write) (storage.Revision, error) {
	for tries := 1; ; tries++ {
		bases, err := a.bases()
		var conflict *storage.ConflictError
		if err != nil || !errors.As(refused, &conflict) || !slices.ContainsFunc(bases, func(b storage.Write) bool { return b.Key == conflict.Key }) {
			return 0, refused
		}
		if pause(ctx, tries) != nil || !s.rebase(s.after(ctx, conflict), a.request) {
			return 0, refused
		}
		if bases, err = a.bases(); err != nil {
			return 0, err
		}
		copy(reserved, bases)
		rev, err := s.commit(ctx, change, reserved...)
		if err == nil {
			return rev, nil
		}
		refused = err
	}
}

// rebase looks at what admission's word rests on as it is now, and reports whether the word
// is known to hold with that.
func (s *Store) rebase(ctx context.Context, r *admission.Request) bool {
	for i := range r.Bases {
		b := &r.Bases[i]
		now, err := s.base(ctx, b)
		switch {
		case err != nil, now == nil:
			return false
		case now.ResourceVersion() == b.Object.ResourceVersion():
			continue
		case now.UID() != b.Object.UID(), b.Holds == nil, !b.Holds(now):
			return false
		}
		b.Object = now
	}
	return true
}

// base returns the object of a base as it is now, nil if there is none.
func (s *Store) base(ctx context.Context, b *admission.Base) (*meta.Object, error) {
	t := s.o.Types().Type(b.Resource)
	if t == nil {
		return nil, nil
	}
	e, err := s.Live(ctx, t, keyOf(b.Object))
	if e == nil || err != nil {
		return nil, err
	}
	return Object(ctx, e, t.Hub)
}
