package core

import (
	"cmp"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// PersistentVolumeClaim requests storage, and is then bound to a PersistentVolume.
type PersistentVolumeClaim struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request.
	Spec PersistentVolumeClaimSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status PersistentVolumeClaimStatus `json:"status,omitempty" protobuf:"3"`
}

// PersistentVolumeClaimStatus is the observed state of a claim.
type PersistentVolumeClaimStatus struct {
	// Phase is Pending, Bound, or Lost if the volume no longer exists.
	Phase string `json:"phase,omitempty" protobuf:"1"`

	// AccessModes of the volume.
	AccessModes []string `json:"accessModes,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Capacity of the volume in bytes.
	Capacity map[string]meta.Quantity `json:"capacity,omitempty" protobuf:"3" schema:"values.milli"`

	// Conditions such as Resizing.
	Conditions []PersistentVolumeClaimCondition `json:"conditions,omitempty" protobuf:"4" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// AllocatedResources are the reserved amounts in bytes; larger than the capacity during an
	// expansion. Quotas count them if they exceed the request.
	AllocatedResources map[string]meta.Quantity `json:"allocatedResources,omitempty" protobuf:"5" schema:"values.milli,gate=RecoverVolumeExpansionFailure"`

	// ResizeStatus is the state of an expansion; empty if there is none. Superseded by
	// allocatedResourceStatuses.
	ResizeStatus *string `json:"resizeStatus,omitempty" protobuf:"6" schema:"gate=RecoverVolumeExpansionFailure"`

	// AllocatedResourceStatuses map resources to the state of their expansion:
	// ControllerResizeInProgress, ControllerResizeInfeasible, NodeResizePending, NodeResizeInProgress
	// or NodeResizeInfeasible.
	AllocatedResourceStatuses map[string]string `json:"allocatedResourceStatuses,omitempty" protobuf:"7" schema:"mapType=granular,gate=RecoverVolumeExpansionFailure"`

	// CurrentVolumeAttributesClassName is the attributes class of the volume.
	CurrentVolumeAttributesClassName *string `json:"currentVolumeAttributesClassName,omitempty" protobuf:"8"`

	// ModifyVolumeStatus describes a change of the attributes in progress.
	ModifyVolumeStatus *ModifyVolumeStatus `json:"modifyVolumeStatus,omitempty" protobuf:"9"`

	// HealthStatus is the health of the volume as reported by the driver.
	HealthStatus *VolumeHealthStatus `json:"healthStatus,omitempty" protobuf:"10" schema:"gate=CSIVolumeHealth"`
}

// VolumeHealthStatus is the health of a volume.
type VolumeHealthStatus struct {
	// HealthConditions are the problems; at most 16. Empty means healthy.
	HealthConditions []VolumeHealthCondition `json:"healthConditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"status" schema:"listType=map,listMapKeys=status|reason,maxItems=16"`

	// LastTransitionTime is the time at which the conditions last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"2"`
}

// VolumeHealthCondition is a problem of a volume.
type VolumeHealthCondition struct {
	// Status is Inaccessible, DataLoss or Degraded.
	Status string `json:"status" protobuf:"1" schema:"required"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason" protobuf:"2" schema:"required,maxLength=256"`

	// Message explains the problem to people.
	Message string `json:"message,omitempty" protobuf:"3" schema:"maxLength=1024"`
}

