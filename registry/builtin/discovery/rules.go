package discovery

import (
	"net/netip"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/address"
)

// validate checks the relations between fields. Stored violations in unchanged endpoints are accepted.
func validate(w *registry.Change[EndpointSlice]) {
	if w.Old != nil {
		w.Unchanged(check.At("addressType"), w.New.AddressType, w.Old.AddressType) // after the violations of the schema, as at kube-apiserver
	}
	checkPorts(&w.Violations, check.At("ports"), w.New.Ports)
	if w.Old != nil && check.SemanticEqual(w.Old.Endpoints, w.New.Endpoints) {
		return
	}
	for i := range w.New.Endpoints {
		at := check.At("endpoints").Index(i)
		w.New.Endpoints[i].checkAddresses(&w.Violations, at.Field("addresses"), w.New.AddressType)
		if h := w.New.Endpoints[i].Hints; h != nil {
			h.validate(&w.Violations, at.Field("hints"))
		}
	}
}

func checkPorts(f *check.Violations, at *check.Path, ports []EndpointPort) {
	seen := map[string]bool{}
	for i, p := range ports {
		if n := p.Name; n != nil {
			at := at.Index(i).Field("name")
			if *n != "" {
				f.Format(at, *n, meta.CheckDNSLabel(*n))
			}
			checkUnique(f, at, *n, seen)
		}
	}
}

// checkUnique reports a value that is in seen, and adds it.
func checkUnique(f *check.Violations, at *check.Path, value string, seen map[string]bool) {
	if seen[value] {
		f.Duplicate(at, value)
	}
	seen[value] = true
}

func (e *Endpoint) checkAddresses(f *check.Violations, at *check.Path, kind string) {
	for i, text := range e.Addresses {
		switch kind {
		case typeIPv4, typeIPv6:
			checkIP(f, at, i, text, kind)
		case typeFQDN:
			checkDomain(f, at.Index(i), text)
		}
	}
}

// checkIP checks an address. A wrong family is reported at the list; IPv6 addresses must be in
// canonical form.
func checkIP(f *check.Violations, list *check.Path, i int, text, family string) {
	at := list.Index(i)
	if !address.HostIP(f, at, text) {
		return
	}
	a, err := netip.ParseAddr(text)
	switch isIPv6 := err == nil && a.Is6(); {
	case isIPv6 && family == typeIPv6 && a.String() != text:
		f.Invalid(at, text, "must be in canonical form (\""+a.String()+"\")")
		return
	case isIPv6 != (family == typeIPv6):
		f.Invalid(list, text, "must be an "+family+" address")
	}
	address.Reachable(f, at, text)
}

// checkDomain checks a DNS name with at least 2 labels and an optional trailing dot.
func checkDomain(f *check.Violations, at *check.Path, name string) {
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

// validate checks the hints. Nodes are not checked if there are too many zones, as at kube-apiserver.
func (h *EndpointHints) validate(f *check.Violations, at *check.Path) {
	zones, nodes := map[string]bool{}, map[string]bool{}
	for i, z := range h.ForZones {
		checkUnique(f, at.Field("forZones").Index(i).Field("name"), z.Name, zones)
	}
	const maxZones = 8
	if len(h.ForZones) > maxZones {
		return
	}
	for i, n := range h.ForNodes {
		at := at.Field("forNodes").Index(i).Field("name")
		checkUnique(f, at, n.Name, nodes)
		f.Format(at, n.Name, meta.CheckDNSSubdomain(n.Name))
	}
}
