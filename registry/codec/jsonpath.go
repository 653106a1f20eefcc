package codec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/registry/meta"
)

const (
	maxPathBytes = 4 << 10
	maxPathSteps = 64
	maxResults   = 1000
)

// JSONPath is a compiled simple JSON path: fields (.a, ['a']), list items
// ([0], [-1]), all items ([*]) and items of which a field has a value
// ([?(@.type=="Ready")]).
type JSONPath struct{ steps []pathStep }

type pathStep struct {
	field string   // the field's name
	index int      // with kind item
	where []string // the field that a filter compares
	value any      // the value that it must have
	kind  stepKind
}

type stepKind uint8

const (
	stepField stepKind = iota
	stepItem
	stepAll
	stepWhere
)

// ParseJSONPath compiles a path; braces around it and a leading dot or $ may
// stand or not.
func ParseJSONPath(text string) (*JSONPath, error) {
	if len(text) > maxPathBytes {
		return nil, fmt.Errorf("the path is longer than %d bytes", maxPathBytes)
	}
	s := strings.TrimSpace(text)
	if strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") {
		s = s[1 : len(s)-1]
	}
	s = strings.TrimPrefix(s, "$")
	if s != "" && s[0] != '.' && s[0] != '[' {
		s = "." + s
	}
	p := &JSONPath{}
	for s != "" {
		st, rest, err := nextStep(s)
		if err != nil {
			return nil, fmt.Errorf("in the path %.64q: %w", text, err)
		}
		if p.steps = append(p.steps, st...); len(p.steps) > maxPathSteps {
			return nil, fmt.Errorf("the path has more than %d steps", maxPathSteps)
		}
		s = rest
	}
	return p, nil
}

func nextStep(s string) (steps []pathStep, rest string, err error) {
	if s[0] == '.' {
		name, rest := fieldName(s[1:])
		switch {
		case name == "*":
			return []pathStep{{kind: stepAll}}, rest, nil
		case name == "" && (rest == "" || rest[0] == '['): // ".", or ".[0]"
			return nil, rest, nil
		case name == "":
			return nil, "", fmt.Errorf("an empty field name")
		}
		return []pathStep{{field: name}}, rest, nil
	}
	if s[0] != '[' {
		return nil, "", fmt.Errorf("unexpected %q", s[0])
	}
	end := closing(s)
	if end < 0 {
		return nil, "", fmt.Errorf("a missing ']'")
	}
	inner, rest := strings.TrimSpace(s[1:end]), s[end+1:]
	switch {
	case inner == "*":
		return []pathStep{{kind: stepAll}}, rest, nil
	case strings.HasPrefix(inner, "?(") && strings.HasSuffix(inner, ")"):
		st, err := filter(inner[2 : len(inner)-1])
		return []pathStep{st}, rest, err
	}
	if name, ok := unquote(inner); ok {
		return []pathStep{{field: name}}, rest, nil
	}
	n, err := strconv.Atoi(inner)
	if err != nil {
		return nil, "", fmt.Errorf("%.32q is no index", inner)
	}
	return []pathStep{{kind: stepItem, index: n}}, rest, nil
}

// fieldName reads a name up to a dot or bracket; a backslash takes the next
// character as it is.
func fieldName(s string) (name, rest string) {
	var b strings.Builder
	i := 0
	for ; i < len(s) && s[i] != '.' && s[i] != '['; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), s[i:]
}

// closing returns where the bracket that opens s closes, quotes left aside.
func closing(s string) int {
	depth, quote := 0, byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '\'' && s[0] != '"' || s[len(s)-1] != s[0] {
		return "", false
	}
	return s[1 : len(s)-1], true
}

func filter(s string) (pathStep, error) {
	left, right, ok := strings.Cut(s, "==")
	left, right = strings.TrimSpace(left), strings.TrimSpace(right)
	if !ok || !strings.HasPrefix(left, "@.") {
		return pathStep{}, fmt.Errorf("a filter is ?(@.field==value)")
	}
	st := pathStep{kind: stepWhere}
	for rest := left[1:]; rest != ""; {
		if rest[0] != '.' {
			return pathStep{}, fmt.Errorf("a filter compares a field")
		}
		var name string
		if name, rest = fieldName(rest[1:]); name == "" {
			return pathStep{}, fmt.Errorf("an empty field name")
		}
		st.where = append(st.where, name)
	}
	if text, ok := unquote(right); ok {
		st.value = text
		return st, nil
	}
	switch n, err := strconv.ParseFloat(right, 64); {
	case err == nil:
		st.value = n
	case right == "true", right == "false":
		st.value = right == "true"
	default:
		return pathStep{}, fmt.Errorf("%.32q is no value", right)
	}
	return st, nil
}

// Find returns the values that the path leads to.
func (p *JSONPath) Find(v any) []any {
	found := []any{v}
	for _, st := range p.steps {
		var next []any
		for _, v := range found {
			if next = st.apply(next, v); len(next) > maxResults {
				next = next[:maxResults]
			}
		}
		found = next
	}
	return found
}

func (st pathStep) apply(out []any, v any) []any {
	m, _ := v.(map[string]any)
	l, _ := v.([]any)
	switch st.kind {
	case stepField:
		if e, ok := m[st.field]; ok {
			out = append(out, e)
		}
	case stepItem:
		i := st.index
		if i < 0 {
			i += len(l)
		}
		if i >= 0 && i < len(l) {
			out = append(out, l[i])
		}
	case stepAll:
		out = append(out, l...)
		for _, k := range sortedKeys(m) {
			out = append(out, m[k])
		}
	case stepWhere:
		for _, e := range l {
			item, _ := e.(map[string]any)
			if got, ok := meta.NewObject(item).Get(st.where...); ok && meta.Equal(got, st.value) {
				out = append(out, e)
			}
		}
	}
	return out
}

// Cell returns a function that fills cells of the given column type (integer,
// number, boolean, string, date) from what the path leads to; nothing, or a
// value of another type, gives nil. Dates are shown as ages.
func (p *JSONPath) Cell(columnType string) func(obj *meta.Object) any {
	return func(obj *meta.Object) any {
		found := p.Find(obj.Tree())
		if len(found) == 0 || found[0] == nil {
			return nil
		}
		if columnType == "string" {
			return joinCells(found)
		}
		return cell(found[0], columnType)
	}
}

func cell(v any, columnType string) any {
	switch columnType {
	case "integer":
		switch n := v.(type) {
		case int64:
			return n
		case float64:
			if math.Abs(n) < 1<<63 {
				return int64(n)
			}
		}
	case "number":
		switch n := v.(type) {
		case int64:
			return n
		case float64:
			return n
		}
	case "boolean":
		if b, ok := v.(bool); ok {
			return b
		}
	case "date":
		s, ok := v.(string)
		if !ok {
			return nil
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return "<invalid>"
		}
		return meta.FormatAge(t, time.Now())
	}
	return nil
}

func joinCells(found []any) any {
	words := make([]string, len(found))
	for i, v := range found {
		if s, ok := v.(string); ok {
			words[i] = s
			continue
		}
		words[i] = string(EncodeValue(nil, v))
	}
	return strings.Join(words, " ")
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
