package apply

import "orch.io/controlplane/registry/meta"

// merge returns live with what patch says, a copy; false if something is
// unusual: then structured-merge-diff is to be asked. patch has passed
// checkedSet.
func (p *plan) merge(live, patch any) (any, bool) {
	switch p.shape {
	case shapeMap, shapeAny:
		if !p.atomic {
			return p.mergeMap(live, patch)
		}
	case shapeSet, shapeKeyed:
		return p.mergeList(live, patch)
	}
	return meta.Clone(patch), true
}

func (p *plan) mergeMap(live, patch any) (any, bool) {
	old, _ := live.(map[string]any)
	new, isMap := patch.(map[string]any)
	if patch != nil && !isMap || len(old) == 0 {
		return meta.Clone(patch), true
	}
	out := make(map[string]any, max(len(old), len(new)))
	for k, v := range old {
		if _, both := new[k]; !both { // what goes is settled by pruning
			out[k] = meta.Clone(v)
		}
	}
	for k, v := range new {
		was, both := old[k]
		if !both {
			out[k] = meta.Clone(v)
			continue
		}
		f, _ := p.field(k)
		if p.shape == shapeAny {
			f = p
		}
		merged, ok := f.merge(was, v)
		if !ok {
			return nil, false
		}
		out[k] = merged
	}
	return out, true
}

// mergeList keeps the items of live in their order and puts new ones where the
// patch has them between those that both have, which come in the patch's order.
func (p *plan) mergeList(live, patch any) (any, bool) {
	old, wasList := live.([]any)
	new, _ := patch.([]any)
	if live != nil && !wasList || len(old) == 0 {
		return meta.Clone(patch), live == nil || wasList
	}
	was, ok := p.index(old)
	if !ok {
		return nil, false
	}
	now, ok := p.index(new)
	if !ok {
		return nil, false
	}
	var shared []itemID
	for _, id := range now.ids {
		if was.find(id) >= 0 {
			shared = append(shared, id)
		}
	}
	done := 0 // items of new that are in out
	out := make([]any, 0, len(old)+len(new)-len(shared))
	take := func(r int) bool {
		id, item := now.ids[r], new[r]
		if l := was.find(id); l >= 0 {
			if item, ok = p.items.merge(old[l], item); !ok {
				return false
			}
		} else {
			item = meta.Clone(item)
		}
		if len(shared) > 0 && shared[0] == id {
			shared = shared[1:]
		}
		done = r + 1
		out = append(out, item)
		return true
	}
	for l, r := 0, 0; l < len(old) || r < len(new); {
		if l < len(old) {
			id := was.ids[l]
			at := now.find(id)
			switch {
			case r < len(new) && at == r:
				if !take(r) {
					return nil, false
				}
				l, r = l+1, r+1
				continue
			case r < len(new) && at >= 0 && len(shared) > 0 && shared[0] != id:
				l++ // its turn comes with the patch
				continue
			case at < 0:
				out = append(out, meta.Clone(old[l]))
				l++
				continue
			case at < done:
				l++
			}
		}
		if r < len(new) {
			if !take(r) {
				return nil, false
			}
			r++
		}
	}
	return out, true
}
