package library

import (
	"hash/maphash"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Index finds equal values without comparing all of them. Functions of lists need it because
// they cannot be interrupted, and their cost is only counted when they return.
type Index struct {
	seed maphash.Seed
	at   map[uint64][]int
}

// NewIndex returns an empty index.
func NewIndex() Index { return Index{maphash.MakeSeed(), map[uint64][]int{}} }

// Add adds the position of a value with the given hash.
func (x Index) Add(hash uint64, place int) { x.at[hash] = append(x.at[hash], place) }

// Places returns the positions of values that may be equal to a value with the given hash.
func (x Index) Places(hash uint64) []int { return x.at[hash] }

// Unordered is implemented by lists. It reports whether the order of elements is ignored in
// comparisons.
type Unordered interface{ Unordered() bool }

// Hash returns a hash that is the same for equal values.
func (x Index) Hash(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return maphash.String(x.seed, string(v))
	case types.Bytes:
		return maphash.Bytes(x.seed, v)
	case types.Bool:
		return maphash.Comparable(x.seed, bool(v))
	case types.Int: // numbers of different types can be equal
		return maphash.Comparable(x.seed, float64(v))
	case types.Uint:
		return maphash.Comparable(x.seed, float64(v))
	case types.Double:
		return maphash.Comparable(x.seed, float64(v))
	case types.Timestamp:
		return maphash.Comparable(x.seed, v.UnixNano())
	case types.Duration:
		return maphash.Comparable(x.seed, v.Duration)
	case traits.Lister:
		return x.list(v)
	case traits.Mapper:
		var sum uint64
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			sum += maphash.Comparable(x.seed, [2]uint64{x.Hash(key), x.Hash(v.Get(key))})
		}
		return sum
	}
	return 0 // other values are compared separately
}

func (x Index) list(l traits.Lister) (sum uint64) {
	sorted, _ := l.(Unordered)
	for it := l.Iterator(); it.HasNext() == types.True; {
		if hash := x.Hash(it.Next()); sorted != nil && sorted.Unordered() {
			sum += hash
		} else {
			sum = maphash.Comparable(x.seed, [2]uint64{sum, hash})
		}
	}
	return sum
}

// distinct has the values of a list without duplicates.
type distinct struct {
	index  Index
	values []ref.Val
}

func newDistinct(list ref.Val) *distinct {
	d := &distinct{index: NewIndex()}
	elements(list, func(_ int64, v ref.Val) bool {
		if hash := d.index.Hash(v); !d.has(hash, v) {
			d.index.Add(hash, len(d.values))
			d.values = append(d.values, v)
		}
		return true
	})
	return d
}

func (d *distinct) has(hash uint64, v ref.Val) bool {
	for _, place := range d.index.Places(hash) {
		if d.values[place].Equal(v) == types.True {
			return true
		}
	}
	return false
}

// contains reports whether all elements of list are in d or, if all is false, whether any element
// is.
func (d *distinct) contains(list ref.Val, all bool) bool {
	found := all
	elements(list, func(_ int64, v ref.Val) bool {
		found = d.has(d.index.Hash(v), v)
		return found == all
	})
	return found
}

// sets replaces the functions of cel-go that search a list for each element of another by
// functions that use an index.
func sets() []cel.EnvOption {
	of := cel.ListType(cel.TypeParamType("T"))
	set := func(name, id string, holds func(a, b ref.Val) bool) cel.EnvOption {
		return cel.Function(name, cel.Overload(id, []*cel.Type{of, of}, cel.BoolType, cel.BinaryBinding(func(a, b ref.Val) ref.Val {
			return types.Bool(holds(a, b))
		})))
	}
	return []cel.EnvOption{
		set("sets.contains", "list_sets_contains_list", func(a, b ref.Val) bool { return newDistinct(a).contains(b, true) }),
		set("sets.equivalent", "list_sets_equivalent_list", func(a, b ref.Val) bool {
			return newDistinct(a).contains(b, true) && newDistinct(b).contains(a, true)
		}),
		set("sets.intersects", "list_sets_intersects_list", func(a, b ref.Val) bool { return newDistinct(a).contains(b, false) }),
		cel.Function("distinct", cel.MemberOverload("list_distinct", []*cel.Type{of}, of, cel.UnaryBinding(func(list ref.Val) ref.Val {
			return types.NewRefValList(types.DefaultTypeAdapter, newDistinct(list).values)
		}))),
	}
}
