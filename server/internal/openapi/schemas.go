package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
)

// kind defines the objects of a version and returns the name of the definition.
func (b *builder) kind(v *resource.Version) string {
	b.canonical = !isCustom(v)
	if b.canonical {
		if name := b.nameOf(v.Schema().Struct); name != "" {
			b.ofKind(b.tree(name), v.GVK())
			b.rules(b.tree(name), v.Schema().Rules)
			return name
		}
	}
	name := b.unique(b.customName(v))
	if b.canonical {
		b.definitions[name] = b.custom(v)
		return name
	}
	b.addObjectFields(map[string]any{}) // adds the definitions that it refers to before the document is encoded
	b.definitions[name] = func() map[string]any {
		b.canonical = false
		return b.custom(v)
	}
	return name
}

// isCustom reports whether the schema of a version does not come from a Go type.
func isCustom(v *resource.Version) bool {
	return v.Defined() || v.Schema() == nil || !v.Schema().Struct.Canonical()
}

// customName returns the definition name of objects without a Go type.
func (b *builder) customName(v *resource.Version) string {
	domain := strings.Split(v.Group, ".")
	slices.Reverse(domain)
	return strings.Join(append(domain, v.Name, v.Kind), ".")
}

// custom returns the definition of objects without a Go type.
func (b *builder) custom(v *resource.Version) map[string]any {
	def := map[string]any{"type": "object", b.names.Extension("preserve-unknown-fields"): true}
	switch s := v.Documented(); {
	case b.dialect == v2 && s != nil && s.Preserve:
		def = map[string]any{"type": "object"} // a stricter definition could reject valid objects
	case s != nil:
		def = b.addObjectFields(b.inline(s))
	default:
		def = b.addObjectFields(def)
	}
	b.ofKind(def, v.GVK())
	b.selectable(def, v)
	return def
}

// selectable adds the selectable fields of a custom kind to the definition of its objects or lists.
func (b *builder) selectable(def map[string]any, v *resource.Version) {
	var list []any
	for _, f := range v.Selectables {
		list = append(list, map[string]any{"fieldPath": f.Name})
	}
	if list != nil && isCustom(v) {
		def[b.names.Extension("selectable-fields")] = list
	}
}

// list defines the lists of a version and returns the name of the definition.
func (b *builder) list(v *resource.Version, item string) string {
	name, known := b.lists[item+" "+v.ListKind]
	def := b.tree(name)
	if !known {
		name = b.unique(listName(item, v))
		b.lists[item+" "+v.ListKind] = name
		b.canonical = true
		def = b.structure(schemaOf[list](b.names).Struct)
		def["properties"].(map[string]any)["items"] = map[string]any{
			"type": "array", "items": b.refer(item), "description": "Items are the objects of the list."}
		def["required"] = []any{"items"}
		def["description"] = v.ListKind + " is a list of " + v.Kind + "."
		b.definitions[name] = def
	}
	b.ofKind(def, v.ListGVK())
	b.selectable(def, v)
	return name
}

// listName returns the definition name of a version's lists.
func listName(name string, v *resource.Version) string {
	return name[:strings.LastIndexByte(name, '.')+1] + v.ListKind
}

// addObjectFields adds the fields that every object has to the definition of a custom kind.
func (b *builder) addObjectFields(def map[string]any) map[string]any {
	properties, ok := def["properties"].(map[string]any)
	if !ok {
		properties = map[string]any{}
		def["properties"] = properties
	}
	was := b.canonical
	b.canonical = true
	for field, p := range b.structure(schemaOf[object](b.names).Struct)["properties"].(map[string]any) {
		properties[field] = p
	}
	b.canonical = was
	return def
}

// ofKind adds a kind to the kinds that a definition describes.
func (b *builder) ofKind(def map[string]any, k meta.GroupVersionKind) {
	b.ofKinds(def, []any{kindTree(k)})
}

// schemaOf returns the schema of a type in common.go. A test ensures that it cannot fail.
func schemaOf[T any](p names.Profile) *schema.Schema {
	s, err := schema.Go(reflect.TypeFor[T](), p)
	if err != nil {
		return &schema.Schema{Struct: &schema.Struct{}}
	}
	return s
}

