package networking

import (
	"net/netip"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/address"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// IPAddress reserves the IP address that is its name, in canonical form. An address is in use at most
// once, because names are unique.
type IPAddress struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the user of the address.
	Spec IPAddressSpec `json:"spec,omitempty" protobuf:"2"`
}

// IPAddressSpec is the user of an address.
type IPAddressSpec struct {
	// ParentRef is the object that uses the address, such as a Service. Immutable.
	ParentRef *ParentReference `json:"parentRef,omitempty" protobuf:"1" schema:"required,optional"`
}

// ParentReference identifies an object.
type ParentReference struct {
	// Group of the object. Empty is the core group.
	Group string `json:"group,omitempty" protobuf:"1" schema:"format=dns-subdomain"`
	// Resource is the plural name of the resource.
	Resource string `json:"resource,omitempty" protobuf:"2" schema:"required,optional,format=path-segment"`
	// Namespace of the object.
	Namespace string `json:"namespace,omitempty" protobuf:"3" schema:"format=path-segment"`
	// Name of the object.
	Name string `json:"name,omitempty" protobuf:"4" schema:"required,optional,format=path-segment"`
}

// ServiceCIDR is a range of IP addresses for services.
type ServiceCIDR struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the range.
	Spec ServiceCIDRSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is the state of the range.
	Status ServiceCIDRStatus `json:"status,omitempty" protobuf:"3"`
}

// ServiceCIDRSpec is a range of IP addresses.
type ServiceCIDRSpec struct {
	// CIDRs are the networks, such as 10.0.0.0/24 or fd00::/112: at most 1 of each IP family. They are
	// immutable, except that a second family can be added.
	CIDRs []string `json:"cidrs,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// ServiceCIDRStatus is the state of a range.
type ServiceCIDRStatus struct {
	// Conditions of the range. Ready is True if addresses are allocated from it.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
}

func ipAddresses() *registry.Kind {
	return registry.Of(registry.Definition[IPAddress]{
		Group: wellknown.GroupNetworking, Version: "v1", Scope: registry.Cluster, Plural: "ipaddresses", ShortNames: []string{"ip"},
		Lifetime: registry.Lifetime{Introduced: "1.33"},
		Columns: []registry.Column{{Name: "ParentRef", Type: "string", Doc: "The object that uses the address.", Cell: func(o *meta.Object) any {
			p := meta.NewObject(o.Map("spec", "parentRef"))
			words := []string{strings.ToLower(meta.GroupResource{Group: p.String("group"), Resource: p.String("resource")}.String())}
			if ns := p.String("namespace"); ns != "" {
				words = append(words, ns)
			}
			return strings.Join(append(words, p.String("name")), "/")
		}}},
		ValidateName: func(name string, _ bool) []string {
			var f check.Violations
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
		Group: wellknown.GroupNetworking, Version: "v1", Scope: registry.Cluster, Plural: "servicecidrs", Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.33"},
		Columns: []registry.Column{
			{Name: "CIDRs", Type: "string", Doc: "The network of each IP family.", Cell: func(o *meta.Object) any {
				return cells.FirstFew(o.Strings("spec", "cidrs"))
			}},
			registry.AgeColumn(),
		},
		Validate:  validateCIDRs,
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true},
	})
}

// validateCIDRs checks that existing networks stay, and the form of added networks.
func validateCIDRs(w *registry.Change[ServiceCIDR]) {
	at, cidrs := check.At("spec", "cidrs"), w.New.Spec.CIDRs
	if w.Subresource == "status" {
		return
	}
	if w.Old != nil {
		oldCIDRs := w.Old.Spec.CIDRs
		if len(cidrs) != len(oldCIDRs) && (len(oldCIDRs) != 1 || len(cidrs) != 2) {
			w.Unchanged(at, cidrs, oldCIDRs)
			return
		}
		for i := range oldCIDRs {
			w.Unchanged(at.Index(i), cidrs[i], oldCIDRs[i])
		}
		if len(cidrs) == len(oldCIDRs) {
			return
		}
	}
	switch {
	case len(cidrs) == 0:
		w.Required(at, "at least one CIDR required")
		return
	case len(cidrs) > 2:
		w.Invalid(at, cidrs, "may only hold up to 2 values")
		return
	}
	families := map[bool]bool{}
	for i, text := range cidrs {
		at := at.Index(i)
		p, ok := address.Network(&w.Violations, at, text)
		if !ok {
			continue
		}
		if p.String() != text {
			w.Invalid(at, text, "must be in canonical form (\""+p.String()+"\")")
		}
		if families[p.Addr().Is6()] {
			w.Invalid(check.At("spec", "cidrs"), cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
		}
		families[p.Addr().Is6()] = true
	}
}
