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

// Content is a client of all that namespaces hold: of types that are not served, too.
type Content interface {
	client.Client

	// Unknown returns how many objects a namespace holds of types that the server does not
	// have: another one may, over the same store, or this one had them once. Who they are
	// held by nobody here knows, so that they are not deleted.
	Unknown(ctx context.Context, namespace string) (map[meta.GroupResource]int, error)
}

// Elsewhere returns the collections in namespaces that other servers keep. Each error is of
// a version of which nobody can tell now what it has.
type Elsewhere func() (list []Collection, unknown []error)

// Collection is a resource whose objects another server keeps in namespaces.
type Collection interface {
	// Delete deletes the objects in a namespace that are not being deleted yet, or some of
	// them if they are many.
	Delete(ctx context.Context, namespace string) error
	// Left returns what is in a namespace.
	Left(ctx context.Context, namespace string) (Remaining, error)
}

// Namespaces empties namespaces that are being deleted, also of what other servers keep in
// them, and lets them go when nothing is left. As long as nobody can tell what that is, they
// stay. An object that was admitted before the deletion began may come after its namespace
// went: that is deleted too, if it is kept here. Its keys are names of namespaces.
func Namespaces(p names.Profile, cl Content, elsewhere Elsewhere) client.Controller {
	foreign := &foreign{elsewhere, make(chan struct{}, maxForeign)}
	e, services := ending{}, meta.GroupResource{Group: p.Group(wellknown.GroupAggregation), Resource: "apiservices"}
	finalizer := p.Wire(wellknown.NamespaceFinalizer)
	return client.Controller{
		Name: "namespace", Identity: true, Forget: func() { clear(e) },
		MapEvent: func(c client.Event) []string {
			if c.Resource == services { // what other servers have may be known now
				return e.there()
			}
			return e.observe(c)
		},
		Reconcile: func(ctx context.Context, _ client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			return emptyNamespace(ctx, cl, foreign, name, finalizer)
		},
	}
}

// ending are the namespaces that end, with the time when each went: zero as
// long as it is being deleted.
type ending map[string]time.Time

// straggle is how long a namespace that went is remembered: longer than a write
// can be on its way.
const straggle = 10 * time.Minute

// unseenAgain is when a namespace is looked at again that waits for what no change tells of:
// objects that cannot be read, and those of other servers.
const unseenAgain = 10 * time.Second

// foreign is what other servers keep in namespaces. They may be slow on purpose: places and
// time for them are bounded, so that namespaces without anything of theirs go meanwhile.
type foreign struct {
	elsewhere Elsewhere
	places    chan struct{}
}

const (
	maxForeign  = 4                // namespaces at a time
	foreignTime = 30 * time.Second // for one of them, each time
)

// there returns the namespaces that end and have not gone.
func (e ending) there() (list []string) {
	for name, went := range e {
		if went.IsZero() {
			list = append(list, name)
		}
	}
	return list
}

func (e ending) observe(c client.Event) []string {
	if c.Resource != namespaces {
		went, ends := e[c.Key.Namespace]
		if came := c.Old == nil; ends && (went.IsZero() || came) {
			return []string{c.Key.Namespace}
		}
		return nil
	}
	name := c.Key.Name
	switch {
	case c.Object == nil:
		now := time.Now()
		maps.DeleteFunc(e, func(_ string, went time.Time) bool { return !went.IsZero() && now.Sub(went) > straggle })
		e[name] = now
	case c.Object.Terminating():
		e[name] = time.Time{}
		if old := c.Old; old != nil && old.UID() == c.Object.UID() && old.Terminating() && meta.Equal(old.Map("spec"), c.Object.Map("spec")) {
			return nil // what this controller tells in the status is no reason to look again
		}
	default:
		delete(e, name)
		return nil
	}
	return []string{name}
}