// common defines a type in common.go and returns the name of the definition.
func common[T any](b *builder) string {
	s := schemaOf[T](b.names)
	was := b.canonical
	b.canonical = true
	defer func() { b.canonical = was }()
	return b.nameOf(s.Struct)
}

// nameOf returns the definition name of a struct, and defines the struct if it is not defined yet. The name is empty
// for an anonymous struct.
func (b *builder) nameOf(st *schema.Struct) string {
	if name, ok := b.defined[st]; ok {
		return name
	}
	name := st.Name
	if st.Go != nil && st.Go.PkgPath() == reflect.TypeFor[Status]().PkgPath() {
		name = b.names.DefinitionName(wellknown.MetaDefinitions, st.Go.Name())
	}
	if name == "" {
		return ""
	}
	name = b.unique(name)
	b.defined[st] = name
	b.define(name, st)
	return name
}

// unique returns a free definition name: want, or want with a number appended.
func (b *builder) unique(want string) string {
	name := want
	for i := 2; b.definitions[name] != nil; i++ {
		name = want + "_" + strconv.Itoa(i)
	}
	return name
}

func (b *builder) define(name string, st *schema.Struct) {
	b.definitions[name] = map[string]any{} // reserves the name, because the struct may refer to itself
	def := b.structure(st)
	if text := b.docs.Struct(st); text != "" {
		def["description"] = rename(text, st, name)
	}
	b.definitions[name] = def
}

// rename replaces the name of the Go type at the beginning of a comment by the name that clients know.
func rename(text string, st *schema.Struct, name string) string {
	if st.Go == nil {
		return text
	}
	if rest, ok := strings.CutPrefix(text, st.Go.Name()+" "); ok {
		return name[strings.LastIndexByte(name, '.')+1:] + " " + rest
	}
	return text
}

// structure returns the definition of a struct.
func (b *builder) structure(st *schema.Struct) map[string]any {
	def := map[string]any{"type": "object"}
	properties := map[string]any{}
	var required []any
	for _, f := range st.Fields {
		properties[f.Name] = b.value(f.Schema, b.docs.Field(st, f))
		if f.Expected {
			required = append(required, f.Name)
		}
	}
	if len(properties) > 0 {
		def["properties"] = properties
	}
	if required != nil {
		def["required"] = required
	}
	if m := st.MapType(); m != "" {
		def[b.names.Extension("map-type")] = m
	}
	return def
}

// value returns the definition of a value: a reference if its type has a definition name, otherwise an inline
// definition.
func (b *builder) value(s *schema.Schema, doc string) map[string]any {
	switch {
	case s == nil:
		return map[string]any{}
	case s.Wire == schema.OrBoolean, s.Wire == schema.OrList: // an object or another type, which OpenAPI types cannot express
		return describedBy(doc)
	}
	name := b.form(s)
	if name == "" && s.Struct != nil && s.Struct.Canonical() {
		name = b.nameOf(s.Struct)
	}
	var def map[string]any
	if name == "" {
		def = b.inline(s)
	} else {
		def = map[string]any{}
		b.extensions(def, s)
		if s.Default != nil {
			def["default"] = s.Default
		}
	}
	if doc != "" {
		def["description"] = doc
	}
	if name == "" {
		return def
	}
	return b.withRef(name, def)
}

func describedBy(doc string) map[string]any {
	if doc == "" {
		return map[string]any{}
	}
	return map[string]any{"description": doc}
}

func (b *builder) pointer(name string) string {
	if b.dialect == v2 {
		return "#/definitions/" + name
	}
	return "#/components/schemas/" + name
}

func (b *builder) refer(name string) map[string]any {
	return map[string]any{"$ref": b.pointer(name)}
}

// withRef adds a reference to a definition that may have other members. Version 3 does not allow members beside a
// reference, so the reference goes into an allOf.
func (b *builder) withRef(name string, def map[string]any) map[string]any {
	if b.dialect == v2 || len(def) == 0 {
		def["$ref"] = b.pointer(name)
		return def
	}
	def["allOf"] = []any{b.refer(name)}
	return def
}

