// Package networking holds the kinds of the networking group, which say what traffic
// reaches and which addresses are in use.
package networking

import "orch.io/controlplane/registry"

// Kinds returns the kinds of the networking group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{ingresses(), ingressClasses(), networkPolicies(), ipAddresses(), serviceCIDRs()}
}
