package core

import (
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// Service is a name and an address for a set of pods.
type Service struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods, and how they are reached.
	Spec ServiceSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what a load balancer was given.
	Status ServiceStatus `json:"status,omitempty" protobuf:"3"`
}

// ServiceSpec says which pods a service leads to, and how.
type ServiceSpec struct {
	// Ports of the service.
	Ports []ServicePort `json:"ports,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"port" schema:"listType=map,listMapKeys=port|protocol"`

	// Selector is the labels of the pods; none: somebody else keeps the
	// endpoints.
	Selector map[string]string `json:"selector,omitempty" protobuf:"2" schema:"mapType=atomic,format=labels"`

	// ClusterIP is the address in the cluster; None makes the service headless.
	// It is allocated if left out and cannot change.
	ClusterIP string `json:"clusterIP,omitempty" protobuf:"3"`

	// ClusterIPs are the addresses by family; the first equals clusterIP.
	ClusterIPs []string `json:"clusterIPs,omitempty" protobuf:"18" schema:"listType=atomic"`

	// Type is ClusterIP (the default), NodePort, LoadBalancer or ExternalName.
	Type string `json:"type,omitempty" protobuf:"4" schema:"default=ClusterIP,enum=ClusterIP|ExternalName|LoadBalancer|NodePort"`

	// ExternalIPs are addresses that nodes also accept traffic for.
	ExternalIPs []string `json:"externalIPs,omitempty" protobuf:"5" schema:"listType=atomic"`

	// SessionAffinity is None (the default) or ClientIP.
	SessionAffinity string `json:"sessionAffinity,omitempty" protobuf:"7" schema:"default=None,enum=ClientIP|None"`

	// LoadBalancerIP asks for an address. Deprecated: providers differ in it.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty" protobuf:"8"`

	// LoadBalancerSourceRanges are the client networks that a load balancer lets
	// in.
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty" protobuf:"9" schema:"listType=atomic"`

	// ExternalName is the DNS name that an ExternalName service stands for.
	ExternalName string `json:"externalName,omitempty" protobuf:"10"`

	// ExternalTrafficPolicy is Cluster or Local: where traffic from outside goes
	// on.
	ExternalTrafficPolicy string `json:"externalTrafficPolicy,omitempty" protobuf:"11" schema:"enum=Cluster|Local"`

	// HealthCheckNodePort is the node's port for the load balancer's health
	// check.
	HealthCheckNodePort int32 `json:"healthCheckNodePort,omitempty" protobuf:"12"`

	// PublishNotReadyAddresses also leads to pods that are not ready.
	PublishNotReadyAddresses bool `json:"publishNotReadyAddresses,omitempty" protobuf:"13"`

	// SessionAffinityConfig holds the settings of sessionAffinity.
	SessionAffinityConfig *SessionAffinityConfig `json:"sessionAffinityConfig,omitempty" protobuf:"14"`

	// IPFamilies are IPv4, IPv6 or both, in order.
	IPFamilies []string `json:"ipFamilies,omitempty" protobuf:"19" schema:"listType=atomic,items.enum=IPv4|IPv6,unchecked"`

	// IPFamilyPolicy is SingleStack, PreferDualStack or RequireDualStack.
	IPFamilyPolicy *string `json:"ipFamilyPolicy,omitempty" protobuf:"17" schema:"enum=PreferDualStack|RequireDualStack|SingleStack,unchecked"`

	// AllocateLoadBalancerNodePorts says whether a load balancer needs node
	// ports; true by default.
	AllocateLoadBalancerNodePorts *bool `json:"allocateLoadBalancerNodePorts,omitempty" protobuf:"20"`

	// LoadBalancerClass names the implementation of the load balancer. It cannot
	// change.
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty" protobuf:"21"`

	// InternalTrafficPolicy is Cluster (the default) or Local: where traffic
	// from inside goes on.
	InternalTrafficPolicy *string `json:"internalTrafficPolicy,omitempty" protobuf:"22" schema:"enum=Cluster|Local"`

	// TrafficDistribution is a wish about which endpoints are preferred.
	TrafficDistribution *string `json:"trafficDistribution,omitempty" protobuf:"23" schema:"enum=PreferClose|PreferSameZone|PreferSameNode"`
}

