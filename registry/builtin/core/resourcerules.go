package core

import (
	"math/big"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

// resources checks the requests, limits and claims of a container.
func (r *podRules) resources(at *check.Path, q *ResourceRequirements) {
	compute, huge := false, false
	for _, list := range []struct {
		field   string
		amounts map[string]meta.Quantity
	}{{"limits", q.Limits}, {"requests", q.Requests}} {
		for _, name := range sortedNames(list.amounts) {
			p := at.Field(list.field)
			r.resourceName(p.Key(name), name)
			r.amount(p.Key(name), name, list.amounts[name])
			if list.field == "requests" {
				r.withinLimit(at, name, q)
			}
			compute = compute || name == "cpu" || name == "memory"
			huge = huge || isHugePages(name)
		}
	}
	if huge && !compute {
		r.Forbidden(at, "HugePages require cpu or memory")
	}
	r.usedClaims(at.Field("claims"), q.Claims)
}

// withinLimit checks that a request does not exceed the limit, or equals it for resources that cannot
// be overcommitted.
func (r *podRules) withinLimit(at *check.Path, name string, q *ResourceRequirements) {
	request, exclusive := q.Requests[name], isHugePages(name) || !r.isNative(name)
	limit, limited := q.Limits[name]
	switch {
	case !limited && exclusive:
		r.Required(at.Field("limits"), "Limit must be set for non overcommitable resources")
	case !limited:
	case exclusive && request.Cmp(limit) != 0:
		r.Invalid(at.Field("requests"), request, "must be equal to "+name+" limit of "+limit.String())
	case request.Cmp(limit) > 0:
		r.Invalid(at.Field("requests"), request, "must be less than or equal to "+name+" limit of "+limit.String())
	}
}

// CheckContainerResource returns the violations of the name of a container resource.
func CheckContainerResource(p names.Profile, at *check.Path, name string) check.Violations {
	r := specRules{names: p}
	r.resourceName(at, name)
	return r.Violations
}

// resourceName checks the name of a container resource.
func (r *specRules) resourceName(at *check.Path, name string) {
	r.standardName(at, name)
	plain := !strings.Contains(name, "/")
	switch {
	case plain && !containerResource(name):
		r.Invalid(at, name, "must be a standard resource for containers")
	case !r.isNative(name) && !r.isExtended(name):
		r.Invalid(at, name, "doesn't follow extended resource name standard")
	}
}

// standardName checks the name of a resource. A name without a domain must be a known resource.
func (r *specRules) standardName(at *check.Path, name string) {
	faults := meta.CheckQualifiedName(name)
	r.Format(at, name, faults)
	if len(faults) == 0 && !strings.Contains(name, "/") && !quotaResource(name) {
		r.Invalid(at, name, "must be a standard resource type or fully qualified")
	}
}

func (r *podRules) amount(at *check.Path, name string, value meta.Quantity) {
	r.quantity(at, name, value)
	if isHugePages(name) && !wholePages(name, value) {
		r.Invalid(at, value, "must be a whole number of the pages of "+name)
	}
}

// quantity checks an amount: not negative, and an integer for countable resources.
func (r *podRules) quantity(at *check.Path, name string, value meta.Quantity) {
	if value.Sign() < 0 {
		r.Invalid(at, value, "must be greater than or equal to 0")
	}
	if (r.isExtended(name) || countsObjects(name)) && !value.IsInteger() {
		r.Invalid(at, value, "must be an integer")
	}
}

func containerResource(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage" || isHugePages(name)
}

// quotaResource reports whether a name without a domain is a resource of containers or of quotas.
func quotaResource(name string) bool {
	for _, prefix := range []string{"requests.", "limits."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest == "storage" && prefix == "requests." || containerResource(rest)
		}
	}
	return name == "storage" || countsObjects(name) || containerResource(name)
}

// countsObjects reports whether a resource is a number of objects.
func countsObjects(name string) bool {
	switch name {
	case "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
		"persistentvolumeclaims", "services.nodeports", "services.loadbalancers":
		return true
	}
	return false
}

func isHugePages(name string) bool { return strings.HasPrefix(name, "hugepages-") }

// wholePages reports whether an amount is a multiple of the page size in the name of the resource.
func wholePages(name string, amount meta.Quantity) bool {
	size, err := meta.ParseQuantity(strings.TrimPrefix(name, "hugepages-"))
	return err == nil && size.Sign() > 0 && new(big.Rat).Quo(amount.Rat(), size.Rat()).IsInt()
}

// isNative reports whether a resource belongs to Kubernetes: it has no domain, or a reserved one.
func (r *specRules) isNative(name string) bool {
	return !strings.Contains(name, "/") || strings.Contains(name, r.names.Wire(wellknown.NativeResource))
}

// ExtendedResource reports whether name is a valid extended resource, such as a device of a device
// plugin.
func ExtendedResource(p names.Profile, name string) bool {
	r := specRules{names: p}
	return r.isExtended(name)
}

// isExtended reports whether name is a valid extended resource.
func (r *specRules) isExtended(name string) bool {
	return !r.isNative(name) && !strings.HasPrefix(name, "requests.") && len(meta.CheckQualifiedName("requests."+name)) == 0
}

// usedClaims checks the references of a container to the resource claims of the pod.
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
