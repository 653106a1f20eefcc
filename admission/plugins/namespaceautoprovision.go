package plugins

import (
	"context"
	"errors"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// namespaceAutoProvision creates the namespace of a new object if it does not exist. A dry run creates
// nothing, so a dry run in a missing namespace is refused later.
func namespaceAutoProvision() admission.Plugin {
	return admission.Plugin{
		Name: "NamespaceAutoProvision", Default: admission.Off,
		Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create}, Resources: []string{"*"}, Scope: admission.Namespaced}},
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if r.DryRun || r.Type.Virtual { // a review is not stored
				return nil
			}
			have, err := hasNamespace(ctx, r)
			if have || err != nil {
				return err
			}
			namespace := meta.NewObject(map[string]any{"metadata": map[string]any{"name": r.Namespace}})
			_, err = r.Server.Client.Create(ctx, namespacesResource, namespace)
			switch meta.ReasonOf(err) {
			case meta.ReasonAlreadyExists: // created by a concurrent request
				return nil
			case meta.ReasonInvalid: // the namespace is invalid, not the object: answer 403, not 422
				return errors.New(err.Error())
			}
			return err
		},
	}
}

// hasNamespace reports whether the namespace of a request exists. It is true if the server does not serve
// namespaces.
func hasNamespace(ctx context.Context, r *admission.Request) (bool, error) {
	if !r.Server.Serves("", "namespaces") {
		return true, nil
	}
	namespace, err := r.Server.Find(ctx, "", "namespaces", meta.Key{Name: r.Namespace})
	return namespace != nil, err
}
