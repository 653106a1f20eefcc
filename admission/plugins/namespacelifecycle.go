package plugins

import (
	"context"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// namespaceLifecycle refuses new objects in namespaces that do not exist or are terminating, and the deletion
// of the default and system namespaces.
func namespaceLifecycle() admission.Plugin {
	return admission.Plugin{
		Name: "NamespaceLifecycle",
		Rules: []admission.Rule{
			{Operations: []admission.Operation{admission.Create}, Scope: admission.Namespaced},
			{Operations: []admission.Operation{admission.Delete}, Groups: []string{""}, Resources: []string{"namespaces"}},
		},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			fixed := []string{"default", env.Names.SystemNamespace("system"), env.Names.SystemNamespace("public")}
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				switch {
				case env.Type(namespacesResource) == nil:
					return nil
				case r.Operation == admission.Create:
					return openNamespace(ctx, env, r)
				case slices.Contains(fixed, r.Name):
					return meta.Forbidden(namespacesResource, r.Name, "this namespace may not be deleted")
				}
				return nil
			}
			return nil
		},
	}
}

var namespacesResource = meta.GroupResource{Resource: "namespaces"}

// openNamespace checks that the namespace of a new object exists and is not terminating. A precondition keeps
// that true until the object is committed.
func openNamespace(ctx context.Context, env admission.PluginContext, r *admission.Request) error {
	access := meta.GroupResource{Group: env.Names.Group(wellknown.GroupAuthorization), Resource: "localsubjectaccessreviews"}
	if r.Resource.GroupResource() == access {
		return nil // every user may ask about access; a refusal would tell them whether the namespace exists
	}
	namespace, err := env.Client.Get(ctx, namespacesResource, meta.Key{Name: r.Namespace})
	if err != nil {
		return err
	}
	if !namespace.Terminating() {
		notTerminating := func(now *meta.Object) bool { return !now.Terminating() }
		r.Preconditions = append(r.Preconditions, admission.Precondition{Resource: namespacesResource, Object: namespace, Holds: notTerminating})
		return nil
	}
	why := fmt.Sprintf("unable to create new content in namespace %s because it is being terminated", r.Namespace)
	st := meta.Forbidden(r.Resource.GroupResource(), r.Name, why)
	st.Details.Causes = []meta.StatusCause{{
		Reason: meta.CauseNSTerminating, Field: "metadata.namespace", Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace),
	}}
	return st
}
