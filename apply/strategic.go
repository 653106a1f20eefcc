package apply

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/number"
)

// The directives of a strategic merge patch.
const (
	directive       = "$patch"
	retainKeys      = "$retainKeys"
	elementOrder    = "$setElementOrder/"
	deletePrimitive = "$deleteFromPrimitiveList/"
)

// StrategicMerge returns obj changed by a strategic merge patch: like MergePatch,
// but lists whose schema has the patch strategy merge are merged by their merge
// key, and directives in the patch delete, replace, order and retain. Neither
// input is changed. s describes obj; without one every list is replaced.
//
// A directive of the wrong form is a BadRequest (400); an unknown directive, or
// an item without the key of its list, is Invalid (422) with the place as cause.
func StrategicMerge(obj, patch map[string]any, s *schema.Schema) (map[string]any, error) {
	if tooDeep(patch, Limits{}.withDefaults().Depth) {
		return nil, meta.BadRequest("the patch is nested too deep")
	}
	m := strategic{budget: maxMerged}
	return m.object(meta.Clone(obj).(map[string]any), meta.Clone(patch).(map[string]any), s)
}

// maxMerged bounds the items that the merges of one patch look at. A patch may
// name an item any number of times, and each time merge a list below it.
const maxMerged = 2_000_000

// strategic is a merge under way; path leads to the value in hand.
type strategic struct {
	path   []string
	budget int // items that may still be looked at
}

// spend takes n items from the budget.
func (m *strategic) spend(n int) error {
	if m.budget -= n; m.budget < 0 {
		return meta.TooLarge("the patch merges lists of more than %d items in all", maxMerged)
	}
	return nil
}

// fault says what is wrong with the patch at the current place.
func (m *strategic) fault(format string, args ...any) error {
	field := strings.Join(m.path, ".")
	msg := fmt.Sprintf(format, args...)
	s := meta.Failure(http.StatusUnprocessableEntity, meta.ReasonInvalid, "%s: %s", field, msg)
	s.Details = &meta.Details{Causes: []meta.Cause{{Reason: meta.CauseInvalid, Message: msg, Field: field}}}
	return s
}

// malformed says that a directive does not have the form it must have.
func (m *strategic) malformed(key, must string) error {
	return meta.BadRequest("the directive %s must be %s", strings.Join(append(m.path, key), "."), must)
}

func (m *strategic) within(name string, f func() error) error {
	m.path = append(m.path, name)
	err := f()
	m.path = m.path[:len(m.path)-1]
	return err
}

// object merges patch into orig; both are changed.
func (m *strategic) object(orig, patch map[string]any, s *schema.Schema) (map[string]any, error) {
	if d, ok := patch[directive]; ok {
		delete(patch, directive)
		switch d {
		case "replace":
			return clean(patch).(map[string]any), nil
		case "delete":
			return map[string]any{}, nil
		case "merge":
		default:
			return nil, m.fault("the directive $patch does not know %v", d)
		}
	}
	if err := m.retain(orig, patch); err != nil {
		return nil, err
	}
	if err := m.orderedLists(orig, patch, s); err != nil {
		return nil, err
	}
	if err := m.deletions(orig, patch); err != nil {
		return nil, err
	}
	for k, p := range patch {
		err := m.within(k, func() error { return m.member(orig, k, p, fieldSchema(s, k)) })
		if err != nil {
			return nil, err
		}
	}
	return orig, nil
}

func (m *strategic) member(orig map[string]any, k string, p any, s *schema.Schema) (err error) {
	if p == nil {
		delete(orig, k)
		return nil
	}
	switch old := orig[k].(type) {
	case map[string]any:
		if p, ok := p.(map[string]any); ok && !hasStrategy(s, "replace") {
			orig[k], err = m.object(old, p, s)
			return err
		}
	case []any:
		if p, ok := p.([]any); ok && hasStrategy(s, "merge") {
			orig[k], err = m.list(old, p, s)
			return err
		}
	}
	if marked(p) {
		delete(orig, k)
		return nil
	}
	orig[k] = clean(p)
	return nil
}

// fieldSchema returns the schema of a member, nil if nothing is known of it.
func fieldSchema(s *schema.Schema, name string) *schema.Schema {
	if s == nil {
		return nil
	}
	if f := s.Struct.Field(name); f != nil {
		return f.Schema
	}
	return s.Values
}

func hasStrategy(s *schema.Schema, want string) bool {
	return s != nil && slices.Contains(strings.Split(s.PatchStrategy, ","), want)
}

// marked reports whether v is an object with a $patch directive.
func marked(v any) bool {
	m, _ := v.(map[string]any)
	_, ok := m[directive]
	return ok
}

// clean takes the directives and the nulls out of a value that nothing is there
// to merge with.
func clean(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil || marked(e) || k == directive || k == retainKeys || strings.HasPrefix(k, elementOrder) || strings.HasPrefix(k, deletePrimitive) {
				delete(v, k)
				continue
			}
			v[k] = clean(e)
		}
	case []any:
		out := v[:0]
		for _, e := range v {
			if !marked(e) {
				out = append(out, clean(e))
			}
		}
		return out
	}
	return v
}

// retain carries out $retainKeys: members of orig that it does not list go.
func (m *strategic) retain(orig, patch map[string]any) error {
	v, ok := patch[retainKeys]
	if !ok {
		return nil
	}
	delete(patch, retainKeys)
	list, ok := v.([]any)
	if !ok {
		return m.malformed(retainKeys, "a list of field names")
	}
	if err := m.spend(len(orig) + len(list)); err != nil {
		return err
	}
	keep := make(map[string]bool, len(list))
	for _, e := range list {
		name, ok := e.(string)
		if !ok {
			return m.malformed(retainKeys, "a list of field names")
		}
		keep[name] = true
	}
	for k, p := range patch {
		if p != nil && !keep[k] && !strings.HasPrefix(k, elementOrder) && !strings.HasPrefix(k, deletePrimitive) {
			return m.malformed(retainKeys, "a list with every field that the patch sets, such as "+k)
		}
	}
	for k := range orig {
		if !keep[k] {
			delete(orig, k)
		}
	}
	return nil
}

// deletions carries out every $deleteFromPrimitiveList.
func (m *strategic) deletions(orig, patch map[string]any) error {
	for k, p := range patch {
		name, ok := strings.CutPrefix(k, deletePrimitive)
		if !ok {
			continue
		}
		delete(patch, k)
		gone, ok := p.([]any)
		if !ok {
			return m.malformed(k, "a list of scalars")
		}
		list, ok := orig[name].([]any)
		if !ok {
			continue
		}
		if err := m.spend(len(list) + len(gone)); err != nil {
			return err
		}
		drop := make(map[any]bool, len(gone))
		for _, v := range gone {
			key, ok := scalar(v)
			if !ok {
				return m.malformed(k, "a list of scalars")
			}
			drop[key] = true
		}
		orig[name] = slices.DeleteFunc(list, func(v any) bool {
			key, ok := scalar(v)
			return ok && drop[key]
		})
	}
	return nil
}

// scalar returns v in a form that compares with ==, and whether it is a scalar.
func scalar(v any) (any, bool) {
	switch v := v.(type) {
	case string, bool, int64:
		return v, true
	case float64:
		if n, ok := number.Integer(v); ok {
			return n, true
		}
		return v, true
	}
	return nil, false
}
