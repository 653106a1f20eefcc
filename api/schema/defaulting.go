package schema

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// defaultsChecker checks that the defaults of a structural schema are values
// that could be written: nothing unknown, nothing invalid, nothing in what the
// server itself fills in. As clients know it, those of the values of a map are
// not looked at.
type defaultsChecker struct{ faults, forbidden check.Faults }

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

// forbid refuses defaults of a value and of what is in it.
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

// forbidInMaps refuses defaults of the labels and the like of embedded objects.
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
	fit := conformer{part: true}
	pruned := meta.Clone(s.Default)
	fit.loose(pruned, s, false)
	if len(fit.unknown) > 0 {
		c.faults.Invalid(path, s.Default, "must not have unknown fields")
		pruned = meta.Clone(s.Default) // as it stands there, whatever else is wrong with it
	}
	if len(fit.faults) > 0 {
		f := fit.faults[0]
		c.faults = append(c.faults, causeBelow(path, f.Field, strings.TrimPrefix(f.Message, f.Field+": "), meta.CauseInvalid))
		return
	}
	v := validator{effort: &effort{}, preset: true}
	v.value(pruned, nil, s, s.Struct.Canonical())
	v.repeats = nil // as clients know it
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
		case s.beginsWithKey(f.Field): // as clients know it
			f.Message = strings.Replace(f.Message, f.Field+" in body", "."+f.Field+" in body", 1)
		}
		f := causeBelow(path, f.Field, f.Message, f.Reason)
		f.Field = strings.Replace(f.Field, ".default[", ".default.[", 1)
		c.faults = append(c.faults, f)
	}
	if len(fit.unknown)+len(v.causes) == 0 && !meta.Equal(pruned, s.Default) {
		s.Default = pruned // the metadata of embedded objects has its form
	}
}

// beginsWithKey reports whether a path below a value of the schema begins with the key of a map.
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

// causeBelow returns the cause for a field of the value at a path.
func causeBelow(path *check.Path, field, message string, reason meta.CauseReason) meta.Cause {
	return meta.Cause{Reason: reason, Field: join(path.String(), field), Message: message}
}

// pruneDefaults drops from the defaults in s, which describes the values of a map, what the
// schema does not have. Nothing checks such defaults when the definition is written.
func pruneDefaults(s *Schema) {
	if s == nil {
		return
	}
	if s.Default != nil {
		pruned := meta.Clone(s.Default)
		fit := conformer{part: true}
		fit.loose(pruned, s, false)
		s.Default = pruned
	}
	pruneDefaults(s.Items)
	pruneDefaults(s.Values)
	for _, f := range s.fields() {
		pruneDefaults(f.Schema)
	}
}
