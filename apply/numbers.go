package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/number"
)

// exactNumbers converts the json.Number values of a JSON value to int64 and float64, in
// place. A number that neither represents exactly stays json.Number; inexact reports
// whether there are any.
func exactNumbers(v any) (tree any, inexact bool, err error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, false, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, false, fmt.Errorf("the number %s is out of range", v)
		}
		if !equalNumbers(v, f) {
			return v, true, nil
		}
		return f, false, nil
	case map[string]any:
		for k, e := range v {
			n, left, err := exactNumbers(e)
			if err != nil {
				return nil, false, err
			}
			v[k], inexact = n, inexact || left
		}
	case []any:
		for i, e := range v {
			n, left, err := exactNumbers(e)
			if err != nil {
				return nil, false, err
			}
			v[i], inexact = n, inexact || left
		}
	}
	return v, inexact, nil
}

// roundNumbers converts every json.Number in v to the nearest float64, in place.
func roundNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64() // exactNumbers has rejected numbers out of range
		return f
	case map[string]any:
		for k, e := range v {
			v[k] = roundNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = roundNumbers(e)
		}
	}
	return v
}

// equalExactly reports whether two values are equal. Both may contain json.Number.
func equalExactly(a, b any) bool {
	if _, ok := a.(json.Number); ok {
		return equalNumbers(a, b)
	}
	switch b := b.(type) {
	case json.Number:
		return equalNumbers(a, b)
	case map[string]any:
		if raw, ok := a.(meta.RawJSON); ok {
			a = raw.Value()
		}
		a, ok := a.(map[string]any)
		return ok && maps.EqualFunc(a, b, equalExactly)
	case []any:
		a, ok := a.([]any)
		return ok && slices.EqualFunc(a, b, equalExactly)
	}
	return meta.Equal(a, b)
}

func equalNumbers(a, b any) bool {
	x, ok := numberText(a)
	y, both := numberText(b)
	return ok && both && number.SameText(x, y)
}

func numberText(v any) (string, bool) {
	if n, ok := v.(json.Number); ok {
		return n.String(), true
	}
	return number.Text(v)
}
