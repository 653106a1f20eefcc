// Package library has the functions that expressions may call besides those of the
// language itself: of URLs, quantities, versions, formats, lists, texts, and of what a
// user may do. Each is a row of a table, with what a call costs; addresses, sets, further
// functions of texts and lists, and optional values are those of cel-go.
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

// Options are what an environment needs for all functions. The names of types are those
// of a profile.
func Options(p names.Profile) []cel.EnvOption {
	t := newKinds(p)
	options := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.Lists(ext.ListsVersion(3)),
		ext.TwoVarComprehensions(), ext.Network(),
	}
	options = append(options, sets()...)
	options = append(options, made()...)
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

// function is one form of a function.
type function struct {
	name   string
	method bool // the first argument is what it is called on
	args   []*cel.Type
	result *cel.Type
	call   func(args ...ref.Val) ref.Val
	cost   cost.QuantityExpr // of a call
	size   cost.QuantityExpr // of the result; nil: it has none that anybody asks for
}

// on makes a method of a function.
func (f function) on() function {
	f.method = true
	return f
}

// sized says how large the result is.
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
		size = cost.Const(1) // a value of this library, which is compared in one step
	}
	if size != nil {
		price = append(price, cost.ResultSize(size))
	}
	return []cel.EnvOption{
		cel.Function(f.name, overload(id, f.args, f.result, cel.FunctionBinding(f.call))),
		cel.CostModel(model(id, price...)),
	}
}

// sort is a type of values: how the language knows it, and how Go does.
type sort[T any] struct {
	of   *cel.Type
	from func(ref.Val) T
	to   func(T) ref.Val
}

func text() sort[string] {
	return sort[string]{cel.StringType, func(v ref.Val) string { s, _ := v.Value().(string); return s }, func(s string) ref.Val { return types.String(s) }}
}

func integer() sort[int64] {
	return sort[int64]{cel.IntType, func(v ref.Val) int64 { n, _ := v.Value().(int64); return n }, func(n int64) ref.Val { return types.Int(n) }}
}

func boolean() sort[bool] {
	return sort[bool]{cel.BoolType, func(v ref.Val) bool { return v == types.True }, func(b bool) ref.Val { return types.Bool(b) }}
}

func number() sort[float64] {
	return sort[float64]{cel.DoubleType, func(v ref.Val) float64 { n, _ := v.Value().(float64); return n }, func(n float64) ref.Val { return types.Double(n) }}
}

func listOf[T any](of sort[T]) sort[[]T] {
	return sort[[]T]{of: cel.ListType(of.of), to: func(list []T) ref.Val {
		out := make([]ref.Val, len(list))
		for i, v := range list {
			out[i] = of.to(v)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	}}
}

// function0 to function3 are functions of so many arguments.

func function0[R any](name string, result sort[R], call func() R, c cost.QuantityExpr) function {
	return function{name: name, result: result.of, cost: c, call: func(...ref.Val) ref.Val { return result.to(call()) }}
}

func function1[A, R any](name string, a sort[A], result sort[R], call func(A) (R, error), c cost.QuantityExpr) function {
	return function{name: name, args: []*cel.Type{a.of}, result: result.of, cost: c, call: func(args ...ref.Val) ref.Val {
		return answer(result, func() (R, error) { return call(a.from(args[0])) })
	}}
}

func function2[A, B, R any](name string, a sort[A], b sort[B], result sort[R], call func(A, B) (R, error), c cost.QuantityExpr) function {
	return function{name: name, args: []*cel.Type{a.of, b.of}, result: result.of, cost: c, call: func(args ...ref.Val) ref.Val {
		return answer(result, func() (R, error) { return call(a.from(args[0]), b.from(args[1])) })
	}}
}

func function3[A, B, C, R any](name string, a sort[A], b sort[B], c sort[C], result sort[R], call func(A, B, C) (R, error), q cost.QuantityExpr) function {
	return function{name: name, args: []*cel.Type{a.of, b.of, c.of}, result: result.of, cost: q, call: func(args ...ref.Val) ref.Val {
		return answer(result, func() (R, error) { return call(a.from(args[0]), b.from(args[1]), c.from(args[2])) })
	}}
}

func answer[R any](result sort[R], call func() (R, error)) ref.Val {
	r, err := call()
	if err != nil {
		return types.WrapErr(err)
	}
	return result.to(r)
}

// sure is a function that cannot fail, as one that could.
func sure[A, R any](f func(A) R) func(A) (R, error) {
	return func(a A) (R, error) { return f(a), nil }
}

func sure2[A, B, R any](f func(A, B) R) func(A, B) (R, error) {
	return func(a A, b B) (R, error) { return f(a, b), nil }
}

// What calls cost: as much as a look at something, or as going through a text.
func look() cost.QuantityExpr { return cost.Const(1) }

func read(text cost.QuantityExpr) cost.QuantityExpr {
	return cost.Scale(text, cost.StringTraversalCostFactor)
}

// steps estimates calls as one step that go through a text: definitions were written for
// servers that do. An evaluation counts what they cost.
func steps() cel.EnvOption {
	step := func(cost.Estimator, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
		return &cost.CallEstimate{CostEstimate: cost.FixedCostEstimate(1)}
	}
	return cel.CostEstimatorOptions(cost.OverloadCostEstimate("string_char_at_int", step), cost.OverloadCostEstimate("isURL_string", step))
}

// valid reports whether a function of a text would not fail.
func valid[R any](parse func(string) (R, error)) func(string) (bool, error) {
	return func(s string) (bool, error) {
		_, err := parse(s)
		return err == nil, nil
	}
}
