package core

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// shares returns the same as podspec.Shares, for the typed spec.
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

// defaultPodResources sets pod-level requests and limits from the totals of the containers and from the
// limits. It does nothing without pod-level resources.
func defaultPodResources(spec *meta.Object) {
	if spec.Map("resources") == nil {
		return
	}
	for name, q := range podspec.Sum(spec, "limits") {
		if isHugePages(name) {
			setDefault(spec, q.String(), "resources", "limits", name)
		}
	}
	limits := spec.Map("resources", "limits")
	if len(limits) == 0 {
		return
	}
	for name, q := range podspec.Sum(spec, "requests") {
		if name == "cpu" || name == "memory" {
			setDefault(spec, q.String(), "resources", "requests", name)
		}
	}
	for name, limit := range limits {
		if name == "cpu" || name == "memory" || isHugePages(name) {
			setDefault(spec, limit, "resources", "requests", name)
		}
	}
}

// podResources checks the pod-level resources, which must not be less than the totals of the
// containers.
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
		for _, name := range sortedNames(list.amounts) {
			p := at.Field(list.field)
			if name != "cpu" && name != "memory" && !isHugePages(name) {
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
	for _, name := range sortedNames(requests) {
		if podAmount, ok := q.Requests[name]; ok && requests[name].Cmp(podAmount) > 0 {
			r.Invalid(at.Field("requests").Key(name), podAmount, "must be greater than or equal to aggregate container requests of "+requests[name].String())
		}
	}
	limits := r.spec.together(func(q *ResourceRequirements) amounts { return q.Limits })
	for _, name := range sortedNames(limits) {
		if podAmount, ok := q.Limits[name]; ok && isHugePages(name) && limits[name].Cmp(podAmount) > 0 {
			r.Invalid(at.Field("limits").Key(name), podAmount, "must be greater than or equal to aggregate container limits of "+limits[name].String())
		}
	}
	for i, c := range r.spec.Containers {
		for _, name := range sortedNames(c.Resources.Limits) {
			if podAmount, ok := q.Limits[name]; ok && c.Resources.Limits[name].Cmp(podAmount) > 0 {
				r.Invalid(at.Field("containers").Index(i).Key(name).Field("limits"), c.Resources.Limits[name], "must be less than or equal to pod limits of "+podAmount.String())
			}
		}
	}
}

// together returns the total requests or limits of the containers, as selected by of.
func (s *PodSpec) together(of func(*ResourceRequirements) amounts) amounts {
	var containers, init []amounts
	var sidecars []bool
	for i := range s.Containers {
		containers = append(containers, of(&s.Containers[i].Resources))
	}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		init, sidecars = append(init, of(&c.Resources)), append(sidecars, c.RestartPolicy != nil && *c.RestartPolicy == "Always")
	}
	return podspec.Together(containers, init, sidecars)
}
