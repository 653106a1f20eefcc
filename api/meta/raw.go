package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// RawJSON is a JSON value as compact text. Trees use it for the field sets in
// metadata.managedFields, which are large and rarely read, to save the cost of decoding.
// Encoders write it unchanged. It is the only tree value that is not a JSON type.
type RawJSON string

// Value returns the decoded value, or nil if the text is not valid JSON.
func (r RawJSON) Value() any {
	v, err := ParseJSON([]byte(r))
	if err != nil {
		return nil
	}
	return v
}

// MarshalJSON returns the text.
func (r RawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// CompactJSON returns b without white space between tokens. It returns false if b is not
// exactly one JSON value.
func CompactJSON(b []byte) (RawJSON, bool) {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return "", false
	}
	return RawJSON(out.String()), true
}

// ParseJSON decodes exactly one JSON value to tree types: integers in the range of int64 become
// int64, other numbers float64. It is for trusted values and for parts of decoded bodies; use
// package codec for bodies and objects from outside.
func ParseJSON(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON value")
	}
	return plainNumbers(v)
}

// plainNumbers replaces each json.Number in v by an int64 or a float64, in place.
func plainNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if v[k], err = plainNumbers(e); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, e := range v {
			if v[i], err = plainNumbers(e); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("the number %s is out of range", v)
		}
		return f, nil
	}
	return v, nil
}
