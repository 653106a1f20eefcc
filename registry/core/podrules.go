package core

import (
	"math"
	"net/netip"
	"slices"
	"strings"

	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// podRules collects the faults of a pod's spec. The order of the checks is the
// order of the causes that clients see.
type podRules struct {
	check.Faults
	names   names.Profile
	spec    *PodSpec
	volumes map[string]*Volume
}

// CheckPodSpec returns the faults of a pod's spec at a path.
func CheckPodSpec(p names.Profile, at *check.Path, spec *PodSpec) []meta.Cause {
	r := &podRules{names: p, spec: spec, volumes: map[string]*Volume{}}
	r.podVolumes(at.Field("volumes"))
	r.claims(at.Field("resourceClaims"))
	r.allContainers(at)
	r.RequiredOneOf(at.Field("restartPolicy"), spec.RestartPolicy, "Always", "OnFailure", "Never")
	r.RequiredOneOf(at.Field("dnsPolicy"), spec.DNSPolicy, "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
	r.Labels(at.Field("nodeSelector"), spec.NodeSelector)
	r.podSecurity(at)
	for i, s := range spec.ImagePullSecrets {
		if s.Name == "" {
			r.Required(at.Field("imagePullSecrets").Index(i).Field("name"), "")
		}
	}
	r.affinity(at.Field("affinity"), spec.Affinity)
	r.dnsConfig(at.Field("dnsConfig"))
	r.gates(at)
	r.spread(at.Field("topologySpreadConstraints"))
	r.identity(at)
	r.deadline(at.Field("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)
	if g := spec.TerminationGracePeriodSeconds; g != nil {
		r.NotNegative(at.Field("terminationGracePeriodSeconds"), *g)
	}
	r.hosts(at)
	r.tolerations(at.Field("tolerations"), spec.Tolerations)
	r.classes(at)
	return r.Faults
}

func (r *podRules) claims(at *check.Path) {
	seen := map[string]bool{}
	for i, c := range r.spec.ResourceClaims {
		r.label(at.Index(i).Field("name"), c.Name)
		if seen[c.Name] {
			r.Duplicate(at.Index(i).Field("name"), c.Name)
		}
		seen[c.Name] = true
		if (c.ResourceClaimName == nil) == (c.ResourceClaimTemplateName == nil) {
			r.Invalid(at.Index(i), c, "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
	}
}

// label checks a required DNS label.
func (r *podRules) label(at *check.Path, name string) {
	if name == "" {
		r.Required(at, "")
		return
	}
	r.Format(at, name, meta.CheckDNSLabel(name))
}

func (r *podRules) gates(at *check.Path) {
	for i, g := range r.spec.ReadinessGates {
		r.Format(at.Field("readinessGates").Index(i).Field("conditionType"), g.ConditionType, meta.CheckQualifiedName(g.ConditionType))
	}
	seen := map[string]bool{}
	for i, g := range r.spec.SchedulingGates {
		p := at.Field("schedulingGates").Index(i)
		if seen[g.Name] {
			r.Duplicate(p, g.Name)
		}
		seen[g.Name] = true
		r.Format(p, g.Name, meta.CheckQualifiedName(g.Name))
	}
}

func (r *podRules) spread(at *check.Path) {
	for i, c := range r.spec.TopologySpreadConstraints {
		p := at.Index(i)
		r.Positive(p.Field("maxSkew"), int64(c.MaxSkew))
		if c.TopologyKey == "" {
			r.Required(p.Field("topologyKey"), "can not be empty")
		} else {
			r.Format(p.Field("topologyKey"), c.TopologyKey, meta.CheckQualifiedName(c.TopologyKey))
		}
		r.OneOf(p.Field("whenUnsatisfiable"), c.WhenUnsatisfiable, "DoNotSchedule", "ScheduleAnyway")
		if c.MinDomains != nil {
			r.Positive(p.Field("minDomains"), int64(*c.MinDomains))
			if c.WhenUnsatisfiable != "DoNotSchedule" {
				r.Invalid(p.Field("minDomains"), *c.MinDomains, "can only use minDomains if whenUnsatisfiable=DoNotSchedule")
			}
		}
		r.optional(p.Field("nodeAffinityPolicy"), c.NodeAffinityPolicy, "Ignore", "Honor")
		r.optional(p.Field("nodeTaintsPolicy"), c.NodeTaintsPolicy, "Ignore", "Honor")
		r.Selector(p.Field("labelSelector"), c.LabelSelector)
	}
}

// optional checks a value that may be unset.
func (r *podRules) optional(at *check.Path, value *string, known ...string) {
	if value != nil {
		r.OneOf(at, *value, known...)
	}
}

// identity checks the names that the spec holds.
func (r *podRules) identity(at *check.Path) {
	for _, n := range []struct{ field, name string }{
		{"serviceAccountName", r.spec.ServiceAccountName}, {"nodeName", r.spec.NodeName},
	} {
		if n.name != "" {
			r.Format(at.Field(n.field), n.name, meta.CheckDNSSubdomain(n.name))
		}
	}
}

func (r *podRules) deadline(at *check.Path, seconds *int64) {
	if seconds != nil {
		r.Range(at, *seconds, 1, math.MaxInt32)
	}
}

func (r *podRules) hosts(at *check.Path) {
	for _, n := range []struct{ field, name string }{{"hostname", r.spec.Hostname}, {"subdomain", r.spec.Subdomain}} {
		if n.name != "" {
			r.Format(at.Field(n.field), n.name, meta.CheckDNSLabel(n.name))
		}
	}
	for i, h := range r.spec.HostAliases {
		p := at.Field("hostAliases").Index(i)
		r.ip(p.Field("ip"), h.IP)
		for j, name := range h.Hostnames {
			r.Format(p.Field("hostnames").Index(j), name, meta.CheckDNSSubdomain(name))
		}
	}
}

func (r *podRules) ip(at *check.Path, text string) {
	if parseIP(text) != nil {
		r.Invalid(at, text, "must be a valid IP address")
	}
}

func (r *podRules) dnsConfig(at *check.Path) {
	c := r.spec.DNSConfig
	if r.spec.DNSPolicy == "None" && (c == nil || len(c.Nameservers) == 0) {
		r.Required(at.Field("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
	}
	if c == nil {
		return
	}
	if len(c.Nameservers) > 3 {
		r.Invalid(at.Field("nameservers"), c.Nameservers, "must not have more than 3 nameservers")
	}
	for i, s := range c.Nameservers {
		r.ip(at.Field("nameservers").Index(i), s)
	}
	if len(c.Searches) > 32 {
		r.Invalid(at.Field("searches"), len(c.Searches), "must not have more than 32 search paths")
	}
	for i, s := range c.Searches {
		if s = strings.TrimSuffix(s, "."); s != "" {
			r.Format(at.Field("searches").Index(i), s, meta.CheckDNSSubdomain(s))
		}
	}
	for i, o := range c.Options {
		if o.Name == "" {
			r.Required(at.Field("options").Index(i), "must not be empty")
		}
	}
}

func (r *podRules) tolerations(at *check.Path, list []Toleration) {
	for i, t := range list {
		p := at.Index(i)
		if t.Key != "" {
			r.Format(p.Field("key"), t.Key, meta.CheckQualifiedName(t.Key))
		}
		if t.Key == "" && t.Operator != "Exists" {
			r.Invalid(p.Field("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
		}
		if t.TolerationSeconds != nil && t.Effect != "NoExecute" {
			r.Invalid(p.Field("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		switch t.Operator {
		case "Equal", "":
			r.Format(p.Field("operator"), t.Value, meta.CheckLabelValue(t.Value))
		case "Exists":
			if t.Value != "" {
				r.Invalid(p.Field("operator"), t, "value must be empty when `operator` is 'Exists'")
			}
		default:
			r.NotSupported(p.Field("operator"), t.Operator, "Equal", "Exists")
		}
		if t.Effect != "" {
			r.OneOf(p.Field("effect"), t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
	}
}

// classes checks priority, runtime, preemption, overhead and system.
func (r *podRules) classes(at *check.Path) {
	s := r.spec
	if s.PriorityClassName != "" {
		r.Format(at.Field("priorityClassName"), s.PriorityClassName, meta.CheckDNSSubdomain(s.PriorityClassName))
	}
	if s.RuntimeClassName != nil {
		r.Format(at.Field("runtimeClassName"), *s.RuntimeClassName, meta.CheckDNSSubdomain(*s.RuntimeClassName))
	}
	r.optional(at.Field("preemptionPolicy"), s.PreemptionPolicy, "PreemptLowerPriority", "Never")
	r.amounts(at.Field("overhead"), s.Overhead)
	if s.OS != nil {
		r.RequiredOneOf(at.Field("os").Field("name"), s.OS.Name, "linux", "windows")
	}
	if s.HostNetwork && s.HostUsers != nil && !*s.HostUsers {
		r.Forbidden(at.Field("hostUsers"), "must be true when `hostNetwork` is true")
	}
	if s.ShareProcessNamespace != nil && *s.ShareProcessNamespace && s.HostPID {
		r.Invalid(at.Field("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
}

// sorted returns the keys of a resource list in order.
func sorted(m map[string]meta.Quantity) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func parseIP(text string) error {
	_, err := netip.ParseAddr(text)
	return err
}
