package schema

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/suggest"
)

// Go returns the schema of a Go struct. The json tags give field names and optionality, the
// schema tags the validation rules, the protobuf tags the field numbers, the patchStrategy and
// patchMergeKey tags the merge rules, and the doc tags the documentation. Field names in tags
// are spec names; p translates them to wire names. Schemas are built once per type and profile
// and are shared: the caller must not change them.
//
// A schema tag is a comma-separated list of words and key=value pairs. Lists in a value are
// separated by |. A backslash before a comma or | makes that character part of the value;
// elsewhere it stands for itself, so that patterns need no extra escaping (but Go quotes tag
// values: write \d as \\d).
//
//	required  optional  immutable  nullable  deprecated  preserve  embedded  uniqueItems
//	intOrString  repeats  unchecked  ratcheting  milli  unique  unique=cluster
//	default=  enum=a|b  format=  keyFormat=  pattern=  title=
//	range=min|max  min=  max=  exclusiveMin=  exclusiveMax=  multipleOf=
//	minLength=  maxLength=  minItems=  maxItems=  minProperties=  maxProperties=
//	listType=atomic|set|map  listMapKeys=a|b  mapType=atomic|granular
//	patchStrategy=  patchMergeKey=  gate=
//	reason.WORD=  rule=  rule.message=  rule.messageExpression=  rule.reason=  rule.fieldPath=  rule.created
//
// required: the field must not have the zero value or, if it is a pointer, must not be nil.
// OpenAPI documents list a field as required if it has this word, or if encoding/json always
// writes it and it has no default: if a caller omits such a field, it gets the zero value, and
// the other rules apply to that value. If omitempty or omitzero leaves a field out, no rule but
// required applies to it.
//
// optional, after required: OpenAPI documents do not list the field. Use it for types that were
// published without it.
//
// listType=set, listType=map: items, or their keys, must be unique. With repeats, they may
// repeat, and only merges use the list type.
//
// unchecked: the rules of the value and everything below it are documentation only.
//
// ratcheting: if an update does not change the value, the value is not validated again.
//
// milli: a quantity is rounded away from zero to thousandths.
//
// reason.WORD, for min, max, exclusiveMin, exclusiveMax, range, multipleOf, pattern and
// required: the text that messages have after "Required value: " or "Invalid value: " if the
// rule is violated.
//
// immutable: once the value is set, it cannot change. A value is set if it is not empty, zero
// or absent; a pointer's zero counts as set. An immutable value cannot be removed, and neither
// can a struct that contains it. However, an item of a list with keys or an entry of a map can
// be removed with everything in it. Items of other lists cannot have immutable fields, because
// such items have no identity.
//
// unique: no two objects of the kind in a namespace have the same value. unique=cluster: no two
// objects of the kind have the same value. Objects without a namespace count as one namespace.
// All servers that share the store enforce this. Empty, zero and absent values are exempt,
// except a pointer's zero. An object may have the same value twice. If a kind has several
// versions, the tag of the hub version applies. If a field becomes unique, objects keep values
// that they share, but a changed value must be unused.
//
// gate: the field belongs to a feature of the server, see package features. While the gate is
// off, writes drop the field unless the stored object uses it. A field with a gate cannot be
// required or identify list items. If a kind has several versions, the tags of each version
// apply to its own fields.
//
// rule: a Common Expression Language expression that must be true. self is the value and
// oldSelf the previous value, as in the validation rules of custom resource definitions; see
// Rule. Words that begin with rule. apply to the preceding rule. rule.created makes oldSelf
// optional and applies the rule to new values as well.
//
// format: a format of OpenAPI (date, uuid, ...), some of which are documentation only
// (password, ...), or a format of the fields of built-in kinds:
//
//	dns-label  dns-1035-label  dns-subdomain  qualified-name  label-value  path-segment
//	ip  cidr  port-name  config-key  env-name  header-name  sysctl-name  csi-driver  signer-name
//	inner-path  relative-path  file-path
//	port (a number or a name)  int-or-percent  labels (a map)  label-selector (a meta.LabelSelector)
//
// The prefixes items. and values. apply a word to the items of a list and to the values of a
// map. name.required makes the field "name" of a struct required, but only where this field
// uses the struct. The tag of an inline struct addresses the struct's fields in the same way.
// On a field named _ of type struct{}, mapType and rule apply to the struct itself, wherever it
// is used.
//
// The field "metadata" of t is always the standard object metadata, or list metadata for a
// struct type named ListMeta. The error joins all faults, each a *FieldError; if t is not a
// struct, the error is of another type.
func Go(t reflect.Type, p names.Profile) (*Schema, error) {
	if t == nil {
		return nil, errors.New("Go type is nil")
	}
	t = indirect(t)
	if t.Kind() != reflect.Struct || specialForm(t) != nil {
		return nil, fmt.Errorf("Go type %s is not a struct with fields", t)
	}
	c := commonOf(p)
	if s, ok := c.roots.Load(t); ok {
		return s.(*Schema), nil
	}
	b := newBuilder(p, c)
	b.root = t
	s := b.schemaOf(t, at{t: t})
	b.checkLists()
	if err := errors.Join(b.faults...); err != nil {
		return nil, err
	}
	if err := s.Compile(); err != nil {
		return nil, err
	}
	if err := s.findMarked(); err != nil {
		return nil, err
	}
	for t, st := range b.structs {
		if t != b.root {
			c.structs.LoadOrStore(t, st)
		}
	}
	for t, s := range b.plain {
		if s.Compile() == nil { // a field hidden by another field is not reached by s.Compile
			c.plain.LoadOrStore(t, s)
		}
	}
	first, _ := c.roots.LoadOrStore(t, s)
	return first.(*Schema), nil
}

