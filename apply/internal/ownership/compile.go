package ownership

import (
	"fmt"
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"orch.io/controlplane/api/schema"
)

// The names of the types that every compiled schema has.
const (
	typeRoot    = "root"
	typeMeta    = "metadata"
	typeDeduced = "__untyped_deduced_" // structured-merge-diff knows this name
	typeAtomic  = "__untyped_atomic_"
)

// structKey identifies a named type: a Struct may be used with and without other values.
type structKey struct {
	s        *schema.Struct
	values   *schema.Schema
	preserve bool
}

// compiler translates a schema for structured-merge-diff.
type compiler struct {
	strict  bool // undeclared fields are errors
	types   []smd.TypeDef
	named   map[structKey]string
	customs map[customKey]string
}

func compile(s *schema.Schema, strict bool) typed.ParseableType {
	c := &compiler{strict: strict, named: map[structKey]string{}, customs: map[customKey]string{}}
	c.basicTypes()
	root := c.root(s)
	root.ElementRelationship = smd.Separable
	c.types = append(c.types, smd.TypeDef{Name: typeRoot, Atom: smd.Atom{Map: root}})
	p := typed.Parser{Schema: smd.Schema{Types: c.types}}
	return p.Type(typeRoot)
}

func (c *compiler) root(s *schema.Schema) *smd.Map {
	switch {
	case s == nil:
		return c.customMap(&schema.Schema{Type: schema.Object}, true, true)
	case !s.Struct.Canonical():
		return c.customMap(s, s.Preserve, true)
	}
	m := c.mapOf(s)
	m.Fields = append(objectFields(), slices.DeleteFunc(m.Fields, func(f smd.StructField) bool { return isObjectField(f.Name) })...)
	return m
}

// objectFields returns the fields that every API object has.
func objectFields() []smd.StructField {
	return []smd.StructField{field("apiVersion", scalarRef(smd.String)), field("kind", scalarRef(smd.String)), field("metadata", named(typeMeta))}
}

