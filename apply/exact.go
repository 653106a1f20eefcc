package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/number"
)

// separated returns a tree in which structured-merge-diff tells different numbers apart. It
// compares an int64 and a float64 as float64, so integers become int64, and floats out of the
// range of int64 move one float64 away from it: the nearest to it equals the largest int64
// there. Keys and items of sets do not move, because they stand in paths. A tree without such
// numbers is returned as it is.
func (p *plan) separated(tree map[string]any) map[string]any {
	if !hasFloats(tree) {
		return tree
	}
	return p.separate(tree).(map[string]any)
}

// hasFloats reports whether separate changes v.
func hasFloats(v any) bool {
	switch v := v.(type) {
	case float64:
		return separateFloat(v) != any(v)
	case map[string]any:
		for _, e := range v {
			if hasFloats(e) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if hasFloats(e) {
				return true
			}
		}
	}
	return false
}

func separateFloat(f float64) any {
	if n, ok := number.Integer(f); ok {
		return n
	}
	if math.Abs(f) >= 1<<63 {
		return math.Nextafter(f, math.Copysign(math.Inf(1), f))
	}
	return f
}

func (p *plan) separate(v any) any {
	switch v := v.(type) {
	case float64:
		return separateFloat(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			f, _ := p.field(k)
			if f == nil {
				f = p.unknown()
			}
			out[k] = f.separate(e)
		}
		return out
	case []any:
		return p.separateItems(v)
	}
	return v
}

func (p *plan) separateItems(list []any) []any {
	out := make([]any, len(list))
	items := p.items
	if items == nil {
		items = p.unknown()
	}
	for i, item := range list {
		out[i] = items.separate(item)
		if p.shape == shapeSet {
			out[i] = wholeNumber(item)
		}
		from, _ := item.(map[string]any)
		to, _ := out[i].(map[string]any)
		for _, k := range p.keys {
			if key, ok := from[k.name]; ok {
				to[k.name] = wholeNumber(key)
			}
		}
	}
	return out
}

// wholeNumber returns a float64 that is an integer as an int64, other values as they are.
func wholeNumber(v any) any {
	if f, ok := v.(float64); ok {
		if n, ok := number.Integer(f); ok {
			return n
		}
	}
	return v
}

// exactNumbers returns a JSON value whose numbers are json.Number as a tree. Numbers that a
// tree cannot hold exactly stay json.Number; inexact reports whether there are any.
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
		if !sameNumber(v, f) {
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

// roundNumbers turns every json.Number in v, in place, into the nearest float64.
func roundNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64() // exactNumbers took it
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

// sameValue reports whether two values are the same. Either may be a tree with json.Number.
func sameValue(a, b any) bool {
	if _, ok := a.(json.Number); ok {
		return sameNumber(a, b)
	}
	switch b := b.(type) {
	case json.Number:
		return sameNumber(a, b)
	case map[string]any:
		if raw, ok := a.(meta.RawJSON); ok {
			a = raw.Value()
		}
		a, ok := a.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case []any:
		a, ok := a.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	}
	return meta.Equal(a, b)
}

func sameNumber(a, b any) bool {
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