// content is what is left in a namespace, with what went wrong.
type content struct {
	left    []Remaining
	failed  []error // for each type that could not be seen to
	unknown []error // for each version of which nobody can tell what it has
	foreign int     // of left, how many are of other servers
	waits   bool    // for a place at other servers
}

// emptyNamespace deletes what is in a namespace that ends, and lets it go if
// nothing is left. Objects whose finalizers hold them bring the controller back when
// they go; that one went that cannot be read, is of a type that is not known, or is another
// server's, is no change, so there it looks again. What cannot be deleted is in the way of nothing but the namespace, unless
// it is a pod.
func emptyNamespace(ctx context.Context, cl Content, f *foreign, name, finalizer string) (again time.Duration, err error) {
	there, ends, err := namespaceState(ctx, cl, name)
	if err != nil || !ends {
		return 0, err
	}
	var c content
	var others []Collection
	if there {
		others, c.unknown = f.elsewhere()
	}
	if c.deleteTypes(ctx, cl, name) && len(others) > 0 {
		select {
		case f.places <- struct{}{}:
			c.deleteOthers(ctx, cl, others, name)
			<-f.places
		default:
			c.waits = true
		}
	}
	if c.waits || len(c.unknown) > 0 || c.foreign > 0 || slices.ContainsFunc(c.left, func(l Remaining) bool { return l.Unreadable != nil || l.Unknown }) {
		again = unseenAgain
	}
	switch {
	case !there:
		return again, errors.Join(c.failed...)
	case c.waits || len(c.left) > 0 || len(c.failed) > 0 || len(c.unknown) > 0:
		return again, errors.Join(append(c.failed, c.tell(ctx, cl, name))...)
	}
	_, err = cl.Update(ctx, namespaces, meta.Key{Name: name}, "finalize", func(ns *meta.Object) error {
		if ns.Terminating() { // and not another of the name
			rest := slices.DeleteFunc(slices.Clone(ns.List("spec", "finalizers")), func(f any) bool { return f == finalizer })
			ns.Set(rest, "spec", "finalizers")
		}
		return nil
	})
	return 0, unlessGone(err)
}

// namespaceState tells whether a namespace is there, and whether what is in it
// has to go.
func namespaceState(ctx context.Context, cl client.Client, name string) (there, ends bool, err error) {
	ns, err := cl.Get(ctx, namespaces, meta.Key{Name: name})
	switch {
	case meta.IsNotFound(err):
		return false, true, nil
	case err != nil:
		return false, false, err
	}
	return true, ns.Terminating(), nil
}

// deleteTypes deletes the objects in a namespace. Pods go first, and as long as one is
// left nothing else is touched, which the result tells: what they run with, such as the
// policies that say who may reach them, has to outlive them.
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
		c.failed = append(c.failed, fmt.Errorf("looking for what else is in %s: %w", name, err))
	}
	for r, n := range unknown {
		c.left = append(c.left, Remaining{Resource: r, Objects: n, Unknown: true})
	}
	slices.SortFunc(c.left, func(a, b Remaining) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	return true
}

// deleteOthers deletes what other servers keep in a namespace. A namespace of the same name
// may have come meanwhile, whose objects they cannot tell from those.
func (c *content) deleteOthers(ctx context.Context, cl client.Client, all []Collection, name string) {
	ctx, cancel := context.WithTimeout(ctx, foreignTime)
	defer cancel()
	for _, of := range all {
		there, ends, err := namespaceState(ctx, cl, name)
		if err == nil && !(there && ends) {
			return
		}
		if err == nil {
			err = of.Delete(ctx, name)
		}
		if ctx.Err() != nil {
			c.failed = append(c.failed, fmt.Errorf("other servers take too long to empty %s: %w", name, cmp.Or(err, ctx.Err())))
			return
		}
		var left Remaining
		if err == nil {
			left, err = of.Left(ctx, name)
		}
		if err != nil {
			c.failed = append(c.failed, err)
		}
		if left.Objects > 0 {
			c.left, c.foreign = append(c.left, left), c.foreign+1
		}
	}
}

