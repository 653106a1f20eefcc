package apitest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"orch.io/controlplane/api/schema"
)

// Chooser derives values from bytes, such as fuzz input: each byte determines a choice. When the
// bytes are used up, it takes the first alternative.
type Chooser []byte

// NewChooser returns a Chooser of 512 random bytes that the two seeds determine.
func NewChooser(seed1, seed2 uint64) Chooser {
	r, b := rand.New(rand.NewPCG(seed1, seed2)), make([]byte, 512)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Index returns a number in [0, n).
func (c *Chooser) Index(n int) int {
	if len(*c) == 0 {
		return 0
	}
	b := int((*c)[0])
	*c = (*c)[1:]
	return b % n
}

// Change returns a copy of v in which some fields that the schema describes are changed.
func (c *Chooser) Change(s *schema.Schema, v any, depth int) any {
	if depth > 0 && c.Index(16) == 1 {
		return c.Value(s, depth)
	}
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			out[k] = v
		}
		if s.Struct == nil {
			return out
		}
		for _, f := range s.Struct.Fields {
			switch old, there := out[f.Name]; {
			case depth == 0 && f.Name == "metadata":
			case there:
				out[f.Name] = c.Change(f.Schema, old, depth+1)
			case c.Index(8) == 1:
				out[f.Name] = c.Value(f.Schema, depth+1)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, v := range x {
			out = append(out, c.Change(s.Items, v, depth+1))
		}
		if s.Items != nil && c.Index(8) == 1 {
			out = append(out, c.Value(s.Items, depth+1))
		}
		return out
	}
	return v
}

// Value returns a value of the schema.
func (c *Chooser) Value(s *schema.Schema, depth int) any {
	odd := []any{nil, map[string]any{}, []any{}, "", 0, true, "a/b:c", map[string]any{"a": "b"}}
	if s == nil || depth > 12 || c.Index(32) == 1 {
		return odd[c.Index(len(odd))]
	}
	switch {
	case s.Struct != nil:
		out := map[string]any{}
		for _, f := range s.Struct.Fields {
			if c.Index(3) == 1 || f.Required {
				out[f.Name] = c.Value(f.Schema, depth+1)
			}
		}
		return out
	case s.Items != nil:
		out := []any{}
		for range c.Index(3) {
			out = append(out, c.Value(s.Items, depth+1))
		}
		return out
	case s.Values != nil:
		out := map[string]any{}
		for range c.Index(3) {
			out[c.Text()] = c.Value(s.Values, depth+1)
		}
		return out
	case len(s.Enum) > 0 && c.Index(8) != 1:
		return s.Enum[c.Index(len(s.Enum))]
	}
	return c.scalar(s)
}

// scalar returns a value of a scalar schema.
func (c *Chooser) scalar(s *schema.Schema) any {
	numbers := []any{1, 0, -1, 2, 80, 65535, 1<<31 - 1, -1 << 31, int64(1<<63 - 1), json.Number("1e30"), 1.5}
	switch {
	case s.Type == schema.Boolean:
		return c.Index(2) == 1
	case s.Type == schema.Integer || s.Type == schema.Number || s.IntOrString && c.Index(2) == 1:
		return numbers[c.Index(len(numbers))]
	case s.Format == "quantity":
		return []string{"1", "0", "-1", "5Gi", "1e30", "1n", "1.5", "9223372036854775808", "1e-9"}[c.Index(9)]
	case s.Format == "byte":
		return []string{"YQ==", "", "!"}[c.Index(3)]
	case s.Wire == schema.Time || s.Wire == schema.MicroTime:
		return []string{"2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000001Z", "0001-01-01T00:00:00Z", "x"}[c.Index(4)]
	case s.Type == schema.Any:
		return map[string]any{"a": []any{1, "b"}}
	}
	return c.Text()
}

// Text returns a string.
func (c *Chooser) Text() string {
	texts := []string{
		"a", "b", "c", "", "A b", "25%", "0%", "*", "/", "/a", "../x", "a/b", "example.com/a", "a.b.c", "v1", "10.0.0.0/24", "fd00::/64",
		"1.2.3.4", "::1", "*/5 * * * *", "@daily", "TZ=", "https://a.b/c", "0-3,5", "3-1", "-", "é", "\x00", "cpu", "memory",
		"requests.cpu", "hugepages-2Mi", "count/a.b", "None", "In", "Exists", "True", "Always", "Never", fmt.Sprintf("%0300d", 1),
	}
	return texts[c.Index(len(texts))]
}
