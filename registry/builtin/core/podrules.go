package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// specRules collects violations of rules that pods share with other kinds.
type specRules struct {
	check.Violations
	names names.Profile
	found check.Violations // violations that the schema reported
}

// podRules collects the violations of a pod spec. The checks run in the order of kube-apiserver's
// messages.
type podRules struct {
	specRules
	spec    *PodSpec
	pod     *Pod               // owner of the spec; nil for a template
	volumes map[string]*Volume // valid volumes by name
	claimed map[string]bool    // names of the resource claims
}

// specFaults returns the violations of a pod spec that the schema has not reported in found. pod is
// nil for the spec of a template.
func specFaults(p names.Profile, found check.Violations, at *check.Path, spec *PodSpec, pod *Pod) []meta.StatusCause {
	r := &podRules{specRules: specRules{names: p, found: found}, spec: spec, pod: pod, volumes: map[string]*Volume{}, claimed: map[string]bool{}}
	r.podVolumes(at.Field("volumes"))
	r.claims(at.Field("resourceClaims"))
	r.containers(at.Field("containers"))
	r.initContainers(at.Field("initContainers"))
	r.ephemeralContainers(at.Field("ephemeralContainers"))
	r.podResources(at.Field("resources"))
	r.networkPorts(at.Field("containers"))
	r.podSecurity(at.Field("securityContext"))
	r.affinity(at.Field("affinity"), spec.Affinity)
	r.dnsConfig(at.Field("dnsConfig"))
	r.gates(at)
	r.spread(at.Field("topologySpreadConstraints"))
	r.hostProcesses(at)
	r.hostUsers(at)
	r.hostNames(at)
	r.Violations = append(r.Violations, CheckTolerations(at.Field("tolerations"), spec.Tolerations)...)
	r.Violations = append(r.Violations, CheckOverhead(p, at.Field("overhead"), spec.Overhead)...)
	r.system(at)
	r.responders(at.Field("evictionResponders"))
	if pod != nil {
		r.podOnly(at)
	}
	return r.Violations
}

// podOnly checks rules that hold for pods but not for templates.
func (r *podRules) podOnly(at *check.Path) {
	if r.spec.ServiceAccountName == "" {
		for i, v := range r.spec.Volumes {
			if v.Projected == nil {
				continue
			}
			for j, s := range v.Projected.Sources {
				if s.ServiceAccountToken != nil {
					r.Forbidden(at.Field("volumes").Index(i).Field("projected").Field("sources").Index(j).Field("serviceAccountToken"),
						"must not be specified when serviceAccountName is not set")
				}
			}
		}
	}
	r.eachContainer(at, func(p *check.Path, c *Container) {
		if strings.TrimSpace(c.Image) != c.Image {
			r.Invalid(p.Field("image"), c.Image, "must not have leading or trailing whitespace")
		}
	})
}

// eachContainer calls f for each container with its path.
func (r *podRules) eachContainer(at *check.Path, f func(*check.Path, *Container)) {
	for i := range r.spec.Containers {
		f(at.Field("containers").Index(i), &r.spec.Containers[i])
	}
	for i := range r.spec.InitContainers {
		f(at.Field("initContainers").Index(i), &r.spec.InitContainers[i])
	}
	for i := range r.spec.EphemeralContainers {
		f(at.Field("ephemeralContainers").Index(i), &r.spec.EphemeralContainers[i].Container)
	}
}