// Remaining is what of one type waits for its finalizers, or cannot be read.
type Remaining struct {
	Resource   meta.GroupResource
	Objects    int
	Unknown    bool                    // the server does not have the type
	Finalizers map[string]int          // how many objects each holds
	Unreadable *client.UnreadableError // nil: all can be read
}

// list returns the objects that can be read, and counts all into what remains.
func (left *Remaining) list(ctx context.Context, cl client.Client, namespace string) ([]*meta.Object, error) {
	objects, err := cl.List(ctx, left.Resource, namespace)
	left.Objects, left.Unreadable = len(objects), nil
	if errors.As(err, &left.Unreadable) {
		left.Objects += len(left.Unreadable.Keys)
		return objects, nil
	}
	return objects, err
}

// DeleteAll deletes the objects of a type, in a namespace that ends or (with an
// empty name) everywhere, and returns what stays. An object that cannot be read
// is one of these, for nobody knows who holds it: whoever may has to delete it. The
// error is the first one; it keeps no other object from being deleted.
func DeleteAll(ctx context.Context, cl client.Client, t *registry.Type, namespace string) (Remaining, error) {
	left := Remaining{Resource: t.GroupResource(), Finalizers: map[string]int{}}
	objects, err := left.list(ctx, cl, namespace)
	if err != nil || len(objects) == 0 {
		return left, err
	}
	if namespace != "" {
		// A namespace of the same name may have come meanwhile; what was
		// listed before it is seen to end is not of that one.
		if _, ends, err := namespaceState(ctx, cl, namespace); err != nil || !ends {
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

// tell writes into the namespace's status what it waits for, and what went wrong.
func (c *content) tell(ctx context.Context, cl client.Client, name string) error {
	var content, holders, faults []string
	for _, err := range c.failed {
		faults = append(faults, err.Error())
	}
	for _, l := range c.left {
		if l.Unreadable != nil {
			faults = append(faults, l.Unreadable.Error())
		}
		if l.Unknown {
			faults = append(faults, fmt.Sprintf("%s: the store holds objects of a kind that this server does not have; they go once a server has it", l.Resource))
		}
		content = append(content, fmt.Sprintf("%s has %d resource instances", l.Resource, l.Objects))
		for f, n := range l.Finalizers {
			holders = append(holders, fmt.Sprintf("%s in %d resource instances", f, n))
		}
	}
	slices.Sort(holders)
	_, err := cl.Update(ctx, namespaces, meta.Key{Name: name}, "status", func(ns *meta.Object) error {
		told(ns, "NamespaceDeletionDiscoveryFailure", len(c.unknown) > 0,
			"DiscoveryFailed", fmt.Sprintf("Discovery failed for some groups, %d failing: %v", len(c.unknown), errors.Join(c.unknown...)),
			"ResourcesDiscovered", "All resources successfully discovered")
		told(ns, "NamespaceDeletionContentFailure", len(faults) > 0,
			"ContentDeletionFailed", fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(faults), strings.Join(faults, ", ")),
			"ContentDeleted", "All content successfully deleted, may be waiting on finalization")
		told(ns, "NamespaceContentRemaining", len(content) > 0,
			"SomeResourcesRemain", fmt.Sprintf("Some resources are remaining: %v", content),
			"ContentRemoved", "All content successfully removed")
		told(ns, "NamespaceFinalizersRemaining", len(holders) > 0,
			"SomeFinalizersRemain", fmt.Sprintf("Some content in the namespace has finalizers remaining: %v", holders),
			"ContentHasNoFinalizers", "All content-preserving finalizers finished")
		return nil
	})
	return unlessGone(err)
}

// told sets a condition to whether something is amiss, and why or why not.
func told(ns *meta.Object, condition string, amiss bool, reason, message, otherwise, instead string) {
	status := "True"
	if !amiss {
		status, reason, message = "False", otherwise, instead
	}
	ns.SetCondition(condition, status, reason, message)
}
