package library

import (
	"errors"

	"cel.dev/cel-go/common/cost"

	"orch.io/controlplane/api/meta"
)

var errNoInteger = errors.New("cannot convert value to integer")

// quantities returns the functions of quantities, such as 1.5Gi.
func (k kinds) quantities() []function {
	number64 := func(n int64) meta.Quantity { return meta.NewQuantity(n, meta.DecimalSI) }
	return []function{
		function1("quantity", text(), k.quantity, meta.ParseQuantity, readCost(cost.Arg(0))),
		function1("isQuantity", text(), boolean(), valid(meta.ParseQuantity), readCost(cost.Arg(0))),
		function1("sign", k.quantity, integer(), infallible(func(q meta.Quantity) int64 { return int64(q.Sign()) }), lookCost()).asMethod(),
		function1("isInteger", k.quantity, boolean(), infallible(func(q meta.Quantity) bool { _, ok := q.AsInt64(); return ok }), lookCost()).asMethod(),
		function1("asInteger", k.quantity, integer(), func(q meta.Quantity) (int64, error) {
			n, ok := q.AsInt64()
			if !ok {
				return 0, errNoInteger
			}
			return n, nil
		}, lookCost()).asMethod(),
		function1("asApproximateFloat", k.quantity, number(), infallible(func(q meta.Quantity) float64 { f, _ := q.Rat().Float64(); return f }), lookCost()).asMethod(),
		function2("compareTo", k.quantity, k.quantity, integer(), infallible2(func(a, b meta.Quantity) int64 { return int64(a.Cmp(b)) }), lookCost()).asMethod(),
		function2("isGreaterThan", k.quantity, k.quantity, boolean(), infallible2(func(a, b meta.Quantity) bool { return a.Cmp(b) > 0 }), lookCost()).asMethod(),
		function2("isLessThan", k.quantity, k.quantity, boolean(), infallible2(func(a, b meta.Quantity) bool { return a.Cmp(b) < 0 }), lookCost()).asMethod(),
		function2("add", k.quantity, k.quantity, k.quantity, infallible2(meta.Quantity.Add), lookCost()).asMethod(),
		function2("sub", k.quantity, k.quantity, k.quantity, infallible2(meta.Quantity.Sub), lookCost()).asMethod(),
		function2("add", k.quantity, integer(), k.quantity, infallible2(func(q meta.Quantity, n int64) meta.Quantity { return q.Add(number64(n)) }), lookCost()).asMethod(),
		function2("sub", k.quantity, integer(), k.quantity, infallible2(func(q meta.Quantity, n int64) meta.Quantity { return q.Sub(number64(n)) }), lookCost()).asMethod(),
	}
}
