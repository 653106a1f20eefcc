package meta

import (
	"bytes"
	"encoding/json"
	"strings"
)

// RawJSON is a JSON value kept as its text, compact, where reading it is not
// worth its cost: the field sets of metadata.managedFields, which are large and
// seldom looked into. It is the one value of a tree beside the JSON types; an
// encoder writes it as it is.
type RawJSON string

// Value returns the value as a tree, nil if the text is no JSON.
func (r RawJSON) Value() any {
	d := json.NewDecoder(strings.NewReader(string(r)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return plainNumbers(v)
}

// MarshalJSON returns the text.
func (r RawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// CompactJSON returns the JSON text b without white space, and false if it is
// not exactly one JSON value.
func CompactJSON(b []byte) (RawJSON, bool) {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return "", false
	}
	return RawJSON(out.String()), true
}

func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plainNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plainNumbers(e)
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	}
	return v
}
