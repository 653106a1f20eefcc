// Package discovery defines the kind EndpointSlice.
package discovery

import (
	"maps"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind { return []*registry.Kind{endpointSlices()} }

// EndpointSlice lists endpoints of a service. The label service-name is the name of the service; all
// its slices together are its endpoints.
type EndpointSlice struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// AddressType is the type of all addresses: IPv4, IPv6 or FQDN (deprecated). Immutable.
	AddressType string `json:"addressType" protobuf:"4" schema:"required,enum=FQDN|IPv4|IPv6"`

	// Endpoints of the slice; at most 1000.
	Endpoints []Endpoint `json:"endpoints" protobuf:"2" schema:"optional,listType=atomic,maxItems=1000,ratcheting"`

	// Ports of each endpoint, with unique names; at most 20,000.
	Ports []EndpointPort `json:"ports" protobuf:"3" schema:"optional,listType=atomic,maxItems=20000"`
}

// Endpoint is a backend of a service.
type Endpoint struct {
	// Addresses of the endpoint, of the type of the slice: 1 to 100. Consumers use only the first.
	Addresses []string `json:"addresses" protobuf:"1" schema:"required,reason.required=must contain at least 1 address,listType=set,repeats,maxItems=100"`

	// Conditions of the endpoint.
	Conditions EndpointConditions `json:"conditions,omitempty" protobuf:"2"`

	// Hostname of the endpoint, a DNS label. Endpoints with the same host name are interchangeable.
	Hostname *string `json:"hostname,omitempty" protobuf:"3" schema:"format=dns-label"`

	// TargetRef is the object behind the endpoint, such as a pod.
	TargetRef *core.ObjectReference `json:"targetRef,omitempty" protobuf:"4"`

	// DeprecatedTopology holds data of v1beta1. It is read-only: values from callers are ignored. Use
	// nodeName and zone.
	DeprecatedTopology map[string]string `json:"deprecatedTopology,omitempty" protobuf:"5"`

	// NodeName is the node of the endpoint.
	NodeName *string `json:"nodeName,omitempty" protobuf:"6" schema:"format=dns-subdomain"`

	// Zone of the endpoint.
	Zone *string `json:"zone,omitempty" protobuf:"7"`

	// Hints recommend consumers for the endpoint.
	Hints *EndpointHints `json:"hints,omitempty" protobuf:"8"`
}

// EndpointConditions are the conditions of an endpoint.
type EndpointConditions struct {
	// Ready is true if new traffic should be sent to the endpoint. Unset means true.
	Ready *bool `json:"ready,omitempty" protobuf:"1"`

	// Serving is true if the endpoint handles traffic, even while it terminates. Unset means true.
	Serving *bool `json:"serving,omitempty" protobuf:"2"`

	// Terminating is true while the endpoint shuts down. Unset means false.
	Terminating *bool `json:"terminating,omitempty" protobuf:"3"`
}

// EndpointHints recommend consumers for an endpoint.
type EndpointHints struct {
	// ForZones are the zones that should use the endpoint; at most 8.
	ForZones []ForZone `json:"forZones,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=8"`

	// ForNodes are the nodes that should use the endpoint; at most 8.
	ForNodes []ForNode `json:"forNodes,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=8"`
}

// ForZone is a zone that should use an endpoint.
type ForZone struct {
	// Name of the zone.
	Name string `json:"name" protobuf:"1" schema:"format=label-value"`
}

// ForNode is a node that should use an endpoint.
type ForNode struct {
	// Name of the node.
	Name string `json:"name" protobuf:"1"`
}

// EndpointPort is a port of the endpoints.
type EndpointPort struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the port, equal to the name of the service port: empty (default) or a DNS label.
	Name *string `json:"name,omitempty" protobuf:"1" schema:"default="`

	// Protocol is TCP (the default), UDP or SCTP.
	Protocol *string `json:"protocol,omitempty" protobuf:"2" schema:"default=TCP,enum=SCTP|TCP|UDP"`

	// Port number. Slices that do not belong to a service may omit it.
	Port *int32 `json:"port,omitempty" protobuf:"3"`

	// AppProtocol is the application protocol, for consumers with protocol-specific behavior.
	AppProtocol *string `json:"appProtocol,omitempty" protobuf:"4" schema:"format=qualified-name"`
}

