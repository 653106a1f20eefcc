package schema

import (
	"maps"
	"slices"

	"orch.io/controlplane/api/check"
)

// structural checks that a document without other errors is a structural schema. It walks the
// document and the Schema built from it in parallel.
type structural struct {
	words    extensions
	faults   check.Violations
	keywords check.Violations // violations that do not affect whether the schema is structural; reported last
}

// value checks a schema that declares a value, and everything below it.
func (c *structural) value(doc map[string]any, s *Schema, at place) {
	path := at.path
	if s.Type == Array && s.Items == nil {
		c.faults.Required(path.Field("items"), "must be specified")
	}
	c.below(doc, s, at)
	c.extensions(doc, s, path)
	c.listsAndMaps(doc, s, path)
	c.combinations(doc, s, path)
	c.checkType(doc, s, at)
	if at.level == atRoot {
		c.root(doc, s, path)
		c.complete(s, s, path, path)
	}
	if at.level == atRoot || s.Embedded {
		c.objectFields(s, path)
	}
	if m := s.Struct.Field("metadata"); m != nil {
		c.metadata(doc, m.Schema, at, at.level == atRoot || s.Embedded)
	}
}

func (c *structural) below(doc map[string]any, s *Schema, at place) {
	if s.Items != nil {
		c.value(mapAt(doc, "items"), s.Items, at.below(at.path.Field("items"), atItem))
	}
	if m := mapAt(doc, "additionalProperties"); m != nil {
		c.value(m, s.Values, at.below(at.path.Field("additionalProperties"), atField))
	}
	if s.Struct == nil {
		return
	}
	properties, path := mapAt(doc, "properties"), at.path.Field("properties")
	for _, f := range s.Struct.Fields {
		c.value(mapAt(properties, f.Name), f.Schema, at.below(path.Key(f.Name), atField))
	}
}

func mapAt(m map[string]any, field string) map[string]any {
	v, _ := m[field].(map[string]any)
	return v
}

// checkType checks that the value has a type unless an extension makes it unnecessary.
func (c *structural) checkType(doc map[string]any, s *Schema, at place) {
	switch {
	case s.Embedded:
		typeMustBe(&c.faults, s, at.path, Object, "must be object if "+c.words.embedded+" is true")
	case doc["type"] != nil && doc["type"] != "" || s.IntOrString || s.Preserve:
	case at.level == atRoot:
		c.faults.Required(at.path.Field("type"), "must not be empty at the root")
	case at.level == atItem:
		c.faults.Required(at.path.Field("type"), "must not be empty for specified array items")
	default:
		c.faults.Required(at.path.Field("type"), "must not be empty for specified object fields")
	}
}

// typeMustBe checks the type that another keyword requires.
func typeMustBe(faults *check.Violations, s *Schema, path *check.Path, t Type, why string) {
	switch s.Type {
	case t:
	case Any:
		faults.Required(path.Field("type"), why)
	default:
		faults.Invalid(path.Field("type"), s.Type.String(), why)
	}
}

func (c *structural) root(doc map[string]any, s *Schema, path *check.Path) {
	if s.Type != Any && s.Type != Object {
		c.faults.Invalid(path.Field("type"), s.Type.String(), "must be object at the root")
	}
	if doc["additionalProperties"] != nil {
		c.faults.Forbidden(path.Field("additionalProperties"), "must not be used at the root")
	}
	if s.Nullable {
		c.faults.Forbidden(path.Field("nullable"), "nullable cannot be true at the root")
	}
}

// objectFields checks the types of apiVersion and kind.
func (c *structural) objectFields(s *Schema, path *check.Path) {
	for _, name := range []string{"apiVersion", "kind"} {
		if f := s.Struct.Field(name); f != nil && f.Schema.Type != String {
			c.faults.Invalid(path.Field("properties").Key(name).Field("type"), f.Schema.Type.String(), "must be string")
		}
	}
}

// metadata checks that the schema only restricts the names in the metadata of objects, which
// the server declares.
func (c *structural) metadata(doc map[string]any, s *Schema, at place, whole bool) {
	path := at.path.Field("properties").Key("metadata")
	if whole && s.Type != Object {
		c.faults.Invalid(path.Field("type"), s.Type.String(), "must be object")
	}
	if at.level != atRoot {
		return
	}
	for k, v := range mapAt(mapAt(doc, "properties"), "metadata") {
		switch k {
		case "type", "default": // defaults are checked by defaultsChecker
			continue
		case "properties":
			fields, _ := v.(map[string]any)
			if !slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(f string) bool { return f != "name" && f != "generateName" }) {
				continue
			}
		}
		c.faults.Forbidden(path, "must not specify anything other than name and generateName, but metadata is implicitly specified")
		return
	}
}

