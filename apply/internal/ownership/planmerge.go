package ownership

import "orch.io/controlplane/api/meta"

// merge returns a copy of live with the fields of applied, which has passed fieldSet. ok is
// false if the plan does not cover the values.
func (p *plan) merge(live, applied any) (merged any, ok bool) {
	switch p.shape {
	case shapeMap, shapeDeduced:
		if !p.atomic {
			return p.mergeMap(live, applied)
		}
	case shapeSet, shapeMapList:
		return p.mergeList(live, applied)
	case shapeMixed:
		return nil, false
	}
	return meta.Clone(applied), true
}

func (p *plan) mergeMap(live, applied any) (merged any, ok bool) {
	old, _ := live.(map[string]any)
	new, isMap := applied.(map[string]any)
	if applied != nil && !isMap || len(old) == 0 {
		return meta.Clone(applied), true
	}
	out := make(map[string]any, max(len(old), len(new)))
	for k, v := range old {
		if _, both := new[k]; !both { // merging removes nothing; see FieldManager's prune
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
		merged, ok := f.merge(was, v)
		if !ok {
			return nil, false
		}
		out[k] = merged
	}
	return out, true
}

// mergeList merges two lists by the identity of their items. Items of live alone keep their
// order; shared items take the order of applied; new items stand where applied has them
// relative to the shared items.
func (p *plan) mergeList(live, applied any) (merged any, ok bool) {
	old, wasList := live.([]any)
	new, _ := applied.([]any)
	if live != nil && !wasList || len(old) == 0 {
		return meta.Clone(applied), live == nil || wasList
	}
	m := listMerge{items: p.items, old: old, new: new}
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

// listMerge is the state of a merge of two lists.
type listMerge struct {
	items    *plan
	old, new []any
	was, now itemIndex
	shared   []itemID // items in both lists that are not in out yet, in the order of new
	taken    int      // items of new that are in out
	out      []any
}

func (m *listMerge) run() bool {
	for l := 0; l < len(m.old) || m.taken < len(m.new); {
		if l < len(m.old) {
			at, more := m.now.find(m.was.ids[l]), m.taken < len(m.new)
			switch {
			case at < 0:
				m.out = append(m.out, meta.Clone(m.old[l]))
				l++
				continue
			case more && at == m.taken:
				l++
			case more && len(m.shared) > 0 && m.shared[0] != m.was.ids[l]:
				l++ // new has it later
				continue
			case at < m.taken:
				l++
			}
		}
		if m.taken < len(m.new) && !m.take() {
			return false
		}
	}
	return true
}

// take appends the next item of new to out, merged with the same item of old.
func (m *listMerge) take() bool {
	id, item := m.now.ids[m.taken], m.new[m.taken]
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
	m.taken++
	m.out = append(m.out, item)
	return true
}
