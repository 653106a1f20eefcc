package core

import (
	"context"
	"net/netip"
	"strings"

	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
)

func validateService(_ context.Context, old, new *Service) []meta.Cause {
	var f check.Faults
	at, s := check.At("spec"), &new.Spec
	s.ports(&f, at)
	f.Labels(at.Field("selector"), s.Selector)
	if s.SessionAffinity == "" {
		f.Required(at.Field("sessionAffinity"), "")
	} else {
		f.OneOf(at.Field("sessionAffinity"), s.SessionAffinity, "ClientIP", "None")
	}
	s.affinity(&f, at.Field("sessionAffinityConfig"))
	f.RequiredOneOf(at.Field("type"), s.Type, ClusterIPType, ExternalNameType, LoadBalancerType, NodePortType)
	s.addresses(&f, at)
	s.policies(&f, at)
	if old != nil {
		s.changes(&f, at, &old.Spec)
	}
	for i, in := range new.Status.LoadBalancer.Ingress {
		p := check.At("status", "loadBalancer", "ingress").Index(i)
		if in.IP != "" && parseIP(in.IP) != nil {
			f.Invalid(p.Field("ip"), in.IP, "must be a valid IP address")
		}
		if in.Hostname != "" {
			f.Format(p.Field("hostname"), in.Hostname, meta.CheckDNSSubdomain(in.Hostname))
		}
	}
	return f
}

func (s *ServiceSpec) headless() bool { return s.ClusterIP == noAddress }

func (s *ServiceSpec) ports(f *check.Faults, at *check.Path) {
	if len(s.Ports) == 0 && !s.headless() && s.Type != ExternalNameType {
		f.Required(at.Field("ports"), "")
	}
	if s.Type == LoadBalancerType && s.headless() {
		f.Invalid(at.Field("clusterIPs").Index(0), s.ClusterIP, "may not be set to 'None' for LoadBalancer services")
	}
	if s.Type == ExternalNameType {
		if len(s.ClusterIPs) > 0 {
			f.Forbidden(at.Field("clusterIPs"), "may not be set when `type` is 'ExternalName'")
		}
		if s.ExternalName == "" {
			f.Required(at.Field("externalName"), "")
		} else {
			name := strings.TrimSuffix(s.ExternalName, ".")
			f.Format(at.Field("externalName"), s.ExternalName, meta.CheckDNSSubdomain(name))
		}
	}
	type number struct {
		port     int32
		protocol string
	}
	names, numbers, nodePorts := map[string]bool{}, map[number]bool{}, map[number]bool{}
	for i := range s.Ports {
		p, where := &s.Ports[i], at.Field("ports").Index(i)
		p.check(f, where, len(s.Ports) > 1, names, s.headless())
		if n := (number{p.Port, p.Protocol}); numbers[n] {
			f.Duplicate(where, map[string]any{"port": p.Port, "protocol": p.Protocol})
		} else {
			numbers[n] = true
		}
		if p.NodePort == 0 {
			continue
		}
		if s.Type == ClusterIPType {
			f.Forbidden(where.Field("nodePort"), "may not be used when `type` is 'ClusterIP'")
		}
		if n := (number{p.NodePort, p.Protocol}); nodePorts[n] {
			f.Duplicate(where.Field("nodePort"), p.NodePort)
		} else {
			nodePorts[n] = true
		}
	}
}

func (p *ServicePort) check(f *check.Faults, at *check.Path, several bool, names map[string]bool, headless bool) {
	switch {
	case p.Name == "" && several:
		f.Required(at.Field("name"), "")
	case p.Name != "":
		f.Format(at.Field("name"), p.Name, meta.CheckDNSLabel(p.Name))
		if names[p.Name] {
			f.Duplicate(at.Field("name"), p.Name)
		}
		names[p.Name] = true
	}
	f.Range(at.Field("port"), int64(p.Port), 1, 65535)
	f.RequiredOneOf(at.Field("protocol"), p.Protocol, "SCTP", "TCP", "UDP")
	if p.TargetPort.IsString {
		f.Format(at.Field("targetPort"), p.TargetPort.Text, check.PortName(p.TargetPort.Text))
	} else {
		f.Range(at.Field("targetPort"), int64(p.TargetPort.Int), 1, 65535)
	}
	if p.AppProtocol != nil {
		f.Format(at.Field("appProtocol"), *p.AppProtocol, meta.CheckQualifiedName(*p.AppProtocol))
	}
}

