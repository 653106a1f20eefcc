package core

import (
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/diff"
)

// validateClaim checks the spec, or for a write of the status only the status. On update it also checks
// that only mutable fields change.
func validateClaim(w *registry.Change[PersistentVolumeClaim]) {
	r := &specRules{names: w.Names, found: w.SchemaViolations}
	if w.Subresource == "status" {
		r.claimStatus(check.At("status"), &w.New.Status)
		w.Violations = append(w.Violations, r.Violations...)
		return
	}
	r.claimSpec(check.At("spec"), &w.New.Spec)
	w.Violations = append(w.Violations, r.Violations...)
	if w.Old != nil {
		checkClaimUpdate(w)
	}
}

// DefaultClaimTemplate sets the defaults of a claim within another object that schema tags do not
// express.
func DefaultClaimTemplate(claim *meta.Object) {
	claim.Set("PersistentVolumeClaim", "kind")
	claim.Set(version, "apiVersion")
	if claim.String("status", "phase") == "" {
		claim.Set(volumePending, "status", "phase")
	}
}

// CheckClaimTemplate returns the violations of a claim within another object that the
// schema has not reported in found.
func CheckClaimTemplate(p names.Profile, found check.Violations, at *check.Path, c *PersistentVolumeClaim) check.Violations {
	r := &specRules{names: p, found: found}
	r.claimSpec(at.Field("spec"), &c.Spec)
	return r.Violations
}

// WithClaims returns the template of a pod with a volume for each claim, as a StatefulSet creates its
// pods, and the violations in the names of these volumes. A volume of a claim replaces a volume of the
// same name; the others are appended. The host names of the template are removed, because each pod gets
// a name of its own. t is not changed.
func WithClaims(at *check.Path, t *PodTemplateSpec, claims []PersistentVolumeClaim) (*PodTemplateSpec, check.Violations) {
	var f check.Violations
	out, taken := *t, map[string]int{}
	out.Spec.Hostname, out.Spec.Subdomain = "", ""
	out.Spec.Volumes = slices.Clone(t.Spec.Volumes)
	for i, v := range out.Spec.Volumes {
		taken[v.Name] = i
	}
	for _, c := range claims {
		source := VolumeSource{PersistentVolumeClaim: &PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}
		if i, ok := taken[c.Name]; ok {
			out.Spec.Volumes[i].VolumeSource = source
			continue
		}
		taken[c.Name] = len(out.Spec.Volumes)
		volume := at.Field("spec").Field("volumes").Index(taken[c.Name])
		if out.Spec.Volumes = append(out.Spec.Volumes, Volume{Name: c.Name, VolumeSource: source}); c.Name == "" {
			f.Required(volume.Field("persistentVolumeClaim").Field("claimName"), "")
			f.Required(volume.Field("name"), "")
		} else {
			f.Format(volume.Field("name"), c.Name, meta.CheckDNSLabel(c.Name))
		}
	}
	return &out, f
}

func (r *specRules) claimSpec(at *check.Path, s *PersistentVolumeClaimSpec) {
	r.accessModes(at.Field("accessModes"), s.AccessModes)
	storage, ok := s.Resources.Requests["storage"]
	if !ok {
		r.Required(at.Field("resources").Key("storage"), "")
	} else if storage.Sign() <= 0 {
		r.Invalid(at.Field("resources").Key("storage"), storage, "must be greater than zero")
	}
	if c := s.StorageClassName; c != nil && *c != "" {
		r.Format(at.Field("storageClassName"), *c, meta.CheckDNSSubdomain(*c))
	}
	if c := s.VolumeAttributesClassName; c != nil {
		r.Subdomain(at.Field("volumeAttributesClassName"), *c)
	}
	r.dataSources(at, s)
}

// dataSources checks the sources of a claim: if both are set they must be equal, and if dataSourceRef
// has a namespace dataSource must be unset.
func (r *specRules) dataSources(at *check.Path, s *PersistentVolumeClaimSpec) {
	if d := s.DataSource; d != nil {
		r.dataSource(at.Field("dataSource"), d)
	}
	if d := s.DataSourceRef; d != nil {
		r.dataSource(at.Field("dataSourceRef"), &TypedLocalObjectReference{APIGroup: d.APIGroup, Kind: d.Kind, Name: d.Name})
		if d.Namespace != nil && *d.Namespace != "" {
			r.Format(at.Field("dataSourceRef").Field("namespace"), *d.Namespace, meta.CheckDNSLabel(*d.Namespace))
		}
	}
	switch d, ref := s.DataSource, s.DataSourceRef; {
	case d == nil || ref == nil:
	case crossNamespace(ref):
		r.Invalid(at, at.Field("dataSource").String(), "may not be specified when dataSourceRef.namespace is specified")
	case !check.SemanticEqual(d, &TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}):
		r.Invalid(at, *d, "must match dataSourceRef")
	}
}

