package schema

import (
	"slices"
	"strconv"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// Validate returns what is wrong with a conformed and defaulted object: types,
// required fields, enums, ranges, lengths, patterns, combinations, duplicates,
// and what changed although it is immutable. old is the object before, nil on
// create. Causes stand in the order of the fields in the schema, the keys of a
// map sorted, after them those of embedded objects, then duplicates; at most 100
// are returned.
//
// Metadata is left out: meta.ValidateMetadata knows its rules. In structs that
// come from Go a value that is left out counts as unset, and required means not
// the zero value (for a pointer: not nil).
func (s *Schema) Validate(tree, old map[string]any) []meta.Cause {
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

type validator struct {
	path    path
	causes  []meta.Cause
	objects []meta.Cause // of embedded objects, told next
	repeats []meta.Cause // duplicates, told last
	visited int          // what was looked at, a number twice, to find the branch that fits best
	branch  bool         // of a combination
	preset  bool         // the value is a default of a definition: one of an integer or string may be anything
	effort  *effort      // shared with all branches
}

// Branches look at values once more for each combination that they stand in,
// and matching costs what the text and the steps of the pattern multiply to.
// One object may ask for maxEffort looks in branches, or for as many times
// matchedAtOnce of the latter: a few seconds.
const (
	maxEffort     = 2 << 20
	matchedAtOnce = 64
)

// effort counts what the validation of one object has cost.
type effort struct {
	spent int
	at    string // where it was too much
}

// spend reports whether n more are allowed. Once they are not, nothing more is
// looked at.
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

// found returns the causes; a check that was given up is one.
func (v *validator) found() []meta.Cause {
	causes := slices.Concat(v.causes, v.objects, v.repeats)
	causes = causes[:min(len(causes), maxReported)]
	if v.effort.spent <= maxEffort {
		return causes
	}
	return append(causes[:min(len(causes), maxReported-1)], wording.Effort.Cause(v.effort.at, "", "", false))
}

// faultsOf validates one value by itself; canonical: it is of a Go struct.
func faultsOf(value any, s *Schema, canonical bool) []meta.Cause {
	v := validator{effort: &effort{}}
	v.value(value, nil, s, canonical)
	return v.found()
}

// full reports whether no more causes are looked for.
func (v *validator) full() bool {
	return len(v.causes)+len(v.objects)+len(v.repeats) >= maxReported
}

// breaks adds the cause for a rule that x, the value at the path, breaks.
func (v *validator) breaks(r wording.Rule, x any, limit string, canonical bool) {
	if !v.full() {
		v.causes = append(v.causes, r.Cause(v.path.String(), show(x), limit, canonical))
	}
}

// breaksOwn is breaks for a rule that a Go field may give a reason for.
func (v *validator) breaksOwn(r wording.Rule, x any, limit string, s *Schema, canonical bool) {
	if why := s.reasons[r]; why != "" {
		r, limit = wording.Invalid, why
	}
	v.breaks(r, x, limit, canonical)
}

// value validates one value; old is the value before, nil if there was none. The
// order of the checks is the order in which clients are told.
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
		v.gone(old, s)
		return
	}
	if canonical && !v.branch && !s.rules {
		return
	}
	if old != nil && (!canonical || s.Ratcheting) && meta.Equal(x, old) {
		return // what came to be forbidden may stay where it is
	}
	if s.Immutable && old != nil && !meta.Equal(x, old) {
		v.rules(x, nil, s, canonical)
		v.breaks(wording.Immutable, inOrder(x, s), "", canonical)
		return
	}
	v.rules(x, old, s, canonical)
}

// rules validates what a value is, whether it may change or not.
func (v *validator) rules(x, old any, s *Schema, canonical bool) {
	if s.Unchecked {
		return
	}
	if !v.hasType(x, s) {
		v.typeFault(x, s, canonical)
	}
	if canonical && hasWholeFormat(s) {
		v.whole(x, s)
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

// typeFault says that x has another type than its schema.
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
