package resource

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/cel"
)

// compiledRules holds the CEL rules of a schema and the errors of the rules that do not compile.
type compiledRules struct {
	rules  *cel.Rules
	faults []meta.StatusCause
}

// RuleErrors returns the errors of the CEL rules in the schemas of the type.
func (t *Type) RuleErrors() (faults []error) {
	for _, v := range t.Versions {
		for _, f := range v.rules().faults {
			faults = append(faults, fmt.Errorf("%s: %s: %s", v.GVK(), f.Field, f.Message))
		}
	}
	return faults
}

// CheckRules evaluates the CEL rules of the schema for a write and returns found with the
// violations appended. If found contains violations of the schema that make evaluation unsafe, such
// as wrong types, CheckRules skips the rules and adds a cause that says so. warnings names rules
// that were already broken before the write and whose values it leaves unchanged.
func (v *Version) CheckRules(w *change, found []meta.StatusCause) (causes []meta.StatusCause, warnings []string) {
	rules := v.rules().rules
	if rules == nil {
		return found, nil
	}
	if slices.ContainsFunc(found, isShapeViolation) {
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
		broken = slices.DeleteFunc(broken, func(c meta.StatusCause) bool { return partUnchanged(c.Field, w.New.Tree(), old) })
	}
	if v.keepsViolations(broken, w) {
		kept, _ := rules.Check(w.Context, old, old)
		broken = removeKept(broken, kept)
	}
	return append(found, broken...), warnings
}

// isShapeViolation reports whether a cause means that a value does not have the form of its schema,
// on which the rules rely.
func isShapeViolation(c meta.StatusCause) bool {
	switch c.Reason {
	case meta.CauseTypeInvalid, meta.CauseRequired, meta.CauseNotSupported, meta.CauseTooLong, meta.CauseTooMany:
		return true
	}
	return false
}
