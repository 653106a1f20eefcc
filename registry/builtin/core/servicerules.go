package core

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
)

// validateService checks the spec, or for a write of the status only the load balancer. On update,
// changes of immutable fields are reported first.
func validateService(w *registry.Change[Service]) {
	f, at, s := &w.Violations, check.At("spec"), &w.New.Spec
	if w.Subresource == "status" {
		w.New.Status.LoadBalancer.validate(f, check.At("status", "loadBalancer"), s.Type)
		return
	}
	if w.Old != nil {
		s.checkUpdate(f, at, &w.Old.Spec)
	}
	if len(s.Ports) == 0 && !s.headless() && s.Type != ExternalNameType {
		f.Required(at.Field("ports"), "")
	}
	s.typeFaults(f, at)
	names := map[string]bool{}
	for i := range s.Ports {
		s.Ports[i].validate(f, at.Field("ports").Index(i), len(s.Ports) > 1, names)
	}
	s.affinity(f, at.Field("sessionAffinityConfig"))
	s.addresses(f, at)
	for i, ip := range s.ExternalIPs {
		if a, err := netip.ParseAddr(ip); err != nil || a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() {
			f.Invalid(at.Field("externalIPs").Index(i), ip, "must be a valid IP address that is not special")
		}
	}
	s.portNumbers(f, at.Field("ports"))
	s.balancer(f, at)
	s.policies(f, at)
}

func (s *ServiceSpec) headless() bool { return len(s.ClusterIPs) == 1 && s.ClusterIPs[0] == noAddress }

// typeFaults checks the fields that depend on the type.
func (s *ServiceSpec) typeFaults(f *check.Violations, at *check.Path) {
	switch s.Type {
	case LoadBalancerType, NodePortType:
		if s.headless() {
			f.Invalid(at.Field("clusterIPs").Index(0), s.ClusterIP, "may not be set to 'None' for "+s.Type+" services")
		}
	case ExternalNameType:
		const never = "may not be set for ExternalName services"
		if len(s.ClusterIPs) > 0 {
			f.Forbidden(at.Field("clusterIPs"), never)
		}
		if len(s.IPFamilies) > 0 {
			f.Forbidden(at.Field("ipFamilies"), never)
		}
		if s.IPFamilyPolicy != nil {
			f.Forbidden(at.Field("ipFamilyPolicy"), never)
		}
		name := strings.TrimSuffix(s.ExternalName, ".")
		f.RequiredField(at, "externalName", name)
		f.Subdomain(at.Field("externalName"), name)
	}
}

func (p *ServicePort) validate(f *check.Violations, at *check.Path, several bool, names map[string]bool) {
	if several {
		f.RequiredField(at, "name", p.Name)
	}
	if p.Name != "" && names[p.Name] {
		f.Duplicate(at.Field("name"), p.Name)
	}
	names[p.Name] = true
}

// portNumbers checks that node ports are allowed and unique by protocol.
func (s *ServiceSpec) portNumbers(f *check.Violations, at *check.Path) {
	type number struct {
		port     int32
		protocol string
	}
	if s.Type == ClusterIPType {
		for i, p := range s.Ports {
			if p.NodePort != 0 {
				f.Forbidden(at.Index(i).Field("nodePort"), "may not be used when `type` is 'ClusterIP'")
			}
		}
	}
	seen := map[number]bool{}
	for i, p := range s.Ports {
		if n := (number{p.NodePort, p.Protocol}); p.NodePort != 0 && seen[n] {
			f.Duplicate(at.Index(i).Field("nodePort"), p.NodePort)
		} else {
			seen[n] = true
		}
	}
}

func (s *ServiceSpec) affinity(f *check.Violations, at *check.Path) {
	const maxTimeout = 86400
	switch c := s.SessionAffinityConfig; {
	case s.SessionAffinity == "None" && c != nil:
		f.Forbidden(at, "must not be set when session affinity is None")
	case s.SessionAffinity != "ClientIP":
	case c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil:
		f.Required(at, "when session affinity type is ClientIP")
	case *c.ClientIP.TimeoutSeconds <= 0 || *c.ClientIP.TimeoutSeconds > maxTimeout:
		f.Invalid(at.Field("clientIP").Field("timeoutSeconds"), *c.ClientIP.TimeoutSeconds, "must be greater than 0 and less than 86400")
	}
}

