package ownership

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// fieldSet returns the fields of an applied object. ok is false if the object violates the
// schema or the plan does not cover it.
func (p *plan) fieldSet(tree map[string]any) (set *fieldpath.Set, ok bool) {
	set = &fieldpath.Set{}
	return set, p.collect(tree, set)
}

// collect checks v, which is not null, and inserts the fields below it into set. If set is
// nil, it only checks.
func (p *plan) collect(v any, set *fieldpath.Set) bool {
	switch p.shape {
	case shapeAtomic:
		return true
	case shapeDeduced:
		m, ok := v.(map[string]any)
		return !ok || p.collectMap(m, set)
	case shapeMap:
		m, ok := v.(map[string]any)
		if p.atomic {
			set = nil
		}
		return ok && p.collectMap(m, set)
	case shapeAtomicList, shapeSet, shapeMapList:
		l, ok := v.([]any)
		return ok && p.collectList(l, set)
	}
	return p.fits(v)
}

// fits reports whether v is a scalar of the plan's type.
func (p *plan) fits(v any) bool {
	switch v.(type) {
	case string:
		return p.shape == shapeString || p.shape == shapeScalar
	case int64, float64:
		return p.shape == shapeNumber || p.shape == shapeScalar
	case bool:
		return p.shape == shapeBoolean || p.shape == shapeScalar
	}
	return false
}

// leaf reports whether v is owned as a whole instead of by its parts.
func (p *plan) leaf(v any) bool {
	switch p.shape {
	case shapeSet, shapeMapList:
		return false
	case shapeMap:
		return p.atomic
	case shapeDeduced:
		_, ok := v.(map[string]any)
		return !ok
	}
	return true
}

func (p *plan) collectMap(m map[string]any, set *fieldpath.Set) bool {
	if set == nil {
		for k, v := range m {
			if f, _ := p.field(k); f == nil || v != nil && !f.collect(v, nil) {
				return false
			}
		}
		return true
	}
	keys := sortedKeys(m)
	for i, k := range keys {
		v := m[k]
		f, declared := p.field(k)
		if f == nil {
			return false
		}
		pe := fieldpath.PathElement{FieldName: &keys[i]}
		empty, isMap := v.(map[string]any)
		if v == nil || !declared || f.leaf(v) || isMap && len(empty) == 0 {
			set.Members.Insert(pe)
		}
		if v != nil && !f.collectBelow(v, pe, set) {
			return false
		}
	}
	return true
}

// sortedKeys returns the keys of m in the order of sets. A set is a sorted list, so
// inserting in order moves nothing.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// collectBelow inserts the fields below the element pe of set.
func (p *plan) collectBelow(v any, pe fieldpath.PathElement, set *fieldpath.Set) bool {
	if p.leaf(v) {
		return p.collect(v, nil)
	}
	var below fieldpath.Set
	if !p.collect(v, &below) {
		return false
	}
	if !below.Empty() {
		*set.Children.Descend(pe) = below
	}
	return true
}

func (p *plan) collectList(l []any, set *fieldpath.Set) bool {
	if p.shape == shapeAtomicList {
		for _, item := range l {
			if item != nil && !p.items.collect(item, nil) {
				return false
			}
		}
		return true
	}
	if _, ok := p.index(l); !ok {
		return false
	}
	if set == nil {
		return !slices.ContainsFunc(l, func(item any) bool { return !p.items.collect(item, nil) })
	}
	for _, item := range p.sorted(l) {
		set.Members.Insert(item.at)
		if !p.items.collectBelow(item.value, item.at, set) {
			return false
		}
	}
	return true
}

// listItem is an item of a list with its path element.
type listItem struct {
	at    fieldpath.PathElement
	value any
}

// sorted returns the items of a list that index accepted, in the order of sets.
func (p *plan) sorted(list []any) []listItem {
	items := make([]listItem, len(list))
	for i, item := range list {
		items[i] = listItem{p.element(item), item}
	}
	slices.SortFunc(items, func(a, b listItem) int { return a.at.Compare(b.at) })
	return items
}

// element returns the path element of an item that index accepted.
func (p *plan) element(item any) fieldpath.PathElement {
	if p.shape == shapeSet {
		v := value.NewValueInterface(wholeNumber(item))
		return fieldpath.PathElement{Value: &v}
	}
	obj := item.(map[string]any)
	key := make(value.FieldList, len(p.keys))
	for i, k := range p.keys {
		v, has := obj[k.name]
		if !has {
			v = k.defaultsTo
		}
		key[i] = value.Field{Name: k.name, Value: value.NewValueInterface(wholeNumber(v))}
	}
	return fieldpath.PathElement{Key: &key}
}
