package access

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/bootstraptoken"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/server"
)

// choice is a controller that Controllers can name, and whether * is enough for it.
type choice struct {
	name  string
	usual bool
	make  func() controller.Controller
}

// ControllerNames are the words that Config.Controllers knows beside "*".
func ControllerNames() []string {
	return []string{"clusterrole-aggregation", "csrapproving", "csrsigning", "csrcleaner", "serviceaccount",
		"serviceaccount-token", "root-ca-cert-publisher", "bootstrapsigner", "tokencleaner"}
}

func (c Config) controllers(b *server.Builder, all auth.Authorizer) []choice {
	p := b.Names
	signs := c.Signer.Authority != nil || len(c.Signer.Authorities) > 0
	return []choice{
		{"clusterrole-aggregation", true, func() controller.Controller { return rbac.Aggregator(b.Client(), p) }},
		{"csrapproving", true, func() controller.Controller { return certificates.Approver(all, p) }},
		{"csrsigning", signs, func() controller.Controller { return c.Signer.Controller(p) }},
		{"csrcleaner", true, func() controller.Controller { return certificates.Cleaner(p, nil) }},
		{"serviceaccount", true, serviceaccount.DefaultAccounts},
		{"serviceaccount-token", true, func() controller.Controller { return c.Tokens.Secrets(c.RootCA) }},
		{"root-ca-cert-publisher", len(c.RootCA) > 0, func() controller.Controller { return serviceaccount.RootCA(p, c.RootCA) }},
		{"bootstrapsigner", c.BootstrapTokens, func() controller.Controller { return bootstraptoken.Signer(p, nil) }},
		{"tokencleaner", c.BootstrapTokens, func() controller.Controller { return bootstraptoken.Cleaner(p, nil) }},
	}
}

func (c Config) checkControllers() error {
	for _, word := range c.Controllers {
		if word != "*" && !slices.Contains(ControllerNames(), strings.TrimPrefix(word, "-")) {
			return fmt.Errorf("access: no controller is called %q", word)
		}
	}
	return nil
}

// runs tells whether a controller is chosen.
func (c Config) runs(name string, usual bool) bool {
	switch {
	case slices.Contains(c.Controllers, "-"+name):
		return false
	case slices.Contains(c.Controllers, name):
		return true
	}
	return usual && (len(c.Controllers) == 0 || slices.Contains(c.Controllers, "*"))
}
