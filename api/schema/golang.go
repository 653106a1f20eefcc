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

// Go returns the schema of a Go struct: its json tags give names and shape, its
// schema tags the rules, its protobuf tags the field numbers and its
// patchStrategy and patchMergeKey tags the merge rules. Field names are spec
// names; p gives the words for the wire.
//
// A schema tag holds words and key=value pairs separated by commas. Lists in a
// value are separated by |. A backslash makes a following comma or | part of
// the value; before anything else it stands for itself, so that patterns read
// as usual (mind that Go quotes tag values: \d is written \\d there).
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
// A required field is not the zero value, or, if it is a pointer, not nil. OpenAPI
// lists as required what is so, and what json always writes and has no default: a
// caller who leaves it out gets the zero value, which the other rules judge. What
// omitempty or omitzero leave out breaks no rule but required. With optional, behind
// required, OpenAPI does not list the field all the same; that is for types whose
// documents exist already.
//
// Items of a list with listType=set, and keys of one with listType=map, are there
// once, unless the list repeats: then only those who merge lists look at the type. The
// rules inside of an unchecked value are documentation. A ratcheting value that an
// update leaves as it was is not checked again.
//
// A milli quantity holds thousandths: a finer value is rounded away from zero.
//
// With reason.min=, and the like for max, exclusiveMin, exclusiveMax, range,
// multipleOf, pattern and required, clients are told the text of the tag instead of
// what the rule says, after Required value: or Invalid value:.
//
// An immutable value stays as it is once it is set: not empty, zero or left out, but
// for a pointer's zero. It cannot be taken away, nor can a struct that it is in, while
// an item of a list with keys and a value of a map may go with all that is in it. In
// lists whose items cannot be told apart nothing can be immutable.
//
// A unique value is in no two objects of the kind that are in one namespace, or with
// unique=cluster in no two at all; objects without a namespace are always one set.
// That holds for whatever number of servers over one store. What is empty, zero or
// left out is no value, but a pointer's zero is one. An object may hold a value
// twice. Of several versions of a kind the hub says it. What objects share when a
// field becomes unique they keep; who changes it in one of them needs a free value.
//
// A field with a gate is part of a feature of the server, see package features: while that is
// off it is dropped from what is written, unless the stored object has one already. So it
// is neither required nor a key of items. Of several versions of a kind each says it of its
// own fields.
//
// A rule is an expression in the Common Expression Language that has to be true of the
// value: self is the value, oldSelf what it was, as in the rules of custom resource
// definitions, see Rule. The words behind it with rule. speak of the last rule; created says
// that oldSelf is an optional value and the rule holds for new values, too.
//
// Formats are those of OpenAPI (date, uuid, ...), of which some are documentation
// only (password, ...), and those of the fields of built-in kinds:
//
//	dns-label  dns-1035-label  dns-subdomain  qualified-name  label-value  path-segment
//	ip  cidr  port-name  config-key  env-name  header-name  sysctl-name  csi-driver  signer-name
//	inner-path  relative-path  file-path
//	port (a number or a name)  int-or-percent  labels (a map)  label-selector (a meta.Selector)
//
// The prefixes items. and values. speak of the items of a list and of the
// values of a map; name.required speaks of the field name of a struct, here only.
// The tag of an inline struct speaks of its fields in the same way. On a field named _
// of type struct{}, mapType and rule speak of the struct itself, wherever it is used.
//
// The field "metadata" of t itself is always the standard object metadata (or
// list metadata, for a struct type named ListMeta). The error joins every
// fault, each a *FieldError; only for a t that is no struct it is another.
func Go(t reflect.Type, p names.Profile) (*Schema, error) {
	if t == nil {
		return nil, errors.New("no Go type given")
	}
	t = indirect(t)
	if t.Kind() != reflect.Struct || specialForm(t) != nil {
		return nil, fmt.Errorf("Go type %s is no struct with fields", t)
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
	if err := s.Seal(); err != nil {
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
		if s.Seal() == nil { // one of a hidden field was not reached
			c.plain.LoadOrStore(t, s)
		}
	}
	first, _ := c.roots.LoadOrStore(t, s)
	return first.(*Schema), nil
}

// FieldError is a fault of a Go type that shall become a schema.
type FieldError struct {
	Type  reflect.Type // the struct
	Field string       // its Go field; empty for the type itself
	Err   error
}

// Error names the type, the field and the fault.
func (e *FieldError) Error() string {
	name := "Go type " + e.Type.String()
	if e.Type.Name() == "" {
		name = "a struct without a name" // its text is as long as it is
	}
	if e.Field == "" {
		return fmt.Sprintf("%s: %v", name, e.Err)
	}
	return fmt.Sprintf("%s, field %s: %v", name, e.Field, e.Err)
}

// Unwrap returns the fault.
func (e *FieldError) Unwrap() error { return e.Err }

// What a Go type looks like depends on nothing but the type and the profile, so
// it is worked out once per process, whatever the number of servers.
var (
	orchTypes       = sync.OnceValue(func() *common { return newCommon(names.Orch) })
	kubernetesTypes = sync.OnceValue(func() *common { return newCommon(names.Kubernetes) })
)

// common holds what all schemas of a profile share. What is in the maps is
// finished and never changes.
type common struct {
	object, list *Schema
	structs      sync.Map // reflect.Type to *Struct, of types inside objects
	roots        sync.Map // reflect.Type to *Schema, of whole objects
	plain        sync.Map // reflect.Type to *Schema, of fields that share one
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
		st.sealed = true // no patterns and no defaults here
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

// Metadata returns the schema of the metadata of objects, the same on every
// call.
func Metadata(p names.Profile) *Schema { return commonOf(p).object }

type builder struct {
	names   names.Profile
	shared  *common // nil while it is made itself
	root    reflect.Type
	structs map[reflect.Type]*Struct
	plain   map[reflect.Type]*Schema // see plainSchema
	fields  []fieldAt                // whose lists are to be checked once all structs are known
	open    []reflect.Type           // the types of the value that is being described, down to the next struct
	inline  []reflect.Type           // the structs whose fields are being added, each inline in the one before
	faults  []error
}

// fieldAt is a field in the Go types, whose schema the tag of an inline struct may replace.
type fieldAt struct {
	at    at
	field *Field
}

// at is the place in the Go types that a schema is made for.
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

// schemaOf returns a new schema for values of type t. Structs are shared, which
// also ends the recursion of types that hold themselves; without a struct in
// between, such a type is a fault.
func (b *builder) schemaOf(t reflect.Type, a at) *Schema {
	if slices.Contains(b.open, t) {
		b.fault(a, "type %s holds itself without a struct in between", t)
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
			b.fault(a, "a map needs string keys, not %s", t.Key())
		}
		return &Schema{Type: Object, Values: b.schemaOf(t.Elem(), a)}
	case reflect.Struct:
		st := b.structOf(t)
		return &Schema{Type: Object, Struct: st, MapType: st.mapType, Rules: st.rules}
	}
	b.fault(a, "type %s has no form in JSON", t)
	return &Schema{}
}

// alternative gives s, of a type that stands for an object or something else,
// the struct of the object: what its field Schema points to.
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
	if st.mapType, st.rules, err = ownWords(t); err != nil {
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

// addFields adds the fields of t, those of inline structs in their place.
// optional: below a pointer, nothing is always written.
func (b *builder) addFields(st *Struct, t reflect.Type, index []int, optional bool) {
	b.inline = append(b.inline, t)
	defer func() { b.inline = b.inline[:len(b.inline)-1] }()
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Name == "_" || !sf.IsExported() && !sf.Anonymous {
			for _, key := range []string{"schema", "json"} {
				if text := sf.Tag.Get(key); sf.Name != "_" && text != "" && text != "-" {
					b.fault(at{t, sf.Name}, "it has a %s tag but is not exported", key)
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
					continue // the outer field hides the inner, as in encoding/json
				}
			}
			st.Add(f)
		}
	}
}

// inlineTag applies the tag of an inline struct to the fields that it speaks of.
func (b *builder) inlineTag(st *Struct, sf reflect.StructField, a at) {
	for _, e := range parseTag(sf.Tag.Get("schema")) {
		name, word, _ := strings.Cut(e.key, ".")
		f := st.Field(b.names.Field(name))
		if f == nil {
			b.fault(a, "tag schema: %q is no field of the inline struct", name)
			continue
		}
		f.own()
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
			b.fault(a, "there is no json option %q%s", o, suggest.Near(o, "omitempty", "omitzero", "inline"))
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
	for _, text := range misplaced(f.Schema) {
		b.fault(a, "tag schema: %s", text)
	}
	b.fields = append(b.fields, fieldAt{a, f})
	return f
}

// checkLists looks at what lists say of their items, and at what cannot stay as it
// was since nobody knows which item it was in.
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
		b.fault(a, "tag schema, immutable: the items of a list have no identity without listType=map, or where they repeat")
	}
}

