package networking

import (
	"net/netip"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/address"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// IPAddress says that an address, its name, is in use. The name is the address in
// its shortest form.
type IPAddress struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is who uses the address.
	Spec IPAddressSpec `json:"spec,omitempty" protobuf:"2"`
}

// IPAddressSpec says who uses an address.
type IPAddressSpec struct {
	// ParentRef is the object that the address belongs to. It cannot change.
	ParentRef *ParentReference `json:"parentRef,omitempty" protobuf:"1" schema:"required,optional"`
}

// ParentReference names the object that something belongs to.
type ParentReference struct {
	// Group of the object; empty: the core group.
	Group string `json:"group,omitempty" protobuf:"1" schema:"format=dns-subdomain"`
	// Resource of the object: the plural of its kind.
	Resource string `json:"resource,omitempty" protobuf:"2" schema:"required,optional,format=path-segment"`
	// Namespace of the object.
	Namespace string `json:"namespace,omitempty" protobuf:"3" schema:"format=path-segment"`
	// Name of the object.
	Name string `json:"name,omitempty" protobuf:"4" schema:"required,optional,format=path-segment"`
}

// ServiceCIDR is a network that services get their addresses from.
type ServiceCIDR struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the network.
	Spec ServiceCIDRSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is whether addresses are taken from it.
	Status ServiceCIDRStatus `json:"status,omitempty" protobuf:"3"`
}

// ServiceCIDRSpec is a network for services.
type ServiceCIDRSpec struct {
	// CIDRs are the network in the form 10.0.0.0/24 or fd00::/112: one, or one of each
	// family. They stay; only a second one may come.
	CIDRs []string `json:"cidrs,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// ServiceCIDRStatus is the state of a network for services.
type ServiceCIDRStatus struct {
	// Conditions are aspects of the state; Ready says that addresses are taken from it.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
}

func ipAddresses() *registry.Kind {
	return registry.Of(registry.Definition[IPAddress]{
		Group: names.GroupNetworking, Version: "v1", Scope: registry.Cluster, Plural: "ipaddresses", ShortNames: []string{"ip"},
		Lifetime: registry.Lifetime{Introduced: "1.33"},
		Columns: []registry.Column{{Name: "ParentRef", Type: "string", Doc: "Whom the address belongs to.", Cell: func(o *meta.Object) any {
			p := meta.NewObject(o.Map("spec", "parentRef"))
			words := []string{strings.ToLower(meta.GroupResource{Group: p.String("group"), Resource: p.String("resource")}.String())}
			if ns := p.String("namespace"); ns != "" {
				words = append(words, ns)
			}
			return strings.Join(append(words, p.String("name")), "/")
		}}},
		ValidateName: func(name string, _ bool) []string {
			var f check.Faults
			if address.HostIP(&f, nil, name) && netip.MustParseAddr(name).String() != name {
				return []string{"must be in canonical form (\"" + netip.MustParseAddr(name).String() + "\")"}
			}
			if len(f) > 0 {
				return []string{"must be a valid IP address in its shortest form"}
			}
			return nil
		},
		Validate: func(w *registry.Change[IPAddress]) {
			if w.Old != nil {
				w.Unchanged(check.At("spec", "parentRef"), w.New.Spec.ParentRef, w.Old.Spec.ParentRef)
			}
		},
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true},
	})
}

func serviceCIDRs() *registry.Kind {
	return registry.Of(registry.Definition[ServiceCIDR]{
		Group: names.GroupNetworking, Version: "v1", Scope: registry.Cluster, Plural: "servicecidrs", Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.33"},
		Columns: []registry.Column{
			{Name: "CIDRs", Type: "string", Doc: "The network, of one family or of each.", Cell: func(o *meta.Object) any {
				return cells.FirstFew(o.Strings("spec", "cidrs"))
			}},
			registry.Age(),
		},
		Validate:  validateCIDRs,
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true},
	})
}

// validateCIDRs checks new networks. Those that were there stay.
func validateCIDRs(w *registry.Change[ServiceCIDR]) {
	at, now := check.At("spec", "cidrs"), w.New.Spec.CIDRs
	if w.Subresource == "status" {
		return
	}
	if w.Old != nil {
		before := w.Old.Spec.CIDRs
		if len(now) != len(before) && (len(before) != 1 || len(now) != 2) {
			w.Unchanged(at, now, before)
			return
		}
		for i := range before {
			w.Unchanged(at.Index(i), now[i], before[i])
		}
		if len(now) == len(before) {
			return
		}
	}
	switch {
	case len(now) == 0:
		w.Required(at, "at least one CIDR required")
		return
	case len(now) > 2:
		w.Invalid(at, now, "may only hold up to 2 values")
		return
	}
	families := map[bool]bool{}
	for i, text := range now {
		at := at.Index(i)
		p, ok := address.Network(&w.Faults, at, text)
		if !ok {
			continue
		}
		if p.String() != text {
			w.Invalid(at, text, "must be in canonical form (\""+p.String()+"\")")
		}
		if families[p.Addr().Is6()] {
			w.Invalid(check.At("spec", "cidrs"), now, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
		}
		families[p.Addr().Is6()] = true
	}
}
