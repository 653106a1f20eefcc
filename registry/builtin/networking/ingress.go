package networking

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// Ingress leads requests of HTTP from outside to services, by their host and path.
type Ingress struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which requests go where.
	Spec IngressSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is where requests can be sent to.
	Status IngressStatus `json:"status,omitempty" protobuf:"3"`
}

// IngressSpec says which requests go where.
type IngressSpec struct {
	// IngressClassName is the IngressClass, and so the controller, that is to serve it.
	IngressClassName *string `json:"ingressClassName,omitempty" protobuf:"4" schema:"format=dns-subdomain"`
	// DefaultBackend gets what no rule leads elsewhere. Without rules it is needed.
	DefaultBackend *IngressBackend `json:"defaultBackend,omitempty" protobuf:"1"`
	// TLS are the certificates for hosts, all of them on port 443.
	TLS []IngressTLS `json:"tls,omitempty" protobuf:"2" schema:"listType=atomic"`
	// Rules lead requests by their host.
	Rules []IngressRule `json:"rules,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// IngressTLS is a certificate and the hosts that are served with it.
type IngressTLS struct {
	// Hosts that the certificate is for. None is those of the controller's own choice.
	Hosts []string `json:"hosts,omitempty" protobuf:"1" schema:"listType=atomic"`
	// SecretName is the secret with the certificate and its key.
	SecretName string `json:"secretName,omitempty" protobuf:"2" schema:"format=dns-subdomain"`
}

// IngressRule leads the requests for a host by their path.
type IngressRule struct {
	// Host of the requests: a DNS name, or one whose first label is *. Empty is every host.
	Host             string `json:"host,omitempty" protobuf:"1"`
	IngressRuleValue `json:",inline" protobuf:"2"`
}

// IngressRuleValue is what a rule does with requests.
type IngressRuleValue struct {
	// HTTP leads requests by their path. Unset, all go to the default backend.
	HTTP *HTTPIngressRuleValue `json:"http,omitempty" protobuf:"1"`
}

// HTTPIngressRuleValue leads requests by their path.
type HTTPIngressRuleValue struct {
	// Paths and where they lead, one at least.
	Paths []HTTPIngressPath `json:"paths" protobuf:"1" schema:"required,listType=atomic"`
}

// HTTPIngressPath leads the requests with a path to a backend.
type HTTPIngressPath struct {
	// Path of the requests; it begins with /.
	Path string `json:"path,omitempty" protobuf:"1"`
	// PathType is how the path is compared: Exact is the whole, Prefix its first
	// elements, ImplementationSpecific is up to the class.
	PathType *string `json:"pathType" protobuf:"3" schema:"required,reason.required=pathType must be specified,enum=Exact|ImplementationSpecific|Prefix"`
	// Backend gets the requests.
	Backend IngressBackend `json:"backend" protobuf:"2"`
}

// IngressBackend is where requests go: to a service or to a resource.
type IngressBackend struct {
	// Service in the same namespace.
	Service *IngressServiceBackend `json:"service,omitempty" protobuf:"4"`
	// Resource in the same namespace, of a kind that the controller knows.
	Resource *core.TypedLocalObjectReference `json:"resource,omitempty" protobuf:"3" schema:"unchecked"`
}

// IngressServiceBackend is a port of a service.
type IngressServiceBackend struct {
	// Name of the service.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`
	// Port of the service.
	Port ServiceBackendPort `json:"port,omitempty" protobuf:"2"`
}

// ServiceBackendPort is a port by name or by number.
type ServiceBackendPort struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the port.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=port-name"`
	// Number of the port, 1 to 65535.
	Number int32 `json:"number,omitempty" protobuf:"2" schema:"range=1|65535"`
}

// IngressStatus is the state of an ingress.
type IngressStatus struct {
	// LoadBalancer is where it is reached.
	LoadBalancer IngressLoadBalancerStatus `json:"loadBalancer,omitempty" protobuf:"1"`
}

// IngressLoadBalancerStatus is where an ingress is reached.
type IngressLoadBalancerStatus struct {
	// Ingress are the addresses.
	Ingress []IngressLoadBalancerIngress `json:"ingress,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// IngressLoadBalancerIngress is an address at which an ingress is reached.
type IngressLoadBalancerIngress struct {
	// IP address, if it has one.
	IP string `json:"ip,omitempty" protobuf:"1" schema:"format=ip"`
	// Hostname is its DNS name, if it has one.
	Hostname string `json:"hostname,omitempty" protobuf:"2" schema:"format=dns-subdomain"`
	// Ports that are open there.
	Ports []IngressPortStatus `json:"ports,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// IngressPortStatus is the state of a port of an ingress.
type IngressPortStatus = core.PortStatus

func ingresses() *registry.Kind {
	return registry.Of(registry.Definition[Ingress]{
		Group: names.GroupNetworking, Version: "v1", Plural: "ingresses", ShortNames: []string{"ing"}, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.19"}, Versions: formerIngresses(),
		Columns: []registry.Column{
			{Name: "Class", Type: "string", Doc: "The class whose controller serves it.", Cell: func(o *meta.Object) any {
				return orNone(o.String("spec", "ingressClassName"))
			}},
			{Name: "Hosts", Type: "string", Doc: "The hosts that rules are for.", Cell: hosts},
			{Name: "Address", Type: "string", Doc: "Where it is reached.", Cell: func(o *meta.Object) any {
				return strings.Join(cells.Balancer(o), ",")
			}},
			{Name: "Ports", Type: "string", Doc: "The ports that are open.", Cell: func(o *meta.Object) any {
				if len(o.List("spec", "tls")) > 0 {
					return "80, 443"
				}
				return "80"
			}},
			registry.Age(),
		},
		Validate: validateIngress,
		Behavior: registry.Behavior{Warn: func(w *registry.Change[meta.Object]) []string {
			key := w.Names.Wire(names.IngressClass)
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

// hosts are the first few of an ingress, and how many rules come behind those.
func hosts(o *meta.Object) any {
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
