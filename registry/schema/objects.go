package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"orch.io/controlplane/registry/meta"
)

// objectMeta is the Go type of the standard metadata.
var objectMeta = reflect.TypeFor[meta.ObjectMeta]()

// missing adds the cause for a required field.
func (v *validator) missing(name, why string) {
	if v.full() {
		return
	}
	c := ruleRequired.cause(v.path.to(name), "", "", false)
	if why != "" {
		c.Message += ": " + why
	}
	v.causes = append(v.causes, c)
}

func (v *validator) object(m map[string]any, old any, s *Schema, canonical bool) {
	before, _ := old.(map[string]any)
	if s.MinProperties != nil && int64(len(m)) < *s.MinProperties {
		v.breaks(ruleMinProperties, int64(len(m)), decimal(*s.MinProperties), canonical)
	}
	if s.MaxProperties != nil && int64(len(m)) > *s.MaxProperties {
		v.breaks(ruleMaxProperties, int64(len(m)), decimal(*s.MaxProperties), canonical)
	}
	if s.KeyFormat != "" {
		v.keys(m, s)
	}
	if s.Values != nil {
		v.entries(m, before, s, canonical)
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

// keys checks the form of the keys of a map.
func (v *validator) keys(m map[string]any, s *Schema) {
	reasons := fieldFormat(s.KeyFormat)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		for _, why := range reasons(k) {
			if v.full() {
				return
			}
			at := meta.CutPath(fmt.Appendf(nil, "%s[%s]", v.path, k))
			v.causes = append(v.causes, ruleWritten.cause(at, show(k), why, true))
		}
	}
}

// entries validates the values of a map.
func (v *validator) entries(m, before map[string]any, s *Schema, canonical bool) {
	type faulty struct {
		key    string
		causes []meta.Cause
	}
	var found []faulty
	from := len(v.causes)
	for k, e := range m {
		if s.Struct.Field(k) != nil {
			continue
		}
		at := len(v.causes)
		v.path.field(k)
		v.value(e, before[k], s.Values, canonical)
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
		if canonical && (f.Required || f.NonEmpty) && (!ok || f.unset(e)) {
			v.missing(f.Name, f.Schema.reasons[ruleRequired])
			continue
		}
		if !ok && (!f.Schema.Immutable || before[f.Name] == nil) {
			continue
		}
		if st := f.Schema.Struct; st != nil && st.Go == objectMeta {
			continue // meta.ValidateMetadata has rules of its own
		}
		v.path.field(f.Name)
		if ok {
			v.value(e, before[f.Name], f.Schema, canonical)
		} else {
			v.breaks(ruleImmutable, nil, "", canonical)
		}
		v.path.pop()
	}
}

// unset reports whether a required field of a Go struct was not given.
func (f *Field) unset(x any) bool {
	if x == nil {
		return true
	}
	if f.Pointer || f.Schema.Type == Boolean || f.Schema.Struct != nil || f.Schema.Wire != Plain {
		return false
	}
	return f.Schema.isZero(x)
}
