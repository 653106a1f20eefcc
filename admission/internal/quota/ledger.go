package quota

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Ledger enforces the ResourceQuotas of a server and maintains their statuses.
//
// A write first adds its usage to status.used of its quotas by compare-and-swap, so that servers over one store see
// each other's usage, and is committed after that. The writes of one namespace that wait at the same time are settled
// together: one update of each quota serves all of them.
//
// Usage goes down when objects are deleted or writes fail. Then the objects are counted again. A count cannot tell
// the usage of a write that failed from that of a write that is still to be committed. Therefore each write has the
// fence of its namespace, as it was before its usage was added, as a precondition. A count that lowers the usage
// raises the fence first and then lists the objects: what was added before the fence was raised is among these
// objects, or will never be.
//
// The usage is not part of the commit of the object, because objects of one kind must not share a revision: a watch
// that resumes at a revision would miss some of them. One commit for each object and its quota would make the
// creates of a namespace sequential.
type Ledger struct {
	client  client.Client // reads the newest state, and updates statuses without admission
	typeOf  func(meta.GroupResource) *registry.Type
	naming  naming
	limited []Limited
	quotas  *client.Index[index]
	enqueue func(namespace string, after time.Duration) // has the objects of a namespace counted

	fence, raise func(ctx context.Context, namespace string) (storage.Revision, error) // see admission.PluginContext; nil: no other server counts

	mu       sync.Mutex // guards what follows, and fields of account
	accounts map[string]*account
}

// NewLedger returns the Ledger of a server, which runs its controller. Objects of limited resources need a quota.
func NewLedger(env admission.PluginContext, limited []Limited) *Ledger {
	l := &Ledger{
		client: env.Client, typeOf: env.Type, naming: newNaming(env.Names, env.Features), limited: limited, accounts: map[string]*account{},
	}
	if a := env.Accounting; a != nil {
		l.client, l.fence, l.raise = a, a.Fence, a.RaiseFence
	}
	l.quotas = client.NewIndex(env.Client, []meta.GroupResource{quotas}, func() index { return index{} }, func(x index, e client.Event) {
		if x.apply(&l.naming, e); len(x[e.Key.Namespace]) == 0 {
			l.forget(e.Key.Namespace)
		}
	})
	l.enqueue = func(string, time.Duration) {}
	if env.Control != nil {
		l.enqueue = env.Control(l.controller())
	}
	return l
}

// Close stops following quotas.
func (l *Ledger) Close() { l.quotas.Close() }

// of returns the quotas of a namespace by name.
func (l *Ledger) of(namespace string) (list []*snapshot) {
	if l.typeOf(quotas) != nil {
		l.quotas.Read(func(x index) { list = x.of(namespace) })
	}
	return list
}

// bounded reports whether a quota of a namespace bounds objects of a resource.
func (l *Ledger) bounded(namespace string, r meta.GroupResource) (any bool) {
	if l.typeOf(quotas) == nil {
		return false
	}
	l.quotas.Read(func(x index) {
		for _, q := range x[namespace] {
			any = any || len(q.names[r]) > 0
		}
	})
	return any
}

// Admit refuses a write that exceeds a quota of its namespace. It has the objects counted after a write that lowers
// the usage.
func (l *Ledger) Admit(ctx context.Context, r *admission.Request) error {
	if r.Type != nil && r.Type.Virtual {
		return nil
	}
	if !r.DryRun && l.lowers(r) {
		r.After(func(written, _ bool) {
			if written {
				l.count(r.Namespace)
			}
		})
	}
	if r.Operation == admission.Create || r.Operation == admission.Update && mayGrow(r) {
		return l.take(ctx, r)
	}
	return nil
}

// mayGrow reports whether an update can raise the usage of an object. A terminating object cannot grow, and may
// always lose finalizers.
func mayGrow(r *admission.Request) bool {
	switch resource := r.Resource.GroupResource(); {
	case r.Old.Terminating() && meta.Equal(r.Old.Map("spec"), r.Object.Map("spec")):
		return false
	case resource == pods:
		// A deadline moves a pod to other quotas; the other fields that scopes look at cannot change.
		return r.Subresource == "resize" ||
			r.Subresource == "" && ends(meta.NewObject(r.Old.Map("spec"))) != ends(meta.NewObject(r.Object.Map("spec")))
	default:
		return (resource == services || resource == claims) && r.Subresource == ""
	}
}

// take adds the usage of a write to all quotas that count its object, or returns why one of them refuses it. If the
// write fails later, its usage is given back.
func (l *Ledger) take(ctx context.Context, r *admission.Request) error {
	resource := r.Resource.GroupResource()
	limited := l.limits(resource)
	if !limited && !l.bounded(r.Namespace, resource) {
		return nil
	}
	c := &charge{
		resource: resource, key: meta.Key{Namespace: r.Namespace, Name: r.Name}, object: r.Object, old: r.Old, dryRun: r.DryRun, retry: r.Attempt > 0,
		reserved: map[string]reservation{},
	}
	all := l.of(r.Namespace)
	if limited {
		if err := l.uncovered(c, all); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(all, c.concerns) {
		return nil
	}
	c.object = l.naming.extract(resource, r.Object) // other goroutines read it when the writer goes on
	t, a := newTask(c, false), l.open(r.Namespace)
	r.After(func(written, certain bool) {
		defer a.close()
		a.ended(context.WithoutCancel(ctx), t, written, certain)
	})
	switch err := a.do(ctx, t); {
	case errors.Is(err, errUnsettled):
		return meta.Internal(errUnsettled) // not a refusal: the usage is not known
	case err != nil:
		return err
	}
	if l.fence != nil {
		r.Preconditions = append(r.Preconditions, admission.Precondition{Fence: &c.fence})
	}
	return nil
}

// charge is the usage that one write adds to the quotas of its namespace.
type charge struct {
	resource    meta.GroupResource
	key         meta.Key
	object, old *meta.Object // old is nil for a new object
	dryRun      bool
	retry       bool             // the write was admitted before: perhaps another server has raised the fence since
	fence       storage.Revision // the precondition of the write; read before anything is reserved

	ended bool // guarded by Ledger.mu

	reserved map[string]reservation // by uid of the quota; used by the goroutine that settles
}

// reservation is the part of status.used of a quota that belongs to a charge.
type reservation struct {
	amounts Amounts
	since   storage.Revision // of the quota when the reservation was added
}

// concerns reports whether the write may raise the usage of a quota, or be refused by it.
func (c *charge) concerns(q *snapshot) bool {
	return q.matches(c.resource, c.object) && (len(q.demand(c)) > 0 || q.unspecified(c.resource, c.object) != nil)
}

// stored reports whether the new object of a charge exists.
func (l *Ledger) stored(ctx context.Context, c *charge) bool {
	if c.old != nil {
		return false
	}
	obj, err := l.client.Get(ctx, c.resource, c.key)
	return err == nil && obj.UID() == c.object.UID()
}
