package quota

import (
	"cmp"
	"context"
	"maps"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/controller"
)

// When what is used is counted again: if writes were under way, and if nothing seems to
// have happened.
const (
	soon     = time.Second
	sometime = 5 * time.Minute
)

// Controllers count what is used: of new and changed quotas, and where objects that count
// change or go. What is created needs no count, for it was taken before. Their keys are
// namespaces.
func (l *Ledger) Controllers() []controller.Controller {
	return []controller.Controller{
		{
			Name: "resource-quota", Types: []meta.GroupResource{quotas, pods, services, claims, l.terms.devices},
			Observe: func(e controller.Event) []string {
				if e.Resource == quotas && l.due(e) || l.changes(e) {
					return []string{e.Key.Namespace}
				}
				return nil
			},
			Reconcile: l.reconcile,
		},
		{
			Name: "resource-quota-release", Identity: true,
			Observe: func(e controller.Event) []string {
				if e.Object != nil || e.Key.Namespace == "" || !l.concerned(e.Key.Namespace, e.Resource) {
					return nil
				}
				return []string{e.Key.Namespace}
			},
			Reconcile: l.reconcile,
		},
	}
}

// due reports whether a quota has to be counted: it is new here, or bounds other things
// than it did.
func (l *Ledger) due(e controller.Event) bool {
	return e.Object != nil && (e.Old == nil || !newBounds(&l.terms, e.Object).complete)
}

// changes reports whether an object uses something else than before.
func (l *Ledger) changes(e controller.Event) bool {
	if e.Object == nil || e.Old == nil || !l.concerned(e.Key.Namespace, e.Resource) {
		return false
	}
	for _, q := range l.of(e.Key.Namespace) {
		if !maps.EqualFunc(q.use(e.Resource, e.Old), q.use(e.Resource, e.Object), meta.Quantity.Equal) {
			return true
		}
	}
	return false
}

func (l *Ledger) reconcile(ctx context.Context, _ controller.Client, namespace string) (time.Duration, error) {
	if len(l.of(namespace)) == 0 {
		return 0, nil
	}
	a := l.open(namespace)
	defer l.close(a)
	t := newTask(nil, false)
	if err := a.do(ctx, t); err != nil {
		return 0, err
	}
	return cmp.Or(t.again, sometime), nil
}
