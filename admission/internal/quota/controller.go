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

// Delays before the next count of a namespace.
const (
	countDelay    = 250 * time.Millisecond // after writes that lower the usage, so that a count serves many writes
	underWayDelay = time.Second            // while writes are under way
	resync        = 5 * time.Minute        // without changes
)

// controller counts the objects of namespaces with new or changed quotas, and of namespaces for which count was called.
// Its keys are namespaces.
func (l *Ledger) controller() client.Controller {
	return client.Controller{
		Name: "resourcequota", Types: []meta.GroupResource{quotas},
		MapEvent: func(e client.Event) []string {
			l.quotas.Read(func(index) {}) // update the index now: increases by other servers are timed from here
			if e.Object == nil {
				return nil
			}
			if e.Old == nil || !meta.Equal(e.Old.Map("spec"), e.Object.Map("spec")) || !newSnapshot(&l.naming, e.Object).complete {
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
			if wait := firstStatusDelay(quotas, time.Now()); wait > 0 && !l.stale(namespace) {
				return wait, nil
			}
			a := l.open(namespace)
			defer a.close()
			t := newTask(nil, false)
			if err := a.do(ctx, t); err != nil {
				return 0, err
			}
			return cmp.Or(t.again, resync), nil
		},
	}
}

// firstStatusDelay returns the time until the first count of new quotas, because the creator may write the first status
// itself. Meanwhile writes enforce the quotas and count if necessary.
func firstStatusDelay(quotas []*snapshot, now time.Time) (wait time.Duration) {
	const delay = 2 * time.Second
	for _, q := range quotas {
		if !q.born.IsZero() {
			wait = max(wait, q.born.Add(delay).Sub(now)) // creationTimestamp is up to a second early
		}
	}
	return min(wait, delay)
}

// lowers reports whether a write may lower the usage, because it deletes the object or changes the object's usage.
func (l *Ledger) lowers(r *admission.Request) bool {
	resource := r.Resource.GroupResource()
	switch {
	case r.Operation == admission.Create, r.Operation == admission.Update && !r.Old.Terminating() && l.naming.countsOnly(resource):
		return false
	case !l.bounded(r.Namespace, resource):
		return false
	case r.Operation == admission.Delete, r.Old.Terminating():
		return true
	}
	for _, q := range l.of(r.Namespace) {
		if !maps.EqualFunc(q.usage(resource, r.Old), q.usage(resource, r.Object), meta.Quantity.Equal) {
			return true
		}
	}
	return false
}
