package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// RawJSON is a JSON value kept as its text, compact, where reading it is not
// worth its cost: the field sets of metadata.managedFields, which are large and
// seldom looked into. It is the one value of a tree beside the JSON types; an
// encoder writes it as it is.
type RawJSON string

// Value returns the value as a tree, nil if the text is no JSON.
func (r RawJSON) Value() any {
	v, err := ParseJSON([]byte(r))
	if err != nil {
		return nil
	}
	return v
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

// ParseJSON reads exactly one JSON value as a tree: integers that fit are int64, all
// other numbers float64. It is for values inside of the program and parts of a body
// that has been read; bodies and objects are read by package codec.
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

// plainNumbers turns every json.Number in v, in place, into an int64 or a float64.
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
