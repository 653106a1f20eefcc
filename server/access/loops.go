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
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// choice is a loop that Controllers can name, and whether * is enough for it.
type choice struct {
	name  string
	usual bool
	make  func() registry.Loop
}

// ControllerNames are the words that Config.Controllers knows beside "*".
func ControllerNames() []string {
	return []string{"clusterrole-aggregation", "csrapproving", "csrsigning", "csrcleaner", "serviceaccount",
		"serviceaccount-token", "root-ca-cert-publisher", "bootstrapsigner", "tokencleaner"}
}

func (c Config) loops(b *server.Builder, all auth.Authorizer) []choice {
	p := b.Names
	signs := c.Signer.Authority != nil || len(c.Signer.Authorities) > 0
	return []choice{
		{"clusterrole-aggregation", true, func() registry.Loop { return rbac.NewAggregator(b.Client(), p).Loop() }},
		{"csrapproving", true, func() registry.Loop { return certificates.Approver(all, p) }},
		{"csrsigning", signs, func() registry.Loop { return c.Signer.Loop(p) }},
		{"csrcleaner", true, func() registry.Loop { return certificates.Cleaner(p, nil) }},
		{"serviceaccount", true, serviceaccount.DefaultAccounts},
		{"serviceaccount-token", true, func() registry.Loop { return c.Tokens.Secrets(c.RootCA) }},
		{"root-ca-cert-publisher", c.PublishRootCA, func() registry.Loop { return serviceaccount.RootCA(p, c.RootCA) }},
		{"bootstrapsigner", c.BootstrapTokens, func() registry.Loop { return bootstraptoken.Signer(p, nil) }},
		{"tokencleaner", c.BootstrapTokens, func() registry.Loop { return bootstraptoken.Cleaner(p, nil) }},
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

// runs tells whether a loop is chosen.
func (c Config) runs(name string, usual bool) bool {
	switch {
	case slices.Contains(c.Controllers, "-"+name):
		return false
	case slices.Contains(c.Controllers, name):
		return true
	}
	return usual && (len(c.Controllers) == 0 || slices.Contains(c.Controllers, "*"))
}
