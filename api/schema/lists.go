package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/internal/number"
	"orch.io/controlplane/internal/suggest"
)

func (v *validator) list(l []any, old any, s *Schema, canonical bool) {
	tooMany := s.MaxItems != nil && int64(len(l)) > *s.MaxItems
	if tooMany && canonical {
		v.violation(wording.MaxItems, int64(len(l)), decimal(*s.MaxItems), canonical)
		return // like the reference server, skip the items of kinds from Go
	}
	v.duplicates(l, s)
	if s.Items != nil {
		before := oldItems(old, s)
		for i, e := range l {
			var was any
			if before != nil {
				was = before[s.ItemKey(e)]
			}
			v.path.item(i)
			v.value(e, was, s.Items, canonical)
			v.path.pop()
		}
		was, _ := old.([]any)
		v.checkRemovedItems(was, l, s)
	}
	if s.MinItems != nil && int64(len(l)) < *s.MinItems {
		v.violation(wording.MinItems, int64(len(l)), decimal(*s.MinItems), canonical)
	}
	if tooMany {
		v.violation(wording.MaxItems, int64(len(l)), decimal(*s.MaxItems), canonical)
	}
}

// oldItems returns the items of the previous list by their keys. It returns nil if items have
// no keys, or if no rule compares them with their previous value.
func oldItems(old any, s *Schema) map[string]any {
	l, _ := old.([]any)
	if len(l) == 0 || !s.isMapList() || !s.Items.fixed && s.Items.Struct.Canonical() {
		return nil
	}
	m := make(map[string]any, len(l))
	for _, e := range l {
		m[s.ItemKey(e)] = e
	}
	return m
}

func (s *Schema) isMapList() bool { return s.ListType == "map" && len(s.ListKeys) > 0 }

// ItemKey returns the identity of an item of a list with ListType map.
func (s *Schema) ItemKey(item any) string {
	m, _ := item.(map[string]any)
	if len(s.ListKeys) == 1 {
		return identity(m[s.ListKeys[0]])
	}
	var b strings.Builder
	for _, k := range s.ListKeys {
		b.WriteString(identity(m[k]))
		b.WriteByte(0)
	}
	return b.String()
}

// identity returns a string that is equal for equal JSON values only.
func identity(x any) string {
	switch v := x.(type) {
	case string:
		return v
	case int64:
		return "\x01" + strconv.FormatInt(v, 10)
	case float64:
		if n, ok := number.Integer(v); ok {
			return "\x01" + strconv.FormatInt(n, 10)
		}
	}
	b, err := json.Marshal(x)
	if err != nil {
		return ""
	}
	return "\x02" + string(b)
}

// duplicates reports equal items of a set, and items of a map list with equal keys. Each value
// is reported once, at its second occurrence.
func (v *validator) duplicates(l []any, s *Schema) {
	set := s.ListType == "set" && !s.Repeats || s.UniqueItems
	if len(l) == 0 || s.Repeats && !set || !set && (!s.isMapList() || s.Items == nil) {
		return
	}
	if i := slices.IndexFunc(l, noMapItem); !set && i >= 0 {
		v.repeat(wording.MapItem, i, l[i])
		return
	}
	seen := make(map[string]int, len(l))
	for i, e := range l {
		if set {
			if seenTwice(seen, identity(e)) {
				v.repeat(wording.Duplicate, i, e)
			}
		} else if seenTwice(seen, s.ItemKey(e)) {
			item, _ := e.(map[string]any)
			v.repeat(wording.Duplicate, i, keysOf(item, s))
		}
	}
}

// noMapItem reports whether a value cannot be an item of a map list. A null counts as an item
// without keys; its type is checked elsewhere.
func noMapItem(x any) bool {
	_, object := x.(map[string]any)
	return x != nil && !object
}

// seenTwice counts key and reports whether this is its second occurrence.
func seenTwice(seen map[string]int, key string) bool {
	seen[key]++
	return seen[key] == 2
}

func (v *validator) repeat(r wording.Rule, i int, x any) {
	if v.full() {
		return
	}
	v.path.item(i)
	v.repeats = append(v.repeats, r.Cause(v.path.keyed(), show(x), "", false))
	v.path.pop()
}

// keysOf returns the fields that identify an item of a map list.
func keysOf(item map[string]any, s *Schema) map[string]any {
	key := map[string]any{}
	for _, k := range s.ListKeys {
		if x, ok := item[k]; ok {
			key[k] = x
		}
	}
	return key
}

// checkKeys checks the listMapKeys of a list.
func (b *builder) checkKeys(list *Schema, a at) {
	items := list.Items.Struct
	if items == nil {
		return
	}
	for i, key := range list.ListKeys {
		f := items.Field(key)
		switch {
		case f == nil:
			b.fault(a, "tag schema, listMapKeys: the items have no field %q%s", key, suggest.Near(key, items.fieldNames()...))
		case f.Schema.Type == Object || f.Schema.Type == Array:
			b.fault(a, "tag schema, listMapKeys: the field %q is not a scalar", key)
		case f.Schema.Gate != "":
			b.fault(a, "tag schema, listMapKeys: the field %q has a gate: items would have no identity while the gate is off", key)
		case slices.Contains(list.ListKeys[:i], key):
			b.fault(a, "tag schema, listMapKeys: duplicate field %q", key)
		}
	}
}
