package schema

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// combinations checks anyOf, oneOf, allOf and not.
func (v *validator) combinations(x any, s *Schema, canonical bool) {
	if len(s.AnyOf) > 0 {
		if n, best := v.matches(x, s.AnyOf, canonical, true); n == 0 {
			v.violation(wording.AnyOf, nil, "", canonical)
			v.causes = append(v.causes, best...)
		}
	}
	if len(s.OneOf) > 0 {
		switch n, best := v.matches(x, s.OneOf, canonical, false); n {
		case 0:
			v.violation(wording.OneOf, nil, "Found none valid", canonical)
			v.causes = append(v.causes, best...)
		case 1:
		default:
			v.violation(wording.OneOf, nil, fmt.Sprintf("Found %d valid alternatives", n), canonical)
		}
	}
	v.allOf(x, s, canonical)
	if s.Not != nil {
		if causes, _ := v.try(x, s.Not, canonical); len(causes) == 0 {
			v.violation(wording.Not, nil, "", canonical)
		}
	}
}

func (v *validator) allOf(x any, s *Schema, canonical bool) {
	failed := 0
	for _, e := range s.AllOf {
		if causes, _ := v.try(x, e, canonical); len(causes) > 0 {
			failed++
			v.causes = append(v.causes, causes...)
		}
	}
	switch {
	case failed == 0:
	case failed == len(s.AllOf):
		v.violation(wording.AllOf, nil, ". None validated", canonical)
	default:
		v.violation(wording.AllOf, nil, "", canonical)
	}
}

// matches counts the branches that x satisfies, up to the first of them if stop is set. Of the
// branches that x does not satisfy, best has the causes of the branch that visited most values of
// x.
func (v *validator) matches(x any, branches []*Schema, canonical, stop bool) (n int, best []meta.StatusCause) {
	most := -1
	for _, e := range branches {
		causes, visited := v.try(x, e, canonical)
		switch {
		case len(causes) == 0:
			n++
			if stop {
				return n, nil
			}
		case visited > most:
			most, best = visited, causes
		}
	}
	return n, best
}

// try validates x against a branch. It returns the causes, which it does not add to v, and the
// number of visited values.
func (v *validator) try(x any, s *Schema, canonical bool) ([]meta.StatusCause, int) {
	branch := validator{path: slices.Clone(v.path), branch: true, effort: v.effort}
	branch.value(x, nil, s, canonical)
	return slices.Concat(branch.causes, branch.repeats), branch.visited
}