// form returns the definition name of a type that is not a struct, such as a quantity, or "". Only schemas from Go
// types have such definitions.
func (b *builder) form(s *schema.Schema) string {
	if !b.canonical {
		return ""
	}
	var name string
	var def map[string]any
	switch s.Wire {
	case schema.Time:
		name, def = wellknown.MetaDefinitions+".Time", map[string]any{"type": "string", "format": "date-time",
			"description": "Time is a moment in RFC 3339, in whole seconds."}
	case schema.MicroTime:
		name, def = wellknown.MetaDefinitions+".MicroTime", map[string]any{"type": "string", "format": "date-time",
			"description": "MicroTime is a moment in RFC 3339, in microseconds."}
	case schema.Duration:
		name, def = wellknown.MetaDefinitions+".Duration", map[string]any{"type": "string",
			"description": "Duration is a span of time such as 1h2m3s."}
	case schema.Fields:
		name, def = wellknown.MetaDefinitions+".FieldsV1", map[string]any{"type": "object",
			"description": "FieldsV1 is a set of fields: keys begin with f: for a field, k: or v: for an item of a list; \".\" is the value itself."}
	case schema.Quantity:
		name, def = wellknown.QuantityForm, b.either("number", map[string]any{
			"description": "Quantity is a number with a suffix: m, k, M, G, T, P, E, or Ki, Mi, Gi, Ti, Pi, Ei, or a decimal exponent."})
	case schema.IntOrString:
		name, def = wellknown.IntOrStringForm, b.either("integer", map[string]any{"format": "int-or-string",
			"description": "IntOrString is an integer or a string."})
	case schema.Raw:
		if s.Type != schema.Object {
			return ""
		}
		name, def = wellknown.RawExtensionForm, map[string]any{"type": "object", "description": "RawExtension is any object."}
	default:
		return ""
	}
	name = b.names.DefinitionName(name)
	b.definitions[name] = def
	return name
}

// either completes the definition of a string that may also be written as another type.
func (b *builder) either(other string, def map[string]any) map[string]any {
	if b.dialect == v2 {
		def["type"] = "string"
		return def
	}
	def["oneOf"] = []any{map[string]any{"type": other}, map[string]any{"type": "string"}}
	return def
}

var typeNames = [...]string{schema.Any: "", schema.Object: "object", schema.Array: "array", schema.String: "string",
	schema.Integer: "integer", schema.Number: "number", schema.Boolean: "boolean"}

// inline returns the inline definition of a value.
func (b *builder) inline(s *schema.Schema) map[string]any {
	def := map[string]any{}
	if s.Struct != nil {
		def = b.structure(s.Struct)
		delete(def, "type") // the type is set below; a condition may have fields without a type
	}
	if !b.canonical && s.Required != nil {
		def["required"] = meta.StringList(s.Required) // may include fields without a description
	}
	if t := typeNames[s.Type]; t != "" {
		def["type"] = t
	}
	if s.Format != "" {
		def["format"] = s.Format
	}
	switch {
	case s.Values == nil:
	case !b.canonical && s.Values.Type == schema.Any && !s.Values.IntOrString && !s.Values.Preserve:
		def["additionalProperties"] = !s.Values.Forbidden // the values are not described further
	default:
		def["additionalProperties"] = b.value(s.Values, s.Values.Doc)
	}
	if s.Items != nil {
		def["items"] = b.value(s.Items, s.Items.Doc)
	}
	for key, text := range map[string]string{"description": s.Doc, "title": s.Title, "pattern": s.Pattern} {
		if text != "" {
			def[key] = text
		}
	}
	maps.Copy(def, s.Shown)
	if s.Default != nil {
		def["default"] = s.Default
	}
	if s.Enum != nil {
		def["enum"] = s.Enum
	}
	b.bounds(def, s)
	b.extensions(def, s)
	if b.dialect == v2 {
		b.simplify(def, s)
		return def
	}
	b.combined(def, s)
	return def
}

