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

// precondition is a record that must have a certain revision, or must not exist, when a write is committed. If the
// result of a step of an attempt depends on a record, the step adds a precondition on it. The commit compares all of
// these records, so the result still holds when the write is stored, whichever server changes the record.
type precondition struct {
	storage.Write // a Guard, unless the commit also replaces the record

	reason ground

	// renew returns the present revision of the record, and whether the write may be committed with the record as it
	// is now. If renew is nil, the write is retried from the start.
	renew func(ctx context.Context) (now storage.Revision, holds bool)

	lost func() // set for a leader fence: called if it fails; the write is then refused, not retried
}

// ground is the reason why a commit depends on a record.
type ground string

const (
	becauseAdmitted ground = "admission decided by this object"
	becauseCounted  ground = "admission counted the objects of this namespace"
	becauseSequence ground = "the write follows the last one of this sequence"
	becauseDefined  ground = "this definition determines the stored version of the object"
	becauseUnique   ground = "the object reserves this value"
	becauseLeader   ground = "the controller writes as the leader of this term"
)

// preconditionError is the error of a commit with a failed precondition. Nothing was written. It wraps either the
// *storage.ConflictError, after which the write is retried from the start, or errDeposed, which refuses the write as
// unavailable.
type preconditionError struct {
	*precondition
	err error
}

func (e *preconditionError) Error() string {
	return fmt.Sprintf("precondition failed, because %s: %v", e.reason, e.err)
}

func (e *preconditionError) Unwrap() error { return e.err }

// preconditionFailure wraps err as a preconditionError if it is a conflict on the record of a precondition. It returns other
// errors unchanged.
func preconditionFailure(err error, required []*precondition) error {
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

// require adds a precondition. If the attempt already has a precondition on the same record, the older revision
// counts, and the precondition can be renewed only if both can.
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

// requireAdmitted adds the preconditions that admission recorded in the request of a.
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

// renewAdmitted returns the present revision of the object with a storage key, if all plugins that depend on the
// object accept its present state. The plugins do not run again, because a webhook may change the object each time it
// is called.
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

// objectNow returns the newest state of an object, or nil if it does not exist or its type is not served. The object
// is shared.
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
