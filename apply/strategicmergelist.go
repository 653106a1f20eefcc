package apply

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply/internal/ownership"
)

// keyed is a list with the keys of its items: a scalar is its own key, an object has the
// merge key of the list.
type keyed struct {
	items []any
	keys  []any
	at    map[any]int // key to its first position
}

// read returns the keys of list. An item without a key is an error if need is set; otherwise
// it gets a unique key.
func (m *strategic) read(list []any, mergeKey string, need bool) (keyed, error) {
	k := keyed{items: list, keys: make([]any, len(list)), at: make(map[any]int, len(list))}
	for i, item := range list {
		key, ok := itemKey(item, mergeKey)
		if !ok {
			if need {
				return k, m.invalid("an item lacks the merge key %q or is not an object", mergeKey)
			}
			key = &list[i]
		}
		k.keys[i] = key
		if _, dup := k.at[key]; !dup {
			k.at[key] = i
		}
	}
	return k, nil
}

func itemKey(item any, mergeKey string) (any, bool) {
	if mergeKey == "" {
		return ownership.Scalar(item)
	}
	obj, ok := item.(map[string]any)
	if !ok {
		return nil, false
	}
	return ownership.Scalar(obj[mergeKey])
}

// list merges the items of patch into orig. Items of the patch take the patch's order; the
// others keep their places among them.
func (m *strategic) list(orig, patch []any, s *schema.Schema) ([]any, error) {
	if err := m.spend(len(orig) + len(patch)); err != nil {
		return nil, err
	}
	key, err := m.mergeKey(orig, patch, s)
	if err != nil {
		return nil, err
	}
	merged, rest, order, err := m.join(orig, patch, key, s.Items)
	if err != nil {
		return nil, err
	}
	return arrange(merged, order, rest, key), nil
}

// join merges the items of patch into orig. rest is orig without the deleted items, which
// is the head of merged; order lists the keys of the patch.
func (m *strategic) join(orig, patch []any, key string, items *schema.Schema) (merged, rest, order []any, err error) {
	rest, patch, err = m.special(orig, patch, key)
	if err != nil {
		return nil, nil, nil, err
	}
	merged, order, err = m.mergeItems(rest, patch, key, items)
	return merged, rest, order, err
}

// mergeKey returns the merge key of a list of objects, "" for a list of scalars.
func (m *strategic) mergeKey(orig, patch []any, s *schema.Schema) (string, error) {
	objects := false
	for _, item := range append(slices.Clip(orig), patch...) {
		switch item.(type) {
		case map[string]any:
			objects = true
		case []any:
			return "", m.invalid("lists of lists cannot be merged")
		}
	}
	if !objects {
		return "", nil
	}
	if s.PatchMergeKey == "" {
		return "", m.invalid("the list has no merge key")
	}
	return s.PatchMergeKey, nil
}

// special applies the items of patch that have a $patch directive. rest are the remaining
// items of orig, none after a replace; items are the other items of patch.
func (m *strategic) special(orig, patch []any, key string) (rest, items []any, err error) {
	if key == "" {
		return orig, patch, nil
	}
	gone := map[any]bool{}
	replace := false
	for _, p := range patch {
		obj, _ := p.(map[string]any)
		d, ok := obj[directive]
		switch {
		case !ok || d == "merge":
			items = append(items, p)
		case d == "replace":
			replace = true
		case d == "delete":
			k, ok := itemKey(p, key)
			if !ok {
				return nil, nil, m.invalid("an item to delete lacks the merge key %q", key)
			}
			gone[k] = true
		default:
			return nil, nil, m.invalid("unknown value of the directive $patch: %v", d)
		}
	}
	if replace {
		return []any{}, items, nil
	}
	return slices.DeleteFunc(orig, func(v any) bool {
		k, ok := itemKey(v, key)
		return ok && gone[k]
	}), items, nil
}

// mergeItems merges each item of patch into the item with its key, or appends it. order lists
// the keys of the patch.
func (m *strategic) mergeItems(orig, patch []any, key string, s *schema.Schema) (merged, order []any, err error) {
	old, err := m.read(orig, key, false)
	if err != nil {
		return nil, nil, err
	}
	if _, err := m.read(patch, key, true); err != nil {
		return nil, nil, err
	}
	merged = slices.Clone(orig)
	for _, p := range patch {
		k, _ := itemKey(p, key)
		order = append(order, k)
		i, found := old.at[k]
		if !found {
			old.at[k] = len(merged)
			merged = append(merged, clean(p))
			continue
		}
		if key != "" {
			if merged[i], err = m.object(merged[i].(map[string]any), p.(map[string]any), s); err != nil {
				return nil, nil, err
			}
		}
	}
	return merged, order, nil
}

