package serviceaccount

import (
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/authentication"
)

// Subresource is the sub-resource token of the kind ServiceAccount. It needs
// Config.Client.
func (t *Tokens) Subresource() (registry.Subresource, error) {
	if t.config.Client == nil {
		return registry.Subresource{}, errors.New("serviceaccount: no Client to look up accounts with")
	}
	kind := meta.GroupVersionKind{Group: names.GroupAuthentication, Version: "v1", Kind: "TokenRequest"}
	body, err := registry.Of(registry.Definition[authentication.TokenRequest]{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
	}).Compile(t.config.Names)
	if err != nil {
		return registry.Subresource{}, fmt.Errorf("serviceaccount: %w", err)
	}
	return registry.Subresource{Name: "token", Kind: kind, Body: body.Storage, Act: t.TokenRequest}, nil
}
