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
// Before a write is committed, its usage is added to status.used of its quotas by compare-and-swap, so that servers
// over the same store see each other's usage. Concurrent writes of a namespace are processed together: a single update
// of each quota reserves the usage of all of them.
//
// When objects are deleted or writes fail, the Ledger counts the objects and lowers the usage. A count cannot distinguish
// the usage of a failed write from the usage of a write that is not committed yet. Therefore each write has a
// precondition: the fence of its namespace must be the same as before its usage was added. A count that lowers the
// usage first raises the fence and then lists the objects. The object of a write with the old fence is either in the
// list or can no longer be stored.
//
// The usage is not part of the commit of the object. A batch of commits would give several objects of a kind the same
// revision, and a watch that resumes at this revision would miss some of them; a commit of each object with its quota
// would make the creates of a namespace sequential.
type Ledger struct {
	client  client.Client // reads the latest state, and updates statuses without admission
	typeOf  func(meta.GroupResource) *registry.Type
	naming  naming
	limited []Limited
	quotas  *client.Index[index]
	enqueue func(namespace string, after time.Duration) // schedules a count of the namespace

	fence, raise func(ctx context.Context, namespace string) (storage.Revision, error) // see admission.PluginContext; nil: no other server shares the store

	mu       sync.Mutex // guards accounts, and the marked fields of account and charge
	accounts map[string]*account
}

// NewLedger returns a Ledger and registers its controller with the server. Objects of limited resources cannot be
// created without a matching quota.
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

// Close stops the watch of quotas.
func (l *Ledger) Close() { l.quotas.Close() }

// of returns the quotas of a namespace, sorted by name.
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

// Admit reserves the usage of a write, or returns an error if it exceeds a quota of its namespace. After a write that
// may lower the usage, it schedules a count.
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
		return l.reserve(ctx, r)
	}
	return nil
}

// mayGrow reports whether an update can raise the usage of an object. An update of a terminating object that keeps its
// spec cannot, so quotas never prevent the removal of finalizers.
func mayGrow(r *admission.Request) bool {
	switch resource := r.Resource.GroupResource(); {
	case r.Old.Terminating() && meta.Equal(r.Old.Map("spec"), r.Object.Map("spec")):
		return false
	case resource == pods:
		// activeDeadlineSeconds changes the pod's scopes; the other fields in scopes are immutable.
		return r.Subresource == "resize" ||
			r.Subresource == "" && hasDeadline(meta.NewObject(r.Old.Map("spec"))) != hasDeadline(meta.NewObject(r.Object.Map("spec")))
	default:
		return (resource == services || resource == claims) && r.Subresource == ""
	}
}

// reserve adds the usage of a write to all quotas that count its object, or returns the refusal of a quota. If the
// write fails later, the usage is released.
func (l *Ledger) reserve(ctx context.Context, r *admission.Request) error {
	resource := r.Resource.GroupResource()
	limited := l.isLimited(resource)
	if !limited && !l.bounded(r.Namespace, resource) {
		return nil
	}
	c := &charge{
		resource: resource, key: meta.Key{Namespace: r.Namespace, Name: r.Name}, object: r.Object, old: r.Old, dryRun: r.DryRun, retry: r.Attempt > 0,
		reserved: map[string]reservation{},
	}
	all := l.of(r.Namespace)
	if limited {
		if err := l.missingQuota(c, all); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(all, c.concerns) {
		return nil
	}
	c.object = l.naming.extract(resource, r.Object) // a copy: other goroutines read it while the writer continues
	t, a := newTask(c, false), l.open(r.Namespace)
	r.After(func(written, certain bool) {
		defer a.close()
		a.writeEnded(context.WithoutCancel(ctx), t, written, certain)
	})
	switch err := a.do(ctx, t); {
	case errors.Is(err, errNotUpdated):
		return meta.Internal(errNotUpdated) // 500 instead of a refusal, because the usage is not known
	case err != nil:
		return err
	}
	if l.fence != nil {
		r.Preconditions = append(r.Preconditions, admission.Precondition{Fence: &c.fence})
	}
	return nil
}

// charge is the usage that a write adds to the quotas of its namespace.
type charge struct {
	resource    meta.GroupResource
	key         meta.Key
	object, old *meta.Object // old is nil for a new object
	dryRun      bool
	retry       bool             // the write was admitted before; another server may have raised the fence since
	fence       storage.Revision // precondition of the write; read before the reservation

	ended bool // the write has ended; guarded by Ledger.mu

	reserved map[string]reservation // by uid of the quota; accessed only by the holder of account.lock
}

// reservation is a charge's part of status.used of a quota.
type reservation struct {
	amounts Amounts
	since   storage.Revision // of the quota after the reservation was written
}

// concerns reports whether the quota may refuse the write, or the write may raise its usage.
func (c *charge) concerns(q *snapshot) bool {
	return q.matches(c.resource, c.object) && (len(q.demand(c)) > 0 || q.unspecified(c.resource, c.object) != nil)
}

// stored reports whether the object of a create exists. For an update it returns false.
func (l *Ledger) stored(ctx context.Context, c *charge) bool {
	if c.old != nil {
		return false
	}
	obj, err := l.client.Get(ctx, c.resource, c.key)
	return err == nil && obj.UID() == c.object.UID()
}
