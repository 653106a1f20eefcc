package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// objectMeta is the Go type of the standard object metadata.
var objectMeta = reflect.TypeFor[meta.ObjectMeta]()

// missing adds a cause for a missing required field.
func (v *validator) missing(name, why string) {
	if !v.full() {
		v.causes = append(v.causes, wording.Required.Cause(v.path.to(name, false), "", why, false))
	}
}

func (v *validator) object(m map[string]any, old any, s *Schema, canonical bool) {
	before, _ := old.(map[string]any)
	if s.MinProperties != nil && int64(len(m)) < *s.MinProperties {
		v.violation(wording.MinProperties, int64(len(m)), decimal(*s.MinProperties), canonical)
	}
	if s.MaxProperties != nil && int64(len(m)) > *s.MaxProperties {
		v.violation(wording.MaxProperties, int64(len(m)), decimal(*s.MaxProperties), canonical)
	}
	if s.KeyFormat != "" {
		v.keys(m, s)
	}
	switch {
	case s.Values == nil:
	case s.Values.Forbidden:
		v.forbidden(m, s)
	default:
		v.entries(m, before, s, canonical)
		v.checkRemovedEntries(before, m, s)
	}
	if s.Struct != nil {
		v.structure(m, before, s, canonical)
	}
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			v.missing(name, "")
		}
	}
	if s.Embedded {
		v.embedded(m)
	}
}

// keys checks the format of the keys of a map.
func (v *validator) keys(m map[string]any, s *Schema) {
	reasons := fieldFormat(s.KeyFormat)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		for _, why := range reasons(k) {
			if v.full() {
				return
			}
			at := meta.TruncatePath(fmt.Appendf(nil, "%s[%s]", v.path, k))
			v.causes = append(v.causes, wording.Invalid.Cause(at, show(k), why, true))
		}
	}
}

// checkRemoved adds a cause for each immutable value at or below old, a value that the new
// object lacks.
func (v *validator) checkRemoved(old any, s *Schema) {
	switch {
	case old == nil || !s.fixed || v.full():
		return
	case s.Immutable:
		v.violation(wording.Immutable, nil, "", s.Struct.Canonical())
		return
	case s.Unchecked:
		return
	}
	switch old := old.(type) {
	case map[string]any:
		v.checkRemovedEntries(old, nil, s)
		for _, f := range s.fields() {
			was := old[f.Name]
			if f.Schema.Immutable && !f.Pointer && f.Schema.isZero(was) {
				continue
			}
			v.path.field(f.Name)
			v.checkRemoved(was, f.Schema)
			v.path.pop()
		}
	case []any:
		v.checkRemovedItems(old, nil, s)
	}
}

// checkRemovedEntries checks the entries of the map before that m lacks.
func (v *validator) checkRemovedEntries(before, m map[string]any, s *Schema) {
	if s.Values == nil || !s.Values.Immutable {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(before)) {
		if _, ok := m[k]; ok || s.Struct.Field(k) != nil || s.Values.isZero(before[k]) {
			continue
		}
		v.path.field(k)
		v.checkRemoved(before[k], s.Values)
		v.path.pop()
	}
}

// checkRemovedItems checks items of the list before that l lacks by their keys. The causes have
// the items' previous indexes.
func (v *validator) checkRemovedItems(before, l []any, s *Schema) {
	if !s.isMapList() || s.Items == nil || !s.Items.Immutable {
		return
	}
	left := make(map[string]bool, len(l))
	for _, e := range l {
		left[s.ItemKey(e)] = true
	}
	for i, e := range before {
		if !left[s.ItemKey(e)] {
			v.path.item(i)
			v.checkRemoved(e, s.Items)
			v.path.pop()
		}
	}
}

// forbidden adds causes for fields that the schema does not declare.
func (v *validator) forbidden(m map[string]any, s *Schema) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if s.Struct.Field(k) == nil {
			v.violation(wording.ForbiddenProperty, k, k, false)
		}
	}
}

// entries validates the values of a map. Causes are sorted by key.
func (v *validator) entries(m, before map[string]any, s *Schema, canonical bool) {
	type faulty struct {
		key    string
		causes []meta.StatusCause
	}
	var found []faulty
	from := len(v.causes)
	for k, e := range m {
		if s.Struct.Field(k) != nil {
			continue
		}
		at := len(v.causes)
		v.path.key(k)
		was := before[k]
		if s.Values.Immutable && s.Values.isZero(was) {
			was = nil // it was unset
		}
		v.value(e, was, s.Values, canonical)
		v.path.pop()
		if len(v.causes) > at {
			found = append(found, faulty{k, slices.Clone(v.causes[at:])})
		}
	}
	if len(found) < 2 {
		return
	}
	slices.SortFunc(found, func(a, b faulty) int { return strings.Compare(a.key, b.key) })
	v.causes = v.causes[:from]
	for _, f := range found {
		v.causes = append(v.causes, f.causes...)
	}
}

func (v *validator) structure(m, before map[string]any, s *Schema, canonical bool) {
	for _, f := range s.Struct.Fields {
		e, ok := m[f.Name]
		if canonical && f.Required && (!ok || f.unset(e)) {
			v.missing(f.Name, f.Schema.reasons[wording.Required])
			if f.Schema.Immutable && !f.Schema.isZero(before[f.Name]) {
				v.path.field(f.Name)
				v.violation(wording.Immutable, f.zero(), "", canonical)
				v.path.pop()
			}
			continue
		}
		was := before[f.Name]
		if f.Schema.Immutable && !f.Pointer && f.Schema.isZero(was) {
			was = nil // it was unset
		}
		if !ok && (!f.Schema.fixed || was == nil) {
			continue
		}
		if st := f.Schema.Struct; st != nil && st.Go == objectMeta {
			continue // meta.ValidateMetadata validates it
		}
		v.path.field(f.Name)
		if ok {
			v.value(e, was, f.Schema, canonical)
		} else {
			v.checkRemoved(was, f.Schema)
		}
		v.path.pop()
	}
}

// unset reports whether x, the value of a required field of a Go struct, counts as missing.
func (f *Field) unset(x any) bool {
	if x == nil {
		return true
	}
	if f.Pointer || f.Schema.Type == Boolean || f.Schema.Struct != nil || f.Schema.Wire != Plain {
		return false
	}
	return f.Schema.isZero(x)
}
