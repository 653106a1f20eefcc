package networking

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// Ingress routes external HTTP requests to services by host and path.
type Ingress struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the routing.
	Spec IngressSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is the state of the load balancer.
	Status IngressStatus `json:"status,omitempty" protobuf:"3"`
}

// IngressSpec is the routing of an Ingress. A default backend or at least one rule is required.
type IngressSpec struct {
	// IngressClassName is the IngressClass of the Ingress, which selects the controller.
	IngressClassName *string `json:"ingressClassName,omitempty" protobuf:"4" schema:"format=dns-subdomain"`
	// DefaultBackend receives the requests that match no rule.
	DefaultBackend *IngressBackend `json:"defaultBackend,omitempty" protobuf:"1"`
	// TLS lists the certificates for hosts. TLS is served on port 443 only.
	TLS []IngressTLS `json:"tls,omitempty" protobuf:"2" schema:"listType=atomic"`
	// Rules route requests by host.
	Rules []IngressRule `json:"rules,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// IngressTLS is a certificate for hosts.
type IngressTLS struct {
	// Hosts of the certificate. Empty means the default of the controller.
	Hosts []string `json:"hosts,omitempty" protobuf:"1" schema:"listType=atomic"`
	// SecretName is the secret with the certificate and its private key.
	SecretName string `json:"secretName,omitempty" protobuf:"2" schema:"format=dns-subdomain"`
}

// IngressRule routes the requests for a host.
type IngressRule struct {
	// Host is a DNS name whose first label may be *, which matches any single label. Empty matches all
	// hosts. IP addresses are not allowed.
	Host             string `json:"host,omitempty" protobuf:"1"`
	IngressRuleValue `json:",inline" protobuf:"2"`
}

// IngressRuleValue is the routing of a rule.
type IngressRuleValue struct {
	// HTTP routes requests by path. Without it, the default backend receives all requests for the host.
	HTTP *HTTPIngressRuleValue `json:"http,omitempty" protobuf:"1"`
}

// HTTPIngressRuleValue routes requests by path.
type HTTPIngressRuleValue struct {
	// Paths with their backends; at least one.
	Paths []HTTPIngressPath `json:"paths" protobuf:"1" schema:"required,listType=atomic"`
}

// HTTPIngressPath routes the requests for a path to a backend.
type HTTPIngressPath struct {
	// Path of the requests. It must begin with a slash, but may be empty for ImplementationSpecific.
	Path string `json:"path,omitempty" protobuf:"1"`
	// PathType is Exact, which compares the whole path, Prefix, which compares path segments, or
	// ImplementationSpecific, which is up to the class.
	PathType *string `json:"pathType" protobuf:"3" schema:"required,reason.required=pathType must be specified,enum=Exact|ImplementationSpecific|Prefix"`
	// Backend receives the requests.
	Backend IngressBackend `json:"backend" protobuf:"2"`
}

// IngressBackend receives requests. Either service or resource must be set.
type IngressBackend struct {
	// Service in the namespace of the Ingress.
	Service *IngressServiceBackend `json:"service,omitempty" protobuf:"4"`
	// Resource in the namespace of the Ingress, of a kind that the controller supports.
	Resource *core.TypedLocalObjectReference `json:"resource,omitempty" protobuf:"3" schema:"unchecked"`
}

// IngressServiceBackend identifies a port of a service.
type IngressServiceBackend struct {
	// Name of the service.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`
	// Port of the service.
	Port ServiceBackendPort `json:"port,omitempty" protobuf:"2"`
}

// ServiceBackendPort identifies a port. Either name or number must be set.
type ServiceBackendPort struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the port.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=port-name"`
	// Number of the port: 1 to 65535.
	Number int32 `json:"number,omitempty" protobuf:"2" schema:"range=1|65535"`
}

// IngressStatus is the state of an Ingress.
type IngressStatus struct {
	// LoadBalancer is the state of the load balancer.
	LoadBalancer IngressLoadBalancerStatus `json:"loadBalancer,omitempty" protobuf:"1"`
}

// IngressLoadBalancerStatus is the state of a load balancer.
type IngressLoadBalancerStatus struct {
	// Ingress lists the addresses of the load balancer.
	Ingress []IngressLoadBalancerIngress `json:"ingress,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// IngressLoadBalancerIngress is an address of a load balancer.
type IngressLoadBalancerIngress struct {
	// IP address, if the load balancer has any.
	IP string `json:"ip,omitempty" protobuf:"1" schema:"format=ip"`
	// Hostname is the DNS name, if the load balancer has any.
	Hostname string `json:"hostname,omitempty" protobuf:"2" schema:"format=dns-subdomain"`
	// Ports of the load balancer.
	Ports []IngressPortStatus `json:"ports,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// IngressPortStatus is the state of a port of a load balancer.
type IngressPortStatus = core.PortStatus

func ingresses() *registry.Kind {
	return registry.Of(registry.Definition[Ingress]{
		Group: wellknown.GroupNetworking, Version: "v1", Plural: "ingresses", ShortNames: []string{"ing"}, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.19"}, Versions: olderIngresses(),
		Columns: []registry.Column{
			{Name: "Class", Type: "string", Doc: "The class of the Ingress.", Cell: func(o *meta.Object) any {
				return orNone(o.String("spec", "ingressClassName"))
			}},
			{Name: "Hosts", Type: "string", Doc: "The hosts of the rules.", Cell: hostsCell},
			{Name: "Address", Type: "string", Doc: "The addresses of the load balancer.", Cell: func(o *meta.Object) any {
				return strings.Join(cells.Balancer(o), ",")
			}},
			{Name: "Ports", Type: "string", Doc: "The ports of the load balancer.", Cell: func(o *meta.Object) any {
				if len(o.List("spec", "tls")) > 0 {
					return "80, 443"
				}
				return "80"
			}},
			registry.AgeColumn(),
		},
		Validate: validateIngress,
		Behavior: registry.Behavior{Warn: func(w *registry.Change[meta.Object]) []string {
			key := w.Names.Wire(wellknown.IngressClass)
			if _, there := w.New.Annotations()[key]; !there || w.Old != nil || w.New.String("spec", "ingressClassName") != "" {
				return nil
			}
			return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", key)}
		}},
		Reference: &compat.Reference{DeleteAnswersStatus: true, StatusMetadata: compat.CallersMetadata()},
	})
}

func orNone(text string) any {
	if text == "" {
		return "<none>"
	}
	return text
}

// hostsCell shows the first hosts and the number of the other rules.
func hostsCell(o *meta.Object) any {
	const few = 3
	var list []string
	rules := o.Objects("spec", "rules")
	for _, r := range rules {
		if len(list) == few {
			return fmt.Sprintf("%s + %d more...", strings.Join(list, ","), len(rules)-few)
		}
		if h := r.String("host"); h != "" {
			list = append(list, h)
		}
	}
	if len(list) == 0 {
		return "*"
	}
	return strings.Join(list, ",")
}
