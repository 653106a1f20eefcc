package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
)

// ownerReferencesPermissionEnforcement keeps people from having objects deleted that they
// may not delete, by changing whose they are, and from holding up the deletion of owners
// whose finalizers they may not change.
func ownerReferencesPermissionEnforcement() admission.Plugin {
	return admission.Plugin{
		Name: "OwnerReferencesPermissionEnforcement", Default: admission.Off,
		Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create, admission.Update}, Resources: []string{"*/*"}}},
		Validate: func(ctx context.Context, r *admission.Request) error {
			if !changed(r, "metadata", "ownerReferences") {
				return nil
			}
			del := auth.Action{User: r.User, Verb: "delete", Group: r.RequestResource.Group, Version: r.RequestResource.Version,
				Resource: r.Resource.Resource, Namespace: r.Namespace, Name: r.Name}
			if r.Operation != admission.Create && !allowed(ctx, r, del) {
				return errors.New("cannot set an ownerRef on a resource you can't delete")
			}
			for _, owner := range newBlockers(r) {
				if err := mayBlock(ctx, r, owner); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func allowed(ctx context.Context, r *admission.Request, a auth.Action) bool {
	d, _, _ := r.Server.Authorizer.Authorize(ctx, a)
	return d == auth.Allow
}

// newBlockers returns the owners that the object holds up and did not before.
func newBlockers(r *admission.Request) []meta.OwnerReference {
	before := r.Old.OwnerReferences()
	return slices.DeleteFunc(r.Object.OwnerReferences(), func(owner meta.OwnerReference) bool {
		return !owner.BlockOwnerDeletion || slices.ContainsFunc(before, func(old meta.OwnerReference) bool {
			old.Controller = owner.Controller
			return old == owner
		})
	})
}

// mayBlock asks for the right to change the finalizers of an owner, of every resource
// that has its kind.
func mayBlock(ctx context.Context, r *admission.Request, owner meta.OwnerReference) error {
	version, known := meta.ParseAPIVersion(owner.APIVersion), false
	for _, t := range r.Server.Client.Types() {
		if t.Kind != owner.Kind || !slices.Contains(t.ServedVersions, version) {
			continue
		}
		known = true
		update := auth.Action{User: r.User, Verb: "update", Group: version.Group, Version: version.Version,
			Resource: t.Plural, Subresource: "finalizers", Name: owner.Name}
		if t.Namespaced {
			update.Namespace = r.Namespace
		}
		if !allowed(ctx, r, update) {
			return errors.New("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on")
		}
	}
	if !known {
		return fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s", owner.APIVersion, owner.Kind)
	}
	return nil
}
