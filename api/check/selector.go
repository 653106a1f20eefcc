package check

import (
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
)

// Labels adds violations for invalid label keys and values. All of them have the path of the map.
func (f *Violations) Labels(at *Path, labels map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		f.Format(at, k, meta.CheckQualifiedName(k))
		f.Format(at, labels[k], meta.CheckLabelValue(labels[k]))
	}
}

// Selector adds violations for an invalid label selector; nil is valid.
func (f *Violations) Selector(at *Path, s *meta.LabelSelector) {
	if s == nil {
		return
	}
	f.Labels(at.Field("matchLabels"), s.MatchLabels)
	for i, e := range s.MatchExpressions {
		f.expression(at.Field("matchExpressions").Index(i), e)
	}
}

func (f *Violations) expression(at *Path, e meta.LabelSelectorRequirement) {
	if !f.SelectorValues(at, e.Operator, e.Values) {
		f.Invalid(at.Field("operator"), e.Operator, "not a valid selector operator")
	}
	f.Format(at.Field("key"), e.Key, meta.CheckQualifiedName(e.Key))
	for i, v := range e.Values {
		f.Format(at.Field("values").Index(i), v, meta.CheckLabelValue(v))
	}
}

// SelectorValues adds a violation if a selector requirement has values although its operator takes
// none, or lacks values that the operator needs. It reports whether the operator is known.
func (f *Violations) SelectorValues(at *Path, operator string, values []string) bool {
	switch operator {
	case "In", "NotIn":
		if len(values) == 0 {
			f.Required(at.Field("values"), "must be specified when `operator` is 'In' or 'NotIn'")
		}
	case "Exists", "DoesNotExist":
		if len(values) > 0 {
			f.Forbidden(at.Field("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	default:
		return false
	}
	return true
}
