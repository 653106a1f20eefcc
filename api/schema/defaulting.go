package schema

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// defaultsChecker checks that the defaults of a structural schema are values
// that could be written: nothing unknown, nothing invalid, nothing below
// metadata.
type defaultsChecker struct{ faults check.Faults }

func (c *defaultsChecker) schema(s *Schema, at place) {
	if s == nil {
		return
	}
	if s.Default != nil {
		c.value(s, at)
	}
	c.schema(s.Items, at.below(at.path.Field("items"), atItem))
	c.schema(s.Values, at.below(at.path.Field("additionalProperties"), atField))
	if s.Struct == nil {
		return
	}
	for _, f := range s.Struct.Fields {
		path := at.path.Field("properties").Key(f.Name)
		if f.Name == "metadata" && (at.level == atRoot || s.Embedded) {
			c.metadata(f.Schema, path)
			continue
		}
		c.schema(f.Schema, at.below(path, atField))
	}
}

// metadata refuses defaults for what the server itself fills in.
func (c *defaultsChecker) metadata(s *Schema, path *check.Path) {
	if s.Default != nil {
		c.faults.Forbidden(path.Field("default"), "must not be set inside metadata")
	}
	if s.Struct == nil {
		return
	}
	for _, f := range s.Struct.Fields {
		c.metadata(f.Schema, path.Field("properties").Key(f.Name))
	}
}

func (c *defaultsChecker) value(s *Schema, at place) {
	path := at.path.Field("default")
	if tree, ok := s.Default.(map[string]any); ok && at.level == atRoot {
		for _, name := range []string{"apiVersion", "kind"} {
			if tree[name] == nil {
				c.faults.Required(path.Field(name), "must not be empty")
			}
		}
	}
	fit := conformer{}
	pruned := meta.Clone(s.Default)
	fit.loose(pruned, s)
	if len(fit.unknown)+len(fit.last) > 0 {
		c.faults.Invalid(path, s.Default, "must not have unknown fields")
		return
	}
	for _, f := range faultsOf(pruned, s, s.Struct.Canonical()) {
		if f.Field == wording.WholeField {
			f.Field = ""
		}
		f.Field = strings.Replace(join(path.String(), f.Field), ".default[", ".default.[", 1)
		c.faults = append(c.faults, f)
	}
}