// arrange sorts merged. Items whose key is in order are sorted by order, and the other items
// keep their order. When it merges both sequences, two items of before keep their order;
// otherwise the item of order comes first.
func arrange(merged, order, before []any, key string) []any {
	place := positions(order)
	was := make(map[any]int, len(before))
	for i, item := range before {
		if k, ok := itemKey(item, key); ok {
			if _, dup := was[k]; !dup {
				was[k] = i
			}
		}
	}
	keyOf := func(item any) any { k, _ := itemKey(item, key); return k }
	var first, rest []any
	for _, item := range merged {
		if _, ok := place[keyOf(item)]; ok {
			first = append(first, item)
		} else {
			rest = append(rest, item)
		}
	}
	slices.SortStableFunc(first, func(a, b any) int { return place[keyOf(a)] - place[keyOf(b)] })
	out := make([]any, 0, len(merged))
	for len(first) > 0 && len(rest) > 0 {
		f, hadFirst := was[keyOf(first[0])]
		r, hadRest := was[keyOf(rest[0])]
		if hadFirst && hadRest && r < f {
			out, rest = append(out, rest[0]), rest[1:]
		} else {
			out, first = append(out, first[0]), first[1:]
		}
	}
	return append(append(out, first...), rest...)
}

func positions(keys []any) map[any]int {
	at := make(map[any]int, len(keys))
	for i, k := range keys {
		if _, dup := at[k]; !dup {
			at[k] = i
		}
	}
	return at
}

// orderedLists applies every $setElementOrder together with the patch of its list.
func (m *strategic) orderedLists(orig, patch map[string]any, s *schema.Schema) error {
	for k, v := range patch {
		name, ok := strings.CutPrefix(k, elementOrder)
		if !ok {
			continue
		}
		delete(patch, k)
		order, ok := v.([]any)
		if !ok {
			return m.malformed(k, "a list")
		}
		err := m.within(name, func() error { return m.orderedList(orig, patch, name, order, fieldSchema(s, name)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *strategic) orderedList(orig, patch map[string]any, name string, order []any, s *schema.Schema) error {
	before, wasList := orig[name].([]any)
	items, isList := patch[name].([]any)
	if (orig[name] != nil && !wasList) || (patch[name] != nil && !isList) {
		return m.invalid("$setElementOrder needs a list")
	}
	if patch[name] == nil && !wasList {
		return nil
	}
	if _, inPatch := patch[name]; inPatch && !isList { // null removes the list
		delete(orig, name)
		delete(patch, name)
		return nil
	}
	if err := m.spend(len(before) + len(items) + len(order)); err != nil {
		return err
	}
	mergeable := ownership.HasStrategy(s, "merge")
	key := ""
	if mergeable {
		var err error
		if key, err = m.mergeKey(before, items, s); err != nil {
			return err
		}
	}
	wanted, err := m.read(order, key, true)
	if err != nil {
		return err
	}
	if err := m.follows(items, key, wanted.keys); err != nil {
		return err
	}
	delete(patch, name)
	merged := before
	switch {
	case isList && !wasList:
		merged = clean(items).([]any)
	case isList && mergeable:
		if merged, _, _, err = m.join(slices.Clone(before), items, key, s.Items); err != nil {
			return err
		}
		// As in the clients' own merge, the first new items count as old if items were
		// deleted: they come after the others then.
		before = merged[:min(len(before), len(merged))]
	case isList:
		merged = clean(items).([]any)
	}
	orig[name] = arrange(merged, wanted.keys, before, key)
	return nil
}

// follows checks that the items of a patch have the order of its $setElementOrder.
func (m *strategic) follows(items []any, key string, order []any) error {
	if len(order) == 0 {
		return nil
	}
	next := 0
	for _, item := range items {
		if marked(item) {
			continue
		}
		k, ok := itemKey(item, key)
		if !ok {
			return m.invalid("an item lacks the merge key %q or is not an object", key)
		}
		for next < len(order) && order[next] != k {
			next++
		}
		if next == len(order) {
			return m.invalid("the items of the patch do not have the order of %s", elementOrder)
		}
		next++
	}
	return nil
}
