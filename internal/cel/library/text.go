package library

import (
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// texts returns the functions of strings and regular expressions.
func texts() []function {
	// The text is read once for each expression in the pattern, and expressions have about four
	// characters each.
	match := cost.Mul(readCost(cost.Sum(cost.Target(), cost.Const(1))), cost.Scale(cost.Arg(0), cost.RegexStringLengthCostFactor))
	return []function{
		function2("find", text(), text(), text(), func(s, pattern string) (string, error) {
			re, err := compile(pattern)
			if err != nil {
				return "", err
			}
			return re.FindString(s), nil
		}, match).asMethod().sized(cost.AtMost(cost.Target())),
		function2("findAll", text(), text(), listOf(text()), func(s, pattern string) ([]string, error) {
			return findAll(s, pattern, -1)
		}, match).asMethod().sized(cost.AtMost(cost.Target())),
		function3("findAll", text(), text(), integer(), listOf(text()), findAll, match).asMethod().sized(cost.AtMost(cost.Target())),
		function1("jsonpatch.escapeKey", text(), text(), infallible(func(s string) string {
			return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
		}), readCost(cost.Arg(0))).sized(cost.Ranged(cost.Arg(0), cost.Scale(cost.Arg(0), 2))),
	}
}

func findAll(s, pattern string, n int64) ([]string, error) {
	re, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	return allOf(re, s, n), nil
}

func allOf(re *regexp.Regexp, s string, n int64) []string {
	if n < 0 || n > int64(len(s))+1 {
		n = -1
	}
	return re.FindAllString(s, int(n))
}

func compile(pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("Illegal regex: %w", err) //lint:ignore ST1005 as clients know it
	}
	return re, nil
}

// Regexes returns the options that compile constant patterns of find and findAll once, as
// cel-go does for matches. An invalid constant pattern is then a compile error.
func Regexes() []*interpreter.RegexOptimization {
	return []*interpreter.RegexOptimization{
		constant("find", func(re *regexp.Regexp, s string, _ ...ref.Val) ref.Val { return types.String(re.FindString(s)) }),
		constant("findAll", func(re *regexp.Regexp, s string, most ...ref.Val) ref.Val {
			n := int64(-1)
			if len(most) > 0 {
				n, _ = most[0].Value().(int64)
			}
			return listOf(text()).to(allOf(re, s, n))
		}),
	}
}

func constant(function string, call func(re *regexp.Regexp, s string, more ...ref.Val) ref.Val) *interpreter.RegexOptimization {
	return &interpreter.RegexOptimization{Function: function, RegexIndex: 1, Factory: func(c interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		return interpreter.NewCall(c.ID(), c.Function(), c.OverloadID(), c.Args(), func(args ...ref.Val) ref.Val {
			s, ok := args[0].Value().(string)
			if !ok {
				return types.MaybeNoSuchOverloadErr(args[0])
			}
			return call(re, s, args[2:]...)
		}), nil
	}}
}

// longestText limits the results of replace and join, in bytes, because their cost is only
// counted when they return.
const longestText = 8 << 20

var errLong = fmt.Errorf("the text would have more than %d bytes", longestText)

// growing replaces the functions of cel-go with results that can be larger than their
// arguments.
func growing() []cel.EnvOption {
	replacing := func(args ...ref.Val) ref.Val {
		s, from, to, n := text().from(args[0]), text().from(args[1]), text().from(args[2]), int64(-1)
		if len(args) > 3 {
			n = integer().from(args[3])
		}
		return toResult(text(), func() (string, error) { return replace(s, from, to, n) })
	}
	list := cel.ListType(cel.StringType)
	return []cel.EnvOption{
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", []*cel.Type{cel.StringType, cel.StringType, cel.StringType}, cel.StringType, cel.FunctionBinding(replacing)),
			cel.MemberOverload("string_replace_string_string_int", []*cel.Type{cel.StringType, cel.StringType, cel.StringType, cel.IntType}, cel.StringType, cel.FunctionBinding(replacing))),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{list}, cel.StringType, cel.UnaryBinding(func(l ref.Val) ref.Val { return join(l, "") })),
			cel.MemberOverload("list_join_string", []*cel.Type{list, cel.StringType}, cel.StringType, cel.BinaryBinding(func(l, separator ref.Val) ref.Val {
				return join(l, text().from(separator))
			}))),
	}
}

func replace(s, from, to string, n int64) (string, error) {
	count := int64(strings.Count(s, from))
	if n < 0 || n > count {
		n = count
	}
	if grows := int64(len(to) - len(from)); grows > 0 && n > (longestText-int64(len(s)))/grows {
		return "", errLong
	}
	return strings.Replace(s, from, to, int(n)), nil
}

func join(list ref.Val, separator string) ref.Val {
	var b strings.Builder
	var fault ref.Val
	elements(list, func(i int64, v ref.Val) bool {
		s, ok := v.(types.String)
		switch {
		case !ok:
			fault = types.MaybeNoSuchOverloadErr(v)
		case b.Len()+len(separator)+len(s) > longestText:
			fault = types.WrapErr(errLong)
		default:
			if i > 0 {
				b.WriteString(separator)
			}
			b.WriteString(string(s))
		}
		return fault == nil
	})
	if fault != nil {
		return fault
	}
	return types.String(b.String())
}

// textPrices returns the cost of the string functions of cel-go: they read every character, and
// twice if they construct a string or list.
func textPrices() []cel.EnvOption {
	of, twice := readCost(cost.Target()), cost.Scale(cost.Target(), 2*cost.StringTraversalCostFactor)
	same := cost.AtMost(cost.Target())
	parts := cost.List(same, same)
	replaced := cost.AtMost(cost.Sum(cost.Target(), cost.Mul(cost.Sum(cost.Target(), cost.Const(1)), cost.Arg(1))))
	joined := cost.Mul(cost.Target(), cost.Sum(cost.ElemOf(cost.Target()), cost.Const(1)))
	separated := cost.Mul(cost.Target(), cost.Sum(cost.ElemOf(cost.Target()), cost.Arg(0), cost.Const(1)))
	var options []cel.EnvOption
	for _, row := range []struct {
		ids  []string
		cost cost.QuantityExpr
		size cost.QuantityExpr
	}{
		{[]string{"string_lower_ascii", "string_upper_ascii", "string_trim", "string_substring_int", "string_substring_int_int", "string_char_at_int"}, of, same},
		{[]string{"string_index_of_string", "string_index_of_string_int", "string_last_index_of_string", "string_last_index_of_string_int"}, of, nil},
		{[]string{"string_replace_string_string", "string_replace_string_string_int"}, twice, replaced},
		{[]string{"string_split_string", "string_split_string_int"}, twice, parts},
		{[]string{"list_join"}, readCost(joined), cost.AtMost(joined)},
		{[]string{"list_join_string"}, readCost(separated), cost.AtMost(separated)},
	} {
		for _, id := range row.ids {
			price := []cost.OverloadModelOption{cost.EvalCost(row.cost)}
			if row.size != nil {
				price = append(price, cost.ResultSize(row.size))
			}
			options = append(options, cel.CostModel(cost.MemberOverload(id, price...)))
		}
	}
	return options
}
