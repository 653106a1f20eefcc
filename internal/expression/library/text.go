package library

import (
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
)

// texts are the functions of texts and regular expressions.
func texts() []function {
	// Going through the text, once for each expression in the pattern; those have about
	// four characters each.
	match := cost.Mul(read(cost.Sum(cost.Target(), cost.Const(1))), cost.Scale(cost.Arg(0), cost.RegexStringLengthCostFactor))
	return []function{
		function2("find", text(), text(), text(), func(s, pattern string) (string, error) {
			re, err := compile(pattern)
			if err != nil {
				return "", err
			}
			return re.FindString(s), nil
		}, match).on().sized(cost.AtMost(cost.Target())),
		function2("findAll", text(), text(), listOf(text()), func(s, pattern string) ([]string, error) {
			return findAll(s, pattern, -1)
		}, match).on().sized(cost.AtMost(cost.Target())),
		function3("findAll", text(), text(), integer(), listOf(text()), findAll, match).on().sized(cost.AtMost(cost.Target())),
		function1("jsonpatch.escapeKey", text(), text(), sure(func(s string) string {
			return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
		}), read(cost.Arg(0))).sized(cost.Ranged(cost.Arg(0), cost.Scale(cost.Arg(0), 2))),
	}
}

func findAll(s, pattern string, n int64) ([]string, error) {
	re, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(s))+1 {
		n = -1
	}
	return re.FindAllString(s, int(n)), nil
}

func compile(pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("Illegal regex: %w", err) //lint:ignore ST1005 as clients know it
	}
	return re, nil
}

// textPrices are what the functions of texts cost that cel-go has: a look at every character,
// and as much again where a text or list is made.
func textPrices() []cel.EnvOption {
	of, twice := read(cost.Target()), cost.Scale(cost.Target(), 2*cost.StringTraversalCostFactor)
	same := cost.AtMost(cost.Target())
	parts := cost.List(same, same)
	replaced := cost.AtMost(cost.Sum(cost.Target(), cost.Mul(cost.Sum(cost.Target(), cost.Const(1)), cost.Arg(1))))
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
		{[]string{"list_join", "list_join_string"}, cost.Scale(cost.Mul(cost.Target(), cost.Sum(cost.ElemOf(cost.Target()), cost.Const(1))), cost.StringTraversalCostFactor), cost.AtMost(cost.Mul(cost.Target(), cost.Sum(cost.ElemOf(cost.Target()), cost.Const(1))))},
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