// FieldError is an error in a Go type or in the tags of one of its fields.
type FieldError struct {
	Type  reflect.Type // the struct
	Field string       // its Go field; empty if the error concerns the type itself
	Err   error
}

// Error returns the type, the field and the underlying error.
func (e *FieldError) Error() string {
	name := "Go type " + e.Type.String()
	if e.Type.Name() == "" {
		name = "a struct without a name" // String would return the whole struct
	}
	if e.Field == "" {
		return fmt.Sprintf("%s: %v", name, e.Err)
	}
	return fmt.Sprintf("%s, field %s: %v", name, e.Field, e.Err)
}

// Unwrap returns the underlying error.
func (e *FieldError) Unwrap() error { return e.Err }

// The schema of a Go type depends only on the type and the profile, so that all servers of a
// process share one copy.
var (
	orchTypes       = sync.OnceValue(func() *common { return newCommon(names.Orch) })
	kubernetesTypes = sync.OnceValue(func() *common { return newCommon(names.Kubernetes) })
)

// common holds the parts that all schemas of a profile share. Values in the maps are complete
// and are never modified, except for Struct.fingerprints, which have their own locks.
type common struct {
	object, list *Schema
	structs      sync.Map // reflect.Type to *Struct, for types inside objects
	roots        sync.Map // reflect.Type to *Schema, for whole objects
	plain        sync.Map // reflect.Type to *Schema, for fields without tags; see plainSchema
	plans        sync.Map // reflect.Type to *plan
	enums        sync.Map // structField to []string
}

func newCommon(p names.Profile) *common {
	b := &builder{names: p, structs: map[reflect.Type]*Struct{}, plain: map[reflect.Type]*Schema{}}
	c := &common{
		object: b.schemaOf(reflect.TypeFor[meta.ObjectMeta](), at{}),
		list:   b.schemaOf(reflect.TypeFor[meta.ListMeta](), at{}),
	}
	for t, st := range b.structs {
		st.compiled = true // metadata has neither patterns nor defaults
		c.structs.Store(t, st)
	}
	return c
}

func commonOf(p names.Profile) *common {
	if p == names.Kubernetes {
		return kubernetesTypes()
	}
	return orchTypes()
}

// Metadata returns the schema of the standard object metadata. All calls with one profile
// return the same schema; the caller must not change it.
func Metadata(p names.Profile) *Schema { return commonOf(p).object }

// builder builds the schema of one Go type.
type builder struct {
	names   names.Profile
	shared  *common // nil while common itself is built
	root    reflect.Type
	structs map[reflect.Type]*Struct
	plain   map[reflect.Type]*Schema // see plainSchema
	fields  []fieldAt                // lists in these are checked once all structs are complete
	open    []reflect.Type           // types being described, outermost first, since the last struct
	inline  []reflect.Type           // structs that are being added, each inlined in the previous struct
	faults  []error
}

// fieldAt is a field with its place in the Go types. The tag of an inline struct may replace
// field.Schema.
type fieldAt struct {
	at    at
	field *Field
}

// at is the Go field that a schema is made for.
type at struct {
	t     reflect.Type // the struct
	field string
}

func newBuilder(p names.Profile, c *common) *builder {
	return &builder{names: p, shared: c, structs: map[reflect.Type]*Struct{}, plain: map[reflect.Type]*Schema{}}
}

