package apply

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// checkedSet returns the fields of an object that is applied; false if it does
// not fit the plan, or is unusual: then structured-merge-diff is to be asked.
func (p *plan) checkedSet(tree map[string]any) (*fieldpath.Set, bool) {
	set := &fieldpath.Set{}
	return set, p.collect(tree, set)
}

// collect checks v, which is not null, and adds the fields below it to set; a
// nil set only checks.
func (p *plan) collect(v any, set *fieldpath.Set) bool {
	switch p.shape {
	case shapeWhole:
		return true
	case shapeAny:
		m, ok := v.(map[string]any)
		return !ok || p.collectMap(m, set)
	case shapeMap:
		m, ok := v.(map[string]any)
		if p.atomic {
			set = nil
		}
		return ok && p.collectMap(m, set)
	case shapeList, shapeSet, shapeKeyed:
		l, ok := v.([]any)
		return ok && p.collectList(l, set)
	}
	return p.fits(v)
}

// fits reports whether v is a scalar of the plan's kind.
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

// leaf reports whether a value of the plan is owned itself, not by its parts.
func (p *plan) leaf(v any) bool {
	switch p.shape {
	case shapeSet, shapeKeyed:
		return false
	case shapeMap:
		return p.atomic
	case shapeAny:
		_, ok := v.(map[string]any)
		return !ok
	}
	return true
}

func (p *plan) collectMap(m map[string]any, set *fieldpath.Set) bool {
	keys := maps.Keys(m)
	if set != nil { // in order, since a set is a sorted list that each insert moves
		keys = slices.Values(slices.Sorted(keys))
	}
	for k := range keys {
		v := m[k]
		f, declared := p.field(k)
		if p.shape == shapeAny {
			f = p
		}
		if f == nil {
			return false
		}
		if set == nil {
			if v != nil && !f.collect(v, nil) {
				return false
			}
			continue
		}
		pe := fieldpath.PathElement{FieldName: &k}
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

// collectBelow adds what is below an element of set.
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
	if p.shape == shapeList {
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

// listItem is an item of a list and its place in a set.
type listItem struct {
	at    fieldpath.PathElement
	value any
}

// sorted returns the items of a list that index took in the order of sets, in which each
// insert moves what comes behind it.
func (p *plan) sorted(list []any) []listItem {
	items := make([]listItem, len(list))
	for i, item := range list {
		items[i] = listItem{p.element(item), item}
	}
	slices.SortFunc(items, func(a, b listItem) int { return a.at.Compare(b.at) })
	return items
}

// element returns the path element of an item that index took.
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
			v = k.def
		}
		key[i] = value.Field{Name: k.name, Value: value.NewValueInterface(wholeNumber(v))}
	}
	return fieldpath.PathElement{Key: &key}
}
