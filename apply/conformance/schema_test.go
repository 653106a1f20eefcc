package conformance

import (
	"reflect"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"orch.io/controlplane/api/schema"
)

// fromTypes builds our schema from the type definitions that their clients
// carry, so that both sides start from the same list types and keys.
type fromTypes struct {
	all  *smd.Schema
	done map[string]*schema.Schema
}

func (f *fromTypes) ref(tr smd.TypeRef) *schema.Schema {
	var s *schema.Schema
	if tr.NamedType == nil {
		s = &schema.Schema{}
		f.fill(s, tr.Inlined)
	} else if s = f.done[*tr.NamedType]; s == nil {
		s = &schema.Schema{}
		f.done[*tr.NamedType] = s
		if def, ok := f.all.FindNamedType(*tr.NamedType); ok && !strings.HasPrefix(*tr.NamedType, "__") {
			f.fill(s, def.Atom)
		}
	}
	if tr.ElementRelationship != nil && *tr.ElementRelationship == smd.Atomic {
		c := *s
		c.MapType, c.ListType = "atomic", "atomic"
		return &c
	}
	return s
}

func (f *fromTypes) fill(s *schema.Schema, a smd.Atom) {
	switch {
	case a.Map != nil && a.Scalar == nil:
		s.Type = schema.Object
		if a.Map.ElementRelationship == smd.Atomic {
			s.MapType = "atomic"
		}
		if a.Map.Fields != nil {
			s.Struct = &schema.Struct{}
		}
		for _, field := range a.Map.Fields {
			t := *f.ref(field.Type)
			t.Default = integer(field.Default)
			s.Struct.Add(&schema.Field{Name: field.Name, Schema: &t})
		}
		if (a.Map.ElementType != smd.TypeRef{}) && a.Map.Fields == nil {
			s.Values = f.ref(a.Map.ElementType)
		}
	case a.List != nil && a.Scalar == nil:
		s.Type, s.Items, s.ListType = schema.Array, f.ref(a.List.ElementType), "atomic"
		if a.List.ElementRelationship == smd.Associative {
			s.ListType, s.ListKeys = "set", a.List.Keys
			if s.ListKeys != nil {
				s.ListType = "map"
			}
		}
	case a.Scalar != nil:
		s.Type = map[smd.Scalar]schema.Type{smd.Numeric: schema.Number, smd.String: schema.String, smd.Boolean: schema.Boolean}[*a.Scalar]
		if *a.Scalar == smd.Untyped {
			s.IntOrString = true
		}
	}
}

func integer(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case float64:
		return int64(n)
	}
	return v
}

// fromTags builds our schema from the patch tags of their Go types.
type fromTags map[reflect.Type]*schema.Struct

func (f fromTags) of(t reflect.Type) *schema.Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Implements(reflect.TypeFor[interface{ OpenAPISchemaFormat() string }]()) {
		return &schema.Schema{Type: schema.String}
	}
	switch t.Kind() {
	case reflect.String:
		return &schema.Schema{Type: schema.String}
	case reflect.Bool:
		return &schema.Schema{Type: schema.Boolean}
	case reflect.Int32, reflect.Int64, reflect.Int:
		return &schema.Schema{Type: schema.Integer}
	case reflect.Map:
		return &schema.Schema{Type: schema.Object, Values: f.of(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &schema.Schema{Type: schema.String}
		}
		return &schema.Schema{Type: schema.Array, Items: f.of(t.Elem())}
	case reflect.Struct:
		return &schema.Schema{Type: schema.Object, Struct: f.structOf(t)}
	}
	return &schema.Schema{}
}

func (f fromTags) structOf(t reflect.Type) *schema.Struct {
	if s := f[t]; s != nil {
		return s
	}
	s := &schema.Struct{}
	f[t] = s
	f.add(s, t)
	return s
}

func (f fromTags) add(s *schema.Struct, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			f.add(s, field.Type)
			continue
		}
		if name == "" || name == "-" || !field.IsExported() {
			continue
		}
		c := *f.of(field.Type)
		c.PatchStrategy, c.PatchMergeKey = field.Tag.Get("patchStrategy"), field.Tag.Get("patchMergeKey")
		s.Add(&schema.Field{Name: name, Schema: &c})
	}
}