func (r *specRules) dataSource(at *check.Path, d *TypedLocalObjectReference) {
	group := ""
	if d.APIGroup != nil {
		group = *d.APIGroup
	}
	r.Subdomain(at.Field("apiGroup"), group)
	if group == "" && d.Kind != "PersistentVolumeClaim" {
		r.Invalid(at, d.Kind, "must be 'PersistentVolumeClaim' in the core group")
	}
}

// checkClaimUpdate reports changes of a claim, except for the binding to a volume, a class that is set
// for the first time and, once the claim is bound, the size and the attributes class. It applies the
// permitted changes to a copy of the old spec and compares.
func checkClaimUpdate(w *registry.Change[PersistentVolumeClaim]) {
	at, spec, old := check.At("spec"), &w.New.Spec, &w.Old.Spec
	key := w.Names.Wire(wellknown.StorageClassBeta)
	permitted := *old
	if w.Features.Enabled(features.AnyVolumeDataSource) {
		pairSources(&permitted) // the old claim may be from old the feature was enabled
	}
	class, named := w.Old.Annotations[key]
	if permitted.VolumeName == "" {
		permitted.VolumeName = spec.VolumeName
	}
	moved := false // whether the class moved from the annotation to the field, so that the annotation may be removed
	if c := spec.StorageClassName; permitted.StorageClassName == nil && c != nil && (!named || class == *c) {
		permitted.StorageClassName, moved = c, named
	}
	if got, present := w.New.Annotations[key]; got != class && !(moved && !present) {
		w.Invalid(check.At("metadata", "annotations", key), got, "field is immutable")
	}
	if w.New.Status.Phase == claimBound {
		permitted.VolumeAttributesClassName = spec.VolumeAttributesClassName
		if spec.Resources.Requests != nil {
			permitted.Resources.Requests = maps.Clone(permitted.Resources.Requests)
			permitted.Resources.Requests[storage] = spec.Resources.Requests[storage]
		}
	}
	if !check.SemanticEqual(*spec, permitted) {
		w.Forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+diff.Lines(permitted, *spec))
	}
	size := spec.Resources.Requests[storage]
	if size.Cmp(old.Resources.Requests[storage]) < 0 {
		switch field := at.Field("resources").Field("requests").Field(storage); {
		case !w.Features.Enabled(features.RecoverVolumeExpansionFailure):
			w.Forbidden(field, "field can not be less than previous value")
		case size.Cmp(w.Old.Status.Capacity[storage]) <= 0:
			w.Forbidden(field, "field can not be less than status.capacity")
		}
	}
	w.Unchanged(check.At("volumeMode"), spec.VolumeMode, old.VolumeMode)
	checkAttributesClassUpdate(w, at.Field("volumeAttributesClassName"))
}

// checkAttributesClassUpdate checks that the attributes class is not removed from a volume that has a
// class.
func checkAttributesClassUpdate(w *registry.Change[PersistentVolumeClaim], at *check.Path) {
	spec, old := w.New.Spec.VolumeAttributesClassName, w.Old.Spec.VolumeAttributesClassName
	if old == nil || w.Old.Status.CurrentVolumeAttributesClassName == nil {
		return
	}
	const why = " is forbidden when status.currentVolumeAttributesClassName is not nil"
	switch {
	case spec == nil:
		w.Forbidden(at, "update to nil"+why)
	case *spec == "" && *old != "":
		w.Forbidden(at, "update to empty string"+why)
	}
}

// claimStatus checks the sizes in the status of a claim.
func (r *specRules) claimStatus(at *check.Path, s *PersistentVolumeClaimStatus) {
	r.amounts(at.Field("capacity"), s.Capacity)
	states := at.Field("allocatedResourceStatuses")
	for _, name := range slices.Sorted(maps.Keys(s.AllocatedResourceStatuses)) {
		known := []string{"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"}
		if r.claimResource(states, name) && !slices.Contains(known, s.AllocatedResourceStatuses[name]) {
			r.NotSupported(states, name, known...)
		}
	}
	allocated := at.Field("allocatedResources")
	for _, name := range sortedNames(s.AllocatedResources) {
		r.claimResource(allocated, name)
	}
	r.amounts(allocated, s.AllocatedResources)
}

// claimResource checks the name of a resource of a claim, storage or a resource of another domain, and
// reports whether it is valid.
func (r *specRules) claimResource(at *check.Path, name string) bool {
	if faults := meta.CheckQualifiedName(name); len(faults) > 0 {
		r.Format(at, name, faults)
		return false
	}
	if name != storage && r.isNative(name) {
		r.NotSupported(at, name, storage)
		return false
	}
	return true
}

// warnOfClaim warns about fractional bytes and the annotation for the class.
func warnOfClaim(w *registry.Change[PersistentVolumeClaim]) []string {
	texts := warnOfOldClass(w.Names, w.New.Annotations)
	if q := w.New.Spec.Resources.Requests[storage]; !q.IsInteger() {
		texts = append(texts, fmt.Sprintf("spec.resources.requests[storage]: fractional byte value %q is invalid, must be an integer", q))
	}
	return texts
}
