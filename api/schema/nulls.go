package schema

import (
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
)

// Nulls returns a cause for each null of an object of a custom kind, as an apply made it,
// that is no value of its field: the field is not nullable and has no default. Elsewhere
// such nulls are dropped; here the applier wants to own them.
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