func (r *podRules) claims(at *check.Path) {
	for i, c := range r.spec.ResourceClaims {
		p := at.Index(i)
		if c.Name != "" && r.claimed[c.Name] {
			r.Duplicate(p.Field("name"), c.Name)
		}
		r.claimed[c.Name] = true
		if (c.ResourceClaimName == nil) == (c.ResourceClaimTemplateName == nil) {
			r.Invalid(p, c, "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
	}
}

// networkPorts checks that containers in the network of the node use the same host port and container
// port. In a template, the host port may be unset.
func (r *podRules) networkPorts(at *check.Path) {
	if !r.spec.HostNetwork {
		return
	}
	for i, c := range r.spec.Containers {
		for j, port := range c.Ports {
			if (r.pod != nil || port.HostPort != 0) && port.HostPort != port.ContainerPort {
				r.Invalid(at.Index(i).Field("ports").Index(j).Field("hostPort"), port.HostPort, "must match `containerPort` when `hostNetwork` is true")
			}
		}
	}
}

// responders checks the eviction responders.
func (r *podRules) responders(at *check.Path) {
	if r.spec.SchedulingGroup != nil && len(r.spec.EvictionResponders) > 0 {
		r.Forbidden(at, "may not be set for a pod with `schedulingGroup`")
	}
	for i, e := range r.spec.EvictionResponders {
		if e.Name != "" && !strings.Contains(e.Name, "/") {
			r.Invalid(at.Index(i).Field("name"), e.Name, "must have a domain before it")
		}
	}
}

func (r *podRules) gates(at *check.Path) {
	seen := map[string]bool{}
	for i, g := range r.spec.SchedulingGates {
		p := at.Field("schedulingGates").Index(i)
		r.Format(p, g.Name, meta.CheckQualifiedName(g.Name))
		if seen[g.Name] {
			r.Duplicate(p, g.Name)
		}
		seen[g.Name] = true
	}
}

func (r *podRules) spread(at *check.Path) {
	type spreadKey struct{ key, when string }
	last := map[spreadKey]int{}
	for i, c := range r.spec.TopologySpreadConstraints {
		last[spreadKey{c.TopologyKey, c.WhenUnsatisfiable}] = i
	}
	for i, c := range r.spec.TopologySpreadConstraints {
		p := at.Index(i)
		if i < last[spreadKey{c.TopologyKey, c.WhenUnsatisfiable}] {
			r.Duplicate(p.Field("{topologyKey, whenUnsatisfiable}"), c.TopologyKey+", "+c.WhenUnsatisfiable)
		}
		if c.MinDomains != nil && c.WhenUnsatisfiable != "DoNotSchedule" {
			r.Invalid(p.Field("minDomains"), *c.MinDomains, "can only use minDomains if whenUnsatisfiable=DoNotSchedule")
		}
		r.labelKeys(p.Field("matchLabelKeys"), c.MatchLabelKeys, c.LabelSelector)
	}
}

// hostNames checks the host names of the pod.
func (r *podRules) hostNames(at *check.Path) {
	const maxOverride = 64
	if name := r.spec.Hostname; name != "" {
		r.Format(at.Field("hostname"), name, meta.CheckDNSLabel(name))
	}
	if name := r.spec.Subdomain; name != "" {
		r.Format(at.Field("subdomain"), name, meta.CheckDNSLabel(name))
	}
	if name, p := r.spec.HostnameOverride, at.Field("hostnameOverride"); name != nil {
		if r.spec.HostNetwork || isTrue(r.spec.SetHostnameAsFQDN) {
			r.Forbidden(p, "may not be set with `hostNetwork` or `setHostnameAsFQDN`")
		}
		r.Format(p, *name, meta.CheckDNSSubdomain(*name))
		if len(*name) > maxOverride {
			r.TooLong(p, maxOverride)
		}
	}
}

func (r *podRules) dnsConfig(at *check.Path) {
	c := r.spec.DNSConfig
	if r.spec.DNSPolicy == "None" {
		switch {
		case c == nil:
			r.Required(at, "must provide `dnsConfig` when `dnsPolicy` is None")
			return
		case len(c.Nameservers) == 0:
			r.Required(at.Field("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
			return
		}
	}
	if c == nil {
		return
	}
	const maxServers, maxSearches, maxSearchText = 3, 32, 2048
	if len(c.Nameservers) > maxServers {
		r.Invalid(at.Field("nameservers"), c.Nameservers, fmt.Sprintf("must not have more than %d nameservers", maxServers))
	}
	if len(c.Searches) > maxSearches {
		r.Invalid(at.Field("searches"), len(c.Searches), fmt.Sprintf("must not have more than %d search paths", maxSearches))
	}
	if len(strings.Join(c.Searches, " ")) > maxSearchText {
		r.Invalid(at.Field("searches"), len(c.Searches), fmt.Sprintf("must not have more than %d characters in the search list", maxSearchText))
	}
	for i, s := range c.Searches {
		if s != "." {
			// underscores are allowed, as in the names of SRV records
			name := strings.ReplaceAll(strings.TrimSuffix(s, "."), "_", "a")
			r.Format(at.Field("searches").Index(i), s, meta.CheckDNSSubdomain(name))
		}
	}
	for i, o := range c.Options {
		if o.Name == "" {
			r.Required(at.Field("options").Index(i), "must not be empty")
		}
	}
}

// CheckTolerations returns the violations of tolerations that the schema does not report.
func CheckTolerations(at *check.Path, list []Toleration) (f check.Violations) {
	for i, t := range list {
		p := at.Index(i)
		if t.Key == "" && t.Operator != "Exists" {
			f.Invalid(p.Field("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
		}
		if t.TolerationSeconds != nil && t.Effect != "NoExecute" {
			f.Invalid(p.Field("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		switch t.Operator {
		case "Equal", "":
			if faults := meta.CheckLabelValue(t.Value); len(faults) > 0 {
				f.Invalid(p.Field("operator"), t.Value, strings.Join(faults, "; "))
			}
		case "Exists":
			if t.Value != "" {
				f.Invalid(p.Field("operator"), t.Value, "value must be empty when `operator` is 'Exists'")
			}
		default:
			f.NotSupported(p.Field("operator"), t.Operator, "Equal", "Exists")
		}
	}
	return f
}

// CheckOverhead returns the violations of the overhead of a pod.
func CheckOverhead(p names.Profile, at *check.Path, overhead map[string]meta.Quantity) check.Violations {
	r := &podRules{specRules: specRules{names: p}, spec: &PodSpec{}}
	r.resources(at, &ResourceRequirements{Limits: overhead})
	return r.Violations
}

// sortedNames returns the keys of amounts in order.
func sortedNames(m map[string]meta.Quantity) []string { return slices.Sorted(maps.Keys(m)) }
