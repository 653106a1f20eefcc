package networking

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// IngressV1beta1 is an Ingress in version v1beta1. A backend names service and port in 2 fields, and
// pathType is optional.
type IngressV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the routing.
	Spec IngressSpecV1beta1 `json:"spec,omitempty" protobuf:"2"`
	// Status is the state of the load balancer.
	Status IngressStatus `json:"status,omitempty" protobuf:"3"`
}

// IngressSpecV1beta1 is the routing of an Ingress.
type IngressSpecV1beta1 struct {
	// IngressClassName is the IngressClass of the Ingress, which selects the controller.
	IngressClassName *string `json:"ingressClassName,omitempty" protobuf:"4" schema:"format=dns-subdomain"`
	// Backend receives the requests that match no rule.
	Backend *IngressBackendV1beta1 `json:"backend,omitempty" protobuf:"1"`
	// TLS lists the certificates for hosts.
	TLS []IngressTLS `json:"tls,omitempty" protobuf:"2" schema:"listType=atomic"`
	// Rules route requests by host.
	Rules []IngressRuleV1beta1 `json:"rules,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// IngressRuleV1beta1 routes the requests for a host.
type IngressRuleV1beta1 struct {
	// Host is a DNS name whose first label may be *, which matches any single label. Empty matches all
	// hosts.
	Host                    string `json:"host,omitempty" protobuf:"1"`
	IngressRuleValueV1beta1 `json:",inline" protobuf:"2"`
}

// IngressRuleValueV1beta1 is the routing of a rule.
type IngressRuleValueV1beta1 struct {
	// HTTP routes requests by path.
	HTTP *HTTPIngressRuleValueV1beta1 `json:"http,omitempty" protobuf:"1"`
}

// HTTPIngressRuleValueV1beta1 routes requests by path.
type HTTPIngressRuleValueV1beta1 struct {
	// Paths with their backends; at least one.
	Paths []HTTPIngressPathV1beta1 `json:"paths" protobuf:"1" schema:"required,listType=atomic"`
}

// HTTPIngressPathV1beta1 routes the requests for a path to a backend.
type HTTPIngressPathV1beta1 struct {
	// Path of the requests.
	Path string `json:"path,omitempty" protobuf:"1"`
	// PathType is Exact, Prefix or ImplementationSpecific (default).
	PathType *string `json:"pathType,omitempty" protobuf:"3" schema:"default=ImplementationSpecific,enum=Exact|ImplementationSpecific|Prefix"`
	// Backend receives the requests.
	Backend IngressBackendV1beta1 `json:"backend" protobuf:"2"`
}

// IngressBackendV1beta1 receives requests. Either serviceName and servicePort or resource must be set.
type IngressBackendV1beta1 struct {
	// ServiceName is the name of the service.
	ServiceName string `json:"serviceName,omitempty" protobuf:"1"`
	// ServicePort is the port of the service, by name or number.
	ServicePort meta.IntOrString `json:"servicePort,omitempty" protobuf:"2"`
	// Resource in the namespace of the Ingress, of a kind that the controller supports.
	Resource *core.TypedLocalObjectReference `json:"resource,omitempty" protobuf:"3" schema:"unchecked"`
}

// olderIngresses returns the versions v1beta1 of Ingress in the groups networking and extensions.
func olderIngresses() []registry.VersionOf[Ingress] {
	of := func(group, introduced, deprecated string) registry.VersionOf[Ingress] {
		return registry.Spoke[IngressV1beta1, Ingress]{
			Group: group, Version: "v1beta1", ToHub: (*IngressV1beta1).hub, FromHub: (*Ingress).v1beta1,
			Lifetime:    registry.Lifetime{Introduced: introduced, Deprecated: deprecated, Removed: "1.22"},
			Replacement: older.Use[Ingress](wellknown.GroupNetworking + "/v1"),
		}
	}
	return []registry.VersionOf[Ingress]{of("", "1.14", "1.19"), of(wellknown.GroupFormer, "1.1", "1.14")}
}

func (in *IngressV1beta1) hub(out *Ingress) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, IngressSpec{IngressClassName: s.IngressClassName, TLS: s.TLS}
	if s.Backend != nil {
		b := s.Backend.hub()
		out.Spec.DefaultBackend = &b
	}
	for _, r := range s.Rules {
		rule := IngressRule{Host: r.Host}
		if r.HTTP != nil {
			rule.HTTP = &HTTPIngressRuleValue{}
			for _, p := range r.HTTP.Paths {
				rule.HTTP.Paths = append(rule.HTTP.Paths, HTTPIngressPath{Path: p.Path, PathType: p.PathType, Backend: p.Backend.hub()})
			}
		}
		out.Spec.Rules = append(out.Spec.Rules, rule)
	}
	return nil
}

func (b *IngressBackendV1beta1) hub() IngressBackend {
	out := IngressBackend{Resource: b.Resource}
	if port := b.ServicePort; b.ServiceName != "" || port != (meta.IntOrString{}) {
		out.Service = &IngressServiceBackend{Name: b.ServiceName, Port: ServiceBackendPort{Number: port.Int}}
		if port.IsString {
			out.Service.Port = ServiceBackendPort{Name: port.Text}
		}
	}
	return out
}

func (in *Ingress) v1beta1(out *IngressV1beta1) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, IngressSpecV1beta1{IngressClassName: s.IngressClassName, TLS: s.TLS}
	if s.DefaultBackend != nil {
		b := s.DefaultBackend.v1beta1()
		out.Spec.Backend = &b
	}
	for _, r := range s.Rules {
		rule := IngressRuleV1beta1{Host: r.Host}
		if r.HTTP != nil {
			rule.HTTP = &HTTPIngressRuleValueV1beta1{}
			for _, p := range r.HTTP.Paths {
				rule.HTTP.Paths = append(rule.HTTP.Paths, HTTPIngressPathV1beta1{Path: p.Path, PathType: p.PathType, Backend: p.Backend.v1beta1()})
			}
		}
		out.Spec.Rules = append(out.Spec.Rules, rule)
	}
	return nil
}

func (b *IngressBackend) v1beta1() IngressBackendV1beta1 {
	out := IngressBackendV1beta1{Resource: b.Resource}
	if s := b.Service; s != nil {
		out.ServiceName, out.ServicePort = s.Name, meta.IntOrString{Int: s.Port.Number}
		if s.Port.Name != "" {
			out.ServicePort = meta.IntOrString{IsString: true, Text: s.Port.Name}
		}
	}
	return out
}