func (b *builder) fault(a at, format string, args ...any) {
	b.faults = append(b.faults, &FieldError{a.t, a.field, fmt.Errorf(format, args...)})
}

// schemaOf returns a new schema for values of type t. Structs are shared, so that recursive
// types end; a type that contains itself without a struct in between is an error.
func (b *builder) schemaOf(t reflect.Type, a at) *Schema {
	if slices.Contains(b.open, t) {
		b.fault(a, "type %s contains itself without a struct in between", t)
		return &Schema{}
	}
	b.open = append(b.open, t)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	if s := specialForm(t); s != nil {
		b.alternative(s, t, a)
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := b.schemaOf(t.Elem(), a)
		s.Nullable = true
		return s
	case reflect.String:
		return &Schema{Type: String}
	case reflect.Bool:
		return &Schema{Type: Boolean}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: Number, Format: "double"}
	case reflect.Int32, reflect.Int64, reflect.Int8, reflect.Int16, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: Integer, Format: t.Kind().String()}
	case reflect.Int:
		return &Schema{Type: Integer, Format: "int64"}
	case reflect.Uint:
		return &Schema{Type: Integer, Format: "uint64"}
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return &Schema{Type: Any, Wire: Raw}
		}
	case reflect.Slice, reflect.Array:
		return &Schema{Type: Array, Items: b.schemaOf(t.Elem(), a)}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			b.fault(a, "map keys must be strings, not %s", t.Key())
		}
		return &Schema{Type: Object, Values: b.schemaOf(t.Elem(), a)}
	case reflect.Struct:
		st := b.structOf(t)
		return &Schema{Type: Object, Struct: st, MapType: st.mapType, Rules: st.rules}
	}
	b.fault(a, "type %s has no JSON encoding", t)
	return &Schema{}
}

// alternative sets s.Struct, for a type that is written as an object or as something else, to
// the struct that the type's field Schema points to.
func (b *builder) alternative(s *Schema, t reflect.Type, a at) {
	if s.Wire != OrBoolean && s.Wire != OrList {
		return
	}
	f, ok := t.FieldByName("Schema")
	if !ok || f.Type.Kind() != reflect.Pointer || f.Type.Elem().Kind() != reflect.Struct {
		b.fault(a, "type %s needs a field Schema that points to a struct", t)
		return
	}
	s.Struct = b.structOf(f.Type.Elem())
}

func (b *builder) structOf(t reflect.Type) *Struct {
	if st := b.structs[t]; st != nil {
		return st
	}
	if b.shared != nil && t != b.root {
		if st, ok := b.shared.structs.Load(t); ok {
			return st.(*Struct)
		}
	}
	st := &Struct{Name: b.definitionName(t), Go: t}
	b.structs[t] = st
	var err error
	if st.mapType, st.rules, err = structTag(t); err != nil {
		b.fault(at{t: t, field: "_"}, "%w", err)
	}
	open, inline := b.open, b.inline
	b.open, b.inline = nil, nil
	b.addFields(st, t, nil, false)
	b.open, b.inline = open, inline
	b.checkNumbers(st)
	for _, f := range st.Fields {
		if !f.OmitEmpty && !f.OmitZero {
			st.always = append(st.always, f)
		}
	}
	return st
}

// addFields adds the fields of t to st, and those of inline structs in their place. If optional
// is set, the fields are below a pointer, and none of them is always written.
func (b *builder) addFields(st *Struct, t reflect.Type, index []int, optional bool) {
	b.inline = append(b.inline, t)
	defer func() { b.inline = b.inline[:len(b.inline)-1] }()
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Name == "_" || !sf.IsExported() && !sf.Anonymous {
			for _, key := range []string{"schema", "json"} {
				if text := sf.Tag.Get(key); sf.Name != "_" && text != "" && text != "-" {
					b.fault(at{t, sf.Name}, "unexported field has a %s tag", key)
				}
			}
			continue
		}
		if why := tagFault(sf.Tag); why != "" {
			b.fault(at{t, sf.Name}, "%s", why)
		}
		jsonName, opts := jsonTag(sf)
		if jsonName == "-" && len(opts) == 0 {
			continue
		}
		path := append(slices.Clone(index), i)
		if inner, ok := inlined(sf, jsonName, opts); ok {
			if !sf.IsExported() && sf.Type.Kind() == reflect.Pointer {
				b.fault(at{t, sf.Name}, "a pointer to an unexported struct cannot be inline")
				continue
			}
			if slices.Contains(b.inline, inner) {
				b.fault(at{t, sf.Name}, "struct %s cannot be inline in itself", inner)
				continue
			}
			if inner.Kind() == reflect.Struct {
				b.addFields(st, inner, path, optional || sf.Type.Kind() == reflect.Pointer)
				b.inlineTag(st, sf, at{t, sf.Name})
				continue
			}
			b.fault(at{t, sf.Name}, "only structs can be inline, not %s", inner)
			continue
		}
		if !sf.IsExported() {
			continue
		}
		if f := b.field(t, sf, jsonName, opts, path, optional); f != nil {
			if old := st.byName[f.Name]; old != nil {
				if len(old.Index) == len(f.Index) {
					b.fault(at{t, sf.Name}, "the json name %q is taken by field %s", f.Name, old.GoName)
				}
				if len(old.Index) <= len(f.Index) {
					continue // as in encoding/json, the outer field hides the inner field
				}
			}
			st.Add(f)
		}
	}
}

