// Package library has the CEL functions beyond the language: for URLs, quantities, versions,
// formats, lists, strings and authorization. Each is a row of a table with its cost. IP
// addresses, sets, optional values and further functions of strings and lists come from cel-go.
package library

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"orch.io/controlplane/api/names"
)

// Options returns the environment options for all functions. The profile determines the names
// of types.
func Options(p names.Profile) []cel.EnvOption {
	t := newKinds(p)
	options := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.Lists(ext.ListsVersion(3)),
		ext.TwoVarComprehensions(), ext.Network(),
	}
	options = append(options, sets()...)
	options = append(options, growing()...)
	options = append(options, formatting)
	options = append(options, textPrices()...)
	options = append(options, steps())
	for _, rows := range [][]function{t.urls(), t.quantities(), t.versions(), t.formats(), texts(), lists(), t.authorization()} {
		for _, f := range rows {
			options = append(options, f.options()...)
		}
	}
	return options
}

// function is an overload of a function.
type function struct {
	name   string
	method bool // the first argument is the receiver
	args   []*cel.Type
	result *cel.Type
	call   func(args ...ref.Val) ref.Val
	cost   cost.QuantityExpr // of a call
	size   cost.QuantityExpr // size of the result; nil if no cost depends on it
}

// asMethod makes the function a method of its first argument.
func (f function) asMethod() function {
	f.method = true
	return f
}

// sized sets the size of the result.
func (f function) sized(size cost.QuantityExpr) function {
	f.size = size
	return f
}

func (f function) options() []cel.EnvOption {
	id := strings.ReplaceAll(f.name, ".", "_")
	for _, a := range f.args {
		id += "_" + strings.NewReplacer(".", "_", "(", "_", ")", "").Replace(a.String())
	}
	overload, model := cel.Overload, cost.Overload
	if f.method {
		overload, model = cel.MemberOverload, cost.MemberOverload
	}
	price := []cost.OverloadModelOption{cost.EvalCost(f.cost)}
	size := f.size
	if size == nil && f.result.Kind() == types.StructKind {
		size = cost.Const(1) // a value of this library, compared in one step
	}
	if size != nil {
		price = append(price, cost.ResultSize(size))
	}
	return []cel.EnvOption{
		cel.Function(f.name, overload(id, f.args, f.result, cel.FunctionBinding(f.call))),
		cel.CostModel(model(id, price...)),
	}
}

// binding maps a CEL type to a Go type.
type binding[T any] struct {
	of   *cel.Type
	from func(ref.Val) T
	to   func(T) ref.Val
}

func text() binding[string] {
	return binding[string]{cel.StringType, func(v ref.Val) string { s, _ := v.Value().(string); return s }, func(s string) ref.Val { return types.String(s) }}
}

func integer() binding[int64] {
	return binding[int64]{cel.IntType, func(v ref.Val) int64 { n, _ := v.Value().(int64); return n }, func(n int64) ref.Val { return types.Int(n) }}
}

func boolean() binding[bool] {
	return binding[bool]{cel.BoolType, func(v ref.Val) bool { return v == types.True }, func(b bool) ref.Val { return types.Bool(b) }}
}

func number() binding[float64] {
	return binding[float64]{cel.DoubleType, func(v ref.Val) float64 { n, _ := v.Value().(float64); return n }, func(n float64) ref.Val { return types.Double(n) }}
}

func listOf[T any](of binding[T]) binding[[]T] {
	return binding[[]T]{of: cel.ListType(of.of), to: func(list []T) ref.Val {
		out := make([]ref.Val, len(list))
		for i, v := range list {
			out[i] = of.to(v)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	}}
}

// function0 to function3 return functions with the given number of arguments.

func function0[R any](name string, result binding[R], call func() R, c cost.QuantityExpr) function {
	return function{name: name, result: result.of, cost: c, call: func(...ref.Val) ref.Val { return result.to(call()) }}
}

func function1[A, R any](name string, a binding[A], result binding[R], call func(A) (R, error), c cost.QuantityExpr) function {
	return function{name: name, args: []*cel.Type{a.of}, result: result.of, cost: c, call: func(args ...ref.Val) ref.Val {
		return toResult(result, func() (R, error) { return call(a.from(args[0])) })
	}}
}

func function2[A, B, R any](name string, a binding[A], b binding[B], result binding[R], call func(A, B) (R, error), c cost.QuantityExpr) function {
	return function{name: name, args: []*cel.Type{a.of, b.of}, result: result.of, cost: c, call: func(args ...ref.Val) ref.Val {
		return toResult(result, func() (R, error) { return call(a.from(args[0]), b.from(args[1])) })
	}}
}

func function3[A, B, C, R any](name string, a binding[A], b binding[B], c binding[C], result binding[R], call func(A, B, C) (R, error), q cost.QuantityExpr) function {
	return function{name: name, args: []*cel.Type{a.of, b.of, c.of}, result: result.of, cost: q, call: func(args ...ref.Val) ref.Val {
		return toResult(result, func() (R, error) { return call(a.from(args[0]), b.from(args[1]), c.from(args[2])) })
	}}
}

func toResult[R any](result binding[R], call func() (R, error)) ref.Val {
	r, err := call()
	if err != nil {
		return types.WrapErr(err)
	}
	return result.to(r)
}

// infallible adapts a function that cannot fail.
func infallible[A, R any](f func(A) R) func(A) (R, error) {
	return func(a A) (R, error) { return f(a), nil }
}

func infallible2[A, B, R any](f func(A, B) R) func(A, B) (R, error) {
	return func(a A, b B) (R, error) { return f(a, b), nil }
}

// Cost of calls: lookCost for a constant-time call, readCost for a call that reads a text.
func lookCost() cost.QuantityExpr { return cost.Const(1) }

func readCost(text cost.QuantityExpr) cost.QuantityExpr {
	return cost.Scale(text, cost.StringTraversalCostFactor)
}

// steps estimates some calls that read a text as one step, as in the reference server, because
// existing rules were written for its limits. Evaluation counts the actual cost.
func steps() cel.EnvOption {
	step := func(cost.Estimator, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
		return &cost.CallEstimate{CostEstimate: cost.FixedCostEstimate(1)}
	}
	return cel.CostEstimatorOptions(cost.OverloadCostEstimate("string_char_at_int", step), cost.OverloadCostEstimate("isURL_string", step))
}

// valid returns a function that reports whether parse succeeds.
func valid[R any](parse func(string) (R, error)) func(string) (bool, error) {
	return func(s string) (bool, error) {
		_, err := parse(s)
		return err == nil, nil
	}
}
