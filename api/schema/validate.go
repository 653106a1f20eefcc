package schema

import (
	"slices"
	"strconv"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// Validate returns the violations in a normalized object with defaults: of types, required
// fields, enums, ranges, lengths, patterns, combinations, uniqueness of items, and
// immutability. old is the previous object, or nil on create. Causes are in schema field order,
// with map keys sorted; causes of embedded objects follow, then duplicates. At most 100 causes
// are returned.
//
// Validate skips object metadata; use meta.ValidateMetadata. In Go structs, an absent field
// counts as unset, and a required field must not be zero or, if it is a pointer, nil.
func (s *Schema) Validate(tree, old map[string]any) []meta.StatusCause {
	if s == nil {
		return nil
	}
	v := validator{effort: &effort{}}
	var room [16]step
	v.path = room[:0]
	var before any
	if old != nil {
		before = old
	}
	v.value(tree, before, s, s.Struct.Canonical())
	return v.found()
}

// validator validates one object, or one branch of a combination.
type validator struct {
	path    path
	causes  []meta.StatusCause
	objects []meta.StatusCause // causes of embedded objects, reported after causes
	repeats []meta.StatusCause // duplicates, reported last
	visited int                // visited values, numbers counted twice; selects the branch of anyOf and oneOf to report
	branch  bool               // validates a branch of a combination
	preset  bool               // the value is a default in a definition; an int-or-string default may have any type
	effort  *effort            // shared with all branches
}

// Limits on the cost of validating an object. Each combination visits its values again, and
// matching a pattern costs text length times pattern size. An object may cost maxEffort units:
// a visit within a branch costs one unit, and matchedAtOnce steps of pattern matching cost one
// unit. That takes a few seconds at most.
const (
	maxEffort     = 2 << 20
	matchedAtOnce = 64
)

// effort counts the cost of validating an object.
type effort struct {
	spent int
	at    string // path of the value that exceeded the limit
}

// spend reports whether n more units are within the limit. After the limit is exceeded,
// validation stops.
func (v *validator) spend(n int) bool {
	if v.effort.spent > maxEffort {
		return false
	}
	if v.effort.spent += n; v.effort.spent > maxEffort {
		v.effort.at = v.path.String()
		return false
	}
	return true
}

// found returns all causes. If validation stopped early, the last cause reports that.
func (v *validator) found() []meta.StatusCause {
	causes := slices.Concat(v.causes, v.objects, v.repeats)
	causes = causes[:min(len(causes), maxReported)]
	if v.effort.spent <= maxEffort {
		return causes
	}
	return append(causes[:min(len(causes), maxReported-1)], wording.Effort.Cause(v.effort.at, "", "", false))
}

// faultsOf validates a single value. canonical is set if it belongs to a Go struct.
func faultsOf(value any, s *Schema, canonical bool) []meta.StatusCause {
	v := validator{effort: &effort{}}
	v.value(value, nil, s, canonical)
	return v.found()
}

// full reports whether the limit on causes is reached.
func (v *validator) full() bool {
	return len(v.causes)+len(v.objects)+len(v.repeats) >= maxReported
}

// violation adds a cause for a rule that x, the value at the path, violates.
func (v *validator) violation(r wording.Rule, x any, limit string, canonical bool) {
	if !v.full() {
		v.causes = append(v.causes, r.Cause(v.path.String(), show(x), limit, canonical))
	}
}

// fieldViolation is violation, but uses the text of Schema.reasons if the Go field has a text for
// the rule.
func (v *validator) fieldViolation(r wording.Rule, x any, limit string, s *Schema, canonical bool) {
	if why := s.reasons[r]; why != "" {
		r, limit = wording.Invalid, why
	}
	v.violation(r, x, limit, canonical)
}

// value validates a value. old is the previous value, or nil if there was none. The order of
// the checks determines the order of the causes.
func (v *validator) value(x, old any, s *Schema, canonical bool) {
	v.visited++
	if v.full() || v.branch && !v.spend(1) {
		return
	}
	if s.Struct != nil {
		canonical = s.Struct.Canonical()
	}
	if x == nil && (canonical || s.Nullable) {
		if len(s.Enum) > 0 && !canonical {
			v.enum(x, s, canonical)
		}
		v.checkRemoved(old, s)
		return
	}
	if canonical && !v.branch && !s.rules {
		return
	}
	if old != nil && (!canonical || s.Ratcheting) && meta.Equal(x, old) {
		return // an unchanged value stays valid if rules became stricter
	}
	if s.Immutable && old != nil && !meta.Equal(x, old) {
		v.rules(x, nil, s, canonical)
		v.violation(wording.Immutable, inOrder(x, s), "", canonical)
		return
	}
	v.rules(x, old, s, canonical)
}

// rules validates everything except immutability of the value itself.
func (v *validator) rules(x, old any, s *Schema, canonical bool) {
	if s.Unchecked {
		return
	}
	if !v.hasType(x, s) {
		v.typeFault(x, s, canonical)
	}
	if canonical && hasWholeFormat(s) {
		v.wholeFormat(x, s)
		return
	}
	v.combinations(x, s, canonical)
	switch x := x.(type) {
	case string:
		v.text(x, s, canonical)
	case int64:
		v.visited++
		v.number(float64(x), x, s, canonical)
	case float64:
		v.visited++
		v.number(x, x, s, canonical)
	case []any:
		v.list(x, old, s, canonical)
	}
	if len(s.Enum) > 0 {
		v.enum(x, s, canonical)
	}
	if m, ok := x.(map[string]any); ok {
		v.object(m, old, s, canonical)
	}
}

// typeFault adds a cause for a value x of the wrong type.
func (v *validator) typeFault(x any, s *Schema, canonical bool) {
	if v.full() {
		return
	}
	want, got := typeWords(x, s)
	got = strconv.Quote(got)
	if canonical {
		want, got = typeName(s), show(x)
	}
	v.causes = append(v.causes, wording.Type.Cause(v.path.String(), got, want, canonical))
}

// hasType reports whether a value has the schema's JSON type.
func (v *validator) hasType(x any, s *Schema) bool {
	if s.IntOrString && v.preset {
		return true
	}
	if s.IntOrString {
		switch x := x.(type) {
		case int64, string:
			return true
		case float64:
			return isExact(x)
		}
		return false
	}
	switch s.Type {
	case String:
		_, ok := x.(string)
		return ok
	case Boolean:
		_, ok := x.(bool)
		return ok
	case Integer:
		f, ok := x.(float64)
		_, whole := x.(int64)
		return whole || ok && isExact(f)
	case Number:
		switch x.(type) {
		case int64, float64:
			return true
		}
		return false
	case Array:
		_, ok := x.([]any)
		return ok
	case Object:
		_, ok := x.(map[string]any)
		return ok || s.Wire == Raw || s.Wire == Fields
	}
	return true
}

func typeName(s *Schema) string {
	if s.IntOrString {
		return "integer or string"
	}
	return [...]string{"any", "object", "array", "string", "integer", "number", "boolean"}[s.Type]
}
