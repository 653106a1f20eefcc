package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
)

// policyParameters keeps people from reading through admission policies what they may not
// read themselves: the server hands the parameters to the expressions of a policy, whose
// messages can tell them. Who names a kind of parameters in a policy has to be allowed to
// get all its objects; who names or selects some in a binding, to get or list those.
func policyParameters() admission.Plugin {
	return admission.Plugin{
		Name: "AdmissionPolicyParameters", Default: admission.Required,
		Rules: on(names.GroupRegistration, []string{
			"validatingadmissionpolicies", "mutatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicybindings",
		}, admission.Create, admission.Update),
		Validate: func(ctx context.Context, r *admission.Request) error {
			var f check.Faults
			if policies, ok := strings.CutSuffix(r.Resource.Resource, "policybindings"); ok {
				f = bindsParameters(ctx, r, policies+"policies")
			} else {
				f = hasParameters(ctx, r)
			}
			if len(f) == 0 {
				return nil
			}
			return meta.Invalid(r.Kind.GroupKind(), r.Name, f)
		},
	}
}

func hasParameters(ctx context.Context, r *admission.Request) (f check.Faults) {
	kind := r.Object.Map("spec", "paramKind")
	if kind == nil || !changed(r, "spec", "paramKind") {
		return nil
	}
	a := parameters(r, kind)
	a.Verb, a.Name, a.Namespace = "get", "*", "*"
	if !allowed(ctx, r, a) {
		f.Forbidden(check.At("spec", "paramKind"), fmt.Sprintf("user %q must have \"get\" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)",
			r.User.Name, r.Object.String("spec", "paramKind", "kind"), r.Object.String("spec", "paramKind", "apiVersion")))
	}
	return f
}

// bindsParameters asks at each change of a binding: the policy may be of another kind of
// parameters than it was.
func bindsParameters(ctx context.Context, r *admission.Request, policies string) (f check.Faults) {
	if r.Object.Map("spec", "paramRef") == nil {
		return nil
	}
	name := r.Object.String("spec", "policyName")
	policy, err := r.Server.Client.Get(ctx, meta.GroupResource{Group: r.Resource.Group, Resource: policies}, meta.Key{Name: name})
	a := parameters(r, policy.Map("spec", "paramKind"))
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

// parameters is what reading the objects of a kind is to an authorizer. Of what nobody
// knows it is reading everything.
func parameters(r *admission.Request, kind map[string]any) auth.Action {
	a := auth.Action{User: r.User, Group: "*", Version: "*", Resource: "*"}
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
