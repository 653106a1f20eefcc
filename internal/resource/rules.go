package resource

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/cel"
)

// ruled are the expressions of a schema, and what is wrong with them.
type ruled struct {
	rules  *cel.Rules
	faults []meta.StatusCause
}

// RuleFaults returns what is wrong with the expressions of the type's schemas.
func (t *Type) RuleFaults() (faults []error) {
	for _, v := range t.Versions {
		for _, f := range v.rules().faults {
			faults = append(faults, fmt.Errorf("%s: %s: %s", v.GVK(), f.Field, f.Message))
		}
	}
	return faults
}

// CheckRules evaluates the expressions of the schema for an object, and adds what they say
// to the causes that were found before. Those that say that values have not the form which
// expressions count on come first: nothing is evaluated then. Warnings are of values that
// break a rule as they did before.
func (v *Version) CheckRules(w *change, found []meta.StatusCause) (causes []meta.StatusCause, warnings []string) {
	rules := v.rules().rules
	if rules == nil {
		return found, nil
	}
	if slices.ContainsFunc(found, misshapen) {
		var f check.Violations
		f.Invalid(check.At("<nil>"), nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")
		return append(found, f...), nil
	}
	var old map[string]any
	if w.Old != nil {
		old = w.Old.Tree()
	}
	broken, warnings := rules.Check(w.Context, w.New.Tree(), old)
	if w.Subresource != "" && old != nil {
		broken = slices.DeleteFunc(broken, func(c meta.StatusCause) bool { return keptPart(c.Field, w.New.Tree(), old) })
	}
	if v.mayKeep(broken, w) {
		kept, _ := rules.Check(w.Context, old, old)
		broken = withoutKept(broken, kept)
	}
	return append(found, broken...), warnings
}

// misshapen reports whether a cause says that a value has not the form of its schema.
func misshapen(c meta.StatusCause) bool {
	switch c.Reason {
	case meta.CauseTypeInvalid, meta.CauseRequired, meta.CauseNotSupported, meta.CauseTooLong, meta.CauseTooMany:
		return true
	}
	return false
}
