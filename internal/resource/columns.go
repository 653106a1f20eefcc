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

// columns returns the columns of a version, each with its Cell: those declared, with
// the name before them unless one of them is called Name, or by default the
// name and the time of creation. Those of a Go struct lead to what the struct has;
// those of a definition may lead anywhere.
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
			c.fault("version %q: column %q is given twice", kv.Name, d.Name)
		}
		d, path := c.column(d)
		if path != nil && s != nil && s.Struct.Canonical() && !path.LeadsInto(s) {
			near := ""
			if fields, err := jsonpath.Fields(d.JSONPath); err == nil {
				near = nearField(s, fields)
			}
			c.fault("version %q: column %q: the path %s leads nowhere%s", kv.Name, d.Name, d.JSONPath, near)
		}
		out = append(out, d)
	}
	return out
}

// column returns a column with its Cell, and its path, if it has one that can be read.
func (c *compiler) column(g registry.Column) (registry.Column, *jsonpath.Path) {
	if g.Name == "" {
		c.fault("a column has no name")
	}
	switch g.Type {
	case "string", "integer", "number", "boolean", "date":
	default:
		c.fault("column %q: type %q is none of string, integer, number, boolean, date", g.Name, g.Type)
	}
	if g.Priority < 0 && !c.kind.Custom() {
		c.fault("column %q: Priority %d is negative", g.Name, g.Priority)
	}
	if g.JSONPath == "" {
		if g.Cell == nil {
			c.fault("column %q has neither JSONPath nor Cell", g.Name)
		}
		return g, nil
	}
	path, err := jsonpath.Parse(g.JSONPath)
	if err != nil {
		c.fault("column %q: %w", g.Name, err)
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

// cell fits a value to the type of its column; what does not fit is nil. Dates
// show as ages.
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

// maxCell bounds the text of one cell, in bytes: the path of a column may lead to
// the whole object.
const maxCell = 16 << 10

// cellText returns a value as text, cut to maxCell.
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
