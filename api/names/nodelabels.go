package names

// Domains returns the domains of the product's own names.
func (p Profile) Domains() []string {
	if p == Kubernetes {
		return []string{"kubernetes.io", "k8s.io"}
	}
	return []string{"orch.io"}
}

// OldName is a wire name that was replaced by another one.
type OldName struct{ Before, Now string }

// OldNodeLabels returns the node labels that were replaced.
func (p Profile) OldNodeLabels() []OldName {
	return []OldName{
		{p.Wire("beta.orch.io/arch"), p.Wire("orch.io/arch")},
		{p.Wire("beta.orch.io/os"), p.Wire("orch.io/os")},
		{p.Wire("beta.orch.io/instance-type"), p.Wire("node.orch.io/instance-type")},
		{p.Wire("failure-domain.beta.orch.io/region"), p.Wire("topology.orch.io/region")},
		{p.Wire("failure-domain.beta.orch.io/zone"), p.Wire("topology.orch.io/zone")},
	}
}

// NodeLabelDeprecation returns the deprecation message of a node label, or "" if the label is
// not deprecated.
func (p Profile) NodeLabelDeprecation(label string) string {
	use := func(name string) string { return "use \"" + p.Wire(name) + "\" instead" }
	switch label {
	case p.Wire("beta.orch.io/arch"):
		return "deprecated since v1.14; " + use("orch.io/arch")
	case p.Wire("beta.orch.io/os"):
		return "deprecated since v1.14; " + use("orch.io/os")
	case p.Wire("beta.orch.io/instance-type"):
		return "deprecated since v1.17; " + use("node.orch.io/instance-type")
	case p.Wire("failure-domain.beta.orch.io/region"):
		return "deprecated since v1.17; " + use("topology.orch.io/region")
	case p.Wire("failure-domain.beta.orch.io/zone"):
		return "deprecated since v1.17; " + use("topology.orch.io/zone")
	case p.Wire("app.orch.io/created-by"):
		return "deprecated since v1.9"
	case p.Wire("scheduler.alpha.orch.io/preferAvoidPods"):
		return "deprecated since v1.22; use Taints and Tolerations instead"
	case p.Wire("node-role.orch.io/master"):
		return use("node-role.orch.io/control-plane")
	}
	return ""
}