// ServicePort is a port of a service.
type ServicePort struct {
	// Name of the port, a DNS label; needed and unique if there are several.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=dns-label"`

	// Protocol is TCP (the default), UDP or SCTP.
	Protocol string `json:"protocol,omitempty" protobuf:"2" schema:"default=TCP,enum=SCTP|TCP|UDP"`

	// AppProtocol names the protocol on top, for those who look into the
	// traffic.
	AppProtocol *string `json:"appProtocol,omitempty" protobuf:"6" schema:"format=qualified-name"`

	// Port number.
	Port int32 `json:"port" protobuf:"3" schema:"range=1|65535"`

	// TargetPort is the port of the pods, by number or name; port by default.
	TargetPort meta.IntOrString `json:"targetPort,omitempty" protobuf:"4" schema:"format=port"`

	// NodePort is the port of the nodes, for types that have one.
	NodePort int32 `json:"nodePort,omitempty" protobuf:"5"`
}

// SessionAffinityConfig holds the settings of session affinity.
type SessionAffinityConfig struct {
	// ClientIP is about affinity by the client's address.
	ClientIP *ClientIPConfig `json:"clientIP,omitempty" protobuf:"1"`
}

// ClientIPConfig is about affinity by the client's address.
type ClientIPConfig struct {
	// TimeoutSeconds is how long it lasts, up to 86400; 10800 by default.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" protobuf:"1"`
}

// ServiceStatus is the state of a service.
type ServiceStatus struct {
	// LoadBalancer is what a load balancer was given.
	LoadBalancer LoadBalancerStatus `json:"loadBalancer,omitempty" protobuf:"1"`

	// Conditions are aspects of the state.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
}

