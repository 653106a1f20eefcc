package networking

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// IngressV1beta1 is an Ingress as version v1beta1 shows it: backends are a service and a
// port in one, and paths need not say how they match.
type IngressV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is reached how.
	Spec IngressSpecV1beta1 `json:"spec,omitempty" protobuf:"2"`
	// Status is where it is reached.
	Status IngressStatus `json:"status,omitempty" protobuf:"3"`
}

// IngressSpecV1beta1 is what is reached how.
type IngressSpecV1beta1 struct {
	// IngressClassName is the class whose controller serves it.
	IngressClassName *string `json:"ingressClassName,omitempty" protobuf:"4" schema:"format=dns-subdomain"`
	// Backend takes the requests that no rule takes.
	Backend *IngressBackendV1beta1 `json:"backend,omitempty" protobuf:"1"`
	// TLS are the certificates of hosts.
	TLS []IngressTLS `json:"tls,omitempty" protobuf:"2" schema:"listType=atomic"`
	// Rules are the hosts, and where their requests go.
	Rules []IngressRuleV1beta1 `json:"rules,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// IngressRuleV1beta1 is where the requests for a host go.
type IngressRuleV1beta1 struct {
	// Host is the name of the host; "*." in front stands for one label; empty is all hosts.
	Host                    string `json:"host,omitempty" protobuf:"1"`
	IngressRuleValueV1beta1 `json:",inline" protobuf:"2"`
}

// IngressRuleValueV1beta1 is where requests go, by protocol.
type IngressRuleValueV1beta1 struct {
	// HTTP is where HTTP requests go.
	HTTP *HTTPIngressRuleValueV1beta1 `json:"http,omitempty" protobuf:"1"`
}

// HTTPIngressRuleValueV1beta1 is where HTTP requests go.
type HTTPIngressRuleValueV1beta1 struct {
	// Paths are the paths of requests, and where they go.
	Paths []HTTPIngressPathV1beta1 `json:"paths" protobuf:"1" schema:"required,listType=atomic"`
}

// HTTPIngressPathV1beta1 is where requests for a path go.
type HTTPIngressPathV1beta1 struct {
	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`
	// PathType is how the path matches: Exact, Prefix or ImplementationSpecific, which it
	// is by default.
	PathType *string `json:"pathType,omitempty" protobuf:"3" schema:"default=ImplementationSpecific,enum=Exact|ImplementationSpecific|Prefix"`
	// Backend takes the requests.
	Backend IngressBackendV1beta1 `json:"backend" protobuf:"2"`
}

// IngressBackendV1beta1 is who takes requests.
type IngressBackendV1beta1 struct {
	// ServiceName is the service.
	ServiceName string `json:"serviceName,omitempty" protobuf:"1"`
	// ServicePort is its port, by name or number.
	ServicePort meta.IntOrString `json:"servicePort,omitempty" protobuf:"2"`
	// Resource is an object in the namespace that is served, in place of a service.
	Resource *core.TypedLocalObjectReference `json:"resource,omitempty" protobuf:"3" schema:"unchecked"`
}

// formerIngresses are the versions of an Ingress in both groups.
func formerIngresses() []registry.VersionOf[Ingress] {
	of := func(group, introduced, deprecated string) registry.VersionOf[Ingress] {
		return registry.Spoke[IngressV1beta1, Ingress]{
			Group: group, Version: "v1beta1", ToHub: (*IngressV1beta1).hub, FromHub: (*Ingress).v1beta1,
			Lifetime:    registry.Lifetime{Introduced: introduced, Deprecated: deprecated, Removed: "1.22"},
			Replacement: older.Use[Ingress](names.GroupNetworking + "/v1"),
		}
	}
	return []registry.VersionOf[Ingress]{of("", "1.14", "1.19"), of(names.GroupFormer, "1.1", "1.14")}
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
