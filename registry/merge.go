package registry

import (
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/schema"
)

// A three-way merge of trees: base is what a writer began with, ours what he made of
// it, theirs what there was beside what he could see. What he did not change is as in
// theirs.

// sameContent reports whether two objects differ in nothing but their metadata.
func sameContent(a, b *meta.Object) bool {
	x, y := a.Tree(), b.Tree()
	for field, value := range x {
		if field != "metadata" && !meta.Equal(value, y[field]) {
			return false
		}
	}
	for field := range y {
		if _, ok := x[field]; !ok && field != "metadata" {
			return false
		}
	}
	return true
}

// absent stands for a field that is not there, which is not the same as null.
type absent struct{}

func get(m map[string]any, field string) any {
	if v, ok := m[field]; ok {
		return v
	}
	return absent{}
}

// merge returns the merged value, or absent.
func merge(s *schema.Schema, base, ours, theirs any) any {
	switch {
	case same(ours, base):
		return meta.Clone(theirs) // which is shared
	case same(theirs, base):
		return ours
	}
	_, gone := ours.(absent)
	switch other := theirs.(type) {
	case map[string]any:
		mine, ok := ours.(map[string]any)
		if ok || gone && s != nil && s.Values != nil {
			from, _ := base.(map[string]any)
			return orAbsent(gone, mergeFields(s, from, mine, other))
		}
	case []any:
		mine, ok := ours.([]any)
		if (ok || gone) && mergeKeys(s) != nil {
			from, _ := base.([]any)
			return orAbsent(gone, mergeItems(s, from, mine, other))
		}
	}
	return ours
}

// orAbsent returns what is left of a map or a list that ours has not at all: what was
// not to be seen in it. A struct goes as a whole.
func orAbsent[V map[string]any | []any](gone bool, left V) any {
	if gone && len(left) == 0 {
		return absent{}
	}
	return left
}

func same(a, b any) bool {
	_, x := a.(absent)
	_, y := b.(absent)
	if x || y {
		return x && y
	}
	return meta.Equal(a, b)
}

// mergeFields merges two objects.
func mergeFields(s *schema.Schema, base, ours, theirs map[string]any) map[string]any {
	out := make(map[string]any, len(theirs))
	for _, side := range []map[string]any{ours, theirs} {
		for field := range side {
			if _, done := out[field]; done {
				continue
			}
			v := merge(below(s, field), get(base, field), get(ours, field), get(theirs, field))
			if _, gone := v.(absent); !gone {
				out[field] = v
			}
		}
	}
	return out
}

// mergeItems merges two lists whose items have keys, in the order of ours. An item
// that only theirs has was not to be seen, and follows.
func mergeItems(s *schema.Schema, base, ours, theirs []any) []any {
	before, mine, others := byKey(s, base), byKey(s, ours), byKey(s, theirs)
	out := make([]any, 0, len(ours))
	for _, item := range ours {
		key := keyOf(s, item)
		out = append(out, merge(s.Items, get(before, key), item, get(others, key)))
	}
	for _, item := range theirs {
		key := keyOf(s, item)
		_, was := before[key]
		if _, is := mine[key]; !was && !is {
			out = append(out, meta.Clone(item))
		}
	}
	return out
}

func byKey(s *schema.Schema, list []any) map[string]any {
	m := make(map[string]any, len(list))
	for _, item := range list {
		m[keyOf(s, item)] = item
	}
	return m
}

// keyOf returns what identifies an item of a list. A key that is left out has its
// default.
func keyOf(s *schema.Schema, item any) string {
	fields, _ := item.(map[string]any)
	var key []byte
	for _, name := range mergeKeys(s) {
		v, ok := fields[name]
		if f := below(s.Items, name); !ok && f != nil {
			v = f.Default
		}
		key = append(codec.EncodeValue(key, v), ' ')
	}
	return string(key)
}

// mergeKeys returns the fields that identify the items of a list, nil if it is one
// value.
func mergeKeys(s *schema.Schema) []string {
	switch {
	case s == nil || s.ListType != "map" && (s.ListType != "" || s.PatchMergeKey == ""):
		return nil
	case len(s.ListKeys) > 0:
		return s.ListKeys
	}
	return []string{s.PatchMergeKey}
}

// below returns the schema of a field, or nil.
func below(s *schema.Schema, field string) *schema.Schema {
	if s == nil {
		return nil
	}
	if f := s.Struct.Field(field); f != nil {
		return f.Schema
	}
	return s.Values
}
