package apply

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply/internal/ownership"
)

// The directives of a strategic merge patch.
const (
	directive       = "$patch"
	retainKeys      = "$retainKeys"
	elementOrder    = "$setElementOrder/"
	deletePrimitive = "$deleteFromPrimitiveList/"
)

// StrategicMerge returns obj changed by a strategic merge patch. It is MergePatch, but lists
// whose schema has the patch strategy merge are merged by their merge key, and directives in
// the patch ($patch, $retainKeys, $setElementOrder, $deleteFromPrimitiveList) delete,
// replace, retain and order. s describes obj; nil replaces every list. The arguments are not
// changed, and the result shares nothing with them.
//
// The error is a *meta.Status: BadRequest (400) if a directive is malformed, Invalid (422)
// with the path as cause if a directive is unknown or an item lacks the merge key of its
// list, RequestEntityTooLarge (413) if the patch merges too many list items.
func StrategicMerge(obj, patch map[string]any, s *schema.Schema) (map[string]any, error) {
	if tooDeep(patch, maxDepth) {
		return nil, meta.BadRequest("the patch is nested deeper than %d", maxDepth)
	}
	m := strategic{budget: maxMerged}
	return m.object(meta.Clone(obj).(map[string]any), meta.Clone(patch).(map[string]any), s)
}

// maxMerged limits the list items that a patch visits. A patch may name an item any number
// of times and merge a list below the item each time.
const maxMerged = 2_000_000

// strategic is the state of a merge.
type strategic struct {
	path   []string // of the current value
	budget int      // items that may still be visited
}

// spend subtracts n items from the budget.
func (m *strategic) spend(n int) error {
	if m.budget -= n; m.budget < 0 {
		return meta.TooLarge("the patch merges more than %d list items", maxMerged)
	}
	return nil
}

// invalid returns the error for a violation at the current path.
func (m *strategic) invalid(format string, args ...any) error {
	field := strings.Join(m.path, ".")
	msg := fmt.Sprintf(format, args...)
	s := meta.Failure(http.StatusUnprocessableEntity, meta.ReasonInvalid, "%s: %s", field, msg)
	s.Details = &meta.StatusDetails{Causes: []meta.StatusCause{{Reason: meta.CauseInvalid, Message: msg, Field: field}}}
	return s
}

// malformed returns the error for a directive that has another form than it must have.
func (m *strategic) malformed(key, must string) error {
	return meta.BadRequest("the directive %s must be %s", strings.Join(append(m.path, key), "."), must)
}

func (m *strategic) within(name string, f func() error) error {
	m.path = append(m.path, name)
	err := f()
	m.path = m.path[:len(m.path)-1]
	return err
}

// object merges patch into orig and returns the result. It changes both.
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
			return nil, m.invalid("unknown value of the directive $patch: %v", d)
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
		if p, ok := p.(map[string]any); ok && !ownership.HasStrategy(s, "replace") {
			orig[k], err = m.object(old, p, s)
			return err
		}
	case []any:
		if p, ok := p.([]any); ok && ownership.HasStrategy(s, "merge") {
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

// fieldSchema returns the schema of a field, nil if it is unknown.
func fieldSchema(s *schema.Schema, name string) *schema.Schema {
	if s == nil {
		return nil
	}
	if f := s.Struct.Field(name); f != nil {
		return f.Schema
	}
	return s.Values
}

// isDirective reports whether a field of a patch is a directive.
func isDirective(name string) bool {
	return name == directive || name == retainKeys || strings.HasPrefix(name, elementOrder) || strings.HasPrefix(name, deletePrimitive)
}

// marked reports whether v is an object with a $patch directive.
func marked(v any) bool {
	m, _ := v.(map[string]any)
	_, ok := m[directive]
	return ok
}

// clean removes the directives and nulls from a value that is not merged with another.
func clean(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil || marked(e) || isDirective(k) {
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

// retain removes from orig the fields that $retainKeys does not list.
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
			return m.malformed(retainKeys, "a list of all fields that the patch sets, such as "+k)
		}
	}
	for k := range orig {
		if !keep[k] {
			delete(orig, k)
		}
	}
	return nil
}

// deletions applies every $deleteFromPrimitiveList.
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
			key, ok := ownership.Scalar(v)
			if !ok {
				return m.malformed(k, "a list of scalars")
			}
			drop[key] = true
		}
		orig[name] = slices.DeleteFunc(list, func(v any) bool {
			key, ok := ownership.Scalar(v)
			return ok && drop[key]
		})
	}
	return nil
}
