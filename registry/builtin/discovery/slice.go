// Package discovery holds the kinds of the discovery group: EndpointSlice.
package discovery

import (
	"maps"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// Kinds returns the kinds of the discovery group.
func Kinds() []*registry.Kind { return []*registry.Kind{endpointSlices()} }

// EndpointSlice is a part of the addresses and ports that a service leads to;
// the label service-name tells which service. All slices of it together are the
// whole.
type EndpointSlice struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// AddressType is IPv4, IPv6 or FQDN (deprecated), for all addresses. It
	// cannot change.
	AddressType string `json:"addressType" protobuf:"4" schema:"required,enum=FQDN|IPv4|IPv6"`

	// Endpoints of the slice, at most 1000.
	Endpoints []Endpoint `json:"endpoints" protobuf:"2" schema:"optional,listType=atomic,maxItems=1000,ratcheting"`

	// Ports of each of the endpoints, by different names; at most 20000.
	Ports []EndpointPort `json:"ports" protobuf:"3" schema:"optional,listType=atomic,maxItems=20000"`
}

// Endpoint is one place that a service leads to.
type Endpoint struct {
	// Addresses of the endpoint, 1 to 100, of the type of the slice. What the
	// second and later ones mean is not defined.
	Addresses []string `json:"addresses" protobuf:"1" schema:"required,reason.required=must contain at least 1 address,listType=set,repeats,maxItems=100"`

	// Conditions are the state of the endpoint.
	Conditions EndpointConditions `json:"conditions,omitempty" protobuf:"2"`

	// Hostname of the endpoint, a DNS label. Endpoints of one name are
	// interchangeable.
	Hostname *string `json:"hostname,omitempty" protobuf:"3" schema:"format=dns-label"`

	// TargetRef is the object that the endpoint stands for.
	TargetRef *core.ObjectReference `json:"targetRef,omitempty" protobuf:"4"`

	// DeprecatedTopology is left of an older version of the kind. It is
	// read-only: what callers write is ignored. See nodeName and zone.
	DeprecatedTopology map[string]string `json:"deprecatedTopology,omitempty" protobuf:"5"`

	// NodeName is the node that the endpoint is on.
	NodeName *string `json:"nodeName,omitempty" protobuf:"6" schema:"format=dns-subdomain"`

	// Zone is the zone that the endpoint is in.
	Zone *string `json:"zone,omitempty" protobuf:"7"`

	// Hints say who should use the endpoint.
	Hints *EndpointHints `json:"hints,omitempty" protobuf:"8"`
}

// EndpointConditions are the state of an endpoint.
type EndpointConditions struct {
	// Ready says that new traffic may go there; unset: yes.
	Ready *bool `json:"ready,omitempty" protobuf:"1"`

	// Serving says that traffic is answered, also while it ends; unset: yes.
	Serving *bool `json:"serving,omitempty" protobuf:"2"`

	// Terminating says that the endpoint is about to end; unset: no.
	Terminating *bool `json:"terminating,omitempty" protobuf:"3"`
}

// EndpointHints say who should use an endpoint.
type EndpointHints struct {
	// ForZones are the zones from where it should be used, at most 8.
	ForZones []ForZone `json:"forZones,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=8"`

	// ForNodes are the nodes from where it should be used, at most 8.
	ForNodes []ForNode `json:"forNodes,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=8"`
}

// ForZone is a zone from where an endpoint should be used.
type ForZone struct {
	// Name of the zone.
	Name string `json:"name" protobuf:"1" schema:"format=label-value"`
}

// ForNode is a node from where an endpoint should be used.
type ForNode struct {
	// Name of the node.
	Name string `json:"name" protobuf:"1"`
}

// EndpointPort is a port of the endpoints of a slice.
type EndpointPort struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the port: empty (the default) or a DNS label; that of the service's
	// port.
	Name *string `json:"name,omitempty" protobuf:"1" schema:"default="`

	// Protocol is TCP (the default), UDP or SCTP.
	Protocol *string `json:"protocol,omitempty" protobuf:"2" schema:"default=TCP,enum=SCTP|TCP|UDP"`

	// Port number. Slices that are of no service may lack it.
	Port *int32 `json:"port,omitempty" protobuf:"3"`

	// AppProtocol names the protocol on top, for those who look into the
	// traffic.
	AppProtocol *string `json:"appProtocol,omitempty" protobuf:"4" schema:"format=qualified-name"`
}

// The types of addresses.
const (
	typeIPv4 = "IPv4"
	typeIPv6 = "IPv6"
	typeFQDN = "FQDN"
)

func endpointSlices() *registry.Kind {
	k := registry.Of(registry.Definition[EndpointSlice]{
		Group:    names.GroupEndpoints,
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
	placeEndpoints(&k.Versions[1])
	return k
}

func sameField(a, b *meta.Object, field string) bool {
	now, _ := a.Get(field)
	before, _ := b.Get(field)
	return meta.Equal(now, before)
}

func columns() []registry.Column {
	const unset = "<unset>"
	shown := func(list []string) any {
		if len(list) == 0 {
			return unset
		}
		return cells.FirstFew(list)
	}
	return []registry.Column{
		registry.Text("AddressType", "The type of all addresses.", "addressType"),
		{Name: "Ports", Type: "string", Doc: "The ports of each endpoint.", Cell: func(o *meta.Object) any {
			var list []string
			for _, p := range o.Objects("ports") {
				text := p.String("name")
				if v, ok := p.Get("port"); ok && v != nil {
					text = strconv.FormatInt(p.Int("port"), 10)
				}
				list = append(list, text)
			}
			return shown(list)
		}},
		{Name: "Endpoints", Type: "string", Doc: "The addresses of the endpoints.", Cell: func(o *meta.Object) any {
			var list []string
			for _, e := range o.Objects("endpoints") {
				list = append(list, e.Strings("addresses")...)
			}
			return shown(list)
		}},
		registry.Age(),
	}
}

// prepare takes out what callers wrote into the read-only topology. An endpoint
// whose node stood there keeps it under its present name.
func prepare(w *registry.Change[meta.Object]) {
	obj, old := w.New, w.Old
	if len(obj.List("endpoints")) == 0 {
		obj.Set(nil, "endpoints") // as clients know an empty list
	}
	if w.Version.Version == "v1beta1" {
		return // which may write the topology
	}
	nodes, hostname := map[string]bool{}, w.Names.Wire(names.LabelHostname)
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
