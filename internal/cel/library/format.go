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

// format is a form of texts that has a name.
type format struct {
	name  string
	check func(string) []string // what is wrong with a text
}

// named are the formats that expressions may name.
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

// prefix makes a name of a prefix of names, which may end with a dash.
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

// longestPattern is about as long as a format is, written as a pattern: what the check of
// a text costs follows from it.
const longestPattern = 128

// formats are the functions of named formats.
func (k kinds) formats() []function {
	all := named()
	faults := optional(listOf(text()), func(list []string) bool { return list != nil })
	rows := []function{
		function1("format.named", text(), optional(k.format, func(f format) bool { return f.check != nil }), sure(func(name string) format {
			i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
			if i < 0 {
				return format{}
			}
			return all[i]
		}), look()),
		function2("validate", k.format, text(), faults, sure2(func(f format, s string) []string { return f.check(s) }),
			cost.Scale(read(cost.Sum(cost.Arg(0), cost.Const(1))), longestPattern*cost.RegexStringLengthCostFactor)).on(),
	}
	for _, f := range all {
		rows = append(rows, function0("format."+f.name, k.format, func() format { return f }, look()))
	}
	return rows
}

// optional is a type of values that may not be there.
func optional[T any](of sort[T], there func(T) bool) sort[T] {
	return sort[T]{of: cel.OptionalType(of.of), to: func(v T) ref.Val {
		if !there(v) {
			return types.OptionalNone
		}
		return types.OptionalOf(of.to(v))
	}}
}
