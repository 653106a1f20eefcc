// Package selector evaluates label selectors in the form that objects hold.
package selector

import (
	"slices"

	"orch.io/controlplane/api/meta"
)

// Empty reports whether a selector is nil or matches every label set.
func Empty(s *meta.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// Matches reports whether the selector matches the labels. The selector must be valid. A nil selector
// matches nothing.
func Matches(s *meta.LabelSelector, labels map[string]string) bool {
	if s == nil {
		return false
	}
	for k, want := range s.MatchLabels {
		if v, ok := labels[k]; !ok || v != want {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		v, ok := labels[e.Key]
		in := ok && slices.Contains(e.Values, v)
		switch {
		case e.Operator == "In" && !in, e.Operator == "NotIn" && in,
			e.Operator == "Exists" && !ok, e.Operator == "DoesNotExist" && ok:
			return false
		}
	}
	return true
}
