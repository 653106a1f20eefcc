package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/registry/meta"
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

// Nulls returns a cause for each null of an applied object of a custom kind that
// is no value of its field: it is not nullable and has no default. Elsewhere such
// nulls are dropped; who applies one wants to own it.
func (s *Schema) Nulls(tree map[string]any) []meta.Cause {
	if s == nil || s.Struct.Canonical() {
		return nil
	}
	v := validator{effort: &effort{}}
	for _, f := range s.fields() {
		if e := tree[f.Name]; e != nil { // a field of the object itself counts as left out
			v.path.field(f.Name)
			v.nulls(e, f.Schema)
			v.path.pop()
		}
	}
	return v.found()
}

func (s *Schema) fields() []*Field {
	if s.Struct == nil {
		return nil
	}
	return s.Struct.Fields
}

func (v *validator) nulls(x any, s *Schema) {
	switch x := x.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			next := s.Values
			if f := s.Struct.Field(k); f != nil {
				next = f.Schema
			}
			if next == nil {
				continue
			}
			v.path.field(k)
			switch e := x[k]; {
			case e != nil:
				v.nulls(e, next)
			case next.Default == nil && !next.Nullable && (next.Type != Any || next.IntOrString):
				v.typeFault(nil, next, false)
			}
			v.path.pop()
		}
	case []any:
		for i, e := range x {
			if s.Items != nil && e != nil {
				v.path.item(i)
				v.nulls(e, s.Items)
				v.path.pop()
			}
		}
	}
}

// objectMeta is the Go type of the standard metadata.
var objectMeta = reflect.TypeFor[meta.ObjectMeta]()

type validator struct {
	path    path
	causes  []meta.Cause
	objects []meta.Cause // of embedded objects, told next
	repeats []meta.Cause // duplicates, told last
	visited int          // values looked at, to find the branch that fits best
	branch  bool         // of a combination
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
	return append(causes[:min(len(causes), maxReported-1)], ruleEffort.cause(v.effort.at, "", "", false))
}

// faultsOf validates one value by itself.
func faultsOf(value any, s *Schema) []meta.Cause {
	v := validator{effort: &effort{}}
	v.value(value, nil, s, s.Struct.Canonical())
	return v.found()
}

// full reports whether no more causes are looked for.
func (v *validator) full() bool {
	return len(v.causes)+len(v.objects)+len(v.repeats) >= maxReported
}

// breaks adds the cause for a rule that x, the value at the path, breaks.
func (v *validator) breaks(r rule, x any, limit string, canonical bool) {
	if !v.full() {
		v.causes = append(v.causes, r.cause(v.path.String(), show(x), limit, canonical))
	}
}

// missing adds the cause for a required field.
func (v *validator) missing(name string) {
	if !v.full() {
		v.causes = append(v.causes, ruleRequired.cause(v.path.to(name), "", "", false))
	}
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
		return
	}
	if canonical && !v.branch && !s.rules {
		return
	}
	if old != nil && !canonical && meta.Equal(x, old) {
		return // what a definition came to forbid may stay where it is
	}
	if s.Immutable && old != nil && !meta.Equal(x, old) {
		v.breaks(ruleImmutable, inOrder(x, s), "", canonical)
		return
	}
	if s.Unchecked {
		return
	}
	if !v.hasType(x, s) {
		v.typeFault(x, s, canonical)
	}
	v.combinations(x, s, canonical)
	switch x := x.(type) {
	case string:
		v.text(x, s, canonical)
	case int64:
		v.number(float64(x), x, s, canonical)
	case float64:
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
	v.causes = append(v.causes, ruleType.cause(v.path.String(), got, want, canonical))
}

// hasType reports whether a value has the schema's JSON type.
func (v *validator) hasType(x any, s *Schema) bool {
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

func (v *validator) enum(x any, s *Schema, canonical bool) {
	for _, e := range s.Enum {
		if meta.Equal(e, x) {
			return
		}
	}
	if v.full() {
		return
	}
	var words strings.Builder
	for i, e := range s.Enum {
		if i > 0 {
			words.WriteString(", ")
		}
		if words.Len() > 4*maxShown {
			words.WriteString("...")
			break
		}
		word := show(e)
		if _, text := e.(string); !text && !canonical {
			word = strconv.Quote(word)
		}
		words.WriteString(word)
	}
	v.breaks(ruleEnum, x, words.String(), canonical)
}

func (v *validator) object(m map[string]any, old any, s *Schema, canonical bool) {
	before, _ := old.(map[string]any)
	if s.MinProperties != nil && int64(len(m)) < *s.MinProperties {
		v.breaks(ruleMinProperties, int64(len(m)), decimal(*s.MinProperties), canonical)
	}
	if s.MaxProperties != nil && int64(len(m)) > *s.MaxProperties {
		v.breaks(ruleMaxProperties, int64(len(m)), decimal(*s.MaxProperties), canonical)
	}
	if s.KeyFormat != "" {
		v.keys(m, s)
	}
	if s.Values != nil {
		v.entries(m, before, s, canonical)
	}
	if s.Struct != nil {
		v.structure(m, before, s, canonical)
	}
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			v.missing(name)
		}
	}
	if s.Embedded {
		v.embedded(m)
	}
}

