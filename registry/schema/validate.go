package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/registry/meta"
)

// Validate returns what is wrong with a conformed and defaulted object: types,
// required fields, enums, ranges, lengths, patterns, duplicates, combinations,
// and what changed although it is immutable. old is the object before, nil on
// create. Causes stand in the order of their fields; at most 100 are returned.
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
	causes := v.found()
	slices.SortStableFunc(causes, func(a, b meta.Cause) int {
		return strings.Compare(strings.TrimSuffix(a.Field, asWhole), strings.TrimSuffix(b.Field, asWhole))
	})
	for i := range causes {
		if strings.HasSuffix(causes[i].Field, asWhole) {
			causes[i].Field = noField
		}
	}
	return causes
}

// objectMeta is the Go type of the standard metadata.
var objectMeta = reflect.TypeFor[meta.ObjectMeta]()

type validator struct {
	path    path
	causes  []meta.Cause
	visited int     // values looked at, to find the branch that fits best
	branch  bool    // of a combination
	effort  *effort // shared with all branches
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
	causes := v.causes[:min(len(v.causes), maxReported)]
	if v.effort.spent <= maxEffort {
		return causes
	}
	return append(causes[:min(len(causes), maxReported-1)], meta.Cause{Reason: meta.CauseInvalid, Field: v.effort.at,
		Message: "Invalid value: checking the object against its schema takes too long"})
}

// faultsOf validates one value by itself.
func faultsOf(value any, s *Schema) []meta.Cause {
	v := validator{effort: &effort{}}
	v.value(value, nil, s, s.Struct.Canonical())
	return v.found()
}

func (v *validator) cause(reason meta.CauseReason, format string, args ...any) {
	v.causeAt(v.path.String(), reason, format, args...)
}

// asWhole ends the field of causes that clients know without one, and noField is
// what they know instead.
const (
	asWhole = "\x00"
	noField = "<nil>"
)

// whole is the cause for a value that fails as a whole: it is named in the
// message alone.
func (v *validator) whole(format string, args ...any) {
	at := v.path.String()
	v.causeAt(at+asWhole, meta.CauseInvalid, "%s: %s", at, fmt.Sprintf(format, args...))
}

