package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

var namespaces = meta.GroupResource{Resource: "namespaces"}

// Content is a client for all objects in namespaces, including objects of types that are not served.
type Content interface {
	client.Client

	// Unknown returns the number of objects in a namespace for each resource that the server does not know. Another
	// server over the same store may serve the resource, or this server had it once. They are not deleted, because
	// their finalizers and owners may have a meaning that this server does not know.
	Unknown(ctx context.Context, namespace string) (map[meta.GroupResource]int, error)
}

// ForeignCollections returns the namespaced collections of extension servers. unknown has an error for each version if its
// resources are not known at present.
type ForeignCollections func() (list []Collection, unknown []error)

// Collection is a namespaced resource of an extension server.
type Collection interface {
	// Delete deletes the objects in a namespace that are not being deleted yet. It may delete only a part of them if
	// there are many.
	Delete(ctx context.Context, namespace string) error
	// Remaining returns the objects that remain in a namespace.
	Remaining(ctx context.Context, namespace string) (Remaining, error)
}

// Namespaces returns the controller that deletes the objects in namespaces that are being deleted, including the
// objects of extension servers, and removes the finalizer of the namespace when nothing is left. A namespace stays as
// long as its content is not known. If a write was admitted before the deletion began, its object may be stored after
// the namespace is gone. The controller deletes such an object, too, if it is in this store. Its keys are names of
// namespaces.
func Namespaces(p names.Profile, cl Content, elsewhere ForeignCollections) client.Controller {
	foreign := &foreign{elsewhere, make(chan struct{}, maxForeign)}
	e, services := ending{}, meta.GroupResource{Group: p.Group(wellknown.GroupAggregation), Resource: "apiservices"}
	finalizer := p.Wire(wellknown.NamespaceFinalizer)
	return client.Controller{
		Name: "namespace", Identity: true, Forget: func() { clear(e) },
		MapEvent: func(c client.Event) []string {
			if c.Resource == services { // the content of extension servers may be known now
				return e.existing()
			}
			return e.observe(c)
		},
		Reconcile: func(ctx context.Context, _ client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			return emptyNamespace(ctx, cl, foreign, name, finalizer)
		},
	}
}

// ending maps the names of namespaces that are being deleted to the zero time, and the names of deleted namespaces to
// the time of the deletion. It is used only by MapEvent and Forget, which are not called concurrently.
type ending map[string]time.Time

// rememberDeleted is how long a deleted namespace is remembered. It is longer than any write can take.
const rememberDeleted = 10 * time.Minute

// pollInterval is the interval at which a namespace is reconciled if it waits for something without events:
// unreadable objects, unknown types, or extension servers.
const pollInterval = 10 * time.Second

// foreign deletes the objects of extension servers. These servers may be slow on purpose, so the number of namespaces
// and the time are limited, and namespaces without such objects are not delayed.
type foreign struct {
	elsewhere ForeignCollections
	slots     chan struct{}
}

const (
	maxForeign  = 4                // concurrent namespaces
	foreignTime = 30 * time.Second // for a namespace, in each reconciliation
)

// existing returns the namespaces that are being deleted and still exist.
func (e ending) existing() (list []string) {
	for name, deleted := range e {
		if deleted.IsZero() {
			list = append(list, name)
		}
	}
	return list
}

// observe records an event and returns the namespaces to reconcile.
func (e ending) observe(c client.Event) []string {
	if c.Resource != namespaces {
		deleted, deleting := e[c.Key.Namespace]
		if created := c.Old == nil; deleting && (deleted.IsZero() || created) {
			return []string{c.Key.Namespace}
		}
		return nil
	}
	name := c.Key.Name
	switch {
	case c.Object == nil:
		now := time.Now()
		maps.DeleteFunc(e, func(_ string, deleted time.Time) bool { return !deleted.IsZero() && now.Sub(deleted) > rememberDeleted })
		e[name] = now
	case c.Object.Terminating():
		e[name] = time.Time{}
		if old := c.Old; old != nil && old.UID() == c.Object.UID() && old.Terminating() && meta.Equal(old.Map("spec"), c.Object.Map("spec")) {
			return nil // only the status changed, which this controller writes itself
		}
	default:
		delete(e, name)
		return nil
	}
	return []string{name}
}

// content is the remaining content of a namespace, with the errors of its deletion.
type content struct {
	left    []Remaining
	failed  []error // errors of types and collections
	unknown []error // an error for each version without known resources
	foreign int     // number of entries in left that are of extension servers
	noSlot  bool    // the extension servers were not asked, because all slots are in use
}

