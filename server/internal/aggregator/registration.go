package aggregator

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Values of the label of the APIServices that this server creates for the versions that it serves itself. Objects for
// registered kinds (onStart) are corrected only when the server starts, objects for definitions at any time. Objects
// without the label belong to users and are not changed.
const (
	onStart = "onstart"
	always  = "true"
)

// Registration returns the controller that creates the APIServices of the versions that this server serves itself. It
// also runs after changes of the types in changes, which may change these versions.
func (a *Aggregator) Registration(changes ...meta.GroupResource) client.Controller {
	return client.Controller{
		Name: "apiservice-registration", Types: append([]meta.GroupResource{a.Resource()}, changes...), Identity: true,
		MapEvent: func(client.Event) []string { return []string{"all"} },
		Reconcile: func(ctx context.Context, client client.Client, _ string) (time.Duration, error) {
			return 0, a.Register(ctx, client)
		},
	}
}

// Register creates missing APIServices, and corrects or deletes existing ones. Its first call is at the start
// of the server.
func (a *Aggregator) Register(ctx context.Context, client client.Client) error {
	first := !a.registered.Load()
	wanted := map[string]*meta.Object{}
	for _, v := range a.o.Local() {
		if v.Group != a.own { // its APIServices are not needed: it is always served
			o := a.object(v)
			wanted[o.Name()] = o
		}
	}
	list, err := client.List(ctx, a.Resource(), "")
	if err != nil {
		return err
	}
	for _, existing := range list {
		want := wanted[existing.Name()]
		delete(wanted, existing.Name())
		if err := a.update(ctx, client, existing, want, first); err != nil {
			return err
		}
	}
	for _, o := range wanted {
		if !first && a.managedLabel(o) == onStart {
			continue // a user has deleted it
		}
		if _, err := client.Create(ctx, a.Resource(), o); err != nil && !meta.IsAlreadyExists(err) {
			return err
		}
	}
	a.registered.Store(true)
	return nil
}

// update corrects an existing object, or deletes it if want is nil.
func (a *Aggregator) update(ctx context.Context, client client.Client, existing, want *meta.Object, first bool) error {
	mark := a.managedLabel(existing)
	if existing.Terminating() || mark != always && (mark != onStart || !first) {
		return nil
	}
	var err error
	switch {
	case want == nil:
		err = client.Delete(ctx, a.Resource(), meta.Key{Name: existing.Name()}, registry.DeleteOptions{UID: existing.UID()})
	case a.managedLabel(want) != mark || !meta.Equal(existing.Map("spec"), want.Map("spec")):
		_, err = client.Update(ctx, a.Resource(), meta.Key{Name: existing.Name()}, "", func(o *meta.Object) error {
			o.Set(meta.Clone(want.Map("spec")), "spec")
			o.Set(a.managedLabel(want), "metadata", "labels", a.label())
			return nil
		})
	}
	if meta.IsNotFound(err) || meta.IsConflict(err) {
		return nil // the controller is triggered by the change
	}
	return err
}

func (a *Aggregator) label() string { return a.o.Names.Wire(wellknown.AutoManaged) }

func (a *Aggregator) managedLabel(o *meta.Object) string { return o.Labels()[a.label()] }

// object returns the APIService of a version that this server serves itself.
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
