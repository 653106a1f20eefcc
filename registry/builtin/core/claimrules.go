package core

import (
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/diff"
)

func validateClaim(w *registry.Change[PersistentVolumeClaim]) {
	r := &specRules{names: w.Names, found: w.Found}
	if w.Subresource == "status" {
		r.claimStatus(check.At("status"), &w.New.Status)
		w.Faults = append(w.Faults, r.Faults...)
		return
	}
	r.claimSpec(check.At("spec"), &w.New.Spec)
	w.Faults = append(w.Faults, r.Faults...)
	if w.Old != nil {
		claimKept(w)
	}
}

// DefaultClaimTemplate fills in what the schema's defaults do not say of a claim that is
// part of another object.
func DefaultClaimTemplate(claim *meta.Object) {
	claim.Set("PersistentVolumeClaim", "kind")
	claim.Set(version, "apiVersion")
	if claim.String("status", "phase") == "" {
		claim.Set(volumePending, "status", "phase")
	}
}

// CheckClaimTemplate returns the faults, beyond those that the schema found, of a claim
// at a path that is part of another object.
func CheckClaimTemplate(p names.Profile, found check.Faults, at *check.Path, c *PersistentVolumeClaim) check.Faults {
	r := &specRules{names: p, found: found}
	r.claimSpec(at.Field("spec"), &c.Spec)
	return r.Faults
}

// WithClaims returns a template at a path with a volume for each of some claims, as pods
// will have it, and the faults of the names of these volumes. A volume takes the place of
// one that has its name; others come last. The template's names of the host are gone:
// who has claims of their own have names of their own, too.
func WithClaims(at *check.Path, t *PodTemplateSpec, claims []PersistentVolumeClaim) (*PodTemplateSpec, check.Faults) {
	var f check.Faults
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

// dataSources checks what a claim is filled from: if both are given they are one.
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
	case elsewhere(ref):
		r.Invalid(at, at.Field("dataSource").String(), "may not be specified when dataSourceRef.namespace is specified")
	case !check.Same(d, &TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}):
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

// claimKept checks what an update of a claim leaves as it was: all but the volume that
// it gets, the class that it gets by default and, once it is bound, its size and the
// class of its attributes.
func claimKept(w *registry.Change[PersistentVolumeClaim]) {
	at, now, before := check.At("spec"), &w.New.Spec, &w.Old.Spec
	key := w.Names.Wire(names.StorageClassBeta)
	like := *before
	if w.Features.Enabled(features.AnyVolumeDataSource) {
		pairSources(&like) // it may be from when that was off
	}
	class, named := w.Old.Annotations[key]
	if like.VolumeName == "" {
		like.VolumeName = now.VolumeName
	}
	moved := false // the class from the annotation to the field, which lets the annotation go
	if c := now.StorageClassName; like.StorageClassName == nil && c != nil && (!named || class == *c) {
		like.StorageClassName, moved = c, named
	}
	if got, still := w.New.Annotations[key]; got != class && !(moved && !still) {
		w.Invalid(check.At("metadata", "annotations", key), got, "field is immutable")
	}
	if w.New.Status.Phase == claimBound {
		like.VolumeAttributesClassName = now.VolumeAttributesClassName
		if now.Resources.Requests != nil {
			like.Resources.Requests = maps.Clone(like.Resources.Requests)
			like.Resources.Requests[storage] = now.Resources.Requests[storage]
		}
	}
	if !check.Same(*now, like) {
		w.Forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+diff.Lines(like, *now))
	}
	size := now.Resources.Requests[storage]
	if size.Cmp(before.Resources.Requests[storage]) < 0 {
		switch field := at.Field("resources").Field("requests").Field(storage); {
		case !w.Features.Enabled(features.RecoverVolumeExpansionFailure):
			w.Forbidden(field, "field can not be less than previous value")
		case size.Cmp(w.Old.Status.Capacity[storage]) <= 0:
			w.Forbidden(field, "field can not be less than status.capacity")
		}
	}
	w.Unchanged(check.At("volumeMode"), now.VolumeMode, before.VolumeMode)
	attributesKept(w, at.Field("volumeAttributesClassName"))
}

// attributesKept checks that a class of attributes is not taken away from a volume that
// has one.
func attributesKept(w *registry.Change[PersistentVolumeClaim], at *check.Path) {
	now, before := w.New.Spec.VolumeAttributesClassName, w.Old.Spec.VolumeAttributesClassName
	if before == nil || w.Old.Status.CurrentVolumeAttributesClassName == nil {
		return
	}
	const why = " is forbidden when status.currentVolumeAttributesClassName is not nil"
	switch {
	case now == nil:
		w.Forbidden(at, "update to nil"+why)
	case *now == "" && *before != "":
		w.Forbidden(at, "update to empty string"+why)
	}
}

// claimStatus checks what is said of the sizes of a claim.
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
	for _, name := range sorted(s.AllocatedResources) {
		r.claimResource(allocated, name)
	}
	r.amounts(allocated, s.AllocatedResources)
}

// claimResource checks the name of what a claim can have: storage, or something that is
// not the product's own.
func (r *specRules) claimResource(at *check.Path, name string) bool {
	if faults := meta.CheckQualifiedName(name); len(faults) > 0 {
		r.Format(at, name, faults)
		return false
	}
	if name != storage && r.native(name) {
		r.NotSupported(at, name, storage)
		return false
	}
	return true
}

// warnOfClaim warns of parts of bytes, and of an old way to name the class.
func warnOfClaim(w *registry.Change[PersistentVolumeClaim]) []string {
	texts := warnOfOldClass(w.Names, w.New.Annotations)
	if q := w.New.Spec.Resources.Requests[storage]; !q.Whole() {
		texts = append(texts, fmt.Sprintf("spec.resources.requests[storage]: fractional byte value %q is invalid, must be an integer", q))
	}
	return texts
}
