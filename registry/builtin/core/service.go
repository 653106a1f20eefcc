package core

import (
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// Service gives a set of pods a name and an address.
type Service struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec ServiceSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status ServiceStatus `json:"status,omitempty" protobuf:"3"`
}

// ServiceSpec selects the pods of a service and configures access to them.
type ServiceSpec struct {
	// Ports of the service. Required, except for headless and ExternalName services.
	Ports []ServicePort `json:"ports,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"port" schema:"listType=map,listMapKeys=port|protocol"`

	// Selector lists labels of the pods. Without a selector, the endpoints are maintained by other
	// means.
	Selector map[string]string `json:"selector,omitempty" protobuf:"2" schema:"mapType=atomic,format=labels"`

	// ClusterIP is the virtual IP address in the cluster; None makes the service headless. The server
	// allocates it if it is unset. Immutable, except for changes of the type to or from ExternalName.
	ClusterIP string `json:"clusterIP,omitempty" protobuf:"3"`

	// ClusterIPs are the virtual IP addresses, at most 1 of each family. The first equals clusterIP.
	ClusterIPs []string `json:"clusterIPs,omitempty" protobuf:"18" schema:"listType=atomic"`

	// Type is ClusterIP (the default), NodePort, LoadBalancer or ExternalName.
	Type string `json:"type,omitempty" protobuf:"4" schema:"default=ClusterIP,enum=ClusterIP|ExternalName|LoadBalancer|NodePort"`

	// ExternalIPs are addresses for which nodes accept traffic of the service, too. Deprecated.
	ExternalIPs []string `json:"externalIPs,omitempty" protobuf:"5" schema:"listType=atomic"`

	// SessionAffinity is None (default), or ClientIP, which sends requests of a client to the same pod.
	SessionAffinity string `json:"sessionAffinity,omitempty" protobuf:"7" schema:"default=None,enum=ClientIP|None"`

	// LoadBalancerIP requests an address for the load balancer. Deprecated: support depends on the
	// provider.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty" protobuf:"8"`

	// LoadBalancerSourceRanges are the client networks from which the load balancer accepts traffic.
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty" protobuf:"9" schema:"listType=atomic"`

	// ExternalName is the DNS name that a service of type ExternalName resolves to.
	ExternalName string `json:"externalName,omitempty" protobuf:"10"`

	// ExternalTrafficPolicy is Cluster (default), or Local, which routes external traffic to pods on
	// the same node only and preserves the client address.
	ExternalTrafficPolicy string `json:"externalTrafficPolicy,omitempty" protobuf:"11" schema:"enum=Cluster|Local"`

	// HealthCheckNodePort is the node port for health checks of the load balancer, with
	// externalTrafficPolicy Local. The server allocates it. Immutable.
	HealthCheckNodePort int32 `json:"healthCheckNodePort,omitempty" protobuf:"12"`

	// PublishNotReadyAddresses includes pods that are not ready.
	PublishNotReadyAddresses bool `json:"publishNotReadyAddresses,omitempty" protobuf:"13"`

	// SessionAffinityConfig configures session affinity.
	SessionAffinityConfig *SessionAffinityConfig `json:"sessionAffinityConfig,omitempty" protobuf:"14"`

	// IPFamilies are IPv4, IPv6 or both, in order of preference. The first is immutable.
	IPFamilies []string `json:"ipFamilies,omitempty" protobuf:"19" schema:"listType=atomic,items.enum=IPv4|IPv6,unchecked"`

	// IPFamilyPolicy is SingleStack, PreferDualStack or RequireDualStack.
	IPFamilyPolicy *string `json:"ipFamilyPolicy,omitempty" protobuf:"17" schema:"enum=PreferDualStack|RequireDualStack|SingleStack,unchecked"`

	// AllocateLoadBalancerNodePorts decides whether node ports are allocated for type LoadBalancer;
	// default true.
	AllocateLoadBalancerNodePorts *bool `json:"allocateLoadBalancerNodePorts,omitempty" protobuf:"20"`

	// LoadBalancerClass is the implementation of the load balancer. Immutable while the type is
	// LoadBalancer.
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty" protobuf:"21"`

	// InternalTrafficPolicy is Cluster (default), or Local, which routes internal traffic to pods on
	// the same node only.
	InternalTrafficPolicy *string `json:"internalTrafficPolicy,omitempty" protobuf:"22" schema:"enum=Cluster|Local"`

	// TrafficDistribution is a preference for endpoints: PreferSameZone, PreferSameNode or PreferClose
	// (deprecated).
	TrafficDistribution *string `json:"trafficDistribution,omitempty" protobuf:"23" schema:"enum=PreferClose|PreferSameZone|PreferSameNode"`
}

