package library

import (
	"net/url"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// format is a named string format.
type format struct {
	name  string
	check func(string) []string // returns the reasons why a text does not have the format
}

// named returns the formats that expressions can use.
func named() []format {
	return []format{
		{"dns1123Label", meta.CheckDNSLabel},
		{"dns1123LabelPrefix", func(s string) []string { return meta.CheckDNSLabel(prefix(s)) }},
		{"dns1123Subdomain", meta.CheckDNSSubdomain},
		{"dns1123SubdomainPrefix", func(s string) []string { return meta.CheckDNSSubdomain(prefix(s)) }},
		{"dns1035Label", meta.CheckDNS1035Label},
		{"dns1035LabelPrefix", func(s string) []string { return meta.CheckDNS1035Label(prefix(s)) }},
		{"qualifiedName", meta.CheckQualifiedName},
		{"labelValue", meta.CheckLabelValue},
		{"uri", func(s string) []string {
			if _, err := url.ParseRequestURI(s); err != nil {
				return []string{err.Error()}
			}
			return nil
		}},
		{"uuid", has("uuid", "does not match the UUID format")},
		{"byte", has("byte", "invalid base64")},
		{"date", has("date", "invalid date")},
		{"datetime", has("date-time", "invalid datetime")},
	}
}

// prefix converts the prefix of a name, which may end with a dash, to a valid name.
func prefix(s string) string {
	if strings.HasSuffix(s, "-") {
		return s[:len(s)-1] + "a"
	}
	return s
}

func has(format, fault string) func(string) []string {
	return func(s string) []string {
		if schema.HasFormat(s, format) {
			return nil
		}
		return []string{fault}
	}
}

// longestPattern is the approximate length of a format as a regular expression. The cost of a
// check follows from it.
const longestPattern = 128

// formats returns the functions for named formats.
func (k kinds) formats() []function {
	all := named()
	faults := optional(listOf(text()), func(list []string) bool { return list != nil })
	rows := []function{
		function1("format.named", text(), optional(k.format, func(f format) bool { return f.check != nil }), infallible(func(name string) format {
			i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
			if i < 0 {
				return format{}
			}
			return all[i]
		}), lookCost()),
		function2("validate", k.format, text(), faults, infallible2(func(f format, s string) []string { return f.check(s) }),
			cost.Scale(readCost(cost.Sum(cost.Arg(0), cost.Const(1))), longestPattern*cost.RegexStringLengthCostFactor)).asMethod(),
	}
	for _, f := range all {
		rows = append(rows, function0("format."+f.name, k.format, func() format { return f }, lookCost()))
	}
	return rows
}

// optional returns the optional type for of. there reports whether a value is present.
func optional[T any](of binding[T], there func(T) bool) binding[T] {
	return binding[T]{of: cel.OptionalType(of.of), to: func(v T) ref.Val {
		if !there(v) {
			return types.OptionalNone
		}
		return types.OptionalOf(of.to(v))
	}}
}