// emptyNamespace deletes the content of a namespace that is being deleted or was deleted, and removes the finalizer
// of the namespace if nothing is left. The deletion of an object with finalizers triggers the controller again. There
// is no event when an unreadable object, an object of an unknown type, or an object of an extension server is
// deleted; then emptyNamespace returns pollInterval. An object that cannot be deleted delays only its namespace,
// unless it is a pod.
func emptyNamespace(ctx context.Context, cl Content, f *foreign, name, finalizer string) (again time.Duration, err error) {
	exists, deleting, err := namespaceState(ctx, cl, name)
	if err != nil || !deleting {
		return 0, err
	}
	var c content
	var others []Collection
	if exists {
		others, c.unknown = f.elsewhere()
	}
	if c.deleteTypes(ctx, cl, name) && len(others) > 0 {
		select {
		case f.slots <- struct{}{}:
			c.deleteOthers(ctx, cl, others, name)
			<-f.slots
		default:
			c.noSlot = true
		}
	}
	if c.noSlot || len(c.unknown) > 0 || c.foreign > 0 || slices.ContainsFunc(c.left, func(l Remaining) bool { return l.Unreadable != nil || l.Unknown }) {
		again = pollInterval
	}
	switch {
	case !exists:
		return again, errors.Join(c.failed...)
	case c.noSlot || len(c.left) > 0 || len(c.failed) > 0 || len(c.unknown) > 0:
		return again, errors.Join(append(c.failed, c.writeStatus(ctx, cl, name))...)
	}
	_, err = cl.Update(ctx, namespaces, meta.Key{Name: name}, "finalize", func(ns *meta.Object) error {
		if ns.Terminating() { // not a new namespace of that name
			rest := slices.DeleteFunc(slices.Clone(ns.List("spec", "finalizers")), func(f any) bool { return f == finalizer })
			ns.Set(rest, "spec", "finalizers")
		}
		return nil
	})
	return 0, unlessGone(err)
}

// namespaceState reports whether a namespace exists, and whether its content must be deleted.
func namespaceState(ctx context.Context, cl client.Client, name string) (exists, deleting bool, err error) {
	ns, err := cl.Get(ctx, namespaces, meta.Key{Name: name})
	switch {
	case meta.IsNotFound(err):
		return false, true, nil
	case err != nil:
		return false, false, err
	}
	return true, ns.Terminating(), nil
}

