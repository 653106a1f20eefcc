package discovery

import (
	"net/netip"
	"strings"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
)

// How many there may be: endpoints and ports of a slice, addresses and entries
// of the topology of an endpoint, zones and nodes of its hints.
const (
	maxEndpoints = 1000
	maxPorts     = 20000
	maxAddresses = 100
	maxTopology  = 16
	maxHints     = 8
)

func validate(w *registry.Change[EndpointSlice]) {
	old, new := w.Old, w.New
	at := check.At("addressType")
	w.RequiredOneOf(at, new.AddressType, typeFQDN, typeIPv4, typeIPv6)
	checkPorts(&w.Faults, check.At("ports"), new.Ports)
	if old == nil || !check.Same(old.Endpoints, new.Endpoints) { // what was stored under other rules may stay
		checkEndpoints(&w.Faults, check.At("endpoints"), new)
	}
	if old != nil {
		w.Unchanged(at, new.AddressType, old.AddressType)
	}
}

// few checks how many there are.
func few(f *check.Faults, at *check.Path, count, limit int) bool {
	if count > limit {
		f.TooMany(at, count, limit)
	}
	return count <= limit
}

func checkPorts(f *check.Faults, at *check.Path, ports []EndpointPort) {
	if !few(f, at, len(ports), maxPorts) {
		return
	}
	seen := map[string]bool{}
	for i, p := range ports {
		at := at.Index(i)
		if n := p.Name; n != nil {
			if *n != "" {
				f.Label(at.Field("name"), *n)
			}
			unique(f, at.Field("name"), *n, seen)
		}
		if p.Protocol == nil {
			f.Required(at.Field("protocol"), "")
		}
		f.OptionalOneOf(at.Field("protocol"), p.Protocol, "SCTP", "TCP", "UDP")
		if w := p.AppProtocol; w != nil {
			f.Format(at.Field("appProtocol"), *w, meta.CheckQualifiedName(*w))
		}
	}
}

// unique checks that a word was not seen before.
func unique(f *check.Faults, at *check.Path, word string, seen map[string]bool) {
	if seen[word] {
		f.Duplicate(at, word)
	}
	seen[word] = true
}

func checkEndpoints(f *check.Faults, at *check.Path, s *EndpointSlice) {
	if !few(f, at, len(s.Endpoints), maxEndpoints) {
		return
	}
	for i := range s.Endpoints {
		s.Endpoints[i].check(f, at.Index(i), s.AddressType)
	}
}

func (e *Endpoint) check(f *check.Faults, at *check.Path, kind string) {
	if len(e.Addresses) == 0 {
		f.Required(at.Field("addresses"), "must contain at least 1 address")
	}
	if few(f, at.Field("addresses"), len(e.Addresses), maxAddresses) {
		e.addresses(f, at.Field("addresses"), kind)
	}
	if n := e.NodeName; n != nil {
		f.Format(at.Field("nodeName"), *n, meta.CheckDNSSubdomain(*n))
	}
	few(f, at.Field("deprecatedTopology"), len(e.DeprecatedTopology), maxTopology)
	f.Labels(at.Field("deprecatedTopology"), e.DeprecatedTopology)
	if n := e.Hostname; n != nil {
		f.Format(at.Field("hostname"), *n, meta.CheckDNSLabel(*n))
	}
	if e.Hints != nil {
		e.Hints.check(f, at.Field("hints"))
	}
}

func (e *Endpoint) addresses(f *check.Faults, at *check.Path, kind string) {
	for i, text := range e.Addresses {
		switch kind {
		case typeIPv4, typeIPv6:
			checkIP(f, at, i, text, kind)
		case typeFQDN:
			domain(f, at.Index(i), text)
		}
	}
}

// checkIP checks an address of a family. That it is of the other one is told of
// the list; IPv6 has one spelling.
func checkIP(f *check.Faults, list *check.Path, i int, text, family string) {
	at := list.Index(i)
	if !f.HostIP(at, text) {
		return
	}
	a, err := netip.ParseAddr(text)
	switch six := err == nil && a.Is6(); {
	case six && family == typeIPv6 && a.String() != text:
		f.Invalid(at, text, "must be in canonical form (\""+a.String()+"\")")
		return
	case six != (family == typeIPv6):
		f.Invalid(list, text, "must be an "+family+" address")
	}
	f.Reachable(at, text)
}

// domain checks a name of at least two parts; the dot at the end may be there.
func domain(f *check.Faults, at *check.Path, name string) {
	if name == "" {
		f.Required(at, "")
		return
	}
	name = strings.TrimSuffix(name, ".")
	faults := meta.CheckDNSSubdomain(name)
	if len(faults) == 0 && !strings.Contains(name, ".") {
		faults = []string{"should be a domain with at least two segments separated by dots"}
	}
	f.Format(at, name, faults)
}

func (h *EndpointHints) check(f *check.Faults, at *check.Path) {
	if !few(f, at.Field("forZones"), len(h.ForZones), maxHints) {
		return
	}
	seen := map[string]bool{}
	for i, z := range h.ForZones {
		at := at.Field("forZones").Index(i).Field("name")
		unique(f, at, z.Name, seen)
		f.Format(at, z.Name, meta.CheckLabelValue(z.Name))
	}
	if !few(f, at.Field("forNodes"), len(h.ForNodes), maxHints) {
		return
	}
	clear(seen)
	for i, n := range h.ForNodes {
		at := at.Field("forNodes").Index(i).Field("name")
		unique(f, at, n.Name, seen)
		f.Format(at, n.Name, meta.CheckDNSSubdomain(n.Name))
	}
}
