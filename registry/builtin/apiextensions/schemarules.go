package apiextensions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/registry"
)

// checkSchema checks the schema of a version: its structure, then its CEL rules, then its defaults
// against the rules. A later step runs only if the earlier steps found no violation.
func (d *definition) checkSchema(ctx context.Context, at *check.Path, v *meta.Object) {
	doc := v.Map("schema", "openAPIV3Schema")
	if doc == nil {
		return
	}
	at = at.Field("openAPIV3Schema")
	if v.Map("subresources", "status") != nil {
		d.checkRootWithStatus(at, doc)
	}
	s, causes := schema.OpenAPI(doc, d.names, at)
	if len(causes) > 0 && d.preservesUnknownFields() {
		return // kinds with preserveUnknownFields ignore such a schema, see registry.FromCRD
	}
	if len(causes) == 0 {
		if d.rules >= maxRules {
			d.faults.Forbidden(at, fmt.Sprintf("the versions of a definition may have at most %d rules together", maxRules))
			return
		}
		var rules *cel.Rules
		rules, causes = cel.Compile(ctx, s, d.names, at)
		d.rules += rules.Count()
	}
	if len(causes) == 0 {
		c := defaultRules{definition: d}
		c.find(ctx, s, at)
		causes = c.faults
	}
	d.faults = append(d.faults, causes...)
}

// checkRootWithStatus rejects keywords at the root that restrict the object as a whole, because with a
// status subresource spec and status are validated separately.
func (d *definition) checkRootWithStatus(at *check.Path, doc map[string]any) {
	refused := []string{"default", "enum", "maxProperties", "minProperties", "additionalProperties", "allOf", "anyOf", "oneOf", "not", "nullable"}
	for _, extension := range []string{"embedded-resource", "int-or-string", "list-type", "list-map-keys", "map-type"} {
		refused = append(refused, d.names.Extension(extension))
	}
	if slices.ContainsFunc(refused, func(word string) bool { return doc[word] != nil && doc[word] != false }) {
		d.faults.Invalid(at, "", "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems "+
			"MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed "+
			"at the root of the schema if the status subresource is enabled")
	}
}

// defaultRules checks that defaults satisfy the CEL rules of their schemas. The rules must compile.
type defaultRules struct {
	*definition
	faults []meta.StatusCause
}

// find checks the defaults in a schema. It does not descend into maps, because their values have no defaults.
func (c *defaultRules) find(ctx context.Context, s *schema.Schema, at *check.Path) {
	if s == nil || !s.HasRules() || ctx.Err() != nil {
		return
	}
	if s.Default != nil {
		c.check(ctx, s, at)
	}
	c.find(ctx, s.Items, at.Field("items"))
	if s.Struct == nil {
		return
	}
	for _, f := range s.Struct.Fields {
		c.find(ctx, f.Schema, at.Field("properties").Key(f.Name))
	}
}

// check evaluates the rules of a default value. It wraps the value in an object, because rules are
// compiled for objects.
func (c *defaultRules) check(ctx context.Context, s *schema.Schema, at *check.Path) {
	const field = "default"
	holder := &schema.Schema{Type: schema.Object, Struct: &schema.Struct{}}
	holder.Struct.Add(&schema.Field{Name: field, Schema: s, Pointer: true})
	if holder.Compile() != nil {
		return
	}
	rules, causes := cel.Compile(ctx, holder, c.names, nil)
	if len(causes) == 0 {
		causes, _ = rules.Check(ctx, map[string]any{field: s.Default}, nil)
	}
	for _, cause := range causes {
		cause.Field = at.String() + "." + cause.Field
		c.faults = append(c.faults, cause)
	}
}

// warn returns warnings about the schemas of a definition. For an update, it returns only those that
// the old definition does not have.
func warn(w *registry.Change[meta.Object]) []string {
	if w.Old == nil {
		return schemaWarnings(w.Names, w.New)
	}
	if meta.Equal(w.Old.Map("spec"), w.New.Map("spec")) {
		return nil
	}
	old := schemaWarnings(w.Names, w.Old)
	return slices.DeleteFunc(schemaWarnings(w.Names, w.New), func(text string) bool { return slices.Contains(old, text) })
}

// schemaWarnings returns warnings about unknown formats, then about sets of objects or arrays, without
// duplicates.
func schemaWarnings(p names.Profile, o *meta.Object) []string {
	listType := p.Extension("list-type")
	var formats, sets []string
	d := definition{Object: o}
	for _, v := range d.versions() {
		eachSchema(v.Map("schema", "openAPIV3Schema"), func(doc *meta.Object) {
			typ, format := doc.String("type"), doc.String("format")
			if format != "" && !hasFormat(typ, format) {
				formats = append(formats, fmt.Sprintf("unrecognized format %q", format))
			}
			item := doc.String("items", "type")
			if doc.String(listType) == "set" && (item == "object" || item == "array") {
				sets = append(sets, fmt.Sprintf("%s: set for items of type %q is not supported by server-side apply or CEL validation rules", listType, item))
			}
		})
	}
	slices.Sort(sets)
	var texts []string
	for _, text := range slices.Concat(formats, sets) {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// eachSchema calls visit for a schema and all schemas in it. Properties are visited by name.
func eachSchema(v any, visit func(*meta.Object)) {
	doc, ok := v.(map[string]any)
	if !ok {
		return
	}
	visit(meta.NewObject(doc))
	for _, field := range []string{"items", "additionalProperties", "not"} {
		eachSchema(doc[field], visit)
	}
	for _, field := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := doc[field].([]any)
		for _, e := range list {
			eachSchema(e, visit)
		}
	}
	properties, _ := doc["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		eachSchema(properties[name], visit)
	}
}

// hasFormat reports whether the format restricts values of the type.
func hasFormat(typ, format string) bool {
	switch typ {
	case "", "string":
		words := []string{"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13",
			"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "k8sshortname", "k8slongname"}
		return slices.Contains(words, strings.ReplaceAll(format, "-", ""))
	case "integer":
		return format == "int32" || format == "int64"
	case "number":
		return format == "float" || format == "double"
	}
	return false
}
