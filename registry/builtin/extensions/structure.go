package extensions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/expression"
	"orch.io/controlplane/registry"
)

// schema checks the schema of a version.
func (d *definition) schema(ctx context.Context, at *check.Path, v *meta.Object) {
	doc := v.Map("schema", "openAPIV3Schema")
	if doc == nil {
		return
	}
	at = at.Field("openAPIV3Schema")
	if v.Map("subresources", "status") != nil {
		d.rootBesideStatus(at, doc)
	}
	s, causes := schema.OpenAPI(doc, d.names, at)
	if len(causes) > 0 && d.preserves() {
		return // it says nothing, see registry.FromCRD
	}
	if len(causes) == 0 {
		if d.rules >= maxRules {
			d.faults.Forbidden(at, fmt.Sprintf("the versions of a definition may have at most %d rules together", maxRules))
			return
		}
		var rules *expression.Rules
		rules, causes = expression.Compile(ctx, s, d.names, at)
		d.rules += rules.Count()
	}
	if len(causes) == 0 {
		c := defaultRules{definition: d}
		c.find(ctx, s, at)
		causes = c.faults
	}
	d.faults = append(d.faults, causes...)
}

// rootBesideStatus refuses what the root says of the whole object, where the status
// is checked on its own.
func (d *definition) rootBesideStatus(at *check.Path, doc map[string]any) {
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

// defaultRules checks that defaults keep the rules of what they are defaults of, which
// were compiled without a fault.
type defaultRules struct {
	*definition
	faults []meta.Cause
}

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

// check evaluates the rules of a default as the only field of a new object.
func (c *defaultRules) check(ctx context.Context, s *schema.Schema, at *check.Path) {
	const field = "default"
	holder := &schema.Schema{Type: schema.Object, Struct: &schema.Struct{}}
	holder.Struct.Add(&schema.Field{Name: field, Schema: s, Pointer: true})
	if holder.Seal() != nil {
		return
	}
	rules, causes := expression.Compile(ctx, holder, c.names, nil)
	if len(causes) == 0 {
		causes, _ = rules.Check(ctx, map[string]any{field: s.Default}, nil)
	}
	for _, cause := range causes {
		cause.Field = at.String() + "." + cause.Field
		c.faults = append(c.faults, cause)
	}
}

// warn tells of the formats that say nothing, once they are new.
func warn(w *registry.Change[meta.Object]) (warnings []string) {
	if w.Old != nil && meta.Equal(w.Old.Map("spec"), w.New.Map("spec")) {
		return nil
	}
	known := map[string]bool{}
	if w.Old != nil {
		for _, f := range unknownFormats(w.Old) {
			known[f] = true
		}
	}
	for _, f := range unknownFormats(w.New) {
		if !known[f] {
			warnings = append(warnings, fmt.Sprintf("unrecognized format %q", f))
		}
	}
	return warnings
}

// unknownFormats returns the formats of a definition that say nothing, each once.
func unknownFormats(o *meta.Object) (formats []string) {
	d := definition{Object: o}
	for _, v := range d.versions() {
		formats = appendFormats(formats, v.Map("schema", "openAPIV3Schema"))
	}
	return formats
}

func appendFormats(formats []string, v any) []string {
	doc, ok := v.(map[string]any)
	if !ok {
		return formats
	}
	word, _ := doc["format"].(string)
	typ, _ := doc["type"].(string)
	if word != "" && !slices.Contains(formats, word) && !hasFormat(typ, word) {
		formats = append(formats, word)
	}
	for _, field := range []string{"items", "additionalProperties", "not"} {
		formats = appendFormats(formats, doc[field])
	}
	for _, field := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := doc[field].([]any)
		for _, e := range list {
			formats = appendFormats(formats, e)
		}
	}
	properties, _ := doc["properties"].(map[string]any)
	if len(properties) == 0 {
		return formats
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		formats = appendFormats(formats, properties[name])
	}
	return formats
}

// hasFormat reports whether a format says something of the values of a type.
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
