package plugins

import (
	"context"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/internal/wellknown"
)

// RBACEscalation returns a plugin that refuses roles and bindings which grant rights that the writer does not have, see
// rbac.Authorizer.CheckGrant. It cannot be disabled: a server that authorizes by roles must run it. It checks in both
// phases: in the mutating phase so that a forbidden writer does not see validation errors, and in the validating phase
// because plugins may have changed the object.
func RBACEscalation(roles *rbac.Authorizer) admission.Plugin {
	return admission.Plugin{
		Name: "RBACEscalation", Default: admission.Required,
		Rules: []admission.Rule{{
			Operations: []admission.Operation{admission.Create, admission.Update}, Groups: []string{wellknown.GroupRBAC},
			Resources: []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"},
		}},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				return roles.CheckGrant(ctx, env.Authorizer, rbac.Grant{
					User: r.User, Resource: r.Resource.Resource, Namespace: r.Namespace, Name: r.Name,
					Posted: r.Verb == "create", Object: r.Object, Old: r.Old,
				})
			}
			p.Validate = p.Mutate
			return nil
		},
	}
}