// inlineTag applies the tag of an inline struct to the fields that it names.
func (b *builder) inlineTag(st *Struct, sf reflect.StructField, a at) {
	for _, e := range parseTag(sf.Tag.Get("schema")) {
		name, word, _ := strings.Cut(e.key, ".")
		f := st.Field(b.names.Field(name))
		if f == nil {
			b.fault(a, "tag schema: the inline struct has no field %q", name)
			continue
		}
		f.ownSchema()
		e.key = word
		if err := e.applyTo(f); err != nil {
			b.fault(a, "tag schema, %s.%s: %w", name, word, err)
		}
	}
}

func (b *builder) field(t reflect.Type, sf reflect.StructField, jsonName string, opts []string, path []int, optional bool) *Field {
	a := at{t, sf.Name}
	if jsonName == "" {
		jsonName = sf.Name
	}
	f := &Field{Name: b.names.Field(jsonName), GoName: sf.Name, Index: path, Pointer: sf.Type.Kind() == reflect.Pointer}
	if f.Schema = b.plainSchema(sf); f.Schema == nil {
		f.Schema = b.fieldSchema(sf, a, b.root == t && jsonName == "metadata")
	}
	f.OmitZero = slices.Contains(opts, "omitzero")
	f.Expected = !optional && !f.OmitZero && !slices.Contains(opts, "omitempty")
	f.OmitEmpty = slices.Contains(opts, "omitempty") && emptiable(sf.Type) || optional
	for _, o := range opts {
		switch o {
		case "omitempty", "omitzero", "inline", "":
		case "string":
			b.fault(a, "the json option string is not supported")
		default:
			b.fault(a, "unknown json option %q%s", o, suggest.Near(o, "omitempty", "omitzero", "inline"))
		}
	}
	if pb := sf.Tag.Get("protobuf"); pb != "" && pb != "-" {
		n, err := protobufNumber(pb)
		if err != nil {
			b.fault(a, "tag protobuf: %w", err)
		}
		f.Number = n
	}
	for _, err := range parseTag(sf.Tag.Get("schema")).apply(f) {
		b.fault(a, "%w", err)
	}
	if f.Schema.Default != nil && !f.Required {
		f.Expected = false
	}
	for _, text := range tagConflicts(f.Schema) {
		b.fault(a, "tag schema: %s", text)
	}
	b.fields = append(b.fields, fieldAt{a, f})
	return f
}

// checkLists checks the keys and the patch strategy of each list, and that no immutable field
// is in items without identity. It runs last, because items may be structs that contain the
// list.
func (b *builder) checkLists() {
	for _, f := range b.fields {
		for s := f.field.Schema; s != nil; s = cmp.Or(s.Items, s.Values) {
			if s.Type == Array {
				b.checkList(s, f.at)
			}
		}
	}
}

func (b *builder) checkList(list *Schema, a at) {
	b.checkKeys(list, a)
	b.checkStrategy(list, a)
	immutable := func(s *Schema) bool { return s.Immutable }
	if (!list.isMapList() || list.Repeats) && !list.Unchecked && leadsTo(list.Items, immutable, map[*Struct]bool{}) {
		b.fault(a, "tag schema, immutable: items of a list have no identity without listType=map or with repeats")
	}
}

// checkStrategy checks the patchStrategy and patchMergeKey tags.
func (b *builder) checkStrategy(s *Schema, a at) {
	words := []string{"merge", "replace", "retainKeys"}
	for _, word := range strings.Split(s.PatchStrategy, ",") {
		if s.PatchStrategy != "" && !slices.Contains(words, word) {
			b.fault(a, "patchStrategy: %q is not one of %s%s", word, strings.Join(words, ", "), suggest.Near(word, words...))
		}
	}
	key := s.PatchMergeKey
	if key == "" || s.Items == nil || s.Items.Struct == nil || s.Items.Struct.Field(key) != nil {
		return
	}
	b.fault(a, "patchMergeKey: the items have no field %q%s", key, suggest.Near(key, s.Items.Struct.fieldNames()...))
}

