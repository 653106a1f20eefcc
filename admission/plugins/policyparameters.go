package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// policyParameters prevents users from reading objects through admission policies that they may not read
// themselves: expressions see the parameters, and their messages can reveal them. A policy requires the right
// to get all objects of its paramKind. A binding requires the right to get the object, or list the objects,
// of its paramRef.
func policyParameters() admission.Plugin {
	return admission.Plugin{
		Name: "AdmissionPolicyParameters", Default: admission.Required,
		Rules: on(wellknown.GroupRegistration, []string{
			"validatingadmissionpolicies", "mutatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicybindings",
		}, admission.Create, admission.Update),
		Validate: func(ctx context.Context, r *admission.Request) error {
			var f check.Violations
			if policies, ok := strings.CutSuffix(r.Resource.Resource, "policybindings"); ok {
				f = checkBinding(ctx, r, policies+"policies")
			} else {
				f = checkPolicy(ctx, r)
			}
			if len(f) == 0 {
				return nil
			}
			return meta.Invalid(r.Kind.GroupKind(), r.Name, f)
		},
	}
}

func checkPolicy(ctx context.Context, r *admission.Request) (f check.Violations) {
	kind := r.Object.Map("spec", "paramKind")
	if kind == nil || !changed(r, "spec", "paramKind") {
		return nil
	}
	a := paramAttributes(r, kind)
	a.Verb, a.Name, a.Namespace = "get", "*", "*"
	if !allowed(ctx, r, a) {
		f.Forbidden(check.At("spec", "paramKind"), fmt.Sprintf("user %q must have \"get\" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)",
			r.User.Name, r.Object.String("spec", "paramKind", "kind"), r.Object.String("spec", "paramKind", "apiVersion")))
	}
	return f
}

// checkBinding checks every write of a binding, changed or not, because the policy may have another paramKind
// than at the last write.
func checkBinding(ctx context.Context, r *admission.Request, policies string) (f check.Violations) {
	if r.Object.Map("spec", "paramRef") == nil {
		return nil
	}
	name := r.Object.String("spec", "policyName")
	policy, err := r.Server.Client.Get(ctx, meta.GroupResource{Group: r.Resource.Group, Resource: policies}, meta.Key{Name: name})
	a := paramAttributes(r, policy.Map("spec", "paramKind"))
	a.Verb, a.Name, a.Namespace = "get", r.Object.String("spec", "paramRef", "name"), r.Object.String("spec", "paramRef", "namespace")
	if a.Name == "" {
		a.Verb = "list"
	}
	switch at := check.At("spec", "paramRef"); {
	case allowed(ctx, r, a):
	case err != nil:
		f.Forbidden(at, fmt.Sprintf("unable to get policy %s to determine minimum required permissions and user %q does not have %q permission for all groups, versions and resources", name, r.User.Name, a.Verb))
	default:
		f.Forbidden(at, fmt.Sprintf("user %q does not have %q permission on the object referenced by paramRef", r.User.Name, a.Verb))
	}
	return f
}

// paramAttributes returns the attributes for reading objects of the kind. If the kind is unknown, they ask
// for the right to read all resources.
func paramAttributes(r *admission.Request, kind map[string]any) auth.Attributes {
	a := auth.Attributes{User: r.User, Group: "*", Version: "*", Resource: "*"}
	if kind == nil {
		return a
	}
	k := meta.NewObject(kind)
	gv := meta.ParseAPIVersion(k.String("apiVersion"))
	a.Group, a.Version = gv.Group, gv.Version
	for _, t := range r.Server.Client.Types() {
		if t.Kind == k.String("kind") && slices.Contains(t.ServedVersions, gv) {
			a.Resource = t.Plural
		}
	}
	return a
}
