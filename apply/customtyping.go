package apply

import (
	"fmt"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"orch.io/controlplane/api/schema"
)

// customKey identifies a named type of a custom kind.
type customKey struct {
	s        *schema.Schema
	preserve bool
}

// custom returns the type of the values that s, part of the schema of a custom kind,
// describes. If preserve is set, the values preserve unknown fields because a value around
// them does: that holds for all levels below it, although the same fields are pruned when
// the object is stored.
func (c *compiler) custom(s *schema.Schema, preserve bool) smd.TypeRef {
	if s == nil {
		return named(typeDeduced)
	}
	preserve = preserve || s.Preserve
	switch s.Type {
	case schema.Any:
		if s.Struct == nil && s.Values == nil && s.Items == nil && !s.Embedded && s.ListType == "" && s.MapType != "atomic" {
			return named(typeDeduced)
		}
	case schema.Object:
	case schema.Array:
		return smd.TypeRef{Inlined: smd.Atom{List: c.customList(s, preserve)}}
	case schema.Integer, schema.Number:
		return scalarRef(smd.Numeric)
	case schema.Boolean:
		return scalarRef(smd.Boolean)
	case schema.String:
		if s.Format != "" && s.Format != "byte" {
			return scalarRef(smd.Untyped)
		}
		return scalarRef(smd.String)
	}
	key := customKey{s, preserve}
	name, done := c.customs[key]
	if !done {
		name = fmt.Sprintf("custom%d", len(c.customs))
		c.customs[key] = name
		atom := smd.Atom{Map: c.customMap(s, preserve, s.Embedded)}
		if s.Type == schema.Any {
			untyped := smd.Untyped
			atom.Scalar, atom.List = &untyped, c.customList(s, preserve)
		}
		c.types = append(c.types, smd.TypeDef{Name: name, Atom: atom})
	}
	return named(name)
}

// customMap returns the fields of an object; whole adds what every API object has.
func (c *compiler) customMap(s *schema.Schema, preserve, whole bool) *smd.Map {
	m := &smd.Map{ElementRelationship: smd.Separable}
	if s.MapType == "atomic" {
		m.ElementRelationship = smd.Atomic
	}
	switch {
	case s.Values == nil:
		m.ElementType = c.others(preserve || s.Struct == nil && !whole)
	case s.Values.Forbidden:
		m.ElementType = c.others(false)
	default:
		m.ElementType = c.custom(s.Values, preserve)
	}
	if whole {
		m.Fields = wholeFields()
	}
	if s.Struct == nil {
		return m
	}
	for _, f := range s.Struct.Fields {
		if whole && (f.Name == "apiVersion" || f.Name == "kind" || f.Name == "metadata") {
			continue
		}
		m.Fields = append(m.Fields, smd.StructField{Name: f.Name, Type: c.custom(f.Schema, preserve), Default: keyDefault(f)})
	}
	return m
}

func (c *compiler) customList(s *schema.Schema, preserve bool) *smd.List {
	items := named(typeAtomic)
	if s.Items != nil {
		items = c.custom(s.Items, preserve)
	}
	return declaredList(s, items)
}
