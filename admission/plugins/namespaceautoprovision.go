package plugins

import (
	"context"
	"errors"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// namespaceAutoProvision makes the namespace of a new object if there is none. A dry run
// makes nothing, and so finds none.
func namespaceAutoProvision() admission.Plugin {
	return admission.Plugin{
		Name: "NamespaceAutoProvision", Default: admission.Off,
		Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create}, Resources: []string{"*"}, Scope: admission.Namespaced}},
		Mutate: func(ctx context.Context, r *admission.Request) error {
			if r.DryRun || r.Type.Virtual { // a question makes nothing
				return nil
			}
			have, err := hasNamespace(ctx, r)
			if have || err != nil {
				return err
			}
			namespace := meta.NewObject(map[string]any{"metadata": map[string]any{"name": r.Namespace}})
			_, err = r.Server.Client.Create(ctx, namespacesResource, namespace)
			switch meta.ReasonOf(err) {
			case meta.ReasonAlreadyExists: // another request was faster
				return nil
			case meta.ReasonInvalid: // no fault of the object's
				return errors.New(err.Error())
			}
			return err
		},
	}
}

// hasNamespace reports whether the namespace of a request exists, or need not.
func hasNamespace(ctx context.Context, r *admission.Request) (bool, error) {
	if !r.Server.Serves("", "namespaces") {
		return true, nil
	}
	namespace, err := r.Server.Find(ctx, "", "namespaces", meta.Key{Name: r.Namespace})
	return namespace != nil, err
}
