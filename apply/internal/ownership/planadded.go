package ownership

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
)

// added inserts into set the fields that b adds to a or modifies. It returns false if b
// removes a field or the plan does not cover the objects.
func (p *plan) added(a, b map[string]any, set *fieldpath.Set) bool {
	for k := range a {
		if _, stays := b[k]; !stays {
			return false
		}
	}
	keys := sortedKeys(b)
	for i, k := range keys {
		f, _ := p.field(k)
		if f == nil {
			return false
		}
		x, had := a[k]
		if !f.addedAt(fieldpath.PathElement{FieldName: &keys[i]}, x, had, b[k], set) {
			return false
		}
	}
	return true
}

// addedAt is added for the element pe of an object or list. The old value is x if had is
// set; the new value is y.
func (p *plan) addedAt(pe fieldpath.PathElement, x any, had bool, y any, set *fieldpath.Set) bool {
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
	case !had: // the element is owned as well as its content
		set.Members.Insert(pe)
	}
	below, ok := &fieldpath.Set{}, false
	switch y := y.(type) {
	case map[string]any:
		before, object := x.(map[string]any)
		ok = (p.shape == shapeMap || p.shape == shapeDeduced) && (x == nil || object) && (!had || len(y) > 0) && p.added(before, y, below)
	case []any:
		ok = (p.shape == shapeSet || p.shape == shapeMapList) && x == nil && (!had || len(y) > 0) && p.addedItems(y, below)
	}
	if ok && !below.Empty() {
		*set.Children.Descend(pe) = *below
	}
	return ok
}

// addedItems inserts the items of a new list.
func (p *plan) addedItems(list []any, set *fieldpath.Set) bool {
	if _, ok := p.index(list); !ok {
		return false
	}
	for _, item := range p.sorted(list) {
		if !p.items.addedAt(item.at, nil, false, item.value, set) {
			return false
		}
	}
	return true
}
