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

// Values of Schema.Unique.
const (
	UniqueInNamespace = "namespace"
	UniqueInCluster   = "cluster"
)

// UniqueValue is a value of an object that no other object of the kind may have.
type UniqueValue struct {
	Field string // path of the unique field in the schema
	Scope string // UniqueInNamespace or UniqueInCluster
	Text  string // equal for equal values only; of limited length
	cause meta.StatusCause
}

// Duplicate returns the cause to report if another object has the value.
func (v UniqueValue) Duplicate() meta.StatusCause { return v.cause }

// HasUnique reports whether the schema has unique fields.
func (s *Schema) HasUnique() bool { return len(s.marked().unique) > 0 }

// UniqueValues returns the unique values of an object, in field order. Absent, empty and zero
// values are skipped, except the zero value of a pointer.
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

// markedField is a field that is unique or has a gate.
type markedField struct {
	name    string // path of the field in the schema
	schema  *Schema
	pointer bool      // zero counts as a value
	way     []wayStep // field path from the object
}

// wayStep is a step of a field path: to a field, to all items of a list, or to all values of a
// map.
type wayStep struct {
	name     string // name of the field; empty for items and values
	list     bool
	optional bool // the field is a pointer to a struct
}

// marked has the unique and the gated fields of a whole object.
type marked struct{ unique, gated []markedField }

// marked returns the unique and gated fields of s; the result is not nil.
func (s *Schema) marked() *marked {
	if s == nil || s.Struct == nil || s.Struct.marked == nil {
		return &marked{}
	}
	return s.Struct.marked
}

// markedFields finds the unique and gated fields of a schema.
type markedFields struct {
	on  []*Struct // structs on the path to the current schema
	way []wayStep
	marked
}

// findMarked sets the marked fields of s. A recursive struct with such a field has no finite
// list of field paths, which is an error.
func (s *Schema) findMarked() error {
	var u markedFields
	err := u.collect(s, false)
	if len(u.unique)+len(u.gated) > 0 {
		s.Struct.marked = &u.marked
	}
	return err
}

func (u *markedFields) collect(s *Schema, pointer bool) error {
	if s == nil {
		return nil
	}
	if s.Unique != "" {
		u.unique = append(u.unique, markedField{u.path(), s, pointer, slices.Clone(u.way)})
	}
	if s.Gate != "" {
		u.gated = append(u.gated, markedField{u.path(), s, pointer, slices.Clone(u.way)})
	}
	if err := u.descend(wayStep{list: true}, s.Items, false); err != nil {
		return err
	}
	if err := u.descend(wayStep{}, s.Values, false); err != nil {
		return err
	}
	if s.Struct == nil || !leadsTo(&Schema{Struct: s.Struct}, isMarked, map[*Struct]bool{}) {
		return nil
	}
	if slices.Contains(u.on, s.Struct) {
		return &FieldError{s.Struct.Go, "", fmt.Errorf("%s: a recursive struct cannot have unique or gated fields", u.path())}
	}
	u.on = append(u.on, s.Struct)
	defer func() { u.on = u.on[:len(u.on)-1] }()
	for _, f := range s.Struct.Fields {
		if err := u.descend(wayStep{name: f.Name, optional: f.Pointer && f.Schema.Struct != nil}, f.Schema, f.Pointer); err != nil {
			return err
		}
	}
	return nil
}

func (u *markedFields) descend(step wayStep, s *Schema, pointer bool) error {
	u.way = append(u.way, step)
	defer func() { u.way = u.way[:len(u.way)-1] }()
	return u.collect(s, pointer)
}

// path returns the current field path as text.
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

// leadsTo reports whether like returns true for s or a schema below it. It skips structs in
// seen and adds those that it visits.
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

// uniqueWalk collects the values of one unique field.
type uniqueWalk struct {
	field  *markedField
	path   path
	values []UniqueValue
}

func (w *uniqueWalk) value(x any, way []wayStep) {
	if len(way) == 0 {
		w.addValue(x)
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

func (w *uniqueWalk) addValue(x any) {
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

// uniqueText returns the text that identifies a value. Strings have other prefixes than numbers
// and booleans; long strings are hashed.
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
