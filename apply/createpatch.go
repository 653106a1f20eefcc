package apply

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply/internal/ownership"
)

// CreateMergePatch returns the JSON merge patch that changes original to modified:
// MergePatch(original, patch) equals modified. A merge patch cannot set a field to null, so
// null fields of modified count as missing. The arguments are not changed, and the patch
// shares nothing with them.
func CreateMergePatch(original, modified map[string]any) map[string]any {
	return CreateThreeWayMergePatch(original, modified, original)
}

// CreateThreeWayMergePatch returns the JSON merge patch by which kubectl apply changes
// current, the live object of a custom resource. original is the configuration that was
// applied last, nil if there is none, and modified is the new configuration. The patch sets
// the fields of modified that differ in current and removes the fields of original that
// modified omits; it does not touch the other fields of current.
func CreateThreeWayMergePatch(original, modified, current map[string]any) map[string]any {
	patch, _ := (&patchMaker{}).object(original, modified, current, nil) // only directives can fail
	return patch
}

// CreateStrategicMerge returns the strategic merge patch that changes original to modified:
// StrategicMerge(original, patch, s) equals modified. s describes both objects; nil replaces
// every list. Null fields of modified count as missing. The arguments are not changed, and
// the patch shares nothing with them.
//
// The error is a *meta.Status: BadRequest (400) if modified is nested deeper than 500,
// Invalid (422) with the path as cause if no patch can express the change, because a field
// has the name of a directive or a list that is merged has items without a unique key.
func CreateStrategicMerge(original, modified map[string]any, s *schema.Schema) (map[string]any, error) {
	return CreateThreeWayStrategicMerge(original, modified, original, s)
}

// CreateThreeWayStrategicMerge returns the strategic merge patch by which kubectl apply
// changes current, the live object of a built-in kind. original is the configuration that
// was applied last, nil if there is none, and modified is the new configuration. The patch
// sets the fields and list items of modified that differ in current and removes the fields
// and items of original that modified omits; it does not touch the others. It overwrites the changes that
// others made to fields of modified, like kubectl apply --overwrite. The errors are the
// same as for CreateStrategicMerge.
func CreateThreeWayStrategicMerge(original, modified, current map[string]any, s *schema.Schema) (map[string]any, error) {
	if tooDeep(modified, maxDepth) {
		return nil, meta.BadRequest("the object is nested deeper than %d", maxDepth)
	}
	return (&patchMaker{directives: true}).object(original, modified, current, s)
}

// patchMaker creates a merge patch, or a strategic merge patch if directives is set.
//
// The two-way patch is the three-way patch with the original as the current object: fields
// that current has and modified lacks are then all fields of original.
type patchMaker struct {
	strategic  // for the path and its errors
	directives bool
}

// object returns the patch of an object, empty if there is nothing to change.
func (m *patchMaker) object(original, modified, current map[string]any, s *schema.Schema) (map[string]any, error) {
	patch := map[string]any{}
	for k, want := range modified {
		if m.directives && isDirective(k) {
			return nil, m.invalid("the field %s has the name of a directive", k)
		}
		if want == nil {
			continue
		}
		err := m.within(k, func() error { return m.field(patch, k, original[k], want, current, fieldSchema(s, k)) })
		if err != nil {
			return nil, err
		}
	}
	for k := range original {
		if m.directives && isDirective(k) {
			return nil, m.invalid("the field %s has the name of a directive", k)
		}
		if modified[k] == nil && current[k] != nil {
			patch[k] = nil
		}
	}
	return patch, nil
}

// field adds to patch the change of the field k to want, which is not null.
func (m *patchMaker) field(patch map[string]any, k string, original, want any, current map[string]any, s *schema.Schema) error {
	live, exists := current[k]
	switch want := want.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok || m.directives && ownership.HasStrategy(s, "replace") {
			break
		}
		before, _ := original.(map[string]any)
		below, err := m.object(before, want, live, s)
		if err != nil {
			return err
		}
		if m.directives && ownership.HasStrategy(s, "retainKeys") {
			addRetainKeys(below, want, live)
		}
		if len(below) > 0 {
			patch[k] = below
		}
		return nil
	case []any:
		live, ok := live.([]any)
		if !ok || !m.directives || !ownership.HasStrategy(s, "merge") {
			break
		}
		before, _ := original.([]any)
		return m.list(patch, k, before, want, live, s)
	}
	value, err := m.value(want, s)
	if err != nil {
		return err
	}
	if !exists || !meta.Equal(live, value) {
		patch[k] = value
	}
	return nil
}