func (c *structural) extensions(doc map[string]any, s *Schema, path *check.Path) {
	word := &c.words
	if s.IntOrString && s.Preserve {
		c.faults.Invalid(path.Field(word.preserve), true, "must be false if "+word.intOrString+" is true")
	}
	if s.IntOrString && s.Embedded {
		c.faults.Invalid(path.Field(word.embedded), true, "must be false if "+word.intOrString+" is true")
	}
	if s.Embedded && doc["additionalProperties"] != nil {
		c.faults.Forbidden(path.Field("additionalProperties"), "must not be used if "+word.embedded+" is set")
	}
	if s.Embedded && !s.Preserve && s.Struct == nil {
		c.faults.Required(path.Field("properties"), "must not be empty if "+word.embedded+" is true without "+word.preserve)
	}
}

// listsAndMaps checks the list type, list keys and map type.
func (c *structural) listsAndMaps(doc map[string]any, s *Schema, path *check.Path) {
	word := &c.words
	if doc[word.mapType] != nil {
		typeMustBe(&c.keywords, s, path, Object, "must be object if "+word.mapType+" is specified")
	}
	if doc[word.listType] != nil {
		typeMustBe(&c.keywords, s, path, Array, "must be array if "+word.listType+" is specified")
	}
	if len(s.ListKeys) > 0 && s.ListType != "map" {
		why := "must be map if " + word.listKeys + " is non-empty"
		if s.ListType == "" {
			c.keywords.Required(path.Field(word.listType), why)
		} else {
			c.keywords.Invalid(path.Field(word.listType), s.ListType, why)
		}
	}
	if s.ListType == "map" && len(s.ListKeys) == 0 {
		c.keywords.Required(path.Field(word.listKeys), "must not be empty if "+word.listType+" is map")
	}
	if s.Items == nil {
		if s.ListType == "map" {
			c.keywords.Required(path.Field("items"), "must have a schema if "+word.listType+" is map")
		}
		return
	}
	switch s.ListType {
	case "map":
		c.mapItems(s, path)
	case "set":
		c.setItems(s, path.Field("items"))
	}
}

func (c *structural) mapItems(s *Schema, path *check.Path) {
	items, at := s.Items, path.Field("items")
	if items.Type != Object {
		typeMustBe(&c.keywords, items, at, Object, "must be object if parent array's "+c.words.listType+" is map")
		return
	}
	word, known := &c.words, true
	if items.Nullable {
		c.keywords.Forbidden(at.Field("nullable"), "cannot be nullable when "+word.listType+" is map")
	}
	seen := make(map[string]bool, len(s.ListKeys))
	for _, key := range s.ListKeys {
		if seen[key] {
			c.keywords.Invalid(path.Field(word.listKeys), s.ListKeys, "must not contain duplicate entries")
			return
		}
		seen[key] = true
		f := items.Struct.Field(key)
		if f == nil {
			known = false
			continue
		}
		prop := at.Field("properties").Key(key)
		if f.Schema.Type == Object || f.Schema.Type == Array {
			c.keywords.Invalid(prop.Field("type"), items.Type.String(), "must be a scalar type if parent array's "+word.listType+" is map")
		}
		if f.Schema.Default == nil && !f.Required {
			c.keywords.Required(prop.Field("default"), "this property is in "+word.listKeys+", so it must have a default or be a required property")
		}
		if f.Schema.Nullable {
			c.keywords.Forbidden(prop.Field("nullable"), "this property is in "+word.listKeys+", so it cannot be nullable")
		}
	}
	if !known {
		c.keywords.Invalid(path.Field(word.listKeys), s.ListKeys, "entries must all be names of item properties")
	}
}

func (c *structural) setItems(s *Schema, at *check.Path) {
	items := s.Items
	if items.Nullable {
		c.keywords.Forbidden(at.Field("nullable"), "cannot be nullable when "+c.words.listType+" is set")
	}
	why := "must be atomic as item of a list with " + c.words.listType + "=set"
	switch {
	case s.Type != Array: // reported already
	case items.Type == Array && items.ListType != "" && items.ListType != "atomic":
		c.keywords.Invalid(at.Field(c.words.listType), items.ListType, why)
	case items.Type == Object && items.MapType != "atomic":
		c.keywords.Invalid(at.Field(c.words.mapType), nil, why)
	}
}

