package quota

import (
	"cmp"
	"context"
	"maps"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
)

// When what is used is counted again: after writes that may have lowered it, if writes
// were under way, and if nothing seems to have happened.
const (
	shortly  = 250 * time.Millisecond
	soon     = time.Second
	sometime = 5 * time.Minute
)

// controller counts what is used: of quotas that are new or changed, and where somebody
// asks for it, see lowers. Its keys are namespaces.
func (l *Ledger) controller() client.Controller {
	return client.Controller{
		Name: "resourcequota", Types: []meta.GroupResource{quotas},
		MapEvent: func(e client.Event) []string {
			l.book.Read(func(book) {}) // what others take is under way from now on, not from when somebody asks
			if e.Object == nil {
				return nil
			}
			if e.Old == nil || !meta.Equal(e.Old.Map("spec"), e.Object.Map("spec")) || !newBounds(&l.terms, e.Object).complete {
				return []string{e.Key.Namespace}
			}
			return nil
		},
		Reconcile: func(ctx context.Context, _ client.Client, namespace string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			quotas := l.of(namespace)
			if len(quotas) == 0 {
				l.forget(namespace)
				return 0, nil
			}
			if wait := leave(quotas, time.Now()); wait > 0 && !l.stands(namespace).stale {
				return wait, nil
			}
			a := l.open(namespace)
			defer l.close(a)
			t := newTask(nil, false)
			if err := a.do(ctx, t); err != nil {
				return 0, err
			}
			return cmp.Or(t.again, sometime), nil
		},
	}
}

// leave returns for how long the first count of new quotas is left to who made them: he
// may write their first status himself, which is then his. What is made in the namespace
// meanwhile is held to them all the same, and tells what is used.
func leave(quotas []*bounds, now time.Time) (wait time.Duration) {
	for _, q := range quotas {
		if !q.born.IsZero() {
			wait = max(wait, q.born.Add(2*soon).Sub(now)) // it may be born up to a second later than it says
		}
	}
	return min(wait, 2*soon)
}

// lowers reports whether less may be used when a write is made: its object goes, or it
// counts otherwise than before. What is new was taken before.
func (l *Ledger) lowers(r *admission.Request) bool {
	resource := r.Resource.GroupResource()
	switch {
	case r.Operation == admission.Create, r.Operation == admission.Update && !r.Old.Terminating() && l.terms.alike(resource):
		return false
	case !l.concerned(r.Namespace, resource):
		return false
	case r.Operation == admission.Delete, r.Old.Terminating():
		return true
	}
	for _, q := range l.of(r.Namespace) {
		if !maps.EqualFunc(q.use(resource, r.Old), q.use(resource, r.Object), meta.Quantity.Equal) {
			return true
		}
	}
	return false
}
