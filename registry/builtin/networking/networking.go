// Package networking defines the kinds of the networking group: Ingress and IngressClass for HTTP
// routing, NetworkPolicy, and IPAddress and ServiceCIDR for the addresses of services.
package networking

import "orch.io/controlplane/registry"

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{ingresses(), ingressClasses(), networkPolicies(), ipAddresses(), serviceCIDRs()}
}
