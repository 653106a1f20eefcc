package conformance

import (
	"math/rand/v2"
	"sort"

	"orch.io/controlplane/api/schema"
)

// random makes objects of a schema with few different names and values, so that
// they often meet.
type random struct {
	*rand.Rand
	fill float64 // how likely a field is set
}

var words = []string{"a", "b", "c", "d"}

func (r random) word() string { return words[r.IntN(len(words))] }

// value returns a value of a schema, at most so deep.
func (r random) value(s *schema.Schema, depth int) any {
	switch {
	case s.IntOrString:
		if r.IntN(2) == 0 {
			return int64(r.IntN(3))
		}
		return r.word()
	case s.Type == schema.String:
		return r.word()
	case s.Type == schema.Boolean:
		return r.IntN(2) == 0
	case s.Type == schema.Integer, s.Type == schema.Number:
		return int64(r.IntN(3))
	case s.Type == schema.Array:
		return r.list(s, depth)
	case s.Type == schema.Object:
		return r.object(s, depth)
	}
	return r.word()
}

func (r random) object(s *schema.Schema, depth int) map[string]any {
	m := map[string]any{}
	if depth == 0 {
		return m
	}
	if s.Struct == nil {
		for range r.IntN(3) {
			if s.Values != nil {
				m[r.word()] = r.value(s.Values, depth-1)
			}
		}
		return m
	}
	for _, f := range s.Struct.Fields {
		if r.Float64() < r.fill {
			m[f.Name] = r.value(f.Schema, depth-1)
		}
	}
	return m
}

// keys returns the fields that tell the items of a list apart.
func keys(s *schema.Schema) []string {
	if s.Items.Struct == nil {
		return nil
	}
	if s.PatchMergeKey != "" {
		return []string{s.PatchMergeKey}
	}
	return s.ListKeys
}

func (r random) list(s *schema.Schema, depth int) []any {
	l := []any{}
	seen := map[string]bool{}
	for range r.IntN(4) {
		v := r.value(s.Items, depth-1)
		m, _ := v.(map[string]any)
		var id string
		for _, k := range keys(s) {
			if m != nil && s.Items.Struct.Field(k) != nil {
				m[k] = r.value(s.Items.Struct.Field(k).Schema, 1)
				id += key(m[k]) + "/"
			}
		}
		if m == nil {
			id = key(v)
		}
		if (m == nil || id != "") && seen[id] {
			continue
		}
		seen[id] = true
		l = append(l, v)
	}
	return l
}

func sorted(m map[string]any) []string {
	var names []string
	for k := range m {
		names = append(names, k)
	}
	sort.Strings(names)
	return names
}
