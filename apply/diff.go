package apply

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply/internal/ownership"
	"orch.io/controlplane/internal/codec"
)

// Change is a difference that Diff found.
type Change struct {
	Path    string // such as .spec.containers[name="app"].image
	Live    any    // nil: missing
	Desired any    // nil: missing
}

// String returns the change as a line: "+ path: value" if the value is added, "- path:
// value" if it is removed, and "~ path: live -> desired" otherwise. Values are JSON.
func (c Change) String() string {
	switch {
	case c.Live == nil:
		return fmt.Sprintf("+ %s: %s", c.Path, codec.EncodeValue(nil, c.Desired))
	case c.Desired == nil:
		return fmt.Sprintf("- %s: %s", c.Path, codec.EncodeValue(nil, c.Live))
	}
	return fmt.Sprintf("~ %s: %s -> %s", c.Path, codec.EncodeValue(nil, c.Live), codec.EncodeValue(nil, c.Desired))
}

// Diff returns the differences between two objects, ordered by field. To learn what an Apply
// would change, compare the live object with the result of Apply. metadata.managedFields is
// left out, and null counts as missing.
//
// s describes both objects; nil means any object. Items of sets and map lists are compared by
// value or key. If the common items of such a list have another order, the list is a single change.
// Other lists are compared as a whole. If the paths would take more than 64 MiB, the result is
// a single change of the whole objects. The values of a Change are parts of the arguments.
func Diff(live, desired map[string]any, s *schema.Schema) []Change {
	live, desired = withoutManagedFields(meta.NewObject(live)), withoutManagedFields(meta.NewObject(desired))
	d := differ{left: maxDiffPaths}
	d.objects("", live, desired, s)
	if d.left < 0 {
		return []Change{{"", live, desired}}
	}
	return d.changes
}

const maxDiffPaths = 64 << 20 // bytes of the paths that a Diff visits

// differ collects the changes between two objects.
type differ struct {
	changes []Change
	left    int // bytes of paths that may still be visited; negative: the diff has failed
}

func (d *differ) objects(path string, live, desired map[string]any, s *schema.Schema) {
	keys := sortedKeys(live)
	for k := range desired {
		if _, both := live[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		if d.left >= 0 {
			d.values(path+"."+k, live[k], desired[k], fieldSchema(s, k))
		}
	}
}

func (d *differ) values(path string, live, desired any, s *schema.Schema) {
	if d.left -= len(path); d.left < 0 {
		return
	}
	switch live := live.(type) {
	case map[string]any:
		if desired, ok := desired.(map[string]any); ok {
			d.objects(path, live, desired, s)
			return
		}
	case []any:
		if desired, ok := desired.([]any); ok && d.lists(path, live, desired, s) {
			return
		}
	}
	if !meta.Equal(live, desired) {
		d.changes = append(d.changes, Change{path, live, desired})
	}
}

// lists compares two lists by item. It returns false if the list has to be compared as a
// whole.
func (d *differ) lists(path string, live, desired []any, s *schema.Schema) bool {
	if s == nil {
		return false
	}
	listType, keys := ownership.ListType(s)
	if listType == "atomic" {
		return false
	}
	had, ok := indexItems(live, keys, s.Items)
	want, both := indexItems(desired, keys, s.Items)
	if !ok || !both || !sameOrder(want.keys, had.keys) {
		return false
	}
	for i, key := range had.keys {
		d.values(path+key.(string), live[i], want.item(key), s.Items)
	}
	for i, key := range want.keys {
		if !had.has(key) {
			d.values(path+key.(string), nil, desired[i], s.Items)
		}
	}
	return true
}

// indexItems indexes the items of a list by their path elements, such as [name="app"]. ok is
// false if two items have the same or an item has none.
func indexItems(list []any, keys []string, items *schema.Schema) (x keyedItems, ok bool) {
	x = keyedItems{items: list, at: make(map[any]int, len(list))}
	for i, item := range list {
		element, ok := pathElement(item, keys, items)
		if !ok || x.has(element) {
			return x, false
		}
		x.at[element] = i
		x.keys = append(x.keys, element)
	}
	return x, true
}

// pathElement returns the path element of a list item: [="value"] in a set, [key="value"] in
// a map list. A key that the item omits has its default.
func pathElement(item any, keys []string, s *schema.Schema) (element string, ok bool) {
	if len(keys) == 0 {
		v, ok := ownership.Scalar(item)
		return fmt.Sprintf("[=%s]", codec.EncodeValue(nil, v)), ok
	}
	obj, ok := item.(map[string]any)
	if !ok {
		return "", false
	}
	parts := make([]string, len(keys))
	for i, name := range keys {
		v, has := obj[name]
		if f := fieldSchema(s, name); !has && f != nil {
			v = f.Default
		}
		if v, ok = ownership.Scalar(v); !ok {
			return "", false
		}
		parts[i] = fmt.Sprintf("%s=%s", name, codec.EncodeValue(nil, v))
	}
	slices.Sort(parts)
	return "[" + strings.Join(parts, ",") + "]", true
}
