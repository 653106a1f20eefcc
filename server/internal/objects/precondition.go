package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// precondition is a record that must have a revision, or must not exist, when a write is committed. Each step of
// an attempt whose result depends on a record requires one; the commit compares all of them, so that the result
// holds when the write is stored, whichever server over the store changes the record.
type precondition struct {
	storage.Write // Key and Expect; a Guard, unless the commit replaces the record as well

	reason ground

	// renew returns the present revision of the record if the write may be committed with the record as it is
	// now. nil: the write is retried from the start.
	renew func(ctx context.Context) (now storage.Revision, holds bool)

	lost func() // of the leader fence: called if it fails; the write is refused, not retried
}

// ground says why a commit depends on a record.
type ground string

const (
	becauseAdmitted ground = "admission decided by this object"
	becauseCounted  ground = "admission counted the objects of this namespace"
	becauseSerial   ground = "the write follows the last one of this sequence"
	becauseDefined  ground = "the object is stored as this definition says"
	becauseUnique   ground = "the object reserves this value"
	becauseLeader   ground = "the controller writes as the leader of this term"
)

// preconditionError is the error of a commit of which a precondition failed. Nothing was written. It wraps the
// *storage.ConflictError, after which a write is retried from the start, or errDeposed, which refuses the write as
// unavailable.
type preconditionError struct {
	*precondition
	err error
}

func (e *preconditionError) Error() string {
	return fmt.Sprintf("precondition failed, because %s: %v", e.reason, e.err)
}

func (e *preconditionError) Unwrap() error { return e.err }

// failed returns the error of a commit as that of the precondition which failed, if one did.
func failed(err error, required []*precondition) error {
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	i := slices.IndexFunc(required, func(p *precondition) bool { return p.Key == conflict.Key })
	if i < 0 {
		return err
	}
	p := required[i]
	if p.lost != nil {
		p.lost()
		err = errDeposed
	}
	return &preconditionError{p, err}
}

// require adds a precondition. If there is one on the same record, the older revision counts, and the record is
// renewed only if both allow it.
func (a *attempt) require(p *precondition) {
	i := slices.IndexFunc(a.required, func(other *precondition) bool { return other.Key == p.Key })
	if i < 0 {
		a.required = append(a.required, p)
		return
	}
	same := a.required[i]
	same.Expect = min(same.Expect, p.Expect)
	if p.renew == nil {
		same.reason, same.renew = p.reason, nil
	}
}

// requireAdmitted adds the preconditions of the admission decision.
func (s *Store) requireAdmitted(a *attempt) error {
	if a.request == nil {
		return nil
	}
	for _, p := range a.request.Preconditions {
		if p.Fence != nil {
			a.require(&precondition{
				Write: storage.Write{Key: resource.FencePrefix + a.request.Namespace, Expect: *p.Fence, Guard: true}, reason: becauseCounted,
			})
			continue
		}
		rev, err := ParseRevision(p.Object.ResourceVersion())
		if err != nil {
			return err
		}
		key := resource.StorageKey(p.Resource, keyOf(p.Object))
		a.require(&precondition{
			Write: storage.Write{Key: key, Expect: rev, Guard: true}, reason: becauseAdmitted,
			renew: func(ctx context.Context) (storage.Revision, bool) { return s.renewAdmitted(ctx, a.request, key) },
		})
	}
	return nil
}

func keyOf(obj *meta.Object) meta.Key { return meta.Key{Namespace: obj.Namespace(), Name: obj.Name()} }

// renewAdmitted returns the present revision of an object if all plugins that depend on it accept its present
// state. The plugins do not run again: a webhook may change the object whenever it is called.
func (s *Store) renewAdmitted(ctx context.Context, r *admission.Request, key string) (rev storage.Revision, holds bool) {
	for i := range r.Preconditions {
		p := &r.Preconditions[i]
		if p.Object == nil || resource.StorageKey(p.Resource, keyOf(p.Object)) != key {
			continue
		}
		now, err := s.objectNow(ctx, p.Resource, keyOf(p.Object))
		switch {
		case err != nil, now == nil:
			return 0, false
		case now.ResourceVersion() == p.Object.ResourceVersion():
		case now.UID() != p.Object.UID(), p.Holds == nil, !p.Holds(now):
			return 0, false
		}
		p.Object = now
		if rev, err = ParseRevision(now.ResourceVersion()); err != nil {
			return 0, false
		}
	}
	return rev, true
}

// objectNow returns an object as it is now, nil if it does not exist or is not served.
func (s *Store) objectNow(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	t := s.o.Types().Type(r)
	if t == nil {
		return nil, nil
	}
	e, err := s.Live(ctx, t, key)
	if e == nil || err != nil {
		return nil, err
	}
	return Object(ctx, e, t.Hub)
}
