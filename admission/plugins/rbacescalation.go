package plugins

import (
	"context"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth/rbac"
)

// RBACEscalation refuses roles and bindings beyond the rights of their writer, as
// roles knows them, see rbac.Authorizer.CheckGrant. A server whose authorizer is
// made of roles must run it, so it cannot be disabled. It checks in both phases:
// before validation tells what is wrong with the object, and when nothing changes
// it any more.
func RBACEscalation(roles *rbac.Authorizer) admission.Plugin {
	return admission.Plugin{
		Name: "RBACEscalation", Default: admission.Required,
		Rules: []admission.Rule{{
			Operations: []admission.Operation{admission.Create, admission.Update}, Groups: []string{names.GroupRBAC},
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
