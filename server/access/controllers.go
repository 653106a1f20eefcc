package access

import (
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/bootstraptoken"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/client"
	"orch.io/controlplane/server"
)

// controllers returns the controllers with a complete configuration.
func (c Config) controllers(b *server.Builder, all auth.Authorizer) []client.Controller {
	p := b.Names
	list := []client.Controller{
		rbac.Aggregator(b.Client(), p), certificates.Approver(all, p), certificates.Cleaner(p, nil),
		serviceaccount.DefaultAccounts(), c.Tokens.Secrets(c.RootCA),
	}
	if c.Signer.Authority != nil || len(c.Signer.Authorities) > 0 {
		list = append(list, c.Signer.Controller(p))
	}
	if len(c.RootCA) > 0 {
		list = append(list, serviceaccount.RootCA(p, c.RootCA))
	}
	if c.BootstrapTokens {
		list = append(list, bootstraptoken.Signer(p, nil), bootstraptoken.Cleaner(p, nil))
	}
	return list
}
