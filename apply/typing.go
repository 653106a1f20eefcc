package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// typing is one version's schema as structured-merge-diff reads it, twice: the
// strict form refuses fields that the schema does not know and checks what a
// caller applies; the other takes them as they come, since stored objects may
// be older than the schema. Both are compiled when they are first asked for: the plan
// spares most kinds that.
type typing struct {
	zero            map[string]any // an object with nothing set
	status          bool           // see Version
	strict, lenient func() typed.ParseableType
	plan            *plan // strict, for the walks of this package
}

func compileTyping(s *schema.Schema) *typing {
	compiled := func(strict bool) func() typed.ParseableType {
		return sync.OnceValue(func() typed.ParseableType { return compileType(s, strict) })
	}
	t := &typing{zero: map[string]any{}, strict: compiled(true), lenient: compiled(false)}
	if s != nil && s.Struct.Canonical() {
		s.Conform(t.zero)
	}
	laid := compileType(s, true) // not kept: the plan says the same in less room
	t.plan = layOut(laid.Schema, laid.TypeRef)
	return t
}

// empty returns an object of a version with nothing but obj's kind, in the form that
// its schema writes: what a Go struct always writes belongs to nobody.
func (t *typing) empty(obj map[string]any, apiVersion string) map[string]any {
	out := maps.Clone(t.zero)
	out["apiVersion"], out["kind"] = apiVersion, obj["kind"]
	return out
}

// fieldsOf returns the fields of an object that is to be applied, or what is
// wrong with it.
func (t *typing) fieldsOf(tree map[string]any) (*fieldpath.Set, error) {
	if set, ok := t.plan.checkedSet(tree); ok {
		return set, nil
	}
	if _, ok := pathsWithin(tree, 0, maxPaths); !ok {
		return nil, meta.TooLarge("the applied object does not fit its schema, and the paths of its values are more than %d bytes long together", maxPaths)
	}
	v, err := t.strict().FromUnstructured(tree)
	if err != nil {
		return nil, typingFault(tree, err)
	}
	set, err := v.ToFieldSet()
	if err != nil {
		return nil, typingFault(tree, err)
	}
	return set, nil
}

// merge returns live with what patch says, a copy.
func (t *typing) merge(live, patch map[string]any) (map[string]any, error) {
	if out, ok := t.plan.merge(live, patch); ok {
		return out.(map[string]any), nil
	}
	merged, err := t.value(live).Merge(t.value(patch))
	if err != nil {
		return nil, typingFault(patch, err)
	}
	tree, _ := meta.Clone(merged.AsValue().Unstructured()).(map[string]any)
	return tree, nil
}

// value returns tree as a typed value, unchecked.
func (t *typing) value(tree map[string]any) *typed.TypedValue {
	// Trees were fitted to the schema before; what was not is checked by the
	// caller, and checking here again costs more than the merge.
	lenient := t.lenient()
	return typed.AsTypedUnvalidated(value.NewValueInterface(tree), lenient.Schema, lenient.TypeRef) //lint:ignore SA1019 see above
}

// The names of the types that every compiled schema has.
const (
	typeRoot    = "root"
	typeMeta    = "metadata"
	typeDeduced = "__untyped_deduced_" // a name that structured-merge-diff looks for
	typeAtomic  = "__untyped_atomic_"
)

// structKey tells the uses of a Struct apart that need a type of their own.
type structKey struct {
	s        *schema.Struct
	values   *schema.Schema
	preserve bool
}

type compiler struct {
	strict  bool
	types   []smd.TypeDef
	named   map[structKey]string
	customs map[customKey]string
}

func compileType(s *schema.Schema, strict bool) typed.ParseableType {
	c := &compiler{strict: strict, named: map[structKey]string{}, customs: map[customKey]string{}}
	c.basics()
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
	m.Fields = append(wholeFields(), slices.DeleteFunc(m.Fields, func(f smd.StructField) bool {
		return f.Name == "apiVersion" || f.Name == "kind" || f.Name == "metadata"
	})...)
	return m
}

// wholeFields are the fields that every API object has.
func wholeFields() []smd.StructField {
	return []smd.StructField{field("apiVersion", scalarRef(smd.String)), field("kind", scalarRef(smd.String)), field("metadata", named(typeMeta))}
}

func named(name string) smd.TypeRef { return smd.TypeRef{NamedType: &name} }

func scalarRef(s smd.Scalar) smd.TypeRef { return smd.TypeRef{Inlined: smd.Atom{Scalar: &s}} }

func field(name string, t smd.TypeRef) smd.StructField { return smd.StructField{Name: name, Type: t} }

