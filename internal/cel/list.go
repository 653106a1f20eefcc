package cel

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/cel/library"
)

// list is a list of a tree, or the result of adding lists.
type list struct {
	schema   *schema.Schema
	raw      []any
	computed []ref.Val // used instead of raw if not nil
}

func (l list) len() int {
	if l.computed != nil {
		return len(l.computed)
	}
	return len(l.raw)
}

func (l list) at(i int) ref.Val {
	if l.computed != nil {
		return l.computed[i]
	}
	var items *schema.Schema
	if l.schema != nil {
		items = l.schema.Items
	}
	return Value(items, l.raw[i])
}

func (l list) isSet() bool { return l.schema != nil && l.schema.ListType == "set" }
func (l list) isMap() bool { return l.schema != nil && l.schema.ListType == "map" }

// Unordered implements library.Unordered.
func (l list) Unordered() bool { return l.isSet() || l.isMap() }

// items is an index of the items of a set or of a list with keys.
type items struct {
	list
	places library.Index
}

func (l list) items() items {
	x := items{l, library.NewIndex()}
	for i := range l.len() {
		x.places.Add(x.hash(l.at(i)), i)
	}
	return x
}

// hash returns a hash of a set's item, or of the keys of a map list's item.
func (x items) hash(item ref.Val) uint64 {
	if !x.isMap() {
		return x.places.Hash(item)
	}
	m, ok := item.(traits.Mapper)
	if !ok {
		return 0
	}
	var sum uint64
	for _, key := range x.schema.ListKeys {
		if name, ok := escape(key); ok {
			if v, ok := m.Find(types.String(name)); ok {
				sum = sum*31 + x.places.Hash(v)
			}
		}
	}
	return sum
}

// find returns the index of the item that equals item, or has the same keys in a list with
// keys. It returns -1 if there is none.
func (x items) find(item ref.Val) int {
	for _, i := range x.places.Places(x.hash(item)) {
		if x.isMap() && x.sameKeys(x.at(i), item) || !x.isMap() && x.at(i).Equal(item) == types.True {
			return i
		}
	}
	return -1
}

func (l list) sameKeys(a, b ref.Val) bool {
	left, ok := a.(traits.Mapper)
	right, ok2 := b.(traits.Mapper)
	if !ok || !ok2 {
		return false
	}
	for _, key := range l.schema.ListKeys {
		name, ok := escape(key)
		if !ok {
			return false
		}
		x, okX := left.Find(types.String(name))
		y, okY := right.Find(types.String(name))
		if okX != okY || okX && x.Equal(y) != types.True {
			return false
		}
	}
	return true
}

// Add implements traits.Adder. The sum of sets is their union. The sum of lists with keys has
// the items of both; if both have an item with the same keys, the item of other is used.
func (l list) Add(other ref.Val) ref.Val {
	more, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	sum := list{schema: l.schema, computed: make([]ref.Val, 0, l.len())}
	for i := range l.len() {
		sum.computed = append(sum.computed, l.at(i))
	}
	var found items
	if l.Unordered() {
		found = sum.items()
	}
	for it := more.Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		at := -1
		if l.Unordered() {
			if at = found.find(item); at < 0 {
				found.places.Add(found.hash(item), len(sum.computed))
			}
		}
		if at < 0 {
			sum.computed = append(sum.computed, item)
		} else {
			sum.computed[at] = item
		}
		found.list = sum
	}
	return sum
}

// Contains implements traits.Container.
func (l list) Contains(item ref.Val) ref.Val {
	for i := range l.len() {
		if l.at(i).Equal(item) == types.True {
			return types.True
		}
	}
	return types.False
}

// Equal implements ref.Val. The order of items is ignored in sets and lists with keys.
func (l list) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok || o.Size() != l.Size() {
		return types.False
	}
	var found items
	if l.Unordered() {
		found = l.items()
	}
	for i := range l.len() {
		theirs := o.Get(types.Int(i))
		if l.Unordered() {
			at := found.find(theirs)
			if at < 0 || l.at(at).Equal(theirs) != types.True {
				return types.False
			}
		} else if same := l.at(i).Equal(theirs); same != types.True {
			return same
		}
	}
	return types.True
}

// Get implements traits.Indexer.
func (l list) Get(index ref.Val) ref.Val {
	n, ok := index.ConvertToType(types.IntType).(types.Int)
	switch {
	case !ok || n.Equal(index) != types.True:
		return types.ValOrErr(index, "unsupported index type '%s' in list", index.Type())
	case n < 0 || int(n) >= l.len():
		return types.NewErr("index out of bounds: %d", n)
	}
	return l.at(int(n))
}

// Iterator implements traits.Iterable.
func (l list) Iterator() traits.Iterator { return &iterator{size: l.len(), at: l.at} }

// Size implements traits.Sizer.
func (l list) Size() ref.Val { return types.Int(l.len()) }

// ConvertToNative implements ref.Val.
func (l list) ConvertToNative(t reflect.Type) (any, error) { return native(l.Value(), t) }

// ConvertToType implements ref.Val.
func (l list) ConvertToType(t ref.Type) ref.Val { return convert(l, t) }

// Type implements ref.Val.
func (l list) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l list) Value() any {
	if l.computed != nil {
		return l.computed
	}
	return l.raw
}
