package core

import (
	"math/big"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// resources checks what a container needs and may use.
func (r *podRules) resources(at *check.Path, q *ResourceRequirements) {
	compute, huge := false, false
	for _, list := range []struct {
		field   string
		amounts map[string]meta.Quantity
	}{{"limits", q.Limits}, {"requests", q.Requests}} {
		for _, name := range sorted(list.amounts) {
			p := at.Field(list.field)
			r.resourceName(p.Key(name), name)
			r.amount(p.Key(name), name, list.amounts[name])
			if list.field == "requests" {
				r.withinLimit(at, name, q)
			}
			compute = compute || name == "cpu" || name == "memory"
			huge = huge || hugePages(name)
		}
	}
	if huge && !compute {
		r.Forbidden(at, "HugePages require cpu or memory")
	}
	r.usedClaims(at.Field("claims"), q.Claims)
}

// withinLimit checks that no more is asked for than allowed, and just that of
// what nodes give away only once.
func (r *podRules) withinLimit(at *check.Path, name string, q *ResourceRequirements) {
	request, once := q.Requests[name], hugePages(name) || !r.native(name)
	limit, limited := q.Limits[name]
	switch {
	case !limited && once:
		r.Required(at.Field("limits"), "Limit must be set for non overcommitable resources")
	case !limited:
	case once && request.Cmp(limit) != 0:
		r.Invalid(at.Field("requests"), request, "must be equal to "+name+" limit of "+limit.String())
	case request.Cmp(limit) > 0:
		r.Invalid(at.Field("requests"), request, "must be less than or equal to "+name+" limit of "+limit.String())
	}
}

// CheckContainerResource returns the faults of the name of a resource that containers
// use.
func CheckContainerResource(p names.Profile, at *check.Path, name string) check.Faults {
	r := specRules{names: p}
	r.resourceName(at, name)
	return r.Faults
}

// resourceName checks the name of a resource of containers.
func (r *specRules) resourceName(at *check.Path, name string) {
	r.standardName(at, name)
	plain := !strings.Contains(name, "/")
	switch {
	case plain && !containerResource(name):
		r.Invalid(at, name, "must be a standard resource for containers")
	case !r.native(name) && !r.extended(name):
		r.Invalid(at, name, "doesn't follow extended resource name standard")
	}
}

// standardName checks the name of a resource of anything: one without a domain is
// the product's own.
func (r *specRules) standardName(at *check.Path, name string) {
	faults := meta.CheckQualifiedName(name)
	r.Format(at, name, faults)
	if len(faults) == 0 && !strings.Contains(name, "/") && !quotaResource(name) {
		r.Invalid(at, name, "must be a standard resource type or fully qualified")
	}
}

func (r *podRules) amount(at *check.Path, name string, value meta.Quantity) {
	r.quantity(at, name, value)
	if hugePages(name) && !wholePages(name, value) {
		r.Invalid(at, value, "must be a whole number of the pages of "+name)
	}
}

// quantity checks an amount of a resource, whoever has or uses it.
func (r *podRules) quantity(at *check.Path, name string, value meta.Quantity) {
	if value.Sign() < 0 {
		r.Invalid(at, value, "must be greater than or equal to 0")
	}
	if (r.extended(name) || counted(name)) && !value.Whole() {
		r.Invalid(at, value, "must be an integer")
	}
}

func containerResource(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage" || hugePages(name)
}

// quotaResource reports whether a name without a domain stands for something
// that containers use or that a quota counts.
func quotaResource(name string) bool {
	for _, prefix := range []string{"requests.", "limits."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest == "storage" && prefix == "requests." || containerResource(rest)
		}
	}
	return name == "storage" || counted(name) || containerResource(name)
}

// counted reports whether a resource is a number of objects.
func counted(name string) bool {
	switch name {
	case "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
		"persistentvolumeclaims", "services.nodeports", "services.loadbalancers":
		return true
	}
	return false
}

func hugePages(name string) bool { return strings.HasPrefix(name, "hugepages-") }

// wholePages reports whether an amount is a multiple of the page size that is in
// the name of the resource.
func wholePages(name string, amount meta.Quantity) bool {
	size, err := meta.ParseQuantity(strings.TrimPrefix(name, "hugepages-"))
	return err == nil && size.Sign() > 0 && new(big.Rat).Quo(amount.Rat(), size.Rat()).IsInt()
}

// native reports whether a resource is the product's own.
func (r *specRules) native(name string) bool {
	return !strings.Contains(name, "/") || strings.Contains(name, r.names.Wire(names.NativeResource))
}

// ExtendedResource reports whether a name is that of a resource that somebody else's
// program knows.
func ExtendedResource(p names.Profile, name string) bool {
	r := specRules{names: p}
	return r.extended(name)
}

// extended reports whether a resource is a whole number of something that
// somebody else's program knows.
func (r *specRules) extended(name string) bool {
	return !r.native(name) && !strings.HasPrefix(name, "requests.") && len(meta.CheckQualifiedName("requests."+name)) == 0
}

// usedClaims checks which of the pod's claims a container uses.
func (r *podRules) usedClaims(at *check.Path, claims []ResourceClaim) {
	seen := map[ResourceClaim]bool{}
	for i, c := range claims {
		p := at.Index(i)
		if c.Name == "" {
			r.Required(p, "")
			continue
		}
		if seen[c] {
			r.Duplicate(p, c.Name)
		}
		seen[c] = true
		if !r.claimed[c.Name] {
			r.NotFound(p, c.Name)
		}
	}
}