// PersistentVolumeClaimCondition is an aspect of the state of a claim.
type PersistentVolumeClaimCondition struct {
	// Type identifies the condition, such as Resizing, FileSystemResizePending or ModifyingVolume.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastProbeTime is the time of the last check.
	LastProbeTime meta.Time `json:"lastProbeTime,omitempty" protobuf:"3"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

// ModifyVolumeStatus describes a change of the attributes of a volume.
type ModifyVolumeStatus struct {
	// TargetVolumeAttributesClassName is the class that is being applied.
	TargetVolumeAttributesClassName string `json:"targetVolumeAttributesClassName,omitempty" protobuf:"1"`

	// Status is Pending, for example because the class does not exist, InProgress or Infeasible.
	Status string `json:"status" protobuf:"2"`
}

func persistentVolumeClaims() *registry.Kind {
	return registry.Of(registry.Definition[PersistentVolumeClaim]{
		Version:    version,
		ShortNames: []string{"pvc"},
		Status:     true,
		Columns:    persistentVolumeClaimColumns(),
		Default: func(w *registry.Change[PersistentVolumeClaim]) {
			if w.New.Status.Phase == "" {
				w.New.Status.Phase = volumePending
			}
		},
		Prepare:   prepareClaim,
		Validate:  validateClaim,
		Warn:      warnOfClaim,
		Reference: &compat.Reference{NoGeneration: true, StatusMetadata: compat.CallersMetadata()},
	})
}

func persistentVolumeClaimColumns() []registry.Column {
	bound := func(o *meta.Object) bool { return o.String("spec", "volumeName") != "" }
	return []registry.Column{
		{Name: "Status", Type: "string", Doc: "The phase of the claim, or Terminating.", Cell: phaseOrTerminating},
		registry.TextColumn("Volume", "The volume of the claim.", "spec", "volumeName"),
		{Name: "Capacity", Type: "string", Doc: "The capacity of the volume.", Cell: func(o *meta.Object) any {
			if !bound(o) {
				return ""
			}
			return cmp.Or(o.String("status", "capacity", storage), "0")
		}},
		{Name: "Access Modes", Type: "string", Doc: "The access modes of the volume.", Cell: func(o *meta.Object) any {
			if !bound(o) {
				return ""
			}
			return accessWords(o.Strings("status", "accessModes"))
		}},
		{Name: "StorageClass", Type: "string", Doc: "The storage class of the claim.", Cell: storageClassOf},
		{Name: "VolumeAttributesClass", Type: "string", Doc: "The attributes class of the claim.", Cell: orUnset("spec", "volumeAttributesClassName")},
		registry.AgeColumn(),
		{Name: "VolumeMode", Type: "string", Doc: "Filesystem or Block.", Priority: 1, Cell: orUnset("spec", "volumeMode")},
	}
}

// prepareClaim sets the phase of a new claim, drops sources that are not permitted, and copies the
// source to both fields. Sources in another namespace require the feature
// CrossNamespaceVolumeDataSource, unless the stored claim has such a source already.
func prepareClaim(w *registry.Change[PersistentVolumeClaim]) {
	s := &w.New.Spec
	if w.Old == nil {
		w.New.Status = PersistentVolumeClaimStatus{Phase: volumePending}
	}
	if ref := s.DataSourceRef; ref != nil && crossNamespace(ref) && !w.Features.Enabled(features.CrossNamespaceVolumeDataSource) &&
		(w.Old == nil || w.Old.Spec.DataSourceRef == nil || !crossNamespace(w.Old.Spec.DataSourceRef)) {
		s.DataSourceRef = nil
	}
	d := s.DataSource
	if d != nil && s.DataSourceRef == nil && (w.Old == nil || w.Old.Spec.DataSource == nil) && !isClaimOrSnapshot(w.Names, d) {
		s.DataSource = nil
	}
	if w.Features.Enabled(features.AnyVolumeDataSource) {
		pairSources(s)
	}
}

// pairSources sets the source in both fields.
func pairSources(s *PersistentVolumeClaimSpec) {
	switch d, ref := s.DataSource, s.DataSourceRef; {
	case d != nil && ref == nil:
		s.DataSourceRef = &TypedObjectReference{APIGroup: d.APIGroup, Kind: d.Kind, Name: d.Name}
	case d == nil && ref != nil && !crossNamespace(ref):
		s.DataSource = &TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

// crossNamespace reports whether a reference has a namespace.
func crossNamespace(ref *TypedObjectReference) bool {
	return ref.Namespace != nil && *ref.Namespace != ""
}

// isClaimOrSnapshot reports whether dataSource supports an object.
func isClaimOrSnapshot(p names.Profile, d *TypedLocalObjectReference) bool {
	switch {
	case d.APIGroup == nil || *d.APIGroup == "":
		return d.Kind == "PersistentVolumeClaim"
	default:
		return *d.APIGroup == p.Group(wellknown.GroupSnapshots) && d.Kind == "VolumeSnapshot"
	}
}