// deleteTypes deletes the objects in a namespace that are in this store. Pods are deleted first. As long as a pod is
// left, deleteTypes deletes nothing else and returns false: the objects that pods depend on, such as network
// policies, must outlive them.
func (c *content) deleteTypes(ctx context.Context, cl Content, name string) (podless bool) {
	types := slices.Clone(cl.Types())
	if i := slices.IndexFunc(types, func(t *registry.Type) bool { return t.GroupResource() == pods }); i > 0 {
		types[0], types[i] = types[i], types[0]
	}
	for _, t := range types {
		if !t.Namespaced || t.Virtual {
			continue
		}
		n, err := DeleteAll(ctx, cl, t, name)
		if err != nil {
			c.failed = append(c.failed, fmt.Errorf("deleting %s in %s: %w", t.GroupResource(), name, err))
		}
		if n.Objects > 0 {
			c.left = append(c.left, n)
		}
		if t.GroupResource() == pods && (n.Objects > 0 || err != nil) {
			return false
		}
	}
	unknown, err := cl.Unknown(ctx, name)
	if err != nil {
		c.failed = append(c.failed, fmt.Errorf("looking for objects of unknown types in %s: %w", name, err))
	}
	for r, n := range unknown {
		c.left = append(c.left, Remaining{Resource: r, Objects: n, Unknown: true})
	}
	slices.SortFunc(c.left, func(a, b Remaining) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	return true
}

// deleteOthers deletes the objects of extension servers in a namespace. Before each collection it checks that the
// namespace is still being deleted, because extension servers cannot distinguish the objects of a new namespace of
// the same name.
func (c *content) deleteOthers(ctx context.Context, cl client.Client, all []Collection, name string) {
	ctx, cancel := context.WithTimeout(ctx, foreignTime)
	defer cancel()
	for _, of := range all {
		exists, deleting, err := namespaceState(ctx, cl, name)
		if err == nil && !(exists && deleting) {
			return
		}
		if err == nil {
			err = of.Delete(ctx, name)
		}
		if ctx.Err() != nil {
			c.failed = append(c.failed, fmt.Errorf("extension servers did not delete their objects in %s in time: %w", name, cmp.Or(err, ctx.Err())))
			return
		}
		var left Remaining
		if err == nil {
			left, err = of.Remaining(ctx, name)
		}
		if err != nil {
			c.failed = append(c.failed, err)
		}
		if left.Objects > 0 {
			c.left, c.foreign = append(c.left, left), c.foreign+1
		}
	}
}

// Remaining counts the objects of a resource that wait for their finalizers or cannot be read.
type Remaining struct {
	Resource   meta.GroupResource
	Objects    int
	Unknown    bool                    // the server does not know the resource
	Finalizers map[string]int          // number of objects by finalizer
	Unreadable *client.UnreadableError // the unreadable objects; nil: none
}

// list returns the objects that can be read, and sets the number of all objects.
func (left *Remaining) list(ctx context.Context, cl client.Client, namespace string) ([]*meta.Object, error) {
	objects, err := cl.List(ctx, left.Resource, namespace)
	left.Objects, left.Unreadable = len(objects), nil
	if errors.As(err, &left.Unreadable) {
		left.Objects += len(left.Unreadable.Keys)
		return objects, nil
	}
	return objects, err
}

// DeleteAll deletes the objects of a type, in a namespace that is being deleted or, if namespace is empty,
// everywhere, and returns the objects that remain. Unreadable objects remain, because their finalizers and owners are
// unknown; an administrator must delete them. The error is the first one. It does not keep other objects from being
// deleted.
func DeleteAll(ctx context.Context, cl client.Client, t *registry.Type, namespace string) (Remaining, error) {
	left := Remaining{Resource: t.GroupResource(), Finalizers: map[string]int{}}
	objects, err := left.list(ctx, cl, namespace)
	if err != nil || len(objects) == 0 {
		return left, err
	}
	if namespace != "" {
		// A new namespace of the same name may exist by now. If the namespace is seen to be deleted after the list,
		// the listed objects are not in the new one.
		if _, deleting, err := namespaceState(ctx, cl, namespace); err != nil || !deleting {
			return Remaining{Resource: left.Resource}, err
		}
	}
	var failed error
	for _, o := range objects {
		if o.Terminating() {
			continue
		}
		err := cl.Delete(ctx, left.Resource, meta.Key{Namespace: o.Namespace(), Name: o.Name()},
			registry.DeleteOptions{UID: o.UID(), Version: o.ResourceVersion(), Propagation: "Background"})
		if err != nil && !meta.IsNotFound(err) && !meta.IsConflict(err) && failed == nil {
			failed = err
		}
		if ctx.Err() != nil {
			return left, ctx.Err()
		}
	}
	if objects, err = left.list(ctx, cl, namespace); err != nil {
		return left, cmp.Or(failed, err)
	}
	for _, o := range objects {
		for _, f := range o.Finalizers() {
			left.Finalizers[f]++
		}
	}
	return left, failed
}

// writeStatus writes the remaining content and the errors into the conditions of the namespace.
func (c *content) writeStatus(ctx context.Context, cl client.Client, name string) error {
	var content, holders, faults []string
	for _, err := range c.failed {
		faults = append(faults, err.Error())
	}
	for _, l := range c.left {
		if l.Unreadable != nil {
			faults = append(faults, l.Unreadable.Error())
		}
		if l.Unknown {
			faults = append(faults, fmt.Sprintf("%s: the store has objects of a kind that this server does not know; they are deleted when a server knows it", l.Resource))
		}
		content = append(content, fmt.Sprintf("%s has %d resource instances", l.Resource, l.Objects))
		for f, n := range l.Finalizers {
			holders = append(holders, fmt.Sprintf("%s in %d resource instances", f, n))
		}
	}
	slices.Sort(holders)
	_, err := cl.Update(ctx, namespaces, meta.Key{Name: name}, "status", func(ns *meta.Object) error {
		setCondition(ns, "NamespaceDeletionDiscoveryFailure", len(c.unknown) > 0,
			"DiscoveryFailed", fmt.Sprintf("Discovery failed for some groups, %d failing: %v", len(c.unknown), errors.Join(c.unknown...)),
			"ResourcesDiscovered", "All resources successfully discovered")
		setCondition(ns, "NamespaceDeletionContentFailure", len(faults) > 0,
			"ContentDeletionFailed", fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(faults), strings.Join(faults, ", ")),
			"ContentDeleted", "All content successfully deleted, may be waiting on finalization")
		setCondition(ns, "NamespaceContentRemaining", len(content) > 0,
			"SomeResourcesRemain", fmt.Sprintf("Some resources are remaining: %v", content),
			"ContentRemoved", "All content successfully removed")
		setCondition(ns, "NamespaceFinalizersRemaining", len(holders) > 0,
			"SomeFinalizersRemain", fmt.Sprintf("Some content in the namespace has finalizers remaining: %v", holders),
			"ContentHasNoFinalizers", "All content-preserving finalizers finished")
		return nil
	})
	return unlessGone(err)
}

// setCondition sets a condition to True with a reason and message if failing is set, and otherwise to False with the
// other reason and message.
func setCondition(ns *meta.Object, condition string, failing bool, reason, message, okReason, okMessage string) {
	status := "True"
	if !failing {
		status, reason, message = "False", okReason, okMessage
	}
	ns.SetCondition(condition, status, reason, message)
}
