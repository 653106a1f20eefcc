package resource

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/features"
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

// dropGated takes out of an object that is to be written what features are about that are
// off, unless it had that before.
func (v *Version) dropGated(w *change) {
	if !v.gated {
		return
	}
	var old map[string]any
	if w.Old != nil {
		old = w.Old.Tree()
	}
	v.schema.DropGated(w.New.Tree(), old, v.off)
}
