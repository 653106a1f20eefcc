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
	fit := conformer{}
	pruned := meta.Clone(s.Default)
	fit.loose(pruned, s)
	if len(fit.unknown) > 0 {
		c.faults.Invalid(path, s.Default, "must not have unknown fields")
		return
	}
	for _, f := range fit.faults {
		c.fault(path, f.Field, strings.TrimPrefix(f.Message, f.Field+": "), meta.CauseInvalid)
	}
	if len(fit.faults) > 0 {
		return
	}
	v := validator{effort: &effort{}}
	v.value(pruned, nil, s, s.Struct.Canonical())
	v.repeats = nil // as clients know it
	for _, f := range v.found() {
		if f.Field == wording.WholeField {
			f.Field = ""
		}
		c.fault(path, f.Field, f.Message, f.Reason)
	}
}

// fault notes what is wrong with a field of a default.
func (c *defaultsChecker) fault(path *check.Path, field, message string, reason meta.CauseReason) {
	field = strings.Replace(join(path.String(), field), ".default[", ".default.[", 1)
	c.faults = append(c.faults, meta.Cause{Reason: reason, Field: field, Message: message})
}