// value returns a copy of a new value without nulls in objects, as the patch leaves it.
func (m *patchMaker) value(v any, s *schema.Schema) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if m.directives && isDirective(k) {
				return nil, m.invalid("the field %s has the name of a directive", k)
			}
			if e == nil {
				continue
			}
			value, err := m.value(e, fieldSchema(s, k))
			if err != nil {
				return nil, err
			}
			out[k] = value
		}
		return out, nil
	case []any:
		if !m.directives {
			return meta.Clone(v), nil
		}
		out := make([]any, len(v))
		for i, e := range v {
			value, err := m.value(e, itemSchema(s))
			if err != nil {
				return nil, err
			}
			out[i] = value
		}
		return out, nil
	}
	return meta.Clone(v), nil
}

func itemSchema(s *schema.Schema) *schema.Schema {
	if s == nil {
		return nil
	}
	return s.Items
}

// addRetainKeys adds the directive $retainKeys if the patch changes something or live has
// fields that modified lacks.
func addRetainKeys(patch, modified, live map[string]any) {
	var keep []any
	for k, v := range modified {
		if v != nil {
			keep = append(keep, k)
		}
	}
	extra := false
	for k, v := range live {
		extra = extra || v != nil && modified[k] == nil
	}
	if len(keep) == 0 || len(patch) == 0 && !extra {
		return
	}
	slices.SortFunc(keep, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	patch[retainKeys] = keep
}

// list adds to patch the change of a list with the patch strategy merge.
func (m *patchMaker) list(patch map[string]any, k string, original, modified, current []any, s *schema.Schema) error {
	key, err := m.mergeKey(current, modified, s)
	before, had, want := newKeyedItems(original, key), newKeyedItems(current, key), newKeyedItems(modified, key)
	switch {
	case (err != nil || had.ambiguous || want.ambiguous) && meta.Equal(modified, current):
		return nil
	case err != nil:
		return err
	case had.ambiguous || want.ambiguous: // Service ports, for example: two protocols can share a port
		return m.invalid("the items of the list have no unique merge key %q", key)
	}
	items := []any{} // of modified that current lacks or has otherwise
	for i, item := range modified {
		id := want.keys[i]
		at, exists := had.at[id]
		switch {
		case !exists:
			value, err := m.value(item, s.Items)
			if err != nil {
				return err
			}
			items = append(items, value)
		case key != "":
			old, _ := before.item(id).(map[string]any)
			below, err := m.object(old, item.(map[string]any), current[at].(map[string]any), s.Items)
			if err != nil {
				return err
			}
			if ownership.HasStrategy(s, "retainKeys") {
				addRetainKeys(below, item.(map[string]any), current[at].(map[string]any))
			}
			if len(below) > 0 {
				below[key] = item.(map[string]any)[key]
				items = append(items, below)
			}
		}
	}
	ordered := len(items) > 0 || !sameOrder(want.keys, had.keys)
	var gone []any
	for i, id := range before.keys {
		if _, stays := want.at[id]; !stays && had.has(id) && before.at[id] == i {
			gone = append(gone, original[i])
		}
	}
	if key == "" && len(gone) > 0 {
		patch[deletePrimitive+k] = gone
	}
	for _, item := range gone {
		if key != "" {
			items = append(items, map[string]any{directive: "delete", key: item.(map[string]any)[key]})
		}
	}
	if len(items) > 0 {
		patch[k] = items
	}
	if ordered && len(current) > 0 {
		patch[elementOrder+k] = elementKeys(modified, key)
	}
	return nil
}

// keyedItems finds the items of a list by key.
type keyedItems struct {
	items     []any
	keys      []any
	at        map[any]int
	ambiguous bool // an item has no key, or two items have the same
}

func newKeyedItems(list []any, mergeKey string) keyedItems {
	k := keyedItems{items: list, at: make(map[any]int, len(list))}
	for i, item := range list {
		id, ok := itemKey(item, mergeKey)
		if _, dup := k.at[id]; !ok || dup {
			k.ambiguous = true
		} else {
			k.at[id] = i
		}
		k.keys = append(k.keys, id)
	}
	return k
}

func (k keyedItems) has(id any) bool {
	_, ok := k.at[id]
	return ok
}

// item returns the item with a key, nil if there is none.
func (k keyedItems) item(id any) any {
	if i, ok := k.at[id]; ok {
		return k.items[i]
	}
	return nil
}

// sameOrder reports whether the keys that are in both lists have the same order.
func sameOrder(a, b []any) bool {
	at := positions(b)
	last := -1
	for _, key := range a {
		i, ok := at[key]
		if ok && i < last {
			return false
		}
		if ok {
			last = i
		}
	}
	return true
}

// elementKeys returns the value of $setElementOrder for a list.
func elementKeys(list []any, key string) []any {
	out := make([]any, len(list))
	for i, item := range list {
		if key == "" {
			out[i] = item
		} else {
			out[i] = map[string]any{key: item.(map[string]any)[key]}
		}
	}
	return out
}
