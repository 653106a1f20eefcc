package resource

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/schema"
)

// TestAlignItemsFindsMovedItems checks that items match wherever they moved to, unless the lists
// are too long.
func TestAlignItemsFindsMovedItems(t *testing.T) {
	list := func(s string) []string { return strings.Split(s, "") }
	for _, c := range []struct {
		a, b string
		want []int
	}{
		{"abc", "abc", []int{0, 1, 2}},
		{"xabc", "abc", []int{-1, 0, 1, 2}},
		{"ac", "abc", []int{0, 2}},
		{"acb", "abc", []int{0, -1, 1}},
		{"xbyd", "abcd", []int{-1, 1, -1, 3}},
		{"aa", "aaa", []int{0, 1}},
	} {
		assert.Equal(t, c.want, alignItems(list(c.a), list(c.b)), c.a)
	}
	long := list(strings.Repeat("abc", 300))
	a, b := append(list("x"), append(long, "y")...), append(list("z"), append(long[3:], "u", "v", "w")...)
	assert.Equal(t, []int{-1, 1, 2}, alignItems(a, b)[:3])
}

// TestMergeListWithoutCorrespondence checks that items of lists without keys match only if the
// version shows all items of the hub in the same order.
func TestMergeListWithoutCorrespondence(t *testing.T) {
	item := func(name string, hidden any) any {
		m := map[string]any{"name": name}
		if hidden != nil {
			m["hidden"] = hidden
		}
		return m
	}
	theirs := []any{item("b", 1), item("a", 2)}
	ours := []any{item("b", nil)}
	assert.Equal(t, ours, merge(nil, []any{item("a", nil), item("b", nil)}, ours, theirs), "the version shows a sorted list")
	assert.Equal(t, []any{"z"}, merge(nil, []any{"x"}, []any{"z"}, []any{"x", "y"}), "the version shows only the first item")
	assert.Equal(t, []any{item("a", 2)}, merge(nil, []any{item("b", nil), item("a", nil)}, []any{item("a", nil)}, theirs), "the version shows all items in order")
}

// TestMergeListWithDuplicateKeys checks that a list in which two items have the same key is merged
// like a list without keys.
func TestMergeListWithDuplicateKeys(t *testing.T) {
	s := &schema.Schema{PatchMergeKey: "port", Items: &schema.Schema{}}
	item := func(port int, protocol, hidden string) any {
		m := map[string]any{"port": port, "protocol": protocol}
		if hidden != "" {
			m["hidden"] = hidden
		}
		return m
	}
	base := []any{item(53, "TCP", ""), item(53, "UDP", "")}
	theirs := []any{item(53, "TCP", "x"), item(53, "UDP", "y")}
	ours := []any{item(53, "TCP", ""), item(53, "UDP", ""), item(80, "TCP", "")}
	assert.Equal(t, []any{item(53, "TCP", "x"), item(53, "UDP", "y"), item(80, "TCP", "")}, merge(s, base, ours, theirs))
}

// TestMergeBase checks that a default belongs to the base of the merge unless the client sent it.
func TestMergeBase(t *testing.T) {
	type m = map[string]any
	keyed := &schema.Schema{ListType: "map", ListKeys: []string{"name"}}
	for name, c := range map[string]struct {
		s                         *schema.Schema
		shown, filled, sent, want any
	}{
		"not sent":             {nil, m{}, m{"a": 1}, m{}, m{"a": 1}},
		"sent":                 {nil, m{}, m{"a": 1}, m{"a": 1}, m{}},
		"sent in a struct":     {nil, m{"b": 1}, m{"b": 1, "s": m{"a": 1, "c": 2}}, m{"s": m{"a": 1}}, m{"b": 1, "s": m{"c": 2}}},
		"struct not sent":      {nil, m{"s": m{"b": 1}}, m{"s": m{"b": 1, "a": 1}}, m{}, m{"s": m{"b": 1, "a": 1}}},
		"sent in an item":      {nil, []any{m{"b": 1}, m{"b": 2}}, []any{m{"b": 1, "a": 1}, m{"b": 2, "a": 1}}, []any{m{"b": 1}, m{"b": 2, "a": 1}}, []any{m{"b": 1, "a": 1}, m{"b": 2}}},
		"sent in a keyed item": {keyed, []any{m{"name": "x"}, m{"name": "y"}}, []any{m{"name": "x", "a": 1}, m{"name": "y", "a": 1}}, []any{m{"name": "y", "a": 1}}, []any{m{"name": "x", "a": 1}, m{"name": "y"}}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, mergeBase(c.s, c.shown, c.filled, c.sent)) })
	}
}
