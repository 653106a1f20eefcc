package apply

import "orch.io/controlplane/api/meta"

// reduce returns a and b without the members in which they are the same, since
// comparing them is cheaper here. Where that would leave an object empty that
// was not, one member stays: an empty object is owned differently.
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
		f, _ := p.field(k)
		if f == nil {
			f = p.unknown()
		}
		xr, yr, eq := f.reduceValue(x, y)
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

// unknown is the plan of a field that is not in the schema.
func (p *plan) unknown() *plan {
	if p.shape == shapeAny {
		return p
	}
	return &plan{shape: shapeAny}
}

func (p *plan) reduceValue(x, y any) (any, any, bool) {
	switch x := x.(type) {
	case map[string]any:
		if y, ok := y.(map[string]any); ok && len(x) > 0 && len(y) > 0 {
			return p.reduce(x, y)
		}
	case []any:
		if y, ok := y.([]any); ok && p.shape == shapeKeyed && len(x) == len(y) {
			return p.reduceList(x, y)
		}
	}
	return x, y, meta.Equal(x, y)
}

// reduceList leaves out the items that both lists have at the same place with
// the same content; of the others, their keys stay.
func (p *plan) reduceList(x, y []any) (any, any, bool) {
	had, ok := p.index(x)
	if !ok {
		return x, y, meta.Equal(x, y)
	}
	for i, item := range y {
		if id, ok := p.id(item); !ok || id != had.ids[i] {
			return x, y, false
		}
	}
	var rx, ry []any
	for i := range x {
		a, b := x[i].(map[string]any), y[i].(map[string]any)
		ra, rb, same := p.items.reduce(a, b)
		if same {
			continue
		}
		for _, k := range p.keys {
			keepKey(ra, a, k.name)
			keepKey(rb, b, k.name)
		}
		rx, ry = append(rx, ra), append(ry, rb)
	}
	return rx, ry, len(rx) == 0
}

func keepKey(to, from map[string]any, name string) {
	if v, ok := from[name]; ok {
		to[name] = v
	}
}
