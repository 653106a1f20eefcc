package resource

import (
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
)

// A three-way merge of trees: base is what a writer began with, ours what he made of
// it, theirs what there was beside what he could see. What he did not change is as in
// theirs.

// untouched returns what a writer began with: shown, which is what he saw, with the
// defaults that filled has beside it, but only where what he sent is as shown. What he
// says himself is a change, also where it is the default.
func untouched(s *schema.Schema, shown, filled, sent any) any {
	switch {
	case same(sent, shown):
		return filled
	case same(filled, shown):
		return shown
	}
	_, gone := shown.(absent)
	_, left := sent.(absent)
	switch with := filled.(type) {
	case map[string]any:
		was, seen := shown.(map[string]any)
		mine, ok := sent.(map[string]any)
		if (seen || gone) && (ok || left) {
			return orAbsent(gone, untouchedFields(s, was, with, mine))
		}
	case []any:
		was, seen := shown.([]any)
		mine, ok := sent.([]any)
		if seen && ok && len(was) == len(with) {
			return untouchedItems(s, was, with, mine)
		}
	}
	return shown
}

func untouchedFields(s *schema.Schema, shown, filled, sent map[string]any) map[string]any {
	out := make(map[string]any, len(filled))
	for _, side := range []map[string]any{shown, filled} {
		for field := range side {
			if _, done := out[field]; done {
				continue
			}
			v := untouched(below(s, field), get(shown, field), get(filled, field), get(sent, field))
			if _, gone := v.(absent); !gone {
				out[field] = v
			}
		}
	}
	return out
}

// untouchedItems compares with the item of the same key, or in the same place.
func untouchedItems(s *schema.Schema, shown, filled, sent []any) []any {
	var items *schema.Schema
	if s != nil {
		items = s.Items
	}
	out, keyed := slices.Clone(filled), byKey(s, sent)
	for i := range shown {
		var mine any = absent{}
		switch {
		case keyed != nil:
			mine = get(keyed, keyOf(s, shown[i]))
		case i < len(sent):
			mine = sent[i]
		}
		if _, gone := mine.(absent); !gone {
			out[i] = untouched(items, shown[i], filled[i], mine)
		}
	}
	return out
}

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
		from, _ := base.([]any)
		before, mineBy, others := byKey(s, from), byKey(s, mine), byKey(s, other)
		switch {
		case (ok || gone) && before != nil && mineBy != nil && others != nil:
			return orAbsent(gone, mergeItems(s, before, mineBy, others, mine, other))
		case ok:
			return mergeList(from, mine, other)
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
func mergeItems(s *schema.Schema, before, mine, others map[string]any, ours, theirs []any) []any {
	out := make([]any, 0, len(ours))
	for _, item := range ours {
		key := keyOf(s, item)
		v := merge(s.Items, get(before, key), item, get(others, key))
		if _, gone := v.(absent); !gone {
			out = append(out, v)
		}
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

// mergeList returns ours with each item that is as it was in base as it is in theirs.
// That is known only if base shows the items of theirs one by one: else it is ours.
func mergeList(base, ours, theirs []any) []any {
	if len(base) != len(theirs) {
		return ours
	}
	for i, item := range base {
		if !shows(item, theirs[i]) {
			return ours
		}
	}
	out := slices.Clone(ours)
	for i, j := range aligned(texts(ours), texts(base)) {
		if j >= 0 {
			out[i] = meta.Clone(theirs[j])
		}
	}
	return out
}

// shows reports whether an item says nothing that the whole one does not say.
func shows(item, whole any) bool {
	fields, ok := item.(map[string]any)
	all, same := whole.(map[string]any)
	if !ok || !same {
		return meta.Equal(item, whole)
	}
	for name, v := range fields {
		if w, ok := all[name]; !ok || !shows(v, w) {
			return false
		}
	}
	return true
}

func texts(list []any) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = string(codec.EncodeValue(nil, item))
	}
	return out
}

// maxAlignment bounds the work of aligning two lists: the product of their lengths,
// without what they begin and end with alike.
const maxAlignment = 1 << 16

// aligned returns the position in b of each item of a, -1 if it is in no longest
// common subsequence. Of lists that are too long for that the items in between are
// compared one by one.
func aligned(a, b []string) []int {
	at := slices.Repeat([]int{-1}, len(a))
	from := 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		at[from] = from
		from++
	}
	endA, endB := len(a), len(b)
	for endA > from && endB > from && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
		at[endA] = endB
	}
	x, y := a[from:endA], b[from:endB]
	if len(x)*len(y) > maxAlignment {
		for i := range min(len(x), len(y)) {
			if x[i] == y[i] {
				at[from+i] = from + i
			}
		}
		return at
	}
	longest := make([][]int, len(x)+1) // of the common subsequences from there on
	for i := len(x); i >= 0; i-- {
		longest[i] = make([]int, len(y)+1)
		for j := len(y) - 1; j >= 0 && i < len(x); j-- {
			if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); x[i] == y[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i] == y[j]:
			at[from+i] = from + j
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return at
}

// byKey returns the items by their keys, nil if they have none or two have the same.
func byKey(s *schema.Schema, list []any) map[string]any {
	if mergeKeys(s) == nil {
		return nil
	}
	m := make(map[string]any, len(list))
	for _, item := range list {
		key := keyOf(s, item)
		if _, twice := m[key]; twice {
			return nil
		}
		m[key] = item
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
