package discovery

import (
	"maps"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// EndpointSliceV1beta1 is a slice as version v1beta1 shows it: the node and the zone of an
// endpoint stand in a map with other words about where it is.
type EndpointSliceV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// AddressType is the type of all addresses: IPv4, IPv6 or FQDN. It cannot change.
	AddressType string `json:"addressType" protobuf:"4" schema:"required,enum=FQDN|IPv4|IPv6"`

	// Endpoints are the endpoints, at most 1000.
	Endpoints []EndpointV1beta1 `json:"endpoints" protobuf:"2" schema:"optional,listType=atomic,maxItems=1000,ratcheting"`

	// Ports are those of each endpoint.
	Ports []EndpointPort `json:"ports" protobuf:"3" schema:"optional,listType=atomic,maxItems=20000"`
}

// EndpointV1beta1 is something that serves.
type EndpointV1beta1 struct {
	// Addresses of the endpoint; which is taken does not matter.
	Addresses []string `json:"addresses" protobuf:"1" schema:"required,reason.required=must contain at least 1 address,listType=set,repeats,maxItems=100"`

	// Conditions are the state of the endpoint.
	Conditions EndpointConditions `json:"conditions,omitempty" protobuf:"2"`

	// Hostname tells endpoints apart, as in names of a DNS.
	Hostname *string `json:"hostname,omitempty" protobuf:"3" schema:"format=dns-label"`

	// TargetRef is the object that is behind it.
	TargetRef *core.ObjectReference `json:"targetRef,omitempty" protobuf:"4"`

	// Topology is where it is: words about its node, its zone and others.
	Topology map[string]string `json:"topology,omitempty" protobuf:"5"`

	// NodeName is the node that it is on.
	NodeName *string `json:"nodeName,omitempty" protobuf:"6" schema:"format=dns-subdomain"`

	// Hints say who should use it.
	Hints *EndpointHints `json:"hints,omitempty" protobuf:"7"`
}

func v1beta1() registry.VersionOf[EndpointSlice] {
	return registry.Spoke[EndpointSliceV1beta1, EndpointSlice]{
		Version: "v1beta1", ToHub: (*EndpointSliceV1beta1).hub, FromHub: (*EndpointSlice).v1beta1,
		Default: func(w *registry.Change[EndpointSliceV1beta1]) {
			host := w.Names.Wire(names.LabelHostname)
			for i := range w.New.Endpoints {
				e := &w.New.Endpoints[i]
				if _, there := e.Topology[host]; e.NodeName == nil || there {
					continue
				}
				if e.Topology == nil {
					e.Topology = map[string]string{}
				}
				e.Topology[host] = *e.NodeName // as it is shown
			}
		},
		Lifetime:    registry.Lifetime{Introduced: "1.17", Deprecated: "1.21", Removed: "1.25"},
		Replacement: older.Use[EndpointSlice](names.GroupEndpoints + "/v1"),
	}
}

// hub leaves the whole topology to placeEndpoints.
func (in *EndpointSliceV1beta1) hub(out *EndpointSlice) error {
	out.AddressType, out.Ports = in.AddressType, in.Ports
	if in.Endpoints != nil {
		out.Endpoints = make([]Endpoint, len(in.Endpoints))
	}
	for i, e := range in.Endpoints {
		out.Endpoints[i] = Endpoint{e.Addresses, e.Conditions, e.Hostname, e.TargetRef, maps.Clone(e.Topology), e.NodeName, nil, e.Hints}
	}
	return nil
}

func (in *EndpointSlice) v1beta1(out *EndpointSliceV1beta1) error {
	out.AddressType, out.Ports = in.AddressType, in.Ports
	if in.Endpoints != nil {
		out.Endpoints = make([]EndpointV1beta1, len(in.Endpoints))
	}
	for i, e := range in.Endpoints {
		out.Endpoints[i] = EndpointV1beta1{e.Addresses, e.Conditions, e.Hostname, e.TargetRef, maps.Clone(e.DeprecatedTopology), e.NodeName, e.Hints}
	}
	return nil
}

// maxTopology bounds the words about where an endpoint is that no field has.
const maxTopology = 16

// placeEndpoints lets the conversions of version v1beta1 take the zone and the node of
// endpoints from the topology and put them there, under the names of the server.
func placeEndpoints(v *registry.KindVersion) {
	plain := v.Conversion
	v.Conversion = func(s *schema.Schema, p names.Profile) (*registry.Conversion, error) {
		c, err := plain(s, p)
		if err != nil {
			return nil, err
		}
		zone, host := p.Wire(names.LabelZone), p.Wire(names.LabelHostname)
		toHub, fromHub := c.ToHub, c.FromHub
		c.ToHub = func(tree map[string]any) (map[string]any, error) {
			out, err := toHub(tree)
			if err != nil {
				return nil, err
			}
			var f check.Faults
			for i, e := range meta.NewObject(out).Objects("endpoints") {
				takePlace(e, zone, host)
				if n := len(e.Map("deprecatedTopology")); n > maxTopology {
					f.TooMany(check.At("endpoints").Index(i).Field("deprecatedTopology"), n, maxTopology)
				}
			}
			return out, f.Err()
		}
		c.FromHub = func(tree map[string]any) (map[string]any, error) {
			out, err := fromHub(tree)
			if err != nil {
				return nil, err
			}
			hub := meta.NewObject(tree).Objects("endpoints")
			for i, e := range meta.NewObject(out).Objects("endpoints") {
				if word, ok := hub[i].Get("zone"); ok && word != nil {
					e.Set(word, "topology", zone)
				}
				showNode(e, host)
			}
			return out, nil
		}
		return c, nil
	}
}

// showNode puts the node into the topology, as clients know it from before there was a
// field for it.
func showNode(e *meta.Object, host string) {
	node, _ := e.Get("nodeName")
	if _, there := e.Get("topology", host); node != nil && !there {
		e.Set(node, "topology", host)
	}
}

// takePlace gives an endpoint of the hub the zone of its topology, where its node stands
// only if it is another than nodeName.
func takePlace(e *meta.Object, zone, host string) {
	topology := e.Map("deprecatedTopology")
	if word, ok := topology[zone]; ok {
		e.Set(word, "zone")
		delete(topology, zone)
	}
	if node, _ := e.Get("nodeName"); node != nil && topology[host] == node {
		delete(topology, host)
	}
	if len(topology) == 0 {
		e.Delete("deprecatedTopology")
	}
}