func (v *validator) causeAt(field string, reason meta.CauseReason, format string, args ...any) {
	if len(v.causes) < maxReported {
		v.causes = append(v.causes, meta.Cause{Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

// value validates one value; old is the value before, nil if there was none.
func (v *validator) value(x, old any, s *Schema, canonical bool) {
	v.visited++
	if len(v.causes) >= maxReported || v.branch && !v.spend(1) {
		return
	}
	if s.Struct != nil {
		canonical = s.Struct.Canonical()
	}
	if x == nil && (canonical || s.Nullable) {
		if len(s.Enum) > 0 && !canonical {
			v.enum(x, s)
		}
		return
	}
	if old != nil && !canonical && meta.Equal(x, old) {
		return // what a definition came to forbid may stay where it is
	}
	if s.Immutable && old != nil && !meta.Equal(x, old) {
		v.cause(meta.CauseInvalid, "Invalid value: %s: field is immutable", show(x))
	}
	if fits := v.hasType(x, s); !fits {
		v.cause(meta.CauseTypeInvalid, "Invalid value: %s: must be of type %s", show(x), typeName(s))
		if _, fraction := x.(float64); fraction && s.Type == Integer && !canonical {
			v.whole("Invalid value: %s: must be an integer", show(x))
		}
		if len(s.Enum) > 0 {
			v.enum(x, s)
		}
		return
	}
	if len(s.Enum) > 0 {
		v.enum(x, s)
	}
	switch x := x.(type) {
	case string:
		v.text(x, s)
	case int64:
		v.number(float64(x), x, s)
	case float64:
		v.number(x, x, s)
	case []any:
		v.list(x, old, s, canonical)
	case map[string]any:
		v.object(x, old, s, canonical)
	}
	v.combinations(x, s, canonical)
}

// hasType reports whether a value has the schema's JSON type.
func (v *validator) hasType(x any, s *Schema) bool {
	if s.IntOrString {
		switch x := x.(type) {
		case int64, string:
			return true
		case float64:
			return isInteger(x)
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
		return whole || ok && isInteger(f)
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

func (v *validator) enum(x any, s *Schema) {
	for _, e := range s.Enum {
		if meta.Equal(e, x) {
			return
		}
	}
	words := make([]string, len(s.Enum))
	for i, e := range s.Enum {
		words[i] = show(e)
	}
	v.cause(meta.CauseNotSupported, "Unsupported value: %s: supported values: %s", show(x), strings.Join(words, ", "))
}

func (v *validator) object(m map[string]any, old any, s *Schema, canonical bool) {
	before, _ := old.(map[string]any)
	if s.MinProperties != nil && int64(len(m)) < *s.MinProperties {
		v.cause(meta.CauseInvalid, "Invalid value: %d: must have at least %d entries", len(m), *s.MinProperties)
	}
	if s.MaxProperties != nil && int64(len(m)) > *s.MaxProperties {
		v.cause(meta.CauseTooMany, "Too many: %d: must have at most %d entries", len(m), *s.MaxProperties)
	}
	if s.Struct != nil {
		v.structure(m, before, s, canonical)
	}
	if s.Embedded {
		v.embedded(m)
	}
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			v.causeAt(v.path.to(name), meta.CauseRequired, "Required value")
		}
	}
	if s.Values == nil {
		return
	}
	for k, e := range m {
		if s.Struct.Field(k) != nil {
			continue
		}
		v.path.field(k)
		v.value(e, before[k], s.Values, canonical)
		v.path.pop()
	}
}

// embedded checks that a value that is a whole object says what it is.
func (v *validator) embedded(m map[string]any) {
	for _, name := range []string{"apiVersion", "kind"} {
		if text, ok := m[name].(string); m[name] == nil || ok && text == "" {
			v.causeAt(v.path.to(name), meta.CauseRequired, "Required value: must not be empty")
		} else if ok && !namesKind(name, text) {
			v.causeAt(v.path.to(name), meta.CauseInvalid, "Invalid value: %s: is no %s", show(text), name)
		}
	}
}

// namesKind reports whether text has the form of an apiVersion or a kind.
func namesKind(field, text string) bool {
	if field == "kind" {
		return len(meta.CheckDNS1035Label(strings.ToLower(text))) == 0
	}
	return strings.Count(text, "/") <= 1
}

func (v *validator) structure(m, before map[string]any, s *Schema, canonical bool) {
	for _, f := range s.Struct.Fields {
		e, ok := m[f.Name]
		if f.Required && (!ok || canonical && f.unset(e)) {
			v.causeAt(v.path.to(f.Name), meta.CauseRequired, "Required value")
			continue
		}
		if !ok {
			if f.Schema.Immutable && before[f.Name] != nil {
				v.causeAt(v.path.to(f.Name), meta.CauseInvalid, "Invalid value: null: field is immutable")
			}
			continue
		}
		if st := f.Schema.Struct; st != nil && st.Go == objectMeta {
			continue // meta.ValidateMetadata has rules of its own
		}
		v.path.field(f.Name)
		v.value(e, before[f.Name], f.Schema, canonical)
		v.path.pop()
	}
}

// unset reports whether a required field of a Go struct was not given.
func (f *Field) unset(x any) bool {
	if x == nil {
		return true
	}
	if f.Pointer || f.Schema.Type == Boolean || f.Schema.Struct != nil || f.Schema.Wire != Plain {
		return false
	}
	return f.Schema.isZero(x)
}

func (v *validator) list(l []any, old any, s *Schema, canonical bool) {
	if s.MinItems != nil && int64(len(l)) < *s.MinItems {
		v.cause(meta.CauseInvalid, "Invalid value: %d: must have at least %d items", len(l), *s.MinItems)
	}
	if s.MaxItems != nil && int64(len(l)) > *s.MaxItems {
		v.cause(meta.CauseTooMany, "Too many: %d: must have at most %d items", len(l), *s.MaxItems)
	}
	v.duplicates(l, s)
	if s.Items == nil {
		return
	}
	before := oldItems(old, s)
	for i, e := range l {
		var was any
		if before != nil {
			was = before[itemKey(e, s)]
		}
		v.path.item(i)
		v.value(e, was, s.Items, canonical)
		v.path.pop()
	}
}

// oldItems finds the items of a map list by their keys, where something in them
// is compared with what was before; other lists have no items that could be
// told apart.
func oldItems(old any, s *Schema) map[string]any {
	l, _ := old.([]any)
	if len(l) == 0 || !s.isMapList() || !s.Items.fixed && s.Items.Struct.Canonical() {
		return nil
	}
	m := make(map[string]any, len(l))
	for _, e := range l {
		m[itemKey(e, s)] = e
	}
	return m
}

func (s *Schema) isMapList() bool { return s.ListType == "map" && len(s.ListKeys) > 0 }

// itemKey returns the identity of an item of a map list.
func itemKey(e any, s *Schema) string {
	m, _ := e.(map[string]any)
	if len(s.ListKeys) == 1 {
		return identity(m[s.ListKeys[0]])
	}
	var b strings.Builder
	for _, k := range s.ListKeys {
		b.WriteString(identity(m[k]))
		b.WriteByte(0)
	}
	return b.String()
}

// identity returns a text that is the same for equal values only.
func identity(x any) string {
	switch v := x.(type) {
	case string:
		return v
	case int64:
		return "\x01" + strconv.FormatInt(v, 10)
	case float64:
		if isInteger(v) && math.Abs(v) < 1<<53 {
			return "\x01" + strconv.FormatInt(int64(v), 10)
		}
	}
	b, err := json.Marshal(x)
	if err != nil {
		return ""
	}
	return "\x02" + string(b)
}

func (v *validator) duplicates(l []any, s *Schema) {
	set := s.ListType == "set" || s.UniqueItems
	if len(l) < 2 || !set && !s.isMapList() {
		return
	}
	seen := make(map[string]bool, len(l))
	for i, e := range l {
		var key string
		switch _, item := e.(map[string]any); {
		case set:
			key = identity(e)
		case item:
			key = itemKey(e, s)
		default:
			continue
		}
		if seen[key] {
			v.path.item(i)
			v.cause(meta.CauseDuplicate, "Duplicate value: %s", show(e))
			v.path.pop()
		}
		seen[key] = true
	}
}

// combinations checks allOf, anyOf, oneOf and not.
func (v *validator) combinations(x any, s *Schema, canonical bool) {
	if len(s.AllOf) > 0 {
		failed := 0
		for _, e := range s.AllOf {
			if causes, _ := v.try(x, e, canonical); len(causes) > 0 {
				failed++
				v.causes = append(v.causes, causes...)
			}
		}
		if failed > 0 {
			v.whole("Invalid value: %s: must fit all the schemas of allOf", show(x))
		}
	}
	if len(s.AnyOf) > 0 {
		if n, best := v.matches(x, s.AnyOf, canonical, true); n == 0 {
			v.whole("Invalid value: %s: must fit at least one schema of anyOf", show(x))
			v.causes = append(v.causes, best...)
		}
	}
	if len(s.OneOf) > 0 {
		n, best := v.matches(x, s.OneOf, canonical, false)
		if n != 1 {
			v.whole("Invalid value: %s: must fit exactly one schema of oneOf, fits %d", show(x), n)
		}
		if n == 0 {
			v.causes = append(v.causes, best...)
		}
	}
	if s.Not != nil {
		if causes, _ := v.try(x, s.Not, canonical); len(causes) == 0 {
			v.whole("Invalid value: %s: must not fit the schema of not", show(x))
		}
	}
}

// matches counts the branches that x fits and returns the causes of the branch
// that looked furthest into x.
func (v *validator) matches(x any, branches []*Schema, canonical, stop bool) (n int, best []meta.Cause) {
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

// try validates x by a branch, apart from the causes found so far.
func (v *validator) try(x any, s *Schema, canonical bool) ([]meta.Cause, int) {
	branch := validator{path: slices.Clone(v.path), branch: true, effort: v.effort}
	branch.value(x, nil, s, canonical)
	return branch.causes, branch.visited
}