// checkStrategy looks at what the patch tags of a field say.
func (b *builder) checkStrategy(s *Schema, a at) {
	words := []string{"merge", "replace", "retainKeys"}
	for _, word := range strings.Split(s.PatchStrategy, ",") {
		if s.PatchStrategy != "" && !slices.Contains(words, word) {
			b.fault(a, "patchStrategy: %q is none of %s%s", word, strings.Join(words, ", "), suggest.Near(word, words...))
		}
	}
	key := s.PatchMergeKey
	if key == "" || s.Items == nil || s.Items.Struct == nil || s.Items.Struct.Field(key) != nil {
		return
	}
	b.fault(a, "patchMergeKey: the items have no field %q%s", key, suggest.Near(key, s.Items.Struct.fieldNames()...))
}

// checkNumbers looks for field numbers of protobuf that two fields have.
func (b *builder) checkNumbers(st *Struct) {
	of := map[int]*Field{}
	for _, f := range st.Fields {
		if len(f.Index) > 1 {
			continue // the type of an object is in the envelope
		}
		if other := of[f.Number]; other != nil {
			b.fault(at{st.Go, f.GoName}, "tag protobuf: the number %d is taken by field %s", f.Number, other.GoName)
		}
		if f.Number != 0 {
			of[f.Number] = f
		}
	}
}

