package core

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// shares are those of podspec.Shares.
func (s *PodSpec) shares() (out []podspec.Share) {
	text := func(amounts map[string]meta.Quantity, name string) string {
		if q, ok := amounts[name]; ok {
			return q.String()
		}
		return ""
	}
	add := func(q *ResourceRequirements) {
		for _, name := range podspec.Computing() {
			out = append(out, podspec.Share{Request: text(q.Requests, name), Limit: text(q.Limits, name)})
		}
	}
	if q := s.Resources; q != nil {
		add(q)
		return out
	}
	for _, list := range [][]Container{s.Containers, s.InitContainers} {
		for i := range list {
			add(&list[i].Resources)
		}
	}
	return out
}

type amounts = podspec.Amounts

// defaultWhole fills in, for a pod that says what it may use as a whole, what it says
// only of its containers, and requests what is limited and not requested.
func defaultWhole(spec *meta.Object) {
	if spec.Map("resources") == nil {
		return
	}
	for name, q := range podspec.Sum(spec, "limits") {
		if hugePages(name) {
			fill(spec, q.String(), "resources", "limits", name)
		}
	}
	limits := spec.Map("resources", "limits")
	if len(limits) == 0 {
		return
	}
	for name, q := range podspec.Sum(spec, "requests") {
		if name == "cpu" || name == "memory" {
			fill(spec, q.String(), "resources", "requests", name)
		}
	}
	for name, most := range limits {
		if name == "cpu" || name == "memory" || hugePages(name) {
			fill(spec, most, "resources", "requests", name)
		}
	}
}

// podResources checks the resources of the pod as a whole, which bound those of
// its containers.
func (r *podRules) podResources(at *check.Path) {
	q := r.spec.Resources
	if q == nil {
		return
	}
	if len(q.Claims) > 0 {
		r.Forbidden(at.Field("claims"), "claims cannot be set for Resources at pod-level")
	}
	for _, list := range []struct {
		field   string
		amounts amounts
	}{{"limits", q.Limits}, {"requests", q.Requests}} {
		for _, name := range sorted(list.amounts) {
			p := at.Field(list.field)
			if name != "cpu" && name != "memory" && !hugePages(name) {
				r.NotSupported(p.Key(name), name, "cpu", "hugepages-", "memory")
			}
			r.amount(p.Key(name), name, list.amounts[name])
			if list.field == "requests" {
				r.withinLimit(at, name, q)
			}
		}
	}
	r.usedClaims(at.Field("claims"), q.Claims)
	requests := r.spec.together(func(q *ResourceRequirements) amounts { return q.Requests })
	for _, name := range sorted(requests) {
		if whole, ok := q.Requests[name]; ok && requests[name].Cmp(whole) > 0 {
			r.Invalid(at.Field("requests").Key(name), whole, "must be greater than or equal to aggregate container requests of "+requests[name].String())
		}
	}
	limits := r.spec.together(func(q *ResourceRequirements) amounts { return q.Limits })
	for _, name := range sorted(limits) {
		if whole, ok := q.Limits[name]; ok && hugePages(name) && limits[name].Cmp(whole) > 0 {
			r.Invalid(at.Field("limits").Key(name), whole, "must be greater than or equal to aggregate container limits of "+limits[name].String())
		}
	}
	for i, c := range r.spec.Containers {
		for _, name := range sorted(c.Resources.Limits) {
			if whole, ok := q.Limits[name]; ok && c.Resources.Limits[name].Cmp(whole) > 0 {
				r.Invalid(at.Field("containers").Index(i).Key(name).Field("limits"), c.Resources.Limits[name], "must be less than or equal to pod limits of "+whole.String())
			}
		}
	}
}

// together returns the limits or requests of the containers together.
func (s *PodSpec) together(of func(*ResourceRequirements) amounts) amounts {
	var containers, init []amounts
	var lasting []bool
	for i := range s.Containers {
		containers = append(containers, of(&s.Containers[i].Resources))
	}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		init, lasting = append(init, of(&c.Resources)), append(lasting, c.RestartPolicy != nil && *c.RestartPolicy == "Always")
	}
	return podspec.Together(containers, init, lasting)
}
