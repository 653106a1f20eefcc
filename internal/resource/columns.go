package resource

import (
	"math"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/jsonpath"
	"orch.io/controlplane/registry"
)

// columns returns the table columns of a version, each with its Cell. A name column is added unless
// the kind declares a column "Name". Without declared columns, the table has the name and the time
// of creation. For kinds of Go structs, paths must exist in the schema; custom kinds may use any
// path.
func (c *compiler) columns(kv registry.KindVersion, s *schema.Schema) []registry.Column {
	declared := kv.Columns
	name := registry.Column{Name: "Name", Type: "string", Format: "name", Doc: "Name of the object, unique among its kind in its namespace.",
		Cell: func(o *meta.Object) any { return o.Name() }}
	if declared == nil {
		return []registry.Column{name, {Name: "Created At", Type: "date", Doc: "When the object was created, by the server's clock.",
			Cell: func(o *meta.Object) any { return o.String("metadata", "creationTimestamp") }}}
	}
	var out []registry.Column
	if !slices.ContainsFunc(declared, func(d registry.Column) bool { return d.Name == "Name" }) {
		out = append(out, name)
	}
	for i, d := range declared {
		if !c.kind.Custom() && slices.ContainsFunc(declared[:i], func(o registry.Column) bool { return o.Name == d.Name }) {
			c.errorf("version %q: duplicate column %q", kv.Name, d.Name)
		}
		d, path := c.column(d)
		if path != nil && s != nil && s.Struct.Canonical() && !path.LeadsInto(s) {
			near := ""
			if fields, err := jsonpath.Fields(d.JSONPath); err == nil {
				near = nearField(s, fields)
			}
			c.errorf("version %q: column %q: the path %s does not exist in the schema%s", kv.Name, d.Name, d.JSONPath, near)
		}
		out = append(out, d)
	}
	return out
}

// column returns the column with its Cell, and its parsed path, or nil if it has none or the path
// is invalid.
func (c *compiler) column(g registry.Column) (registry.Column, *jsonpath.Path) {
	if g.Name == "" {
		c.errorf("a column has no name")
	}
	switch g.Type {
	case "string", "integer", "number", "boolean", "date":
	default:
		c.errorf("column %q: type must be string, integer, number, boolean or date, not %q", g.Name, g.Type)
	}
	if g.Priority < 0 && !c.kind.Custom() {
		c.errorf("column %q: Priority %d is negative", g.Name, g.Priority)
	}
	if g.JSONPath == "" {
		if g.Cell == nil {
			c.errorf("column %q has neither JSONPath nor Cell", g.Name)
		}
		return g, nil
	}
	path, err := jsonpath.Parse(g.JSONPath)
	if err != nil {
		c.errorf("column %q: %w", g.Name, err)
		return g, nil
	}
	if g.Cell != nil {
		return g, path
	}
	kind := g.Type
	g.Cell = func(o *meta.Object) any {
		v, ok := path.First(o.Tree())
		if !ok || v == nil {
			return nil
		}
		if kind == "string" {
			return cellText(v)
		}
		return cell(v, kind, time.Now())
	}
	return g, path
}

// cell returns v as a value of the column type kind, or nil if v does not fit. A date becomes its
// age at now.
func cell(v any, kind string, now time.Time) any {
	switch kind {
	case "integer":
		switch n := v.(type) {
		case int64:
			return n
		case float64:
			if math.Abs(n) < 1<<63 {
				return int64(n)
			}
		}
	case "number":
		switch v.(type) {
		case int64, float64:
			return v
		}
	case "boolean":
		if b, ok := v.(bool); ok {
			return b
		}
	case "date":
		s, ok := v.(string)
		if !ok {
			return nil
		}
		if s == "" {
			return "<unknown>"
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return "<invalid>"
		}
		return meta.FormatAge(t, now)
	}
	return nil
}

// maxCell limits the text of one cell, in bytes, because the path of a column may lead to the whole
// object.
const maxCell = 16 << 10

// cellText returns a value as text, truncated to maxCell.
func cellText(v any) any {
	text, ok := v.(string)
	if !ok {
		text = string(codec.EncodeValue(nil, v))
	}
	if len(text) > maxCell {
		return strings.ToValidUTF8(text[:maxCell], "") + "..."
	}
	return text
}
