package core

import (
	"net"
	"net/netip"
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/address"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// Endpoints lists the addresses and ports of the service of the same name. Deprecated: use
// EndpointSlice, which has more fields and scales to many endpoints.
type Endpoints struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Subsets of the endpoints. Each address of a subset has all of its ports.
	Subsets []EndpointSubset `json:"subsets,omitempty" protobuf:"2" schema:"listType=atomic,ratcheting"`
}

// EndpointSubset is a set of addresses with the same ports. At least one address is required.
type EndpointSubset struct {
	// Addresses that are ready.
	Addresses []EndpointAddress `json:"addresses,omitempty" protobuf:"1" schema:"listType=atomic"`

	// NotReadyAddresses are addresses that are not ready.
	NotReadyAddresses []EndpointAddress `json:"notReadyAddresses,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Ports of the addresses.
	Ports []EndpointPort `json:"ports,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// EndpointAddress is the address of an endpoint.
type EndpointAddress struct {
	_ struct{} `schema:"mapType=atomic"`

	// IP is the address. It must not be unspecified, loopback or link-local.
	IP string `json:"ip" protobuf:"1"`

	// Hostname of the endpoint, a DNS label.
	Hostname string `json:"hostname,omitempty" protobuf:"3" schema:"format=dns-label"`

	// NodeName is the node of the endpoint.
	NodeName *string `json:"nodeName,omitempty" protobuf:"4" schema:"format=dns-subdomain"`

	// TargetRef is the object behind the endpoint, such as a pod.
	TargetRef *ObjectReference `json:"targetRef,omitempty" protobuf:"2"`
}

// EndpointPort is a port of endpoints.
type EndpointPort struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the port, equal to the name of the service port; a DNS label. Required if there are
	// several ports.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=dns-label"`

	// Port number.
	Port int32 `json:"port" protobuf:"2" schema:"range=1|65535"`

	// Protocol is TCP (the default), UDP or SCTP.
	Protocol string `json:"protocol,omitempty" protobuf:"3" schema:"default=TCP,enum=SCTP|TCP|UDP"`

	// AppProtocol is the application protocol, for consumers with protocol-specific behavior.
	AppProtocol *string `json:"appProtocol,omitempty" protobuf:"4" schema:"format=qualified-name"`
}

func endpoints() *registry.Kind {
	return registry.Of(registry.Definition[Endpoints]{
		Version:     version,
		Plural:      "endpoints",
		Singular:    "endpoints",
		ShortNames:  []string{"ep"},
		Lifetime:    registry.Lifetime{Deprecated: "1.33"},
		Replacement: meta.GroupVersionKind{Group: wellknown.GroupEndpoints, Version: "v1", Kind: "EndpointSlice"},
		Columns: []registry.Column{
			{Name: "Endpoints", Type: "string", Doc: "The ready addresses and their ports.", Cell: readyEndpoints},
			registry.AgeColumn(),
		},
		Validate: validateEndpoints,
		Behavior: registry.Behavior{
			Warn: warnOfEndpoints,
		},
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true, CreateOnPut: true},
	})
}

// readyEndpoints shows the first ready addresses with their ports.
func readyEndpoints(o *meta.Object) any {
	subsets := o.Objects("subsets")
	if len(subsets) == 0 {
		return none
	}
	var first []string // only the first entries are formatted, because addresses times ports may be many
	count := 0
	for _, s := range subsets {
		addresses, ports := s.Objects("addresses"), s.Objects("ports")
		n := len(addresses) * max(len(ports), 1)
		count += n
		for i := 0; i < n && len(first) < cells.Few; i++ {
			text := addresses[i%len(addresses)].String("ip")
			if len(ports) > 0 {
				text = net.JoinHostPort(text, strconv.FormatInt(ports[i/len(addresses)].Int("port"), 10))
			}
			first = append(first, text)
		}
	}
	return cells.FewOf(first, count)
}

func validateEndpoints(w *registry.Change[Endpoints]) {
	if w.Old != nil && check.SemanticEqual(w.Old.Subsets, w.New.Subsets) {
		return // stored violations may stay
	}
	for i := range w.New.Subsets {
		w.New.Subsets[i].validate(&w.Violations, check.At("subsets").Index(i))
	}
}

func (s *EndpointSubset) validate(f *check.Violations, at *check.Path) {
	if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
		f.Required(at, "must specify `addresses` or `notReadyAddresses`")
	}
	for i := range s.Addresses {
		s.Addresses[i].validate(f, at.Field("addresses").Index(i))
	}
	for i := range s.NotReadyAddresses {
		s.NotReadyAddresses[i].validate(f, at.Field("notReadyAddresses").Index(i))
	}
	for i, p := range s.Ports {
		if len(s.Ports) > 1 {
			f.RequiredField(at.Field("ports").Index(i), "name", p.Name)
		}
	}
}

// validate checks an address. A malformed address is reported twice, as at kube-apiserver.
func (a *EndpointAddress) validate(f *check.Violations, at *check.Path) {
	address.HostIP(f, at.Field("ip"), a.IP)
	address.Reachable(f, at.Field("ip"), a.IP)
}

// warnOfEndpoints warns about IPv6 addresses that are not in canonical form.
func warnOfEndpoints(w *registry.Change[meta.Object]) (texts []string) {
	for i, s := range w.New.Objects("subsets") {
		for _, field := range []string{"addresses", "notReadyAddresses"} {
			for j, a := range s.Objects(field) {
				text := a.String("ip")
				if ip, err := netip.ParseAddr(text); err == nil && ip.String() != text {
					at := check.At("subsets").Index(i).Field(field).Index(j).Field("ip")
					texts = append(texts, at.String()+": IPv6 address "+strconv.Quote(text)+" should be in the canonical form "+strconv.Quote(ip.String()))
				}
			}
		}
	}
	return texts
}
