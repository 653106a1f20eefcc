package apply

// merge returns live with what patch says, sharing values with both; false if
// something is unusual: then structured-merge-diff is to be asked. patch has
// passed checkedSet.
func (p *plan) merge(live, patch any) (any, bool) {
	switch p.shape {
	case shapeMap, shapeAny:
		if p.atomic {
			return patch, true
		}
		return p.mergeMap(live, patch)
	case shapeSet, shapeKeyed:
		return p.mergeList(live, patch)
	}
	return patch, true
}

func (p *plan) mergeMap(live, patch any) (any, bool) {
	old, _ := live.(map[string]any)
	new, isMap := patch.(map[string]any)
	if patch != nil && !isMap {
		return patch, true
	}
	if len(old) == 0 {
		return patch, true
	}
	if len(new) == 0 {
		return live, true // what goes is settled by pruning
	}
	out := make(map[string]any, len(old)+len(new))
	for k, v := range old {
		out[k] = v
	}
	for k, v := range new {
		was, both := old[k]
		if !both {
			out[k] = v
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
		return patch, live == nil || wasList
	}
	if len(new) == 0 {
		return live, true
	}
	oldIDs, inOld, ok := p.ids(old)
	if !ok {
		return nil, false
	}
	newIDs, inNew, ok := p.ids(new)
	if !ok {
		return nil, false
	}
	var shared []itemID
	for _, id := range newIDs {
		if _, both := inOld[id]; both {
			shared = append(shared, id)
		}
	}
	out := make([]any, 0, len(old)+len(new)-len(shared))
	done := make(map[itemID]bool, len(new))
	take := func(r int) bool {
		id, item := newIDs[r], new[r]
		if l, both := inOld[id]; both {
			if item, ok = p.items.merge(old[l], item); !ok {
				return false
			}
		}
		if len(shared) > 0 && shared[0] == id {
			shared = shared[1:]
		}
		done[id] = true
		out = append(out, item)
		return true
	}
	for l, r := 0, 0; l < len(old) || r < len(new); {
		if l < len(old) {
			id := oldIDs[l]
			_, both := inNew[id]
			switch {
			case r < len(new) && id == newIDs[r]:
				if !take(r) {
					return nil, false
				}
				l, r = l+1, r+1
				continue
			case r < len(new) && both && len(shared) > 0 && shared[0] != id:
				l++ // its turn comes with the patch
				continue
			case !both:
				out = append(out, old[l])
				l++
				continue
			case done[id]:
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