// LoadBalancerStatus is where a load balancer is reached.
type LoadBalancerStatus struct {
	// Ingress are its entries.
	Ingress []LoadBalancerIngress `json:"ingress,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// LoadBalancerIngress is an entry of a load balancer.
type LoadBalancerIngress struct {
	// IP is its address.
	IP string `json:"ip,omitempty" protobuf:"1" schema:"format=ip"`

	// Hostname is its DNS name.
	Hostname string `json:"hostname,omitempty" protobuf:"2" schema:"format=dns-subdomain"`

	// IPMode is VIP or Proxy: how traffic arrives.
	IPMode *string `json:"ipMode,omitempty" protobuf:"3" schema:"enum=Proxy|VIP"`

	// Ports are the states of its ports.
	Ports []PortStatus `json:"ports,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// PortStatus is the state of a port.
type PortStatus struct {
	// Port number.
	Port int32 `json:"port" protobuf:"1"`

	// Protocol of the port.
	Protocol string `json:"protocol" protobuf:"2"`

	// Error is what is wrong with it.
	Error *string `json:"error,omitempty" protobuf:"3"`
}

// The types of services, and the address of a headless one.
const (
	ClusterIPType    = "ClusterIP"
	NodePortType     = "NodePort"
	LoadBalancerType = "LoadBalancer"
	ExternalNameType = "ExternalName"
	noAddress        = "None"
)

func services() *registry.Kind {
	return registry.Of(registry.Definition[Service]{
		Version:      version,
		ShortNames:   []string{"svc"},
		Categories:   []string{"all"},
		Status:       true,
		Subresources: []registry.Subresource{serviceProxy()},
		Columns:      serviceColumns(),
		Validate:     validateService,
		ValidateName: meta.NameChecker(meta.CheckDNSLabel),
		Pool:         ServiceNetwork{}.Pool(),
		Fields:       []registry.SelectableField{{Name: "spec.clusterIP"}, {Name: "spec.type"}},
		Behavior: registry.Behavior{
			Default: defaultService,
			Prepare: prepareService,
			Warn:    warnOfService,
		},
		Reference: &compat.Reference{NoGeneration: true, StatusMetadata: compat.CallersMetadata(), CreateOnPut: true},
	})
}

func serviceColumns() []registry.Column {
	return []registry.Column{
		registry.Text("Type", "How the service is reached.", "spec", "type"),
		{Name: "Cluster-IP", Type: "string", Doc: "The address in the cluster.", Cell: func(o *meta.Object) any {
			if ips := o.Strings("spec", "clusterIPs"); len(ips) > 0 {
				return ips[0]
			}
			return none
		}},
		{Name: "External-IP", Type: "string", Doc: "Where the service is reached from outside.", Cell: externalAddress},
		{Name: "Port(s)", Type: "string", Doc: "The ports of the service.", Cell: servicePorts},
		registry.Age(),
		{Name: "Selector", Type: "string", Doc: "The labels of the pods.", Priority: 1, Cell: func(o *meta.Object) any {
			return cells.Labels(o.Map("spec", "selector"))
		}},
	}
}

func externalAddress(o *meta.Object) any {
	var out []string
	none := none
	switch o.String("spec", "type") {
	case ExternalNameType:
		return o.String("spec", "externalName")
	case LoadBalancerType:
		out = cells.Balancer(o)
		none = "<pending>"
	}
	out = append(out, o.Strings("spec", "externalIPs")...)
	if len(out) == 0 {
		return none
	}
	return strings.Join(out, ",")
}

func servicePorts(o *meta.Object) any {
	var out []string
	for _, p := range portsOf(o) {
		text := strconv.FormatInt(p.Int("port"), 10)
		if n := p.Int("nodePort"); n > 0 {
			text += ":" + strconv.FormatInt(n, 10)
		}
		out = append(out, text+"/"+p.String("protocol"))
	}
	if len(out) == 0 {
		return none
	}
	return strings.Join(out, ",")
}

// portsOf returns the ports of a service.
func portsOf(o *meta.Object) []*meta.Object { return o.Objects("spec", "ports") }

// defaultService fills in what the schema's defaults cannot say.
func defaultService(w *registry.Change[meta.Object]) {
	obj := w.New
	switch obj.String("spec", "sessionAffinity") {
	case "None":
		obj.Delete("spec", "sessionAffinityConfig")
	case "ClientIP":
		if v, ok := obj.Get("spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"); !ok || v == nil {
			obj.Set(map[string]any{"clientIP": map[string]any{"timeoutSeconds": int64(10800)}}, "spec", "sessionAffinityConfig")
		}
	}
	for _, p := range portsOf(obj) {
		if v, _ := p.Get("targetPort"); v == nil || v == "" || meta.Equal(v, int64(0)) {
			p.Set(p.Int("port"), "targetPort")
		}
	}
	if outside(obj) {
		fill(obj, "Cluster", "spec", "externalTrafficPolicy")
	}
	switch obj.String("spec", "type") {
	case LoadBalancerType:
		fill(obj, true, "spec", "allocateLoadBalancerNodePorts")
		for _, v := range obj.List("status", "loadBalancer", "ingress") {
			if m, ok := v.(map[string]any); ok && m["ip"] != nil && m["ip"] != "" {
				fill(meta.NewObject(m), "VIP", "ipMode")
			}
		}
		fallthrough
	case ClusterIPType, NodePortType:
		fill(obj, "Cluster", "spec", "internalTrafficPolicy")
	}
}

// fill sets a field that has no value.
func fill(obj *meta.Object, value any, path ...string) {
	if v, ok := obj.Get(path...); !ok || v == nil || v == "" {
		obj.Set(value, path...)
	}
}

// outside reports whether a service is reached from outside the cluster.
func outside(o *meta.Object) bool {
	return onNodes(o) || o.String("spec", "type") == ClusterIPType && len(o.List("spec", "externalIPs")) > 0
}

// addressed, onNodes and healthChecked report which addresses and ports a
// service has for its type.
func addressed(o *meta.Object) bool {
	return onNodes(o) || o.String("spec", "type") == ClusterIPType
}

func onNodes(o *meta.Object) bool {
	t := o.String("spec", "type")
	return t == NodePortType || t == LoadBalancerType
}

func healthChecked(o *meta.Object) bool {
	return o.String("spec", "type") == LoadBalancerType && o.String("spec", "externalTrafficPolicy") == "Local"
}
