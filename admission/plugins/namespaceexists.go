package plugins

import (
	"context"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// namespaceExists refuses writes in namespaces that do not exist.
func namespaceExists() admission.Plugin {
	return admission.Plugin{
		Name: "NamespaceExists", Default: admission.Off,
		Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create, admission.Update, admission.Delete}, Scope: admission.Namespaced}},
		Validate: func(ctx context.Context, r *admission.Request) error {
			have, err := hasNamespace(ctx, r)
			if have || err != nil {
				return err
			}
			return meta.NotFound(namespacesResource, r.Namespace)
		},
	}
}