// Address types.
const (
	typeIPv4 = "IPv4"
	typeIPv6 = "IPv6"
	typeFQDN = "FQDN"
)

func endpointSlices() *registry.Kind {
	k := registry.Of(registry.Definition[EndpointSlice]{
		Group:    wellknown.GroupEndpoints,
		Version:  "v1",
		Lifetime: registry.Lifetime{Introduced: "1.21"},
		Versions: []registry.VersionOf[EndpointSlice]{v1beta1()},
		Columns:  columns(),
		Validate: validate,
		Behavior: registry.Behavior{
			Prepare: prepare,
			Warn: func(w *registry.Change[meta.Object]) []string {
				if w.Old == nil && w.New.String("addressType") == typeFQDN {
					return []string{"spec.addressType: FQDN endpoints are deprecated"}
				}
				return nil
			},
			Changed: func(w *registry.Change[meta.Object]) bool {
				return !sameField(w.New, w.Old, "addressType") || !sameField(w.New, w.Old, "endpoints") || !sameField(w.New, w.Old, "ports") ||
					!maps.Equal(w.New.Labels(), w.Old.Labels())
			},
		},
		Reference: &compat.Reference{DeleteAnswersStatus: true},
	})
	convertTopology(&k.Versions[1])
	return k
}

func sameField(a, b *meta.Object, field string) bool {
	av, _ := a.Get(field)
	bv, _ := b.Get(field)
	return meta.Equal(av, bv)
}

func columns() []registry.Column {
	const unset = "<unset>"
	format := func(list []string) any {
		if len(list) == 0 {
			return unset
		}
		return cells.FirstFew(list)
	}
	return []registry.Column{
		registry.TextColumn("AddressType", "The type of the addresses.", "addressType"),
		{Name: "Ports", Type: "string", Doc: "The ports of each endpoint.", Cell: func(o *meta.Object) any {
			var list []string
			for _, p := range o.Objects("ports") {
				text := p.String("name")
				if v, ok := p.Get("port"); ok && v != nil {
					text = strconv.FormatInt(p.Int("port"), 10)
				}
				list = append(list, text)
			}
			return format(list)
		}},
		{Name: "Endpoints", Type: "string", Doc: "The addresses of the endpoints.", Cell: func(o *meta.Object) any {
			var list []string
			for _, e := range o.Objects("endpoints") {
				list = append(list, e.Strings("addresses")...)
			}
			return format(list)
		}},
		registry.AgeColumn(),
	}
}

// prepare removes the deprecated topology from requests in v1. If an endpoint was stored with a node in
// the topology, the node becomes nodeName.
func prepare(w *registry.Change[meta.Object]) {
	obj, old := w.New, w.Old
	if len(obj.List("endpoints")) == 0 {
		obj.Set(nil, "endpoints") // clients expect null for an empty list
	}
	if w.Version.Version == "v1beta1" {
		return // v1beta1 may write the topology
	}
	nodes, hostname := map[string]bool{}, w.Names.Wire(wellknown.LabelHostname)
	if old != nil {
		if sameField(obj, old, "endpoints") {
			return
		}
		for _, e := range old.Objects("endpoints") {
			nodes[e.String("deprecatedTopology", hostname)] = true
		}
	}
	for _, e := range obj.Objects("endpoints") {
		node := e.String("deprecatedTopology", hostname)
		if v, _ := e.Get("nodeName"); v == nil && nodes[node] && len(meta.CheckDNSSubdomain(node)) == 0 {
			e.Set(node, "nodeName")
		}
		e.Delete("deprecatedTopology")
	}
}