// checkNumbers reports protobuf field numbers that two fields share.
func (b *builder) checkNumbers(st *Struct) {
	of := map[int]*Field{}
	for _, f := range st.Fields {
		if len(f.Index) > 1 {
			continue // apiVersion and kind, which protobuf has in the envelope
		}
		if other := of[f.Number]; other != nil {
			b.fault(at{st.Go, f.GoName}, "tag protobuf: the number %d is taken by field %s", f.Number, other.GoName)
		}
		if f.Number != 0 {
			of[f.Number] = f
		}
	}
}

// metadata returns a new schema that refers to the shared metadata struct.
func (b *builder) metadata(t reflect.Type) *Schema {
	if indirect(t).Name() == "ListMeta" {
		return &Schema{Type: Object, Struct: b.shared.list.Struct}
	}
	return &Schema{Type: Object, Struct: b.shared.object.Struct}
}

func jsonTag(sf reflect.StructField) (name string, opts []string) {
	name, rest, more := strings.Cut(sf.Tag.Get("json"), ",")
	if more {
		opts = strings.Split(rest, ",")
	}
	return name, opts
}

// inlined returns the struct whose fields replace the field sf, and whether sf is inline.
func inlined(sf reflect.StructField, jsonName string, opts []string) (reflect.Type, bool) {
	t := indirect(sf.Type)
	if jsonName != "" {
		return nil, false
	}
	if slices.Contains(opts, "inline") || sf.Anonymous && t.Kind() == reflect.Struct && specialForm(t) == nil {
		return t, true
	}
	return nil, false
}

// indirect returns the type at the end of the pointers, or a pointer type if the pointers only
// point to each other.
func indirect(t reflect.Type) reflect.Type {
	var named []reflect.Type
	for t.Kind() == reflect.Pointer && !slices.Contains(named, t) {
		if t.Name() != "" {
			named = append(named, t)
		}
		t = t.Elem()
	}
	return t
}

// emptiable reports whether omitempty of encoding/json can omit values of the type.
func emptiable(t reflect.Type) bool {
	return t.Kind() != reflect.Struct && (t.Kind() != reflect.Array || t.Len() == 0)
}

// protobufNumber returns the field number of a tag such as "bytes,1,opt,name=x" or "1".
func protobufNumber(tag string) (int, error) {
	number := tag
	if _, rest, ok := strings.Cut(tag, ","); ok {
		number, _, _ = strings.Cut(rest, ",")
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 1<<29-1 {
		return 0, fmt.Errorf("%q is not a field number", number)
	}
	return n, nil
}

// MapType returns the map type that the struct's field _ declares, or "". It applies wherever
// the struct is used.
func (s *Struct) MapType() string { return s.mapType }

// structTag returns the map type and the rules that the tag of the field _ of t declares.
func structTag(t reflect.Type) (mapType string, rules []Rule, err error) {
	var words string
	for i := range t.NumField() { // without fields of inline structs
		if f := t.Field(i); f.Name == "_" {
			words = f.Tag.Get("schema")
		}
	}
	own := &Field{Schema: &Schema{}}
	for _, e := range parseTag(words) {
		if e.key != "mapType" && e.key != "rule" && !strings.HasPrefix(e.key, "rule.") {
			return "", nil, fmt.Errorf("%s does not apply to a struct", e.key)
		}
		if err := e.applyTo(own); err != nil {
			return "", nil, fmt.Errorf("tag schema, %s: %w", e.key, err)
		}
	}
	return own.Schema.MapType, own.Schema.Rules, nil
}

// definitionName returns the OpenAPI definition name of a type: types of this library are named
// by the naming table, others by their import path with the domain reversed.
func (b *builder) definitionName(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	module := strings.TrimSuffix(reflect.TypeFor[meta.ObjectMeta]().PkgPath(), "api/meta")
	for _, place := range []string{"api/", "registry/builtin/internal/", "registry/builtin/", "internal/scale"} {
		if pkg, ok := strings.CutPrefix(t.PkgPath(), module+place); ok {
			return b.names.Definition(pkg, name)
		}
	}
	segments := strings.Split(t.PkgPath(), "/")
	domain := strings.Split(segments[0], ".")
	slices.Reverse(domain)
	return strings.Join(append(append(domain, segments[1:]...), name), ".")
}
