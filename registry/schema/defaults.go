package schema

import "orch.io/controlplane/registry/meta"

// FillDefaults fills in defaults, in place, after Conform. A missing field gets its
// default; below an absent parent nothing is filled in. A null gets the default
// unless the schema is nullable; one without a default is dropped. Where the
// struct comes from Go, a field that is no pointer gets the default for its zero
// value as well, since Go cannot tell the two apart.
func (s *Schema) FillDefaults(tree map[string]any) {
	if s == nil {
		return
	}
	s.defaultIn(tree, s.Struct.Canonical())
}

func (s *Schema) defaultIn(v any, canonical bool) {
	if s.Struct != nil {
		canonical = s.Struct.Canonical()
	}
	if canonical && !s.fills {
		return // nulls are gone already
	}
	switch v := v.(type) {
	case map[string]any:
		s.defaultMap(v, canonical)
	case []any:
		if s.Items == nil {
			return
		}
		for i, e := range v {
			if e == nil && !s.Items.Nullable && s.Items.Default != nil {
				e = meta.Clone(s.Items.Default)
				v[i] = e
			}
			s.Items.defaultIn(e, canonical)
		}
	}
}

func (s *Schema) defaultMap(m map[string]any, canonical bool) {
	if s.Struct != nil {
		for _, f := range s.Struct.filled {
			e, ok := m[f.Name]
			if !ok || e == nil && !f.Schema.Nullable || canonical && !f.Pointer && f.Schema.isZero(e) {
				m[f.Name] = meta.Clone(f.Schema.Default)
			}
		}
	}
	for k, e := range m {
		next := s.Values
		if f := s.Struct.Field(k); f != nil {
			next = f.Schema
		}
		if next == nil {
			continue
		}
		if e == nil && !canonical && !next.Nullable {
			if next.Default == nil {
				delete(m, k)
				continue
			}
			e = meta.Clone(next.Default)
			m[k] = e
		}
		next.defaultIn(e, canonical)
	}
}
