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
	"orch.io/controlplane/controller"
	"orch.io/controlplane/registry"
)

var namespaces = meta.GroupResource{Resource: "namespaces"}

// Content is a client of all that namespaces hold: of types that are not served, too.
type Content interface {
	controller.Client

	// Unknown returns how many objects a namespace holds of types that the server does not
	// have: another one may, over the same store, or this one had them once. Who they are
	// held by nobody here knows, so that they are not deleted.
	Unknown(ctx context.Context, namespace string) (map[meta.GroupResource]int, error)
}

// Namespaces empties namespaces that are being deleted, and lets them go when
// nothing is left. An object that was
// admitted before the deletion began may come after its namespace went: that is
// deleted too. Its keys are names of namespaces.
func Namespaces(p names.Profile, cl Content) controller.Controller {
	e := ending{}
	finalizer := p.Wire(names.NamespaceFinalizer)
	return controller.Controller{
		Name: "namespace", Identity: true, Forget: func() { clear(e) }, Observe: e.observe,
		Reconcile: func(ctx context.Context, _ controller.Client, name string) (time.Duration, error) {
			return emptyNamespace(ctx, cl, name, finalizer)
		},
	}
}

// ending are the namespaces that end, with the time when each went: zero as
// long as it is being deleted.
type ending map[string]time.Time

// straggle is how long a namespace that went is remembered: longer than a write
// can be on its way.
const straggle = 10 * time.Minute

// unreadableAgain is when a namespace with objects that cannot be read is looked
// at again.
const unreadableAgain = 10 * time.Second

func (e ending) observe(c controller.Event) []string {
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

// emptyNamespace deletes what is in a namespace that ends, and lets it go if
// nothing is left. Objects whose finalizers hold them bring the controller back when
// they go; that one went that cannot be read is no change, so there it looks again.
// What cannot be deleted is in the way of nothing but the namespace, unless it is a pod.
func emptyNamespace(ctx context.Context, cl Content, name, finalizer string) (again time.Duration, err error) {
	there, ends, err := namespaceState(ctx, cl, name)
	if err != nil || !ends {
		return 0, err
	}
	left, failed := deleteContent(ctx, cl, name)
	if slices.ContainsFunc(left, func(l Remaining) bool { return l.Unreadable != nil }) {
		again = unreadableAgain
	}
	switch {
	case !there:
		return again, errors.Join(failed...)
	case len(left) > 0 || len(failed) > 0:
		return again, errors.Join(append(failed, tellRemaining(ctx, cl, name, left, failed))...)
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
func namespaceState(ctx context.Context, cl controller.Client, name string) (there, ends bool, err error) {
	ns, err := cl.Get(ctx, namespaces, meta.Key{Name: name})
	switch {
	case meta.IsNotFound(err):
		return false, true, nil
	case err != nil:
		return false, false, err
	}
	return true, ns.Terminating(), nil
}

// deleteContent deletes the objects in a namespace and returns what stays, with an
// error for each type that could not be seen to. Pods go first, and as long as one is
// left nothing else is touched: what they run with, such as the policies that say who
// may reach them, has to outlive them.
func deleteContent(ctx context.Context, cl Content, name string) (left []Remaining, failed []error) {
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
			failed = append(failed, fmt.Errorf("deleting %s in %s: %w", t.GroupResource(), name, err))
		}
		if n.Objects > 0 {
			left = append(left, n)
		}
		if t.GroupResource() == pods && (n.Objects > 0 || err != nil) {
			break
		}
	}
	unknown, err := cl.Unknown(ctx, name)
	if err != nil {
		failed = append(failed, fmt.Errorf("looking for what else is in %s: %w", name, err))
	}
	for r, n := range unknown {
		left = append(left, Remaining{Resource: r, Objects: n, Unknown: true})
	}
	slices.SortFunc(left, func(a, b Remaining) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	return left, failed
}

// Remaining is what of one type waits for its finalizers, or cannot be read.
type Remaining struct {
	Resource   meta.GroupResource
	Objects    int
	Unknown    bool                        // the server does not have the type
	Finalizers map[string]int              // how many objects each holds
	Unreadable *controller.UnreadableError // nil: all can be read
}

// list returns the objects that can be read, and counts all into what remains.
func (left *Remaining) list(ctx context.Context, cl controller.Client, namespace string) ([]*meta.Object, error) {
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
func DeleteAll(ctx context.Context, cl controller.Client, t *registry.Type, namespace string) (Remaining, error) {
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
		err := cl.Delete(ctx, left.Resource, meta.Key{Namespace: o.Namespace(), Name: o.Name()}, controller.DeleteOptions{UID: o.UID(), Propagation: "Background"})
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

// tellRemaining writes into the namespace's status what it waits for, and what went
// wrong.
func tellRemaining(ctx context.Context, cl controller.Client, name string, left []Remaining, failed []error) error {
	var content, holders, faults []string
	for _, err := range failed {
		faults = append(faults, err.Error())
	}
	for _, l := range left {
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