// ServicePort is a port of a service.
type ServicePort struct {
	// Name of the port, a unique DNS label. Required if there are several ports.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=dns-label"`

	// Protocol is TCP (the default), UDP or SCTP.
	Protocol string `json:"protocol,omitempty" protobuf:"2" schema:"default=TCP,enum=SCTP|TCP|UDP"`

	// AppProtocol is the application protocol, for consumers with protocol-specific behavior.
	AppProtocol *string `json:"appProtocol,omitempty" protobuf:"6" schema:"format=qualified-name"`

	// Port number.
	Port int32 `json:"port" protobuf:"3" schema:"range=1|65535"`

	// TargetPort is the port of the pods, by number or name; default port.
	TargetPort meta.IntOrString `json:"targetPort,omitempty" protobuf:"4" schema:"format=port"`

	// NodePort is the port of the nodes for types NodePort and LoadBalancer. The server allocates it if
	// it is unset.
	NodePort int32 `json:"nodePort,omitempty" protobuf:"5"`
}

// SessionAffinityConfig configures session affinity.
type SessionAffinityConfig struct {
	// ClientIP configures affinity by client address.
	ClientIP *ClientIPConfig `json:"clientIP,omitempty" protobuf:"1"`
}

// ClientIPConfig configures affinity by client address.
type ClientIPConfig struct {
	// TimeoutSeconds is the duration of the affinity: 1 to 86400 seconds, default 10800.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty" protobuf:"1"`
}

// ServiceStatus is the observed state of a service.
type ServiceStatus struct {
	// LoadBalancer is the state of the load balancer.
	LoadBalancer LoadBalancerStatus `json:"loadBalancer,omitempty" protobuf:"1"`

	// Conditions of the service.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
}

// LoadBalancerStatus is the state of a load balancer.
type LoadBalancerStatus struct {
	// Ingress lists the addresses of the load balancer.
	Ingress []LoadBalancerIngress `json:"ingress,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// LoadBalancerIngress is an address of a load balancer.
type LoadBalancerIngress struct {
	// IP is the IP address, if the load balancer has any.
	IP string `json:"ip,omitempty" protobuf:"1" schema:"format=ip"`

	// Hostname is the DNS name, if the load balancer has any.
	Hostname string `json:"hostname,omitempty" protobuf:"2" schema:"format=dns-subdomain"`

	// IPMode is VIP, which keeps the destination address of packets, or Proxy. Set exactly if ip is
	// set.
	IPMode *string `json:"ipMode,omitempty" protobuf:"3" schema:"enum=Proxy|VIP"`

	// Ports of the load balancer.
	Ports []PortStatus `json:"ports,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// PortStatus is the state of a port of a load balancer.
type PortStatus struct {
	// Port number.
	Port int32 `json:"port" protobuf:"1"`

	// Protocol of the port.
	Protocol string `json:"protocol" protobuf:"2"`

	// Error describes a problem of the port.
	Error *string `json:"error,omitempty" protobuf:"3"`
}

// Types of services, and the cluster IP of a headless service.
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
		Allocator:    ServiceNetwork{}.Pool(),
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
		registry.TextColumn("Type", "The type of the service.", "spec", "type"),
		{Name: "Cluster-IP", Type: "string", Doc: "The first cluster IP.", Cell: func(o *meta.Object) any {
			if ips := o.Strings("spec", "clusterIPs"); len(ips) > 0 {
				return ips[0]
			}
			return none
		}},
		{Name: "External-IP", Type: "string", Doc: "The external addresses of the service.", Cell: externalAddress},
		{Name: "Port(s)", Type: "string", Doc: "The ports of the service.", Cell: servicePorts},
		registry.AgeColumn(),
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

// defaultService sets the defaults that schema tags cannot express.
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
	if externallyReachable(obj) {
		setDefault(obj, "Cluster", "spec", "externalTrafficPolicy")
	}
	switch obj.String("spec", "type") {
	case LoadBalancerType:
		setDefault(obj, true, "spec", "allocateLoadBalancerNodePorts")
		for _, v := range obj.List("status", "loadBalancer", "ingress") {
			if m, ok := v.(map[string]any); ok && m["ip"] != nil && m["ip"] != "" {
				setDefault(meta.NewObject(m), "VIP", "ipMode")
			}
		}
		fallthrough
	case ClusterIPType, NodePortType:
		setDefault(obj, "Cluster", "spec", "internalTrafficPolicy")
	}
}

// setDefault sets a field that is absent, null or "".
func setDefault(obj *meta.Object, value any, path ...string) {
	if v, ok := obj.Get(path...); !ok || v == nil || v == "" {
		obj.Set(value, path...)
	}
}

// externallyReachable reports whether a service accepts traffic from outside the cluster.
func externallyReachable(o *meta.Object) bool {
	return hasNodePorts(o) || o.String("spec", "type") == ClusterIPType && len(o.List("spec", "externalIPs")) > 0
}

// hasClusterIP, hasNodePorts and hasHealthCheckPort report which addresses and ports the type of a
// service has.
func hasClusterIP(o *meta.Object) bool {
	return hasNodePorts(o) || o.String("spec", "type") == ClusterIPType
}

func hasNodePorts(o *meta.Object) bool {
	t := o.String("spec", "type")
	return t == NodePortType || t == LoadBalancerType
}

func hasHealthCheckPort(o *meta.Object) bool {
	return o.String("spec", "type") == LoadBalancerType && o.String("spec", "externalTrafficPolicy") == "Local"
}