// combinations checks allOf, anyOf, oneOf and not of s. They may declare types only in the two
// usual ways to write an integer or string.
func (c *structural) combinations(doc map[string]any, s *Schema, path *check.Path) {
	anyOf, _ := doc["anyOf"].([]any)
	allOf, _ := doc["allOf"].([]any)
	c.branches(doc, s, path, isIntOrString(anyOf), len(allOf) >= 1 && isIntOrString(listAt(allOf[0], "anyOf")))
}

func listAt(v any, field string) []any {
	m, _ := v.(map[string]any)
	l, _ := m[field].([]any)
	return l
}

// isIntOrString reports whether l is [{type: integer}, {type: string}].
func isIntOrString(l []any) bool {
	if len(l) != 2 {
		return false
	}
	for i, want := range []string{"integer", "string"} {
		m, _ := l[i].(map[string]any)
		if len(m) != 1 || m["type"] != want {
			return false
		}
	}
	return true
}

// branches checks the combinations of the schema in, which was read from doc. freeAny and
// freeAll exempt anyOf and the first branch of allOf.
func (c *structural) branches(doc map[string]any, in *Schema, path *check.Path, freeAny, freeAll bool) {
	for _, b := range in.combined() {
		docs, _ := doc[b.word].([]any)
		for i, s := range b.list {
			m, _ := docs[i].(map[string]any)
			if b.word == "anyOf" && freeAny {
				continue
			}
			c.nested(m, s, path.Field(b.word).Index(i), b.word == "allOf" && freeAll && i == 0)
		}
	}
	if in.Not != nil {
		c.nested(mapAt(doc, "not"), in.Not, path.Field("not"), false)
	}
}

// combination holds the branches of allOf, anyOf or oneOf.
type combination struct {
	word string
	list []*Schema
}

func (s *Schema) combined() []combination {
	return []combination{{"allOf", s.AllOf}, {"anyOf", s.AnyOf}, {"oneOf", s.OneOf}}
}

// nested checks a schema inside a combination, which may validate values but not declare them.
func (c *structural) nested(doc map[string]any, s *Schema, path *check.Path, freeAny bool) {
	c.onlyValidates(doc, path)
	c.listsAndMaps(doc, s, path)
	c.branches(doc, s, path, freeAny, false)
	if s.Items != nil {
		c.nested(mapAt(doc, "items"), s.Items, path.Field("items"), false)
	}
	properties := mapAt(doc, "properties")
	for _, f := range s.fields() {
		at := path.Field("properties").Key(f.Name)
		if f.Name == "metadata" {
			c.faults.Forbidden(at, "must not be specified in a nested context")
		}
		c.nested(mapAt(properties, f.Name), f.Schema, at, false)
	}
}

// complete checks that all fields in combinations of the root are declared outside of them.
// Like the reference server, it does not check combinations below the root.
func (c *structural) complete(in, outside *Schema, at, declared *check.Path) {
	for _, b := range in.combined() {
		for i, s := range b.list {
			c.isDeclared(s, outside, at.Field(b.word).Index(i), declared)
		}
	}
	if in.Not != nil {
		c.isDeclared(in.Not, outside, at.Field("not"), declared)
	}
}

func (c *structural) isDeclared(s, outside *Schema, at, declared *check.Path) {
	if outside == nil {
		c.faults.Required(declared, "because it is defined in "+at.String())
		return
	}
	c.complete(s, outside, at, declared)
	if s.Items != nil {
		c.isDeclared(s.Items, outside.Items, at.Field("items"), declared.Field("items"))
	}
	for _, f := range s.fields() {
		var same *Schema
		if d := outside.Struct.Field(f.Name); d != nil {
			same = d.Schema
		}
		c.isDeclared(f.Schema, same, at.Field("properties").Key(f.Name), declared.Field("properties").Key(f.Name))
	}
}

// onlyValidates rejects keywords that declare values.
func (c *structural) onlyValidates(doc map[string]any, path *check.Path) {
	for _, k := range []struct{ word, must string }{
		{"type", "empty"}, {"additionalProperties", "undefined"}, {"default", "undefined"}, {"title", "empty"}, {"description", "empty"}, {"nullable", "false"},
		{c.words.preserve, "false"}, {c.words.embedded, "false"}, {c.words.intOrString, "false"},
		{c.words.listType, "undefined"}, {c.words.listKeys, "empty"}, {c.words.mapType, "undefined"},
		{c.words.rules, "empty"},
	} {
		if v := doc[k.word]; v != nil && v != "" && v != false {
			c.faults.Forbidden(path.Field(k.word), "must be "+k.must+" to be structural")
		}
	}
}
