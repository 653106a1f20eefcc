package resource

import (
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
)

// This file has a three-way merge of trees. base is the object that the client started from, ours
// the object that it sent, and theirs the stored object, which may have fields that the client's
// version cannot represent. Values that the client did not change are taken from theirs.

// mergeBase returns the base of the merge: shown, the value that the client saw, with the defaults
// of filled added, but only where sent equals shown. A value that the client sent is a change even
// if it equals the default.
func mergeBase(s *schema.Schema, shown, filled, sent any) any {
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
			return orAbsent(gone, mergeBaseFields(s, was, with, mine))
		}
	case []any:
		was, seen := shown.([]any)
		mine, ok := sent.([]any)
		if seen && ok && len(was) == len(with) {
			return mergeBaseItems(s, was, with, mine)
		}
	}
	return shown
}

// mergeBaseFields is mergeBase for the fields of an object.
func mergeBaseFields(s *schema.Schema, shown, filled, sent map[string]any) map[string]any {
	out := make(map[string]any, len(filled))
	for _, side := range []map[string]any{shown, filled} {
		for field := range side {
			if _, done := out[field]; done {
				continue
			}
			v := mergeBase(fieldSchema(s, field), fieldOrAbsent(shown, field), fieldOrAbsent(filled, field), fieldOrAbsent(sent, field))
			if _, gone := v.(absent); !gone {
				out[field] = v
			}
		}
	}
	return out
}

// mergeBaseItems is mergeBase for the items of a list. It compares each item with the sent item of
// the same key, or at the same index if the list has no keys.
func mergeBaseItems(s *schema.Schema, shown, filled, sent []any) []any {
	var items *schema.Schema
	if s != nil {
		items = s.Items
	}
	out, keyed := slices.Clone(filled), byKey(s, sent)
	for i := range shown {
		var mine any = absent{}
		switch {
		case keyed != nil:
			mine = fieldOrAbsent(keyed, keyOf(s, shown[i]))
		case i < len(sent):
			mine = sent[i]
		}
		if _, gone := mine.(absent); !gone {
			out[i] = mergeBase(items, shown[i], filled[i], mine)
		}
	}
	return out
}

// sameContent reports whether two objects are equal except for their metadata.
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

// absent is the value of a field that does not exist, as opposed to null.
type absent struct{}

// fieldOrAbsent returns the value of a field, or absent.
func fieldOrAbsent(m map[string]any, field string) any {
	if v, ok := m[field]; ok {
		return v
	}
	return absent{}
}

// merge returns the merged value, or absent if there is none.
func merge(s *schema.Schema, base, ours, theirs any) any {
	switch {
	case same(ours, base):
		return meta.Clone(theirs) // theirs belongs to the shared stored object
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

// orAbsent returns absent if the client removed the whole map or list and left, the part that the
// client could not see, is empty. Otherwise it returns left. Structs are not merged this way: if
// the client removes a struct, its invisible fields are removed, too.
func orAbsent[V map[string]any | []any](gone bool, left V) any {
	if gone && len(left) == 0 {
		return absent{}
	}
	return left
}

// same reports whether two values are equal or both absent.
func same(a, b any) bool {
	_, x := a.(absent)
	_, y := b.(absent)
	if x || y {
		return x && y
	}
	return meta.Equal(a, b)
}

// mergeFields merges the fields of two objects.
func mergeFields(s *schema.Schema, base, ours, theirs map[string]any) map[string]any {
	out := make(map[string]any, len(theirs))
	for _, side := range []map[string]any{ours, theirs} {
		for field := range side {
			if _, done := out[field]; done {
				continue
			}
			v := merge(fieldSchema(s, field), fieldOrAbsent(base, field), fieldOrAbsent(ours, field), fieldOrAbsent(theirs, field))
			if _, gone := v.(absent); !gone {
				out[field] = v
			}
		}
	}
	return out
}

// mergeItems merges two lists of items with keys, in the order of ours. Items that only theirs
// has were invisible to the client and follow at the end.
func mergeItems(s *schema.Schema, before, mine, others map[string]any, ours, theirs []any) []any {
	out := make([]any, 0, len(ours))
	for _, item := range ours {
		key := keyOf(s, item)
		v := merge(s.Items, fieldOrAbsent(before, key), item, fieldOrAbsent(others, key))
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

// mergeList merges two lists without keys. It returns ours, with each item that the client left as
// in base replaced by the item of theirs at the index in base. If base does not show the items of
// theirs one by one in the same order, the items cannot be matched and the result is ours.
func mergeList(base, ours, theirs []any) []any {
	if len(base) != len(theirs) {
		return ours
	}
	for i, item := range base {
		if !isSubset(item, theirs[i]) {
			return ours
		}
	}
	out := slices.Clone(ours)
	for i, j := range alignItems(encodeItems(ours), encodeItems(base)) {
		if j >= 0 {
			out[i] = meta.Clone(theirs[j])
		}
	}
	return out
}

// isSubset reports whether whole has all fields and values of item.
func isSubset(item, whole any) bool {
	fields, ok := item.(map[string]any)
	all, same := whole.(map[string]any)
	if !ok || !same {
		return meta.Equal(item, whole)
	}
	for name, v := range fields {
		if w, ok := all[name]; !ok || !isSubset(v, w) {
			return false
		}
	}
	return true
}

// encodeItems returns the items as JSON texts, for comparison.
func encodeItems(list []any) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = string(codec.EncodeValue(nil, item))
	}
	return out
}

// maxAlignment limits the work of alignItems: the product of the lengths of the lists without their
// common prefix and suffix.
const maxAlignment = 1 << 16

// alignItems returns, for each item of a, the index of the matching item in b by a longest common
// subsequence, or -1. If the lists are too long for that, items between the common prefix and
// suffix match only if they are at the same index.
func alignItems(a, b []string) []int {
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
	longest := make([][]int, len(x)+1) // longest[i][j] is the length of the longest common subsequence of x[i:] and y[j:]
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

// byKey returns the items by key, or nil if the list has no keys or two items have the same key.
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

// keyOf returns the encoded key of a list item. A key field that is not set counts with its
// default.
func keyOf(s *schema.Schema, item any) string {
	fields, _ := item.(map[string]any)
	var key []byte
	for _, name := range mergeKeys(s) {
		v, ok := fields[name]
		if f := fieldSchema(s.Items, name); !ok && f != nil {
			v = f.Default
		}
		key = append(codec.EncodeValue(key, v), ' ')
	}
	return string(key)
}

// mergeKeys returns the names of the key fields of a list, or nil if the list has no keys.
func mergeKeys(s *schema.Schema) []string {
	switch {
	case s == nil || s.ListType != "map" && (s.ListType != "" || s.PatchMergeKey == ""):
		return nil
	case len(s.ListKeys) > 0:
		return s.ListKeys
	}
	return []string{s.PatchMergeKey}
}

// fieldSchema returns the schema of a field of s, or nil. s may be nil.
func fieldSchema(s *schema.Schema, field string) *schema.Schema {
	if s == nil {
		return nil
	}
	if f := s.Struct.Field(field); f != nil {
		return f.Schema
	}
	return s.Values
}
