package apply

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
)

// gained adds to set what a comparison of the objects a and b finds added or modified in b;
// false if it finds something removed, or the objects are unusual: then
// structured-merge-diff is to be asked.
func (p *plan) gained(a, b map[string]any, set *fieldpath.Set) bool {
	for k := range a {
		if _, stays := b[k]; !stays {
			return false
		}
	}
	keys := make([]string, 0, len(b))
	for k := range b {
		keys = append(keys, k)
	}
	slices.Sort(keys) // a set is a sorted list that each insert moves
	for i, k := range keys {
		f, _ := p.field(k)
		if p.shape == shapeAny {
			f = p
		}
		if f == nil {
			return false
		}
		x, had := a[k]
		if !f.gainedAt(fieldpath.PathElement{FieldName: &keys[i]}, x, had, b[k], set) {
			return false
		}
	}
	return true
}

// gainedAt is gained for one element of an object or list, which had x before or nothing.
func (p *plan) gainedAt(pe fieldpath.PathElement, x any, had bool, y any, set *fieldpath.Set) bool {
	switch {
	case had && meta.Equal(x, y):
		return true
	case y == nil:
		return false
	case p.leaf(y):
		if x != nil && (!p.leaf(x) || !p.collect(x, nil)) {
			return false
		}
		set.Members.Insert(pe)
		return p.collect(y, nil)
	case !had: // it is owned with all that is in it
		set.Members.Insert(pe)
	}
	below, ok := &fieldpath.Set{}, false
	switch y := y.(type) {
	case map[string]any:
		before, object := x.(map[string]any)
		ok = (p.shape == shapeMap || p.shape == shapeAny) && (x == nil || object) && (!had || len(y) > 0) && p.gained(before, y, below)
	case []any:
		ok = (p.shape == shapeSet || p.shape == shapeKeyed) && x == nil && (!had || len(y) > 0) && p.gainedItems(y, below)
	}
	if ok && !below.Empty() {
		*set.Children.Descend(pe) = *below
	}
	return ok
}

// gainedItems adds the items of a list that was not there.
func (p *plan) gainedItems(list []any, set *fieldpath.Set) bool {
	if _, ok := p.index(list); !ok {
		return false
	}
	for _, item := range p.sorted(list) {
		if !p.items.gainedAt(item.at, nil, false, item.value, set) {
			return false
		}
	}
	return true
}