// addresses checks cluster IPs and families against each other. The families are checked here instead
// of by the schema, because the allocator runs before schema validation and an invalid family must be
// the only violation.
func (s *ServiceSpec) addresses(f *check.Violations, at *check.Path) {
	if s.Type == ExternalNameType {
		return
	}
	list := at.Field("clusterIPs")
	switch {
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		f.Invalid(list, s.ClusterIPs, "must be empty when `clusterIP` is not specified")
	case s.ClusterIP != "" && len(s.ClusterIPs) == 0:
		f.Required(list, "")
	case s.ClusterIP != "" && s.ClusterIP != s.ClusterIPs[0]:
		f.Invalid(list, s.ClusterIPs, "first value must match `clusterIP`")
	}
	for i, family := range s.IPFamilies {
		f.OneOf(at.Field("ipFamilies").Index(i), family, schema.EnumOf[ServiceSpec]("IPFamilies")...)
		if slices.Contains(s.IPFamilies[:i], family) {
			f.Duplicate(at.Field("ipFamilies").Index(i), family)
		}
	}
	f.OptionalOneOf(at.Field("ipFamilyPolicy"), s.IPFamilyPolicy, schema.EnumOf[ServiceSpec]("IPFamilyPolicy")...)
	malformed := false
	for i, ip := range s.ClusterIPs {
		switch {
		case ip == noAddress && i == 0 && len(s.ClusterIPs) > 1:
			f.Invalid(list, s.ClusterIPs, "'None' must be the first and only value")
			malformed = true
		case ip == noAddress && i == 0:
		default:
			reasons := check.IP(ip)
			f.Format(list.Index(i), ip, reasons)
			malformed = malformed || len(reasons) > 0
		}
	}
	if len(s.ClusterIPs) > 2 {
		f.Invalid(list, s.ClusterIPs, "may only hold up to 2 values")
	}
	if malformed {
		return
	}
	if len(s.ClusterIPs) > 1 && !dualStack(s.ClusterIPs) {
		f.Invalid(list, s.ClusterIPs, "may specify no more than one IP for each IP family")
	}
	for i, ip := range s.ClusterIPs {
		if !s.headless() && i < len(s.IPFamilies) && s.IPFamilies[i] != family(ip) {
			f.Invalid(list.Index(i), ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", s.IPFamilies[i], i))
		}
	}
}

// balancer checks the fields of load balancers. The capital in a field name is kube-apiserver's.
func (s *ServiceSpec) balancer(f *check.Violations, at *check.Path) {
	const only = "may only be used when `type` is 'LoadBalancer'"
	balanced := s.Type == LoadBalancerType
	ranges := at.Field("LoadBalancerSourceRanges")
	if len(s.LoadBalancerSourceRanges) > 0 && !balanced {
		f.Forbidden(ranges, only)
	}
	for i, r := range s.LoadBalancerSourceRanges {
		if _, err := netip.ParsePrefix(strings.TrimSpace(r)); err != nil {
			f.Invalid(ranges.Index(i), r, "must be a valid CIDR value")
		}
	}
	if s.AllocateLoadBalancerNodePorts != nil && !balanced {
		f.Forbidden(at.Field("allocateLoadBalancerNodePorts"), only)
	}
	if c := s.LoadBalancerClass; c != nil {
		if balanced {
			f.Format(at.Field("loadBalancerClass"), *c, meta.CheckQualifiedName(*c))
		} else {
			f.Forbidden(at.Field("loadBalancerClass"), only)
		}
	}
}

func (s *ServiceSpec) policies(f *check.Violations, at *check.Path) {
	onNodes := s.Type == NodePortType || s.Type == LoadBalancerType
	if onNodes || s.Type == ClusterIPType && len(s.ExternalIPs) > 0 {
		f.RequiredField(at, "externalTrafficPolicy", s.ExternalTrafficPolicy)
	} else if p := s.ExternalTrafficPolicy; p != "" {
		f.Invalid(at.Field("externalTrafficPolicy"), p, "may only be set for externally-accessible services")
	}
	if n := s.HealthCheckNodePort; s.healthChecked() {
		f.Port(at.Field("healthCheckNodePort"), int64(n))
	} else if n != 0 {
		f.Invalid(at.Field("healthCheckNodePort"), n, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	}
	if s.InternalTrafficPolicy == nil && (onNodes || s.Type == ClusterIPType) {
		f.Required(at.Field("internalTrafficPolicy"), "")
	}
}

func (s *ServiceSpec) healthChecked() bool {
	return s.Type == LoadBalancerType && s.ExternalTrafficPolicy == "Local"
}

// immutableOnceSet is the message for changes of allocated values.
const immutableOnceSet = "may not change once set"

// checkUpdate reports changes of immutable fields: the first address and family, the class of the load
// balancer, and the health check port, while the type has them.
func (s *ServiceSpec) checkUpdate(f *check.Violations, at *check.Path, old *ServiceSpec) {
	if old.Type != ExternalNameType && s.Type != ExternalNameType {
		if len(old.ClusterIPs) > 0 && (len(s.ClusterIPs) == 0 || s.ClusterIPs[0] != old.ClusterIPs[0]) {
			f.Invalid(at.Field("clusterIPs").Index(0), s.ClusterIPs, immutableOnceSet)
		}
		if len(old.IPFamilies) > 0 && !s.headless() && (len(s.IPFamilies) == 0 || s.IPFamilies[0] != old.IPFamilies[0]) {
			f.Invalid(at.Field("ipFamilies").Index(0), s.IPFamilies, immutableOnceSet)
		}
	}
	if old.Type == LoadBalancerType && s.Type == LoadBalancerType && !check.SemanticEqual(s.LoadBalancerClass, old.LoadBalancerClass) {
		f.Invalid(at.Field("loadBalancerClass"), s.LoadBalancerClass, immutableOnceSet)
	}
	if s.healthChecked() && old.healthChecked() && s.HealthCheckNodePort != old.HealthCheckNodePort {
		f.Forbidden(at.Field("healthCheckNodePort"), "field is immutable")
	}
}

// validate checks the state of a load balancer of a service of type kind.
func (l *LoadBalancerStatus) validate(f *check.Violations, at *check.Path, kind string) {
	if kind != LoadBalancerType && len(l.Ingress) > 0 {
		f.Forbidden(at.Field("ingress"), "may only be used when `spec.type` is \"LoadBalancer\"")
		return
	}
	for i, in := range l.Ingress {
		p := at.Field("ingress").Index(i)
		if in.IP != "" {
			if in.IPMode == nil {
				f.Required(p.Field("ipMode"), "must be specified when `ip` is set")
			}
		} else if in.IPMode != nil {
			f.Forbidden(p.Field("ipMode"), "may not be specified when `ip` is not set")
		}
		if len(check.IP(in.Hostname)) == 0 {
			f.Invalid(p.Field("hostname"), in.Hostname, "must be a DNS name, not an IP address")
		}
	}
}

// dualStack reports whether the addresses are of both families.
func dualStack(addresses []string) bool {
	families := map[bool]bool{}
	for _, text := range addresses {
		families[strings.Contains(text, ":")] = true
	}
	return len(families) == 2
}
