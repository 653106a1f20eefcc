package library

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// lists returns the functions of lists with elements that can be compared or added.
func lists() []function {
	var rows []function
	every := cost.Mul(cost.Target(), cost.Sum(cost.Const(1), readCost(cost.ElemOf(cost.Target()))))
	for _, of := range []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.StringType, cel.BytesType, cel.DurationType, cel.TimestampType} {
		list := []*cel.Type{cel.ListType(of)}
		rows = append(rows,
			function{name: "isSorted", method: true, args: list, result: cel.BoolType, call: isSorted, cost: every},
			function{name: "min", method: true, args: list, result: of, call: extreme("min", types.IntNegOne), cost: every, size: cost.ElemOf(cost.Target())},
			function{name: "max", method: true, args: list, result: of, call: extreme("max", types.IntOne), cost: every, size: cost.ElemOf(cost.Target())},
		)
	}
	for _, row := range []struct {
		of   *cel.Type
		zero ref.Val
	}{ // the order matters: the first overload is used for a list of unknown type, such as an empty list
		{cel.IntType, types.Int(0)}, {cel.UintType, types.Uint(0)}, {cel.DoubleType, types.Double(0)}, {cel.DurationType, types.Duration{}},
	} {
		rows = append(rows, function{name: "sum", method: true, args: []*cel.Type{cel.ListType(row.of)}, result: row.of, call: sum(row.zero), cost: every})
	}
	element := cel.TypeParamType("A")
	for _, name := range []string{"indexOf", "lastIndexOf"} {
		rows = append(rows, function{name: name, method: true, args: []*cel.Type{cel.ListType(element), element}, result: cel.IntType, call: indexOf(name == "lastIndexOf"), cost: every})
	}
	return rows
}

// elements calls each for every element of a list until each returns false.
func elements(list ref.Val, each func(i int64, v ref.Val) bool) {
	l, ok := list.(traits.Lister)
	if !ok {
		return
	}
	i := int64(0)
	for it := l.Iterator(); it.HasNext() == types.True && each(i, it.Next()); i++ {
	}
}

func isSorted(args ...ref.Val) ref.Val {
	var before ref.Val
	var result ref.Val = types.True
	elements(args[0], func(_ int64, v ref.Val) bool {
		if before != nil {
			switch c := compare(before, v); {
			case types.IsUnknownOrError(c):
				result = c
			case c == types.IntOne:
				result = types.False
			}
		}
		before = v
		return result == types.True
	})
	return result
}

// extreme returns a function that returns the minimum or maximum of a list: want is the result
// of comparing it with other elements.
func extreme(name string, want types.Int) func(...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		var found ref.Val
		elements(args[0], func(_ int64, v ref.Val) bool {
			if found == nil {
				found = v
				return true
			}
			c := compare(v, found)
			if types.IsUnknownOrError(c) {
				found = c
				return false
			}
			if c == want {
				found = v
			}
			return true
		})
		if found == nil {
			return types.NewErr("%s called on empty list", name)
		}
		return found
	}
}

func compare(a, b ref.Val) ref.Val {
	c, ok := a.(traits.Comparer)
	if !ok {
		return types.MaybeNoSuchOverloadErr(a)
	}
	return c.Compare(b)
}

func sum(zero ref.Val) func(...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		total := zero
		elements(args[0], func(_ int64, v ref.Val) bool {
			adder, ok := total.(traits.Adder)
			if !ok {
				total = types.MaybeNoSuchOverloadErr(v)
				return false
			}
			total = adder.Add(v)
			return !types.IsUnknownOrError(total)
		})
		return total
	}
}

func indexOf(last bool) func(...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		found := int64(-1)
		elements(args[0], func(i int64, v ref.Val) bool {
			if v.Equal(args[1]) == types.True {
				found = i
				return last
			}
			return true
		})
		return types.Int(found)
	}
}
