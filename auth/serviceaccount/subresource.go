package serviceaccount

import (
	"errors"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// Subresource is the sub-resource token of the kind ServiceAccount. It needs
// Config.Client.
func (t *Tokens) Subresource() (registry.Subresource, error) {
	if t.config.Client == nil {
		return registry.Subresource{}, errors.New("serviceaccount: no Client to look up accounts with")
	}
	return builtin.TokenRequest(t.request), nil
}