// metadata returns a schema node of the shared metadata struct.
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

// inlined returns the type whose fields take the place of this one.
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

// indirect returns what a pointer points to, or one of the pointers if they point
// to nothing but each other.
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

// emptiable reports whether encoding/json knows an empty value of the type.
func emptiable(t reflect.Type) bool {
	return t.Kind() != reflect.Struct && (t.Kind() != reflect.Array || t.Len() == 0)
}

// protobufNumber returns the field number of a tag such as "bytes,1,opt,name=x",
// or of one that is the number alone.
func protobufNumber(tag string) (int, error) {
	number := tag
	if _, rest, ok := strings.Cut(tag, ","); ok {
		number, _, _ = strings.Cut(rest, ",")
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 1<<29-1 {
		return 0, fmt.Errorf("%q is no field number", number)
	}
	return n, nil
}

// MapType returns the map type that the struct states for itself, wherever it
// is used; empty for none.
func (s *Struct) MapType() string { return s.mapType }

// ownWords returns what a struct says of itself in the tag of a field named _.
func ownWords(t reflect.Type) (mapType string, rules []Rule, err error) {
	var words string
	for i := range t.NumField() { // not those of inline structs
		if f := t.Field(i); f.Name == "_" {
			words = f.Tag.Get("schema")
		}
	}
	own := &Field{Schema: &Schema{}}
	for _, e := range parseTag(words) {
		if e.key != "mapType" && e.key != "rule" && !strings.HasPrefix(e.key, "rule.") {
			return "", nil, fmt.Errorf("%s says nothing of a struct itself", e.key)
		}
		if err := e.applyTo(own); err != nil {
			return "", nil, fmt.Errorf("tag schema, %s: %w", e.key, err)
		}
	}
	return own.Schema.MapType, own.Schema.Rules, nil
}

// definitionName returns the OpenAPI definition name of a type: our own types
// by the naming table, others by their import path, domain reversed.
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
