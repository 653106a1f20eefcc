package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/securitypolicy"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// podSecurityPolicy admits a pod if its creator or its service account may use a policy that allows it. If several
// policies allow it, the plugin takes the first by name that changes nothing, else the first by name. If the server
// does not serve PodSecurityPolicies, it refuses every pod.
func podSecurityPolicy() admission.Plugin {
	return admission.Plugin{
		Name: "PodSecurityPolicy", Default: admission.Off,
		Rules: slices.Concat(
			on("", []string{"pods"}, admission.Create, admission.Update),
			on("", []string{"pods/ephemeralcontainers", "pods/resize"}, admission.Update)),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			chosen := r.Server.Wire(wellknown.SecurityPolicy)
			first := ""
			switch {
			case r.Operation == admission.Update && r.Subresource != "ephemeralcontainers":
				return nil
			case r.Pass > 0:
				first = r.Object.Annotation(chosen)
			}
			name, filled, err := choosePolicy(ctx, r, first, "admit")
			if err != nil || name == "" {
				return err
			}
			r.Object.Set(filled.Tree(), "spec")
			if r.Operation == admission.Create {
				r.Object.Set(name, "metadata", "annotations", chosen)
			}
			return nil
		},
		Validate: func(ctx context.Context, r *admission.Request) error {
			_, _, err := choosePolicy(ctx, r, r.Object.Annotation(r.Server.Wire(wellknown.SecurityPolicy)), "validate")
			return err
		},
	}
}

// choosePolicy returns the name of the policy that admits the pod, and the spec as the policy fills it in.
// The policy named by first is tried before the others. action is "admit" or "validate"; only admit fills in.
// The name is empty if the spec does not change, so that no policy is needed.
func choosePolicy(ctx context.Context, r *admission.Request, first, action string) (name string, filled *meta.Object, err error) {
	if r.Old != nil && meta.Equal(r.Object.Map("spec"), r.Old.Map("spec")) {
		return "", nil, nil
	}
	if !r.Server.Serves(wellknown.GroupPolicy, "podsecuritypolicies") {
		return "", nil, fmt.Errorf("PodSecurityPolicy: unable to %s pod: the server does not serve podsecuritypolicies", action)
	}
	policies, err := r.Server.List(ctx, wellknown.GroupPolicy, "podsecuritypolicies", "")
	if err != nil {
		return "", nil, err
	}
	policies = slices.SortedFunc(slices.Values(policies), func(a, b *meta.Object) int {
		switch {
		case a.Name() == first:
			return -1
		case b.Name() == first:
			return 1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	var faults []string
	for _, p := range policies {
		if !mayUsePolicy(ctx, r, p.Name()) {
			continue
		}
		policy, was := meta.NewObject(p.Map("spec")), meta.NewObject(r.Object.Map("spec"))
		spec, profiles := was.Clone(), securitypolicy.ProfilesOf(r.Server.Names, p)
		if action == "admit" {
			fillByPolicy(r, policy, profiles, spec)
		}
		found := append(securitypolicy.Check(policy, spec, r.Server.Wire(wellknown.RootCAConfigMap)), profiles.Check(r.Object.Annotations(), spec)...)
		for _, cause := range found {
			faults = append(faults, cause.Field+": "+cause.Message)
		}
		switch {
		case len(found) > 0:
		case meta.Equal(spec.Tree(), was.Tree()):
			return p.Name(), spec, nil
		case name == "":
			name, filled = p.Name(), spec
		}
	}
	if name == "" {
		return "", nil, fmt.Errorf("PodSecurityPolicy: unable to %s pod: [%s]", action, strings.Join(faults, " "))
	}
	return name, filled, nil
}

// fillByPolicy fills in a new pod, or the new ephemeral containers of an existing pod.
func fillByPolicy(r *admission.Request, policy *meta.Object, profiles securitypolicy.Profiles, spec *meta.Object) {
	if r.Operation == admission.Create {
		securitypolicy.Fill(policy, spec)
		profiles.Fill(r.Object.Annotations(), spec)
		return
	}
	old := r.Old.Objects("spec", podspec.Ephemeral)
	fresh := slices.DeleteFunc(podspec.Of(spec, podspec.Ephemeral), func(c *meta.Object) bool {
		return slices.ContainsFunc(old, func(o *meta.Object) bool { return o.String("name") == c.String("name") })
	})
	securitypolicy.FillContainers(policy, spec, fresh)
	profiles.FillContainers(r.Object.Annotations(), spec, fresh)
}

// mayUsePolicy reports whether the caller or the service account of the pod may use a policy in the
// namespace, in any group that serves policies.
func mayUsePolicy(ctx context.Context, r *admission.Request, name string) bool {
	users := []*auth.User{r.User}
	if account := r.Object.String("spec", "serviceAccountName"); account != "" {
		users = append(users, &auth.User{
			Name: auth.ServiceAccountUser(r.Namespace, account), Groups: append(auth.ServiceAccountGroups(r.Namespace), auth.Authenticated),
		})
	}
	policies := meta.GroupResource{Group: r.Server.Names.Group(wellknown.GroupPolicy), Resource: "podsecuritypolicies"}
	typ := r.Server.Type(policies)
	if typ == nil {
		return false
	}
	return slices.ContainsFunc(users, func(u *auth.User) bool {
		return u != nil && slices.ContainsFunc(typ.ServedVersions, func(in meta.GroupVersion) bool {
			d, _, _ := r.Server.Authorizer.Authorize(ctx, auth.Attributes{
				User: u, Verb: "use", Group: in.Group, Version: "*", Resource: policies.Resource, Namespace: r.Namespace, Name: name,
			})
			return d == auth.Allow
		})
	})
}
