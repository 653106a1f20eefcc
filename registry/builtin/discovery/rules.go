package discovery

import (
	"net/netip"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/address"
)

// validate checks what the schema does not know. What was stored under other
// rules may stay.
func validate(w *registry.Change[EndpointSlice]) {
	if w.Old != nil {
		w.Unchanged(check.At("addressType"), w.New.AddressType, w.Old.AddressType) // clients know it behind what is wrong with the type
	}
	checkPorts(&w.Faults, check.At("ports"), w.New.Ports)
	if w.Old != nil && check.Same(w.Old.Endpoints, w.New.Endpoints) {
		return
	}
	for i := range w.New.Endpoints {
		at := check.At("endpoints").Index(i)
		w.New.Endpoints[i].addresses(&w.Faults, at.Field("addresses"), w.New.AddressType)
		if h := w.New.Endpoints[i].Hints; h != nil {
			h.validate(&w.Faults, at.Field("hints"))
		}
	}
}

func checkPorts(f *check.Faults, at *check.Path, ports []EndpointPort) {
	seen := map[string]bool{}
	for i, p := range ports {
		if n := p.Name; n != nil {
			at := at.Index(i).Field("name")
			if *n != "" {
				f.Format(at, *n, meta.CheckDNSLabel(*n))
			}
			unique(f, at, *n, seen)
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
	if !address.HostIP(f, at, text) {
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
	address.Reachable(f, at, text)
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

// validate checks the hints. With too many zones clients are told nothing of the nodes.
func (h *EndpointHints) validate(f *check.Faults, at *check.Path) {
	zones, nodes := map[string]bool{}, map[string]bool{}
	for i, z := range h.ForZones {
		unique(f, at.Field("forZones").Index(i).Field("name"), z.Name, zones)
	}
	const most = 8
	if len(h.ForZones) > most {
		return
	}
	for i, n := range h.ForNodes {
		at := at.Field("forNodes").Index(i).Field("name")
		unique(f, at, n.Name, nodes)
		f.Format(at, n.Name, meta.CheckDNSSubdomain(n.Name))
	}
}
