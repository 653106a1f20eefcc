package ownership

import "orch.io/controlplane/api/meta"

// reduce returns a and b without the fields that are equal in both, because removing them
// here is cheaper than comparing them as typed values. If an object would become empty
// that was not, an equal field stays: an empty object is owned differently. same reports
// whether a and b are equal; ra and rb are nil then.
func (p *plan) reduce(a, b map[string]any) (ra, rb map[string]any, same bool) {
	ra, rb = map[string]any{}, map[string]any{}
	var keep string
	kept, differ := false, len(a) != len(b)
	for k, x := range a {
		y, both := b[k]
		if !both {
			ra[k], differ = x, true
			continue
		}
		xr, yr, eq := p.fieldOrDeduced(k).reduceValue(x, y)
		if !eq {
			ra[k], rb[k], differ = xr, yr, true
			continue
		}
		keep, kept = k, true
	}
	if !differ {
		return nil, nil, true
	}
	for k, y := range b {
		if _, both := a[k]; !both {
			rb[k] = y
		}
	}
	if kept && (len(ra) == 0 || len(rb) == 0) {
		ra[keep], rb[keep] = a[keep], b[keep]
	}
	return ra, rb, false
}

func (p *plan) reduceValue(x, y any) (rx, ry any, same bool) {
	switch x := x.(type) {
	case map[string]any:
		if y, ok := y.(map[string]any); ok && len(x) > 0 && len(y) > 0 {
			return p.reduce(x, y)
		}
	case []any:
		if y, ok := y.([]any); ok && p.shape == shapeMapList && len(x) == len(y) {
			return p.reduceList(x, y)
		}
	}
	return x, y, meta.Equal(x, y)
}

// reduceList removes the items that are equal and at the same position in both lists. The
// other items keep their keys.
func (p *plan) reduceList(x, y []any) (rx, ry any, same bool) {
	had, ok := p.index(x)
	if !ok {
		return x, y, meta.Equal(x, y)
	}
	for i, item := range y {
		if id, ok := p.id(item); !ok || id != had.ids[i] {
			return x, y, false
		}
	}
	var left, right []any
	for i := range x {
		a, b := x[i].(map[string]any), y[i].(map[string]any)
		ra, rb, same := p.items.reduce(a, b)
		if same {
			continue
		}
		for _, k := range p.keys {
			copyField(ra, a, k.name)
			copyField(rb, b, k.name)
		}
		left, right = append(left, ra), append(right, rb)
	}
	return left, right, len(left) == 0
}

func copyField(to, from map[string]any, name string) {
	if v, ok := from[name]; ok {
		to[name] = v
	}
}