// anything is a value whose type shows itself: maps by key, lists whole.
func anything(name string, inMaps string, rel smd.ElementRelationship) smd.TypeDef {
	untyped := smd.Untyped
	return smd.TypeDef{Name: name, Atom: smd.Atom{
		Scalar: &untyped,
		List:   &smd.List{ElementType: named(typeAtomic), ElementRelationship: smd.Atomic},
		Map:    &smd.Map{ElementType: named(inMaps), ElementRelationship: rel},
	}}
}

func (c *compiler) basics() {
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
		anything(typeAtomic, typeAtomic, smd.Atomic),
		anything(typeDeduced, typeDeduced, smd.Separable),
		smd.TypeDef{Name: typeMeta, Atom: smd.Atom{Map: metadata}})
}

// others is the type of the fields that a struct does not declare.
func (c *compiler) others(preserve bool) smd.TypeRef {
	if preserve || !c.strict {
		return named(typeDeduced)
	}
	return smd.TypeRef{}
}

// ref returns the type of the values that s describes.
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
		return c.list(s)
	case s.Type == schema.String:
		return scalarRef(smd.String)
	case s.Type == schema.Integer, s.Type == schema.Number:
		return scalarRef(smd.Numeric)
	case s.Type == schema.Boolean:
		return scalarRef(smd.Boolean)
	}
	return named(typeDeduced)
}

// object returns the type of a map or struct. A Struct becomes one named type,
// so that it may hold itself; whether it is atomic is said where it is used.
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

// keyDefault is what a field counts as where it is a key of a list and left out:
// its default, or the zero that a Go struct has there.
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

func (c *compiler) list(s *schema.Schema) smd.TypeRef {
	return smd.TypeRef{Inlined: smd.Atom{List: declaredList(s, c.ref(s.Items))}}
}

// declaredList returns the list that s declares, of items of a type.
func declaredList(s *schema.Schema, items smd.TypeRef) *smd.List {
	l := &smd.List{ElementType: items, ElementRelationship: smd.Atomic}
	switch listType(s) {
	case "set":
		l.ElementRelationship = smd.Associative
	case "map":
		l.ElementRelationship = smd.Associative
		if l.Keys = s.ListKeys; len(l.Keys) == 0 {
			l.Keys = []string{s.PatchMergeKey}
		}
	}
	return l
}

// listType returns the list type that s declares, or that its patch strategy
// means.
func listType(s *schema.Schema) string {
	if s.ListType != "" {
		return s.ListType
	}
	if !hasStrategy(s, "merge") {
		return "atomic"
	}
	if s.PatchMergeKey != "" {
		return "map"
	}
	return "set"
}

const (
	maxCauses = 100      // of one applied object
	maxPaths  = 64 << 20 // bytes of the paths of all values of one object
)

// pathsWithin takes the length of the paths of all values in v, which at bytes of
// path lead to, from left; false if that is less. structured-merge-diff has a
// fault for each value that does not fit, and each has its whole path.
func pathsWithin(v any, at, left int) (rest int, ok bool) {
	left -= at
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if left, ok = pathsWithin(e, at+len(k)+1, left); !ok {
				return left, false
			}
		}
	case []any:
		for _, e := range v {
			if left, ok = pathsWithin(e, at+1, left); !ok {
				return left, false
			}
		}
	}
	return left, left >= 0
}

// typingFault turns what structured-merge-diff says about an applied object
// into causes, and into the text that clients print.
func typingFault(patch map[string]any, err error) error {
	if told := (*meta.Status)(nil); errors.As(err, &told) {
		return err // of who was asked to convert
	}
	var causes []meta.Cause
	texts := []string{err.Error()}
	if list, ok := err.(typed.ValidationErrors); ok {
		texts = nil
		for _, e := range list[:min(len(list), maxCauses)] {
			e.Path = meta.CutPath([]byte(e.Path))
			causes = append(causes, meta.Cause{Reason: meta.CauseInvalid, Message: e.ErrorMessage, Field: strings.TrimPrefix(e.Path, ".")})
			texts = append(texts, e.Error())
		}
	} else {
		causes = []meta.Cause{{Reason: meta.CauseInvalid, Message: err.Error()}}
	}
	slices.SortFunc(causes, func(a, b meta.Cause) int { return strings.Compare(a.Field, b.Field) })
	slices.Sort(texts)
	obj := meta.NewObject(patch)
	s := invalidPatch("failed to create typed patch object (%s/%s; %s, Kind=%s): %s", obj.Namespace(), obj.Name(), slashed(obj.APIVersion()), obj.Kind(), listed(texts))
	s.Details = &meta.Details{Group: meta.ParseAPIVersion(obj.APIVersion()).Group, Kind: obj.Kind(), Name: obj.Name(), Causes: causes}
	return s
}

// slashed writes a version as group/version, of the core group too.
func slashed(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return apiVersion
	}
	return "/" + apiVersion
}
