package names

// Domains returns the domains that names of the product's own are under.
func (p Profile) Domains() []string {
	if p == Kubernetes {
		return []string{"kubernetes.io", "k8s.io"}
	}
	return []string{"orch.io"}
}

// OldName is a name on the wire that another one has replaced.
type OldName struct{ Before, Now string }

// OldNodeLabels returns the labels of nodes that have newer names.
func (p Profile) OldNodeLabels() []OldName {
	return []OldName{
		{p.Wire("beta.orch.io/arch"), p.Wire("orch.io/arch")},
		{p.Wire("beta.orch.io/os"), p.Wire("orch.io/os")},
		{p.Wire("beta.orch.io/instance-type"), p.Wire("node.orch.io/instance-type")},
		{p.Wire("failure-domain.beta.orch.io/region"), p.Wire("topology.orch.io/region")},
		{p.Wire("failure-domain.beta.orch.io/zone"), p.Wire("topology.orch.io/zone")},
	}
}
