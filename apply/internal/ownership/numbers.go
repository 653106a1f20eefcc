package ownership

import (
	"math"

	"orch.io/controlplane/internal/number"
)

// separated returns tree with numbers changed so that structured-merge-diff finds different
// numbers different. It compares an int64 with a float64 as float64, so integral floats
// become int64, and floats outside the range of int64 move to the next float64 away from it:
// the float64 nearest to the range equals the largest int64 for structured-merge-diff.
// Keys of map lists and items of sets do not move, because they are part of paths. If
// nothing needs to change, the result is tree itself.
func (p *plan) separated(tree map[string]any) map[string]any {
	if !hasAmbiguousFloat(tree) {
		return tree
	}
	return p.separate(tree).(map[string]any)
}

// hasAmbiguousFloat reports whether separate changes v.
func hasAmbiguousFloat(v any) bool {
	switch v := v.(type) {
	case float64:
		return separateFloat(v) != any(v)
	case map[string]any:
		for _, e := range v {
			if hasAmbiguousFloat(e) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if hasAmbiguousFloat(e) {
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
			out[k] = p.fieldOrDeduced(k).separate(e)
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
		items = &plan{shape: shapeDeduced}
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

// wholeNumber returns an integral float64 as int64 and any other value unchanged.
func wholeNumber(v any) any {
	if f, ok := v.(float64); ok {
		if n, ok := number.Integer(f); ok {
			return n
		}
	}
	return v
}
