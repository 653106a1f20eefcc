package serviceaccount

import (
	"errors"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// Subresource returns the subresource token of the kind ServiceAccount. It requires
// Config.Client.
func (t *Tokens) Subresource() (registry.Subresource, error) {
	if t.config.Client == nil {
		return registry.Subresource{}, errors.New("serviceaccount: Subresource requires Config.Client")
	}
	return builtin.TokenRequest(t.request), nil
}
