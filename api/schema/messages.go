package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/internal/wording"
)

// typeWords returns the expected type and the actual type of x as messages of the reference
// server show them: if the schema has a known format, the format replaces the expected type,
// and numbers have their Go type.
func typeWords(x any, s *Schema) (want, got string) {
	want, got = s.Type.String(), jsonType(x)
	if s.IntOrString {
		return "integer,string", got
	}
	if !hasKnownFormat(s) {
		return want, got
	}
	switch x.(type) {
	case int64:
		return s.Format, "int64"
	case float64:
		return s.Format, "float64"
	case bool, map[string]any:
		return s.Format, ""
	}
	return want, got
}

func hasKnownFormat(s *Schema) bool {
	switch s.Type {
	case Integer, Number:
		return slices.Contains([]string{"int32", "int64", "float", "double"}, s.Format)
	}
	return s.Format == "password" || knowsFormat(s.Format)
}

// jsonType returns the JSON schema type of a value.
func jsonType(x any) string {
	switch x.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// Limits on values in messages.
const (
	maxShown  = 1 << 10 // bytes
	maxSorted = 100     // fields of an object that is shown
)

// show returns a value as messages quote it, clipped to maxShown bytes.
func show(x any) string {
	var text string
	switch x := x.(type) {
	case string:
		text = strconv.Quote(x[:min(len(x), maxShown)])
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return fmt.Sprint(x)
	default:
		text = string(appendShown(nil, x))
	}
	if len(text) > maxShown {
		return strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}

// appendShown appends a value as JSON. It stops when b exceeds maxShown.
func appendShown(b []byte, x any) []byte {
	if len(b) > maxShown {
		return b
	}
	switch x := x.(type) {
	case []any:
		b = append(b, '[')
		for i, e := range x {
			if len(b) > maxShown {
				return b
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = appendShown(b, e)
		}
		return append(b, ']')
	case map[string]any:
		return appendObject(b, x)
	case ordered:
		return appendFields(b, x)
	case string:
		x = x[:min(len(x), maxShown)]
		return wording.AppendJSON(b, strings.ToValidUTF8(x, ""))
	}
	return wording.AppendJSON(b, x)
}

func appendObject(b []byte, m map[string]any) []byte {
	if len(m) > maxSorted {
		return append(b, fmt.Sprintf("{%d fields}", len(m))...)
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendShown(b, k), ':')
		b = appendShown(b, m[k])
	}
	return append(b, '}')
}

// ordered is a value of a Go struct; messages show its fields in struct order.
type ordered struct {
	fields map[string]any
	*Schema
}

// inOrder returns x, or an ordered x if it is a value of a Go struct.
func inOrder(x any, s *Schema) any {
	if m, ok := x.(map[string]any); ok && s.Struct.Canonical() {
		return ordered{m, s}
	}
	return x
}

func appendFields(b []byte, x ordered) []byte {
	b = append(b, '{')
	for _, f := range x.Struct.Fields {
		if e, ok := x.fields[f.Name]; ok {
			if b[len(b)-1] != '{' {
				b = append(b, ',')
			}
			b = append(appendShown(b, f.Name), ':')
			b = appendShown(b, inOrder(e, f.Schema))
		}
	}
	return append(b, '}')
}