func isObjectField(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

func named(name string) smd.TypeRef { return smd.TypeRef{NamedType: &name} }

func scalarRef(s smd.Scalar) smd.TypeRef { return smd.TypeRef{Inlined: smd.Atom{Scalar: &s}} }

func field(name string, t smd.TypeRef) smd.StructField { return smd.StructField{Name: name, Type: t} }

// untypedDef defines a type for values without schema: maps have values of the type
// inMaps, lists are atomic.
func untypedDef(name string, inMaps string, rel smd.ElementRelationship) smd.TypeDef {
	untyped := smd.Untyped
	return smd.TypeDef{Name: name, Atom: smd.Atom{
		Scalar: &untyped,
		List:   &smd.List{ElementType: named(typeAtomic), ElementRelationship: smd.Atomic},
		Map:    &smd.Map{ElementType: named(inMaps), ElementRelationship: rel},
	}}
}

// basicTypes defines the untyped types and the metadata.
func (c *compiler) basicTypes() {
	text, number, boolean, untyped := scalarRef(smd.String), scalarRef(smd.Numeric), scalarRef(smd.Boolean), scalarRef(smd.Untyped)
	texts := smd.TypeRef{Inlined: smd.Atom{Map: &smd.Map{ElementType: text, ElementRelationship: smd.Separable}}}
	set := smd.TypeRef{Inlined: smd.Atom{List: &smd.List{ElementType: text, ElementRelationship: smd.Associative}}}
	owner := smd.TypeRef{Inlined: smd.Atom{Map: &smd.Map{ElementRelationship: smd.Atomic, Fields: []smd.StructField{
		field("apiVersion", text), field("kind", text), field("name", text), {Name: "uid", Type: text, Default: ""},
		field("controller", boolean), field("blockOwnerDeletion", boolean),
	}}}}
	owners := smd.TypeRef{Inlined: smd.Atom{List: &smd.List{ElementType: owner, ElementRelationship: smd.Associative, Keys: []string{"uid"}}}}
	metadata := &smd.Map{ElementRelationship: smd.Separable, ElementType: c.others(false), Fields: []smd.StructField{
		field("name", text), field("generateName", text), field("namespace", text), field("uid", text), field("selfLink", text),
		field("resourceVersion", text), field("generation", number), field("creationTimestamp", untyped),
		field("deletionTimestamp", untyped), field("deletionGracePeriodSeconds", number),
		field("labels", texts), field("annotations", texts), field("finalizers", set), field("ownerReferences", owners),
		field("managedFields", named(typeAtomic)),
	}}
	c.types = append(c.types,
		untypedDef(typeAtomic, typeAtomic, smd.Atomic),
		untypedDef(typeDeduced, typeDeduced, smd.Separable),
		smd.TypeDef{Name: typeMeta, Atom: smd.Atom{Map: metadata}})
}

// others returns the type of the fields that a struct does not declare. The zero TypeRef
// makes them errors.
func (c *compiler) others(preserve bool) smd.TypeRef {
	if preserve || !c.strict {
		return named(typeDeduced)
	}
	return smd.TypeRef{}
}

// ref returns the type of the values that s, part of the schema of a Go struct, describes.
func (c *compiler) ref(s *schema.Schema) smd.TypeRef {
	switch {
	case s == nil:
		return named(typeDeduced)
	case s.Wire == schema.IntOrString, s.Wire == schema.Quantity, s.Wire == schema.Time, s.Wire == schema.MicroTime, s.Wire == schema.Duration:
		return scalarRef(smd.Untyped)
	case s.Wire == schema.Raw, s.Wire == schema.Fields, s.Wire == schema.OrBoolean, s.Wire == schema.OrList:
		return named(typeAtomic)
	case s.Type == schema.Object, s.Struct != nil, s.Values != nil:
		return c.object(s)
	case s.Type == schema.Array:
		return smd.TypeRef{Inlined: smd.Atom{List: declaredList(s, c.ref(s.Items))}}
	case s.Type == schema.String:
		return scalarRef(smd.String)
	case s.Type == schema.Integer, s.Type == schema.Number:
		return scalarRef(smd.Numeric)
	case s.Type == schema.Boolean:
		return scalarRef(smd.Boolean)
	}
	return named(typeDeduced)
}

// object returns the type of a map or struct. A Struct becomes a named type, so that it
// may contain itself; the reference to it decides whether it is atomic.
func (c *compiler) object(s *schema.Schema) smd.TypeRef {
	if s.Struct == nil && s.Values == nil && s.Preserve && s.MapType != "atomic" {
		return named(typeDeduced)
	}
	key := structKey{s.Struct, s.Values, s.Preserve}
	name, done := c.named[key]
	if !done {
		name = fmt.Sprintf("type%d", len(c.named))
		c.named[key] = name
		m := c.mapOf(s)
		m.ElementRelationship = smd.Separable
		c.types = append(c.types, smd.TypeDef{Name: name, Atom: smd.Atom{Map: m}})
	}
	ref := named(name)
	if s.MapType == "atomic" {
		atomic := smd.Atomic
		ref.ElementRelationship = &atomic
	}
	return ref
}

// mapOf returns the fields of an object.
func (c *compiler) mapOf(s *schema.Schema) *smd.Map {
	m := &smd.Map{}
	if s.Values != nil {
		m.ElementType = c.ref(s.Values)
	} else {
		m.ElementType = c.others(s.Preserve)
	}
	if s.Struct == nil {
		return m
	}
	for _, f := range s.Struct.Fields {
		m.Fields = append(m.Fields, smd.StructField{Name: f.Name, Type: c.ref(f.Schema), Default: keyDefault(f)})
	}
	return m
}

// keyDefault returns the value of a key field that an item omits: the default of the
// field, or the zero value if a Go struct always has it.
func keyDefault(f *schema.Field) any {
	if f.Schema == nil {
		return nil
	}
	switch d := f.Schema.Default.(type) {
	case string, bool, int64, float64:
		return d
	}
	switch {
	case len(f.Index) == 0 || f.Pointer:
	case f.Schema.Type == schema.String:
		return ""
	case f.Schema.Type == schema.Integer && !f.OmitEmpty:
		return int64(0)
	}
	return nil
}

// declaredList returns the list type that s declares.
func declaredList(s *schema.Schema, items smd.TypeRef) *smd.List {
	l := &smd.List{ElementType: items, ElementRelationship: smd.Atomic}
	listType, keys := ListType(s)
	if listType != "atomic" {
		l.ElementRelationship, l.Keys = smd.Associative, keys
	}
	return l
}

// ListType returns the type of the list that s describes, atomic, set or map, and the keys
// of a map list. A list that declares none has the type that its patch strategy implies.
func ListType(s *schema.Schema) (listType string, keys []string) {
	listType = s.ListType
	switch {
	case listType != "":
	case !HasStrategy(s, "merge"):
		listType = "atomic"
	case s.PatchMergeKey != "":
		listType = "map"
	default:
		listType = "set"
	}
	if listType != "map" {
		return listType, nil
	}
	if len(s.ListKeys) > 0 {
		return listType, s.ListKeys
	}
	return listType, []string{s.PatchMergeKey}
}

// HasStrategy reports whether s has the patch strategy. s may be nil.
func HasStrategy(s *schema.Schema, strategy string) bool {
	return s != nil && slices.Contains(strings.Split(s.PatchStrategy, ","), strategy)
}
