package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// Limits on an OpenAPI schema.
const (
	maxSchemaDepth = 64
	maxSchemaNodes = 50_000
)

// OpenAPI converts the OpenAPI v3 schema of a custom resource definition to a Schema. If the
// schema is invalid or not structural, it returns a nil Schema and up to 100 causes with paths
// that begin with at. doc is the decoded JSON of the schema, with the extensions of the profile
// p. The result refers to doc, which must not change afterwards.
//
// A schema is structural if every value has a type outside of allOf, anyOf, oneOf and not, and
// if these combinations only validate values that are declared outside of them.
func OpenAPI(doc map[string]any, p names.Profile, at *check.Path) (*Schema, []meta.StatusCause) {
	r := &openAPIReader{words: extensionsOf(p), patterns: map[string]*pattern{}}
	s := r.schema(doc, place{path: at, level: atRoot})
	c, d := &structural{words: r.words}, &defaultsChecker{}
	if !r.unread {
		c.value(doc, s, place{path: at})
		if len(c.faults) == 0 && !r.unfit && s.Compile() == nil {
			d.schema(s, place{path: at, level: atRoot})
		}
	}
	keywords := slices.Concat(r.faults, c.keywords, d.forbidden)
	for _, list := range []check.Violations{c.faults, d.faults, keywords} {
		slices.SortStableFunc(list, func(a, b meta.StatusCause) int { return strings.Compare(a.Field, b.Field) })
	}
	faults := slices.Concat(c.faults, d.faults, keywords)
	if len(faults) == 0 && r.dialect {
		faults.Invalid(at, "", "OpenAPIV3Schema 'schema' is not supported")
	}
	if len(faults) > 0 {
		return nil, faults[:min(len(faults), maxReported)]
	}
	return s, nil
}

// level is the kind of place that a schema has in its document.
type level uint8

const (
	atRoot   level = iota
	atField        // in properties or additionalProperties
	atItem         // in items
	atNested       // in allOf, anyOf, oneOf or not, at any depth
)

// place is the position of a schema in the document.
type place struct {
	path  *check.Path
	level level
	depth int
}

// below returns the place of a schema under p. Schemas below a combination stay at atNested.
func (p place) below(path *check.Path, l level) place {
	if p.level == atNested {
		l = atNested
	}
	return place{path, l, p.depth + 1}
}

// openAPIReader converts the document to a Schema and reports what a Schema cannot represent.
// Whether the schema is structural is checked by structural.
type openAPIReader struct {
	words    extensions
	patterns map[string]*pattern // by their text
	faults   check.Violations
	nodes    int
	unread   bool // a part cannot be represented, and the result is incomplete
	unfit    bool // a type or a pattern is invalid, and defaults cannot be validated
	dialect  bool // a schema has $schema
}

// extensions are the names of schema extensions in a profile.
type extensions struct{ preserve, intOrString, embedded, listType, listKeys, mapType, rules string }

func extensionsOf(p names.Profile) extensions {
	return extensions{
		preserve: p.Extension("preserve-unknown-fields"), intOrString: p.Extension("int-or-string"), embedded: p.Extension("embedded-resource"),
		listType: p.Extension("list-type"), listKeys: p.Extension("list-map-keys"), mapType: p.Extension("map-type"), rules: p.Extension("validations"),
	}
}

func (r *openAPIReader) schema(doc map[string]any, at place) *Schema {
	s := &Schema{}
	if r.nodes++; at.depth > maxSchemaDepth || r.nodes > maxSchemaNodes {
		if r.nodes <= maxSchemaNodes || r.nodes == maxSchemaNodes+1 {
			r.unread = true
			r.faults.Forbidden(at.path, fmt.Sprintf("a schema may have at most %d values, %d deep", maxSchemaNodes, maxSchemaDepth))
		}
		return s
	}
	d := node{doc, r, at}
	d.basics(s)
	d.ranges(s)
	d.forbidden()
	d.extensions(s)
	d.object(s)
	d.items(s)
	d.rules(s)
	s.AllOf, s.AnyOf, s.OneOf = d.branches("allOf"), d.branches("anyOf"), d.branches("oneOf")
	if not := d.child("not"); not != nil {
		s.Not = r.schema(not, place{at.path.Field("not"), atNested, at.depth + 1})
	}
	return s
}

