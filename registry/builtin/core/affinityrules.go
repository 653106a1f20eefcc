package core

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

func (r *podRules) affinity(at *check.Path, a *Affinity) {
	if a == nil {
		return
	}
	if n := a.NodeAffinity; n != nil {
		p := at.Field("nodeAffinity")
		r.nodeSelector(p.Field(required), n.RequiredDuringSchedulingIgnoredDuringExecution)
		for i, t := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			r.nodeTerm(p.Field(preferred).Index(i).Field("preference"), &t.Preference, false)
		}
	}
	pods := func(p *check.Path, requiredTerms []PodAffinityTerm, preferences []WeightedPodAffinityTerm) {
		for i := range requiredTerms {
			r.podTerm(p.Field(required).Index(i), &requiredTerms[i])
		}
		for i := range preferences {
			r.podTerm(p.Field(preferred).Index(i).Field("podAffinityTerm"), &preferences[i].PodAffinityTerm)
		}
	}
	if n := a.PodAffinity; n != nil {
		pods(at.Field("podAffinity"), n.RequiredDuringSchedulingIgnoredDuringExecution, n.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if n := a.PodAntiAffinity; n != nil {
		pods(at.Field("podAntiAffinity"), n.RequiredDuringSchedulingIgnoredDuringExecution, n.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// CheckNodeSelector returns the violations of a node selector that the schema does not report.
func CheckNodeSelector(at *check.Path, s *NodeSelector) check.Violations {
	var r specRules
	r.nodeSelector(at, s)
	return r.Violations
}

func (r *specRules) nodeSelector(at *check.Path, s *NodeSelector) {
	if s == nil {
		return
	}
	for i := range s.NodeSelectorTerms {
		r.nodeTerm(at.Field("nodeSelectorTerms").Index(i), &s.NodeSelectorTerms[i], true)
	}
}

// nodeTerm checks a term. strict is false for a preference, whose values may be invalid as label
// values.
func (r *specRules) nodeTerm(at *check.Path, t *NodeSelectorTerm, strict bool) {
	for i, e := range t.MatchExpressions {
		p := at.Field("matchExpressions").Index(i)
		r.nodeRequirement(p, e)
		r.Format(p.Field("key"), e.Key, meta.CheckQualifiedName(e.Key))
		for j, v := range e.Values {
			if strict {
				r.Format(p.Field("values").Index(j), v, meta.CheckLabelValue(v))
			}
		}
	}
	for i, e := range t.MatchFields {
		p := at.Field("matchFields").Index(i)
		if e.Operator != "In" && e.Operator != "NotIn" {
			r.Invalid(p.Field("operator"), e.Operator, "not a valid selector operator")
		} else if len(e.Values) != 1 {
			r.Required(p.Field("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
		}
		if e.Key != "metadata.name" {
			r.Invalid(p.Field("key"), e.Key, "not a valid field selector key")
			continue
		}
		for j, v := range e.Values {
			r.Format(p.Field("values").Index(j), v, meta.CheckDNSSubdomain(v))
		}
	}
}

func (r *specRules) nodeRequirement(at *check.Path, e NodeSelectorRequirement) {
	values := at.Field("values")
	switch e.Operator {
	case "In", "NotIn":
		if len(e.Values) == 0 {
			r.Required(values, "must be specified when `operator` is 'In' or 'NotIn'")
		}
	case "Exists", "DoesNotExist":
		if len(e.Values) > 0 {
			r.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	case "Gt", "Lt":
		if len(e.Values) != 1 {
			r.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")
		}
	default:
		r.Invalid(at.Field("operator"), e.Operator, "not a valid selector operator")
	}
}

func (r *podRules) podTerm(at *check.Path, t *PodAffinityTerm) {
	for _, ns := range t.Namespaces {
		r.Format(at.Field("namespace"), ns, meta.CheckDNSLabel(ns)) // kube-apiserver omits the index and the plural
	}
	r.labelKeys(at.Field("matchLabelKeys"), t.MatchLabelKeys, t.LabelSelector)
	r.labelKeys(at.Field("mismatchLabelKeys"), t.MismatchLabelKeys, t.LabelSelector)
	differ := map[string]bool{}
	for _, key := range t.MismatchLabelKeys {
		differ[key] = true
	}
	for i, key := range t.MatchLabelKeys {
		if differ[key] {
			r.Invalid(at.Field("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
	if t.TopologyKey == "" {
		r.Required(at.Field("topologyKey"), "can not be empty")
	}
	r.Format(at.Field("topologyKey"), t.TopologyKey, meta.CheckQualifiedName(t.TopologyKey))
}
