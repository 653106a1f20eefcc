package apply

import "orch.io/controlplane/api/meta"

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
	case shapeMixed:
		return nil, false
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
	m := listMerge{items: p.items, old: old, new: new}
	var ok bool
	if m.was, ok = p.index(old); !ok {
		return nil, false
	}
	if m.now, ok = p.index(new); !ok {
		return nil, false
	}
	for _, id := range m.now.ids {
		if m.was.find(id) >= 0 {
			m.shared = append(m.shared, id)
		}
	}
	m.out = make([]any, 0, len(old)+len(new)-len(m.shared))
	if !m.run() {
		return nil, false
	}
	return m.out, true
}

// listMerge is the merge of two lists under way.
type listMerge struct {
	items    *plan
	old, new []any
	was, now itemIndex
	shared   []itemID // of both lists, in the order of new, not yet in out
	done     int      // items of new that are in out
	out      []any
}

func (m *listMerge) run() bool {
	for l := 0; l < len(m.old) || m.done < len(m.new); {
		if l < len(m.old) {
			at, more := m.now.find(m.was.ids[l]), m.done < len(m.new)
			switch {
			case at < 0:
				m.out = append(m.out, meta.Clone(m.old[l]))
				l++
				continue
			case more && at == m.done:
				l++
			case more && len(m.shared) > 0 && m.shared[0] != m.was.ids[l]:
				l++ // its turn comes with the patch
				continue
			case at < m.done:
				l++
			}
		}
		if m.done < len(m.new) && !m.take() {
			return false
		}
	}
	return true
}

// take puts the next item of new into out, merged with that of old.
func (m *listMerge) take() bool {
	id, item := m.now.ids[m.done], m.new[m.done]
	if l := m.was.find(id); l >= 0 {
		var ok bool
		if item, ok = m.items.merge(m.old[l], item); !ok {
			return false
		}
	} else {
		item = meta.Clone(item)
	}
	if len(m.shared) > 0 && m.shared[0] == id {
		m.shared = m.shared[1:]
	}
	m.done++
	m.out = append(m.out, item)
	return true
}
