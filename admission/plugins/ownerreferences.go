package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/registry"
)

// ownerReferencesPermissionEnforcement requires the right to delete the object for changes of its owner
// references, because the garbage collector deletes it with its owner, and the right to update the finalizers
// of an owner for setting blockOwnerDeletion.
func ownerReferencesPermissionEnforcement() admission.Plugin {
	return admission.Plugin{
		Name: "OwnerReferencesPermissionEnforcement", Default: admission.Off,
		Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create, admission.Update}, Resources: []string{"*/*"}}},
		Validate: func(ctx context.Context, r *admission.Request) error {
			if !changed(r, "metadata", "ownerReferences") {
				return nil
			}
			del := auth.Attributes{User: r.User, Verb: "delete", Group: r.RequestResource.Group, Version: r.RequestResource.Version,
				Resource: r.Resource.Resource, Namespace: r.Namespace, Name: r.Name}
			if r.Operation != admission.Create && !allowed(ctx, r, del) {
				return errors.New("cannot set an ownerRef on a resource you can't delete")
			}
			return mayBlock(ctx, r, newBlockers(r))
		},
	}
}

func allowed(ctx context.Context, r *admission.Request, a auth.Attributes) bool {
	if actor.Is(ctx, r.User) {
		return true
	}
	d, _, _ := r.Server.Authorizer.Authorize(ctx, a)
	return d == auth.Allow
}

// newBlockers returns the owner references with blockOwnerDeletion that the object did not have before.
func newBlockers(r *admission.Request) []meta.Owner {
	known := map[meta.Owner]bool{}
	for _, owner := range r.Old.OwnerReferences() {
		owner.Controller = false
		known[owner] = true
	}
	return slices.DeleteFunc(r.Object.OwnerReferences(), func(owner meta.Owner) bool {
		owner.Controller = false
		return !owner.BlockOwnerDeletion || known[owner]
	})
}

// mayBlock returns an error unless the user may update the finalizers of all owners. If a kind has several
// resources, it requires the right for each.
func mayBlock(ctx context.Context, r *admission.Request, owners []meta.Owner) error {
	if len(owners) == 0 {
		return nil
	}
	types := map[meta.GroupVersion]map[string][]*registry.Type{} // by version and kind
	for _, t := range r.Server.Client.Types() {
		for _, version := range t.ServedVersions {
			if types[version] == nil {
				types[version] = map[string][]*registry.Type{}
			}
			types[version][t.Kind] = append(types[version][t.Kind], t)
		}
	}
	checked := map[finalizersOf]bool{}
	for _, owner := range owners {
		version := meta.ParseAPIVersion(owner.APIVersion)
		if err := mayBlockOne(ctx, r, owner, version, types[version][owner.Kind], checked); err != nil {
			return err
		}
	}
	return nil
}

// maxBlockers bounds the new owner references with blockOwnerDeletion in a write, because each needs a call of the
// authorizer, which may be a webhook.
const maxBlockers = 100

// finalizersOf identifies the owner of a finalizers check, so that each owner is checked once.
type finalizersOf struct {
	version        meta.GroupVersion
	resource, name string
}

func mayBlockOne(ctx context.Context, r *admission.Request, owner meta.Owner, version meta.GroupVersion, types []*registry.Type, checked map[finalizersOf]bool) error {
	for _, t := range types {
		key := finalizersOf{version, t.Plural, owner.Name}
		if checked[key] {
			continue
		}
		if len(checked) == maxBlockers {
			return fmt.Errorf("cannot set blockOwnerDeletion on more than %d new ownerReferences at once", maxBlockers)
		}
		checked[key] = true
		update := auth.Attributes{User: r.User, Verb: "update", Group: version.Group, Version: version.Version,
			Resource: t.Plural, Subresource: "finalizers", Name: owner.Name}
		if t.Namespaced {
			update.Namespace = r.Namespace
		}
		if !allowed(ctx, r, update) {
			return errors.New("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on")
		}
	}
	if len(types) == 0 {
		return fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s", owner.APIVersion, owner.Kind)
	}
	return nil
}
