package expression

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"orch.io/controlplane/api/schema"
)

// list is a list of a tree, or one that an expression made of such lists.
type list struct {
	schema *schema.Schema
	raw    []any
	made   []ref.Val // instead of raw
}

func (l list) len() int {
	if l.made != nil {
		return len(l.made)
	}
	return len(l.raw)
}

func (l list) at(i int) ref.Val {
	if l.made != nil {
		return l.made[i]
	}
	var items *schema.Schema
	if l.schema != nil {
		items = l.schema.Items
	}
	return Value(items, l.raw[i])
}

func (l list) isSet() bool { return l.schema != nil && l.schema.ListType == "set" }
func (l list) isMap() bool { return l.schema != nil && l.schema.ListType == "map" }

// find returns the item that equals another, of a list by keys the one that has its keys.
func (l list) find(item ref.Val) int {
	for i := range l.len() {
		if l.isMap() && l.sameKeys(l.at(i), item) || !l.isMap() && l.at(i).Equal(item) == types.True {
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

// Add implements traits.Adder: sets become what is in either, and lists by keys what is in
// the second, else in the first.
func (l list) Add(other ref.Val) ref.Val {
	more, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	sum := list{schema: l.schema, made: make([]ref.Val, 0, l.len())}
	for i := range l.len() {
		sum.made = append(sum.made, l.at(i))
	}
	for it := more.Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		at := -1
		if l.isSet() || l.isMap() {
			at = sum.find(item)
		}
		if at < 0 {
			sum.made = append(sum.made, item)
		} else {
			sum.made[at] = item
		}
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

// Equal implements ref.Val. Sets and lists by keys have no order.
func (l list) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok || o.Size() != l.Size() {
		return types.False
	}
	for i := range l.len() {
		theirs := o.Get(types.Int(i))
		if l.isSet() || l.isMap() {
			at := l.find(theirs)
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
	if l.made != nil {
		return l.made
	}
	return l.raw
}