func (s *ServiceSpec) affinity(f *check.Faults, at *check.Path) {
	switch c := s.SessionAffinityConfig; {
	case s.SessionAffinity == "None" && c != nil:
		f.Forbidden(at, "must not be set when session affinity is None")
	case s.SessionAffinity != "ClientIP":
	case c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil:
		f.Required(at, "when session affinity type is ClientIP")
	case *c.ClientIP.TimeoutSeconds <= 0 || *c.ClientIP.TimeoutSeconds > 86400:
		f.Invalid(at.Field("clientIP").Field("timeoutSeconds"), *c.ClientIP.TimeoutSeconds, "must be greater than 0 and less than 86400")
	}
}

func (s *ServiceSpec) addresses(f *check.Faults, at *check.Path) {
	if s.Type != ExternalNameType {
		if len(s.ClusterIPs) > 0 && s.ClusterIP != s.ClusterIPs[0] {
			f.Invalid(at.Field("clusterIPs"), s.ClusterIPs, "first value must match `clusterIP`")
		}
		for i, ip := range s.ClusterIPs {
			p := at.Field("clusterIPs").Index(i)
			switch {
			case ip == noAddress && i > 0:
				f.Invalid(p, ip, "'None' must be the first and only value")
			case ip != noAddress && parseIP(ip) != nil:
				f.Invalid(p, ip, "must be a valid IP address")
			}
		}
		if len(s.ClusterIPs) > 2 {
			f.Invalid(at.Field("clusterIPs"), s.ClusterIPs, "may only hold up to 2 values")
		}
	}
	for i, ip := range s.ExternalIPs {
		if a, err := netip.ParseAddr(ip); err != nil || a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() {
			f.Invalid(at.Field("externalIPs").Index(i), ip, "must be a valid IP address that is not special")
		}
	}
	for i, r := range s.LoadBalancerSourceRanges {
		p := at.Field("loadBalancerSourceRanges")
		if s.Type != LoadBalancerType {
			f.Forbidden(p, "may only be used when `type` is 'LoadBalancer'")
			break
		}
		if _, err := netip.ParsePrefix(strings.TrimSpace(r)); err != nil {
			f.Invalid(p.Index(i), r, "must be a valid CIDR value")
		}
	}
	for i, family := range s.IPFamilies {
		f.OneOf(at.Field("ipFamilies").Index(i), family, "IPv4", "IPv6")
	}
	if s.IPFamilyPolicy != nil {
		f.OneOf(at.Field("ipFamilyPolicy"), *s.IPFamilyPolicy, "SingleStack", "PreferDualStack", "RequireDualStack")
	}
}

func (s *ServiceSpec) policies(f *check.Faults, at *check.Path) {
	external := s.Type == NodePortType || s.Type == LoadBalancerType || s.Type == ClusterIPType && len(s.ExternalIPs) > 0
	if p := s.ExternalTrafficPolicy; p != "" {
		if external {
			f.OneOf(at.Field("externalTrafficPolicy"), p, "Cluster", "Local")
		} else {
			f.Invalid(at.Field("externalTrafficPolicy"), p, "may only be set for externally-accessible services")
		}
	}
	if n := s.HealthCheckNodePort; n != 0 && (s.Type != LoadBalancerType || s.ExternalTrafficPolicy != "Local") {
		f.Invalid(at.Field("healthCheckNodePort"), n, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	}
	if p := s.InternalTrafficPolicy; p != nil {
		f.OneOf(at.Field("internalTrafficPolicy"), *p, "Cluster", "Local")
	}
	if c := s.LoadBalancerClass; c != nil {
		if s.Type != LoadBalancerType {
			f.Forbidden(at.Field("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'")
		}
		f.Format(at.Field("loadBalancerClass"), *c, meta.CheckQualifiedName(*c))
	}
	if s.AllocateLoadBalancerNodePorts != nil && s.Type != LoadBalancerType {
		f.Forbidden(at.Field("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'")
	}
}

// changes checks what may not change: the address while the service has one,
// and the class of its load balancer.
func (s *ServiceSpec) changes(f *check.Faults, at *check.Path, old *ServiceSpec) {
	if old.Type != ExternalNameType && s.Type != ExternalNameType && old.ClusterIP != "" && s.ClusterIP != old.ClusterIP {
		f.Invalid(at.Field("clusterIPs").Index(0), s.ClusterIPs, "may not change once set")
	}
	if old.Type == LoadBalancerType && s.Type == LoadBalancerType && !check.Same(s.LoadBalancerClass, old.LoadBalancerClass) {
		f.Invalid(at.Field("loadBalancerClass"), s.LoadBalancerClass, "may not change once set")
	}
}
