package discovery

import (
	"maps"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// EndpointSliceV1beta1 is an EndpointSlice in version v1beta1. The node and the zone of an endpoint are
// in a map, the topology.
type EndpointSliceV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// AddressType is the type of all addresses: IPv4, IPv6 or FQDN. Immutable.
	AddressType string `json:"addressType" protobuf:"4" schema:"required,enum=FQDN|IPv4|IPv6"`

	// Endpoints of the slice; at most 1000.
	Endpoints []EndpointV1beta1 `json:"endpoints" protobuf:"2" schema:"optional,listType=atomic,maxItems=1000,ratcheting"`

	// Ports of each endpoint, with unique names; at most 20,000.
	Ports []EndpointPort `json:"ports" protobuf:"3" schema:"optional,listType=atomic,maxItems=20000"`
}

// EndpointV1beta1 is a backend of a service.
type EndpointV1beta1 struct {
	// Addresses of the endpoint, of the type of the slice: 1 to 100.
	Addresses []string `json:"addresses" protobuf:"1" schema:"required,reason.required=must contain at least 1 address,listType=set,repeats,maxItems=100"`

	// Conditions of the endpoint.
	Conditions EndpointConditions `json:"conditions,omitempty" protobuf:"2"`

	// Hostname of the endpoint, a DNS label.
	Hostname *string `json:"hostname,omitempty" protobuf:"3" schema:"format=dns-label"`

	// TargetRef is the object behind the endpoint, such as a pod.
	TargetRef *core.ObjectReference `json:"targetRef,omitempty" protobuf:"4"`

	// Topology holds the node, the zone and further labels of the node; at most 16 besides node and
	// zone.
	Topology map[string]string `json:"topology,omitempty" protobuf:"5"`

	// NodeName is the node of the endpoint.
	NodeName *string `json:"nodeName,omitempty" protobuf:"6" schema:"format=dns-subdomain"`

	// Hints recommend consumers for the endpoint.
	Hints *EndpointHints `json:"hints,omitempty" protobuf:"7"`
}

func v1beta1() registry.VersionOf[EndpointSlice] {
	return registry.Spoke[EndpointSliceV1beta1, EndpointSlice]{
		Version: "v1beta1", ToHub: (*EndpointSliceV1beta1).hub, FromHub: (*EndpointSlice).v1beta1,
		Default: func(w *registry.Change[EndpointSliceV1beta1]) {
			host := w.Names.Wire(wellknown.LabelHostname)
			for i := range w.New.Endpoints {
				e := &w.New.Endpoints[i]
				if _, there := e.Topology[host]; e.NodeName == nil || there {
					continue
				}
				if e.Topology == nil {
					e.Topology = map[string]string{}
				}
				e.Topology[host] = *e.NodeName // the form in which it is shown
			}
		},
		Lifetime:    registry.Lifetime{Introduced: "1.17", Deprecated: "1.21", Removed: "1.25"},
		Replacement: older.Use[EndpointSlice](wellknown.GroupEndpoints + "/v1"),
	}
}

// hub copies the topology as a whole; convertTopology moves the node and the zone to their fields.
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

// maxTopology limits the entries of the topology without a field of their own.
const maxTopology = 16

// convertTopology extends the conversions of v1beta1: they move the node and the zone between the
// topology and their fields. It works on the compiled conversion, because the label names depend on the
// naming of the server.
func convertTopology(v *registry.KindVersion) {
	base := v.Conversion
	v.Conversion = func(s *schema.Schema, p names.Profile) (*registry.Conversion, error) {
		c, err := base(s, p)
		if err != nil {
			return nil, err
		}
		zone, host := p.Wire(wellknown.LabelZone), p.Wire(wellknown.LabelHostname)
		toHub, fromHub := c.ToHub, c.FromHub
		c.ToHub = func(tree map[string]any) (map[string]any, error) {
			out, err := toHub(tree)
			if err != nil {
				return nil, err
			}
			var f check.Violations
			for i, e := range meta.NewObject(out).Objects("endpoints") {
				moveTopology(e, zone, host)
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
				if value, ok := hub[i].Get("zone"); ok && value != nil {
					e.Set(value, "topology", zone)
				}
				showNode(e, host)
			}
			return out, nil
		}
		return c, nil
	}
}

// showNode adds the node to the topology, where clients from before the field look for it.
func showNode(e *meta.Object, host string) {
	node, _ := e.Get("nodeName")
	if _, there := e.Get("topology", host); node != nil && !there {
		e.Set(node, "topology", host)
	}
}

// moveTopology moves the zone from the topology to its field, and removes the node if it equals
// nodeName.
func moveTopology(e *meta.Object, zone, host string) {
	topology := e.Map("deprecatedTopology")
	if value, ok := topology[zone]; ok {
		e.Set(value, "zone")
		delete(topology, zone)
	}
	if node, _ := e.Get("nodeName"); node != nil && topology[host] == node {
		delete(topology, host)
	}
	if len(topology) == 0 {
		e.Delete("deprecatedTopology")
	}
}
