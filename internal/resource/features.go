package resource

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/suggest"
)

// Enable tells a type which features its server has, and returns the gates of fields that
// the server does not have. It is for who makes the type, before others see it; a type
// that nobody tells has all its fields.
func (t *Type) Enable(set *features.Set) (faults []error) {
	t.Features = set
	for _, v := range t.Versions {
		v.gated = slices.ContainsFunc(v.schema.Gates(), v.off)
		for _, gate := range v.schema.Gates() {
			if !set.Has(gate) {
				var known []string
				for _, g := range set.All() {
					known = append(known, g.Name)
				}
				faults = append(faults, fmt.Errorf("kind %s, version %q: a field has the gate %q, which the server does not have%s", t.GroupKind(), v.Name, gate, suggest.Near(gate, known...)))
			}
		}
	}
	for _, s := range t.Subresources {
		if s.Body != nil {
			faults = append(faults, s.Body.Type.Enable(set)...)
		}
	}
	return faults
}

// off reports whether a feature is off.
func (t *Type) off(gate string) bool { return !t.Features.Enabled(gate) }

// Applicable returns what of an object that is applied can be: without the fields of
// features that are off, which nobody owns, unless the live one, or nil, has them. The object
// stays as it is.
func (v *Version) Applicable(applied, live *meta.Object) *meta.Object {
	if !v.gated || !v.schema.HasGated(applied.Tree(), v.off) {
		return applied
	}
	applied = applied.Clone()
	v.dropGated(applied, live)
	return applied
}

// dropGated takes out of an object that is to be written what features are about that are
// off, unless it had that before, in old, or nil.
func (v *Version) dropGated(obj, old *meta.Object) {
	if !v.gated {
		return
	}
	var before map[string]any
	if old != nil {
		before = old.Tree()
	}
	v.schema.DropGated(obj.Tree(), before, v.off)
}
