package aggregator

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Values of the label of objects that this server makes for what it serves itself: those of
// registered kinds are put right at the start, those of definitions always. Objects without
// the label are somebody else's.
const (
	onStart = "onstart"
	always  = "true"
)

// Registration returns the controller that makes the APIServices of what is served here.
// changes are the types of what may change that.
func (a *Aggregator) Registration(changes ...meta.GroupResource) client.Controller {
	return client.Controller{
		Name: "apiservice-registration", Types: append([]meta.GroupResource{a.Resource()}, changes...), Identity: true,
		MapEvent: func(client.Event) []string { return []string{"all"} },
		Reconcile: func(ctx context.Context, client client.Client, _ string) (time.Duration, error) {
			return 0, a.Register(ctx, client)
		},
	}
}

// Register makes the objects that are missing, and puts those right that are not. The first
// call is the one of the start.
func (a *Aggregator) Register(ctx context.Context, client client.Client) error {
	first := !a.registered.Load()
	wanted := map[string]*meta.Object{}
	for _, v := range a.o.Local() {
		if v.Group != a.own { // it is there before any object
			o := a.object(v)
			wanted[o.Name()] = o
		}
	}
	list, err := client.List(ctx, a.Resource(), "")
	if err != nil {
		return err
	}
	for _, there := range list {
		want := wanted[there.Name()]
		delete(wanted, there.Name())
		if err := a.correct(ctx, client, there, want, first); err != nil {
			return err
		}
	}
	for _, o := range wanted {
		if !first && a.mark(o) == onStart {
			continue // somebody wants it to be gone
		}
		if _, err := client.Create(ctx, a.Resource(), o); err != nil && !meta.IsAlreadyExists(err) {
			return err
		}
	}
	a.registered.Store(true)
	return nil
}

// correct puts an object right that is there, or deletes one that nobody needs; want is nil
// then.
func (a *Aggregator) correct(ctx context.Context, client client.Client, there, want *meta.Object, first bool) error {
	mark := a.mark(there)
	if there.Terminating() || mark != always && (mark != onStart || !first) {
		return nil
	}
	var err error
	switch {
	case want == nil:
		err = client.Delete(ctx, a.Resource(), meta.Key{Name: there.Name()}, registry.DeleteOptions{UID: there.UID()})
	case a.mark(want) != mark || !meta.Equal(there.Map("spec"), want.Map("spec")):
		_, err = client.Update(ctx, a.Resource(), meta.Key{Name: there.Name()}, "", func(o *meta.Object) error {
			o.Set(meta.Clone(want.Map("spec")), "spec")
			o.Set(a.mark(want), "metadata", "labels", a.label())
			return nil
		})
	}
	if meta.IsNotFound(err) || meta.IsConflict(err) {
		return nil // it changed meanwhile: that comes as a change
	}
	return err
}

func (a *Aggregator) label() string { return a.o.Names.Wire(wellknown.AutoManaged) }

func (a *Aggregator) mark(o *meta.Object) string { return o.Labels()[a.label()] }

// object makes the APIService of a version that is served here.
func (a *Aggregator) object(v LocalVersion) *meta.Object {
	p, mark := defaultPriority(a.o.Names, v.GroupVersion), onStart
	if v.Defined {
		mark = always
	}
	spec := map[string]any{"version": v.Version, "groupPriorityMinimum": p.Group, "versionPriority": p.Version}
	if v.Group != "" {
		spec["group"] = v.Group
	}
	o := meta.NewObject(map[string]any{
		"metadata": map[string]any{"name": v.Version + "." + v.Group, "labels": map[string]any{a.label(): mark}}, "spec": spec,
	})
	o.SetGVK(meta.GroupVersionKind{Group: a.own, Version: "v1", Kind: "APIService"})
	return o
}