// keys checks the form of the keys of a map.
func (v *validator) keys(m map[string]any, s *Schema) {
	reasons := fieldFormat(s.KeyFormat)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		for _, why := range reasons(k) {
			if v.full() {
				return
			}
			at := meta.CutPath(fmt.Appendf(nil, "%s[%s]", v.path, k))
			v.causes = append(v.causes, ruleWritten.cause(at, show(k), why, true))
		}
	}
}

// entries validates the values of a map.
func (v *validator) entries(m, before map[string]any, s *Schema, canonical bool) {
	type faulty struct {
		key    string
		causes []meta.Cause
	}
	var found []faulty
	from := len(v.causes)
	for k, e := range m {
		if s.Struct.Field(k) != nil {
			continue
		}
		at := len(v.causes)
		v.path.field(k)
		v.value(e, before[k], s.Values, canonical)
		v.path.pop()
		if len(v.causes) > at {
			found = append(found, faulty{k, slices.Clone(v.causes[at:])})
		}
	}
	if len(found) < 2 {
		return
	}
	slices.SortFunc(found, func(a, b faulty) int { return strings.Compare(a.key, b.key) })
	v.causes = v.causes[:from]
	for _, f := range found {
		v.causes = append(v.causes, f.causes...)
	}
}

func (v *validator) structure(m, before map[string]any, s *Schema, canonical bool) {
	for _, f := range s.Struct.Fields {
		e, ok := m[f.Name]
		if canonical && f.Required && (!ok || f.unset(e)) {
			v.missing(f.Name)
			continue
		}
		if !ok && (!f.Schema.Immutable || before[f.Name] == nil) {
			continue
		}
		if st := f.Schema.Struct; st != nil && st.Go == objectMeta {
			continue // meta.ValidateMetadata has rules of its own
		}
		v.path.field(f.Name)
		if ok {
			v.value(e, before[f.Name], f.Schema, canonical)
		} else {
			v.breaks(ruleImmutable, nil, "", canonical)
		}
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
	v.duplicates(l, s)
	if s.Items != nil {
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
	if s.MinItems != nil && int64(len(l)) < *s.MinItems {
		v.breaks(ruleMinItems, int64(len(l)), decimal(*s.MinItems), canonical)
	}
	if s.MaxItems != nil && int64(len(l)) > *s.MaxItems {
		v.breaks(ruleMaxItems, int64(len(l)), decimal(*s.MaxItems), canonical)
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

// duplicates looks for items of a set that are equal and items of a map list
// with equal keys. Each value is told once, where it first stands again.
func (v *validator) duplicates(l []any, s *Schema) {
	set := s.ListType == "set" && !s.Repeats || s.UniqueItems
	if len(l) == 0 || s.Repeats && !set || !set && (!s.isMapList() || s.Items == nil) {
		return
	}
	seen := make(map[string]int, len(l))
	for i, e := range l {
		item, object := e.(map[string]any)
		switch {
		case set:
			if key := identity(e); again(seen, key) {
				v.repeat(ruleDuplicate, i, e)
			}
		case object:
			if key := itemKey(e, s); again(seen, key) {
				v.repeat(ruleDuplicate, i, keysOf(item, s))
			}
		default:
			v.repeat(ruleMapItem, i, e)
			return
		}
	}
}

// again counts a key and reports whether it is there for the second time.
func again(seen map[string]int, key string) bool {
	seen[key]++
	return seen[key] == 2
}

func (v *validator) repeat(r rule, i int, x any) {
	if v.full() {
		return
	}
	v.path.item(i)
	v.repeats = append(v.repeats, r.cause(v.path.String(), show(x), "", false))
	v.path.pop()
}

// keysOf returns the part of an item that tells it apart in a map list.
func keysOf(item map[string]any, s *Schema) map[string]any {
	key := map[string]any{}
	for _, k := range s.ListKeys {
		if x, ok := item[k]; ok {
			key[k] = x
		}
	}
	return key
}

// combinations checks anyOf, oneOf, allOf and not.
func (v *validator) combinations(x any, s *Schema, canonical bool) {
	if len(s.AnyOf) > 0 {
		if n, best := v.matches(x, s.AnyOf, canonical, true); n == 0 {
			v.breaks(ruleAnyOf, nil, "", canonical)
			v.causes = append(v.causes, best...)
		}
	}
	if len(s.OneOf) > 0 {
		switch n, best := v.matches(x, s.OneOf, canonical, false); n {
		case 0:
			v.breaks(ruleOneOf, nil, "Found none valid", canonical)
			v.causes = append(v.causes, best...)
		case 1:
		default:
			v.breaks(ruleOneOf, nil, fmt.Sprintf("Found %d valid alternatives", n), canonical)
		}
	}
	v.allOf(x, s, canonical)
	if s.Not != nil {
		if causes, _ := v.try(x, s.Not, canonical); len(causes) == 0 {
			v.breaks(ruleNot, nil, "", canonical)
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
		v.breaks(ruleAllOf, nil, ". None validated", canonical)
	default:
		v.breaks(ruleAllOf, nil, "", canonical)
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
	return slices.Concat(branch.causes, branch.repeats), branch.visited
}