// node is a schema of the document that is being read.
type node struct {
	doc map[string]any
	*openAPIReader
	at place
}

var openAPITypes = map[string]Type{
	"object": Object, "array": Array, "string": String, "integer": Integer, "number": Number, "boolean": Boolean,
}

func (d node) path(field string) *check.Path { return d.at.path.Field(field) }

// wrongType reports a keyword with a value of the wrong JSON type.
func (d node) wrongType(field, want string) {
	d.unread = true
	d.faults.WrongType(d.path(field), d.doc[field], want)
}

func (d node) text(field string) string {
	s, ok := d.doc[field].(string)
	if !ok && d.doc[field] != nil {
		d.wrongType(field, "a string")
	}
	return s
}

func (d node) flag(field string) bool {
	b, ok := d.doc[field].(bool)
	if !ok && d.doc[field] != nil {
		d.wrongType(field, "a boolean")
	}
	return b
}

func (d node) child(field string) map[string]any {
	m, ok := d.doc[field].(map[string]any)
	if !ok && d.doc[field] != nil {
		d.wrongType(field, "an object")
	}
	return m
}

func (d node) list(field string) []any {
	l, ok := d.doc[field].([]any)
	if !ok && d.doc[field] != nil {
		d.wrongType(field, "a list")
	}
	return l
}

func (d node) texts(field string) []string {
	var out []string
	for i, v := range d.list(field) {
		s, ok := v.(string)
		if !ok {
			d.faults.WrongType(d.path(field).Index(i), v, "a string")
			continue
		}
		out = append(out, s)
	}
	return out
}

func (d node) count(field string) *int64 {
	switch n := d.doc[field].(type) {
	case nil:
	case int64:
		return &n
	default:
		d.wrongType(field, "an integer")
	}
	return nil
}

func (d node) number(field string) *float64 {
	switch n := d.doc[field].(type) {
	case nil:
	case float64:
		return &n
	case int64:
		f := float64(n)
		return &f
	default:
		d.wrongType(field, "a number")
	}
	return nil
}

func (d node) basics(s *Schema) {
	d.dialect = d.dialect || d.text("$schema") != ""
	s.Doc, s.Title, s.Format = d.text("description"), d.text("title"), d.text("format")
	for _, field := range []string{"example", "externalDocs"} {
		if v := d.doc[field]; v != nil {
			if s.Shown == nil {
				s.Shown = map[string]any{}
			}
			s.Shown[field] = v
		}
	}
	s.Nullable, s.UniqueItems = d.flag("nullable"), d.flag("uniqueItems")
	s.Default, s.Enum = d.doc["default"], d.list("enum")
	if word := d.text("type"); word != "" {
		t, ok := openAPITypes[word]
		if !ok {
			d.unfit = true
			d.faults.NotSupported(d.path("type"), word, slices.Sorted(maps.Keys(openAPITypes))...)
			if word == "null" {
				d.faults.Forbidden(d.path("type"), "type cannot be set to null, use nullable as an alternative")
			}
		}
		s.Type = t
	}
	if s.Pattern = d.text("pattern"); s.Pattern != "" {
		var err error
		if s.re, err = d.pattern(s.Pattern); err != nil {
			d.faults.Invalid(d.path("pattern"), s.Pattern, "must be a valid regular expression, but isn't: "+err.Error())
			s.Pattern, d.unfit = "", true
		}
	}
}

// pattern compiles text, once for all values that use it.
func (r *openAPIReader) pattern(text string) (*pattern, error) {
	if re := r.patterns[text]; re != nil {
		return re, nil
	}
	re, err := compilePattern(text)
	if err != nil {
		return nil, err
	}
	r.patterns[text] = re
	return re, nil
}

