package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// The words for Schema.Unique.
const (
	UniqueInNamespace = "namespace"
	UniqueInCluster   = "cluster"
)

// UniqueValue is a value that no two objects of a kind may hold.
type UniqueValue struct {
	Field string // which one it is of the kind's unique fields
	Scope string // UniqueInNamespace or UniqueInCluster
	Text  string // the same for equal values only, and never long
	cause meta.Cause
}

// Duplicate returns the cause for a value that another object holds.
func (v UniqueValue) Duplicate() meta.Cause { return v.cause }

// HasUnique reports whether objects can have unique values.
func (s *Schema) HasUnique() bool { return len(s.marked().unique) > 0 }

// UniqueValues returns the unique values that an object holds, in the order of the
// fields. What is left out, empty or zero is held by nobody, except a zero or a
// false that a pointer points to.
func (s *Schema) UniqueValues(tree map[string]any) []UniqueValue {
	if !s.HasUnique() {
		return nil
	}
	var values []UniqueValue
	var room [16]step
	unique := s.marked().unique
	for i := range unique {
		w := uniqueWalk{field: &unique[i], path: room[:0], values: values}
		w.value(tree, w.field.way)
		values = w.values
	}
	return values
}

// markedField is a field that is unique or has a gate, and the way to its values from the
// object.
type markedField struct {
	name    string
	schema  *Schema
	pointer bool // a zero is a value
	way     []wayStep
}

// wayStep goes to a field, or to each of what a list or a map holds.
type wayStep struct {
	name     string // of the field; else empty
	list     bool
	optional bool // the field is a struct that may be absent
}

// marked are the unique fields of a whole object, and those with gates.
type marked struct{ unique, gated []markedField }

// marked returns the marked fields, none if there are none.
func (s *Schema) marked() *marked {
	if s == nil || s.Struct == nil || s.Struct.marked == nil {
		return &marked{}
	}
	return s.Struct.marked
}

// markedFields finds the marked fields of a schema.
type markedFields struct {
	on  []*Struct // the structs on the way
	way []wayStep
	marked
}

// findMarked notes the unique fields, and those with gates. Those of a struct that holds
// itself are any number of fields, which is an error.
func (s *Schema) findMarked() error {
	var u markedFields
	err := u.find(s, false)
	if len(u.unique)+len(u.gated) > 0 {
		s.Struct.marked = &u.marked
	}
	return err
}

func (u *markedFields) find(s *Schema, pointer bool) error {
	if s == nil {
		return nil
	}
	if s.Unique != "" {
		u.unique = append(u.unique, markedField{u.path(), s, pointer, slices.Clone(u.way)})
	}
	if s.Gate != "" {
		u.gated = append(u.gated, markedField{u.path(), s, pointer, slices.Clone(u.way)})
	}
	if err := u.through(wayStep{list: true}, s.Items, false); err != nil {
		return err
	}
	if err := u.through(wayStep{}, s.Values, false); err != nil {
		return err
	}
	if s.Struct == nil || !leadsTo(&Schema{Struct: s.Struct}, isMarked, map[*Struct]bool{}) {
		return nil
	}
	if slices.Contains(u.on, s.Struct) {
		return &FieldError{s.Struct.Go, "", fmt.Errorf("%s: a struct that holds itself cannot have unique fields, or some with gates", u.path())}
	}
	u.on = append(u.on, s.Struct)
	defer func() { u.on = u.on[:len(u.on)-1] }()
	for _, f := range s.Struct.Fields {
		if err := u.through(wayStep{name: f.Name, optional: f.Pointer && f.Schema.Struct != nil}, f.Schema, f.Pointer); err != nil {
			return err
		}
	}
	return nil
}

func (u *markedFields) through(step wayStep, s *Schema, pointer bool) error {
	u.way = append(u.way, step)
	defer func() { u.way = u.way[:len(u.way)-1] }()
	return u.find(s, pointer)
}

// path is the way as a text.
func (u *markedFields) path() (text string) {
	for _, step := range u.way {
		switch {
		case step.list:
			text += "[]"
		case step.name == "":
			text += "[*]"
		default:
			text = join(text, step.name)
		}
	}
	return text
}

func isMarked(s *Schema) bool { return s.Unique != "" || s.Gate != "" }

// leadsTo looks for a value that is like this in what was not seen yet.
func leadsTo(s *Schema, like func(*Schema) bool, seen map[*Struct]bool) bool {
	if s == nil {
		return false
	}
	if like(s) || leadsTo(s.Items, like, seen) || leadsTo(s.Values, like, seen) {
		return true
	}
	if s.Struct == nil || seen[s.Struct] {
		return false
	}
	seen[s.Struct] = true
	return slices.ContainsFunc(s.Struct.Fields, func(f *Field) bool { return leadsTo(f.Schema, like, seen) })
}

// uniqueWalk finds the values of one field.
type uniqueWalk struct {
	field  *markedField
	path   path
	values []UniqueValue
}

func (w *uniqueWalk) value(x any, way []wayStep) {
	if len(way) == 0 {
		w.hold(x)
		return
	}
	next := way[0]
	switch x := x.(type) {
	case []any:
		if !next.list {
			return
		}
		for i, e := range x {
			w.path.item(i)
			w.value(e, way[1:])
			w.path.pop()
		}
	case map[string]any:
		keys := []string{next.name}
		if next.list {
			return
		}
		if next.name == "" {
			keys = slices.Sorted(maps.Keys(x))
		}
		for _, k := range keys {
			w.path.field(k)
			w.value(x[k], way[1:])
			w.path.pop()
		}
	}
}

func (w *uniqueWalk) hold(x any) {
	switch x := x.(type) {
	case string:
		if x == "" {
			return
		}
	case int64, float64, bool:
		if !w.field.pointer && (x == int64(0) || x == float64(0) || x == false) {
			return
		}
	default:
		return
	}
	w.values = append(w.values, UniqueValue{
		Field: w.field.name, Scope: w.field.schema.Unique, Text: uniqueText(x),
		cause: wording.Duplicate.Cause(w.path.String(), show(x), "", true),
	})
}

// uniqueText returns a text for a value: texts as they are, or by their hash if
// they are long, apart from numbers that look the same.
func uniqueText(x any) string {
	const long = 128
	text, ok := x.(string)
	switch {
	case !ok:
		return ":" + identity(x)
	case len(text) > long:
		sum := sha256.Sum256([]byte(text))
		return "#" + hex.EncodeToString(sum[:])
	}
	return "=" + text
}