func (b *builder) bounds(def map[string]any, s *schema.Schema) {
	for key, n := range map[string]*int64{"minLength": s.MinLength, "maxLength": s.MaxLength, "minItems": s.MinItems,
		"maxItems": s.MaxItems, "minProperties": s.MinProperties, "maxProperties": s.MaxProperties} {
		if n != nil {
			def[key] = *n
		}
	}
	for key, n := range map[string]*float64{"minimum": s.Minimum, "maximum": s.Maximum, "multipleOf": s.MultipleOf} {
		if n != nil {
			def[key] = *n
		}
	}
	for key, is := range map[string]bool{"exclusiveMinimum": s.ExclusiveMin, "exclusiveMaximum": s.ExclusiveMax, "uniqueItems": s.UniqueItems} {
		if is {
			def[key] = true
		}
	}
}

// extensions adds the extensions that clients read.
func (b *builder) extensions(def map[string]any, s *schema.Schema) {
	mapType := s.MapType
	if s.Struct != nil && mapType == s.Struct.MapType() {
		mapType = "" // structure has set it
	}
	for key, text := range map[string]string{"list-type": s.ListType, "map-type": mapType,
		"patch-strategy": s.PatchStrategy, "patch-merge-key": s.PatchMergeKey} {
		if text != "" {
			def[b.names.Extension(key)] = text
		}
	}
	if s.ListKeys != nil {
		def[b.names.Extension("list-map-keys")] = meta.StringList(s.ListKeys)
	}
	b.rules(def, s.Rules)
	for key, is := range map[string]bool{
		"preserve-unknown-fields": s.Preserve && (s.Wire == schema.Plain || s.Type == schema.Any),
		"int-or-string":           s.IntOrString && !b.canonical, "embedded-resource": s.Embedded,
	} {
		if is {
			def[b.names.Extension(key)] = true
		}
	}
	if s.Nullable && b.dialect == v3 {
		def["nullable"] = true
	}
	if s.Embedded && !b.canonical {
		b.object(def)
	}
}

// object adds the fields of a whole object to the definition of an embedded resource.
func (b *builder) object(def map[string]any) {
	b.addObjectFields(def)
	required, _ := def["required"].([]any)
	for _, name := range []any{"apiVersion", "kind"} {
		if !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	def["required"] = required
}

// rules adds validation rules to a definition.
func (b *builder) rules(def map[string]any, rules []schema.Rule) {
	var list []any
	for _, r := range rules {
		rule := map[string]any{"rule": r.Expression}
		for key, text := range map[string]string{
			"message": r.Message, "messageExpression": r.MessageExpression, "reason": r.Reason, "fieldPath": r.FieldPath,
		} {
			if text != "" {
				rule[key] = text
			}
		}
		if r.Created != nil {
			rule["optionalOldSelf"] = *r.Created
		}
		list = append(list, rule)
	}
	if list != nil {
		def[b.names.Extension("validations")] = list
	}
}

// combined adds the members that only version 3 supports.
func (b *builder) combined(def map[string]any, s *schema.Schema) {
	if s.IntOrString && !b.canonical {
		def["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}} // replaced below by the anyOf of the schema, if it has one
	}
	for key, list := range map[string][]*schema.Schema{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		var all []any
		for _, e := range list {
			all = append(all, b.inline(e))
		}
		if all != nil {
			def[key] = all
		}
	}
	if s.Not != nil {
		def["not"] = b.inline(s.Not)
	}
	if s.Deprecated {
		def["deprecated"] = true
	}
}

// simplify removes members of a custom kind that clients of version 2 would interpret more strictly than the server.
// The type and structure of a value are removed if it may be null, may have several types, or may have unknown
// fields.
func (b *builder) simplify(def map[string]any, s *schema.Schema) {
	if b.canonical {
		return
	}
	b.relax(def, s)
	if s.Nullable || s.IntOrString || s.Preserve {
		for _, key := range []string{"type", "items", "properties", "additionalProperties", "required"} {
			delete(def, key)
		}
		if s.Preserve && !s.Nullable && s.Type == schema.Object {
			def["type"] = "object"
		}
	}
}

// relax removes nullable fields from the required fields, because clients of version 2 treat a null as a missing
// field.
func (b *builder) relax(def map[string]any, s *schema.Schema) {
	required, _ := def["required"].([]any)
	required = slices.DeleteFunc(required, func(name any) bool {
		f := s.Struct.Field(name.(string))
		return f != nil && f.Schema.Nullable
	})
	if len(required) == 0 {
		delete(def, "required")
		return
	}
	def["required"] = required
}