func (d node) ranges(s *Schema) {
	s.Minimum, s.Maximum, s.MultipleOf = d.number("minimum"), d.number("maximum"), d.number("multipleOf")
	s.ExclusiveMin, s.ExclusiveMax = d.flag("exclusiveMinimum"), d.flag("exclusiveMaximum")
	s.MinLength, s.MaxLength = d.count("minLength"), d.count("maxLength")
	s.MinItems, s.MaxItems = d.count("minItems"), d.count("maxItems")
	s.MinProperties, s.MaxProperties = d.count("minProperties"), d.count("maxProperties")
}

// forbidden reports unsupported keywords of OpenAPI and JSON schema.
func (d node) forbidden() {
	for _, field := range []string{"$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"} {
		if v := d.doc[field]; v != nil && v != "" && (v != false || field == "additionalItems") {
			d.unread = true
			d.faults.Forbidden(d.path(field), field+" is not supported")
		}
	}
	if d.flag("uniqueItems") {
		d.faults.Forbidden(d.path("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
	}
}

func (d node) properties(s *Schema) {
	properties := d.child("properties")
	if len(properties) == 0 {
		return
	}
	at := d.path("properties")
	for _, name := range sortedKeys(properties) {
		path := at.Key(name)
		m, ok := properties[name].(map[string]any)
		if !ok {
			d.unread = true
			d.faults.WrongType(path, properties[name], "an object")
			continue
		}
		if s.Struct == nil {
			s.Struct = &Struct{Fields: make([]*Field, 0, len(properties)), byName: make(map[string]*Field, len(properties))}
		}
		s.Struct.Add(&Field{Name: name, Schema: d.schema(m, d.at.below(path, atField)), OmitEmpty: true, Pointer: true})
	}
}

func sortedKeys(m map[string]any) []string {
	keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}

func (d node) object(s *Schema) {
	d.properties(s)
	for _, name := range d.texts("required") {
		if f := s.Struct.Field(name); f != nil {
			f.Required, f.Expected = true, true
		}
		s.Required = append(s.Required, name)
	}
	switch more := d.doc["additionalProperties"].(type) {
	case nil:
		return
	case bool:
		s.Values = &Schema{Nullable: true, Forbidden: !more} // the values are not described
	case map[string]any:
		s.Values = d.schema(more, d.at.below(d.path("additionalProperties"), atField))
	default:
		d.wrongType("additionalProperties", "an object or a boolean")
	}
	if len(d.child("properties")) > 0 && d.doc["additionalProperties"] != true {
		d.faults.Forbidden(d.path("additionalProperties"), "additionalProperties and properties are mutual exclusive")
	}
}

func (d node) items(s *Schema) {
	switch items := d.doc["items"].(type) {
	case nil:
	case map[string]any:
		s.Items = d.schema(items, d.at.below(d.path("items"), atItem))
	case []any:
		d.unread = true
		d.faults.Forbidden(d.path("items"), "items must be a schema object and not an array")
	default:
		d.wrongType("items", "an object")
	}
}

func (d node) branches(field string) []*Schema {
	var out []*Schema
	for i, v := range d.list(field) {
		path := d.path(field).Index(i)
		m, ok := v.(map[string]any)
		if !ok {
			d.unread = true
			d.faults.WrongType(path, v, "an object")
			continue
		}
		out = append(out, d.schema(m, place{path, atNested, d.at.depth + 1}))
	}
	return out
}

func (d node) extensions(s *Schema) {
	word := &d.words
	s.Preserve = d.flag(word.preserve)
	s.IntOrString = d.flag(word.intOrString)
	s.Embedded = d.flag(word.embedded)
	s.ListType = d.text(word.listType)
	s.ListKeys = d.texts(word.listKeys)
	s.MapType = d.text(word.mapType)
	if d.doc[word.preserve] == false {
		d.faults.Invalid(d.path(word.preserve), false, "must be true or undefined")
	}
	if s.ListType != "" || d.doc[word.listType] == "" {
		d.faults.OneOf(d.path(word.listType), s.ListType, "atomic", "set", "map")
	}
	if s.MapType != "" || d.doc[word.mapType] == "" {
		d.faults.OneOf(d.path(word.mapType), s.MapType, "atomic", "granular")
	}
}
