package serviceaccount

import (
	"errors"
	"fmt"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/authentication"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// Serve gives the kind ServiceAccount, which must be among kinds, the
// sub-resource token. Call it before the kinds are registered.
func (t *Tokens) Serve(kinds []*registry.Kind) error {
	for _, k := range kinds {
		if k.Group != "" || k.Kind != "ServiceAccount" {
			continue
		}
		body, err := registry.Of(registry.Definition[authentication.TokenRequest]{
			Group: names.GroupAuthentication, Version: "v1", Kind: "TokenRequest",
			Behavior: registry.Behavior{NoGeneration: true, SelfChecked: true},
		}).Compile(t.config.Names)
		if err != nil {
			return fmt.Errorf("serviceaccount: %w", err)
		}
		k.Subresources = append(k.Subresources, registry.Subresource{
			Name: "token", Kind: meta.GroupVersionKind{Group: names.GroupAuthentication, Version: "v1", Kind: "TokenRequest"},
			Body: body.Storage, Act: t.TokenRequest,
		})
		return nil
	}
	return errors.New("serviceaccount: the kind ServiceAccount is not registered")
}
