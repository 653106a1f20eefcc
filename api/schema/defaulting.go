package schema

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// defaultsChecker checks that each default of a structural schema could be written by a client:
// it has no unknown fields, is valid, and does not set metadata that the server fills in. Like
// the reference server, it does not check defaults below additionalProperties.
type defaultsChecker struct{ faults, forbidden check.Violations }

func (c *defaultsChecker) schema(s *Schema, at place) {
	if s == nil {
		return
	}
	if s.Default != nil {
		c.value(s, at)
	}
	if s.Items != nil {
		c.schema(s.Items, at.below(at.path.Field("items"), atItem))
	}
	pruneDefaults(s.Values)
	if s.Struct == nil {
		return
	}
	properties := at.path.Field("properties")
	for _, f := range s.Struct.Fields {
		path := properties.Key(f.Name)
		typeOrMetadata := f.Name == "apiVersion" || f.Name == "kind" || f.Name == "metadata"
		if typeOrMetadata && at.level == atRoot {
			c.forbid(f.Schema, path, "must not be set in top-level "+f.Name)
			continue
		}
		if typeOrMetadata && s.Embedded {
			c.forbidInMaps(f.Schema, path)
		}
		c.schema(f.Schema, at.below(path, atField))
	}
}

func (s *Schema) fields() []*Field {
	if s.Struct == nil {
		return nil
	}
	return s.Struct.Fields
}

// forbid rejects the defaults of a value and of everything below it.
func (c *defaultsChecker) forbid(s *Schema, path *check.Path, why string) {
	if s.Default != nil {
		c.forbidden.Forbidden(path.Field("default"), why)
	}
	if s.Items != nil {
		c.forbid(s.Items, path.Field("items"), why)
	}
	for _, f := range s.fields() {
		c.forbid(f.Schema, path.Field("properties").Key(f.Name), why)
	}
	c.forbidInMaps(s, path)
}

// forbidInMaps rejects defaults of map values below s, such as labels in the metadata of an
// embedded object.
func (c *defaultsChecker) forbidInMaps(s *Schema, path *check.Path) {
	if s.Values != nil {
		c.forbid(s.Values, path.Field("additionalProperties"), "must not be set inside additionalProperties applying to object metadata")
	}
	for _, f := range s.fields() {
		c.forbidInMaps(f.Schema, path.Field("properties").Key(f.Name))
	}
}

func (c *defaultsChecker) value(s *Schema, at place) {
	path := at.path.Field("default")
	if at.level == atRoot {
		root := *s
		root.Embedded = true
		s = &root
	}
	fit := normalizer{part: true}
	pruned := meta.Clone(s.Default)
	fit.loose(pruned, s, false)
	if len(fit.unknown) > 0 {
		c.faults.Invalid(path, s.Default, "must not have unknown fields")
		pruned = meta.Clone(s.Default) // report other errors for the value as written
	}
	if len(fit.faults) > 0 {
		f := fit.faults[0]
		c.faults = append(c.faults, causeBelow(path, f.Field, strings.TrimPrefix(f.Message, f.Field+": "), meta.CauseInvalid))
		return
	}
	v := validator{effort: &effort{}, preset: true}
	v.value(pruned, nil, s, s.Struct.Canonical())
	v.repeats = nil // like the reference server
	if len(v.objects) > 0 {
		for _, f := range v.objects {
			c.faults = append(c.faults, causeBelow(path, f.Field, f.Message, f.Reason))
		}
		return
	}
	for _, f := range v.found() {
		switch {
		case f.Field == wording.WholeField:
			f.Field = ""
		case s.beginsWithKey(f.Field): // like the reference server
			f.Message = strings.Replace(f.Message, f.Field+" in body", "."+f.Field+" in body", 1)
		}
		f := causeBelow(path, f.Field, f.Message, f.Reason)
		f.Field = strings.Replace(f.Field, ".default[", ".default.[", 1)
		c.faults = append(c.faults, f)
	}
	if len(fit.unknown)+len(v.causes) == 0 && !meta.Equal(pruned, s.Default) {
		s.Default = pruned // metadata of embedded objects is normalized
	}
}

// beginsWithKey reports whether path, relative to a value of the schema, begins with a map key.
func (s *Schema) beginsWithKey(path string) bool {
	if s.Values == nil || path == "" || path[0] == '[' {
		return false
	}
	for _, f := range s.fields() {
		if rest, ok := strings.CutPrefix(path, f.Name); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return false
		}
	}
	return true
}

// causeBelow returns a cause for a field of the value at path.
func causeBelow(path *check.Path, field, message string, reason meta.CauseType) meta.StatusCause {
	return meta.StatusCause{Reason: reason, Field: join(path.String(), field), Message: message}
}

// pruneDefaults drops unknown fields from the defaults in s, which describes the values of a
// map. These defaults are not validated when the definition is written.
func pruneDefaults(s *Schema) {
	if s == nil {
		return
	}
	if s.Default != nil {
		pruned := meta.Clone(s.Default)
		fit := normalizer{part: true}
		fit.loose(pruned, s, false)
		s.Default = pruned
	}
	pruneDefaults(s.Items)
	pruneDefaults(s.Values)
	for _, f := range s.fields() {
		pruneDefaults(f.Schema)
	}
}
