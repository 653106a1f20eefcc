package resource

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/suggest"
)

// Enable sets the feature gates of the server and returns an error for each gate of a field that
// set does not have. Call it only before the type is published. Without a call, all fields are
// enabled.
func (t *Type) Enable(set *features.Set) (faults []error) {
	t.Features = set
	for _, v := range t.Versions {
		v.gated = slices.ContainsFunc(v.schema.Gates(), v.featureOff)
		for _, gate := range v.schema.Gates() {
			if !set.Has(gate) {
				var known []string
				for _, g := range set.All() {
					known = append(known, g.Name)
				}
				faults = append(faults, fmt.Errorf("kind %s, version %q: unknown feature gate %q of a field%s", t.GroupKind(), v.Name, gate, suggest.Near(gate, known...)))
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

// featureOff reports whether a feature gate is off.
func (t *Type) featureOff(gate string) bool { return !t.Features.Enabled(gate) }

// Applicable returns applied without the fields with a disabled feature gate, so that no manager owns
// them. A field stays if live has it, too; live may be nil. applied is not modified.
func (v *Version) Applicable(applied, live *meta.Object) *meta.Object {
	if !v.gated || !v.schema.HasGated(applied.Tree(), v.featureOff) {
		return applied
	}
	applied = applied.Clone()
	v.dropGated(applied, live)
	return applied
}

// dropGated removes from obj the fields with a disabled feature gate, except fields that old has. old
// may be nil.
func (v *Version) dropGated(obj, old *meta.Object) {
	if !v.gated {
		return
	}
	var before map[string]any
	if old != nil {
		before = old.Tree()
	}
	v.schema.DropGated(obj.Tree(), before, v.featureOff)
}
