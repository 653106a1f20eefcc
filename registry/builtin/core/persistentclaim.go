package core

import (
	"cmp"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// PersistentVolumeClaim asks for storage and, once it is bound, has it.
type PersistentVolumeClaim struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is asked for.
	Spec PersistentVolumeClaimSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what there is. The system writes it.
	Status PersistentVolumeClaimStatus `json:"status,omitempty" protobuf:"3"`
}

// PersistentVolumeClaimStatus is what a claim has.
type PersistentVolumeClaimStatus struct {
	// Phase is Pending, Bound, or Lost if its volume is gone.
	Phase string `json:"phase,omitempty" protobuf:"1"`

	// AccessModes that the volume has.
	AccessModes []string `json:"accessModes,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Capacity that the volume has, in bytes.
	Capacity map[string]meta.Quantity `json:"capacity,omitempty" protobuf:"3" schema:"values.milli"`

	// Conditions are aspects of the state, such as a resize that is going on (reason
	// ResizeStarted).
	Conditions []PersistentVolumeClaimCondition `json:"conditions,omitempty" protobuf:"4" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// AllocatedResources are what was set aside for the claim, in bytes; more than the
	// capacity while it grows. Quotas count this if it is more than was asked for.
	AllocatedResources map[string]meta.Quantity `json:"allocatedResources,omitempty" protobuf:"5" schema:"values.milli,gate=RecoverVolumeExpansionFailure"`

	// ResizeStatus is how far a resize has come; empty when it is done. Newer programs
	// write allocatedResourceStatuses.
	ResizeStatus *string `json:"resizeStatus,omitempty" protobuf:"6" schema:"gate=RecoverVolumeExpansionFailure"`

	// AllocatedResourceStatuses are how far the resize of each resource has come:
	// ControllerResizeInProgress, ControllerResizeInfeasible, NodeResizePending,
	// NodeResizeInProgress, NodeResizeInfeasible. None: nothing is being resized.
	AllocatedResourceStatuses map[string]string `json:"allocatedResourceStatuses,omitempty" protobuf:"7" schema:"mapType=granular,gate=RecoverVolumeExpansionFailure"`

	// CurrentVolumeAttributesClassName is the class of the attributes that the volume
	// has.
	CurrentVolumeAttributesClassName *string `json:"currentVolumeAttributesClassName,omitempty" protobuf:"8"`

	// ModifyVolumeStatus tells of a change of the attributes that is going on.
	ModifyVolumeStatus *ModifyVolumeStatus `json:"modifyVolumeStatus,omitempty" protobuf:"9"`

	// HealthStatus is what the driver says of the volume's health.
	HealthStatus *VolumeHealthStatus `json:"healthStatus,omitempty" protobuf:"10" schema:"gate=CSIVolumeHealth"`
}

// VolumeHealthStatus is what is wrong with a volume.
type VolumeHealthStatus struct {
	// HealthConditions are the faults; none: the volume is well.
	HealthConditions []VolumeHealthCondition `json:"healthConditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"status" schema:"listType=map,listMapKeys=status|reason,maxItems=16"`

	// LastTransitionTime is when they last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"2"`
}

// VolumeHealthCondition is one fault of a volume.
type VolumeHealthCondition struct {
	// Status is Inaccessible, DataLoss or Degraded.
	Status string `json:"status" protobuf:"1" schema:"required"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason" protobuf:"2" schema:"required,maxLength=256"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"3" schema:"maxLength=1024"`
}

// PersistentVolumeClaimCondition is one aspect of a claim's state.
type PersistentVolumeClaimCondition struct {
	// Type names the aspect: Resizing, FileSystemResizePending, ModifyingVolume, ...
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastProbeTime is when somebody last looked.
	LastProbeTime meta.Time `json:"lastProbeTime,omitempty" protobuf:"3"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

// ModifyVolumeStatus tells of a change of a volume's attributes.
type ModifyVolumeStatus struct {
	// TargetVolumeAttributesClassName is the class that it is to get.
	TargetVolumeAttributesClassName string `json:"targetVolumeAttributesClassName,omitempty" protobuf:"1"`

	// Status is Pending (such as for want of the class), InProgress or Infeasible.
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
		{Name: "Status", Type: "string", Doc: "Its phase.", Cell: phaseOrTerminating},
		registry.Text("Volume", "The volume it is bound to.", "spec", "volumeName"),
		{Name: "Capacity", Type: "string", Doc: "How much the volume holds.", Cell: func(o *meta.Object) any {
			if !bound(o) {
				return ""
			}
			return cmp.Or(o.String("status", "capacity", storage), "0")
		}},
		{Name: "Access Modes", Type: "string", Doc: "How the volume can be mounted.", Cell: func(o *meta.Object) any {
			if !bound(o) {
				return ""
			}
			return accessWords(o.Strings("status", "accessModes"))
		}},
		{Name: "StorageClass", Type: "string", Doc: "The class asked for.", Cell: storageClassOf},
		{Name: "VolumeAttributesClass", Type: "string", Doc: "The class of the attributes asked for.", Cell: orUnset("spec", "volumeAttributesClassName")},
		registry.Age(),
		{Name: "VolumeMode", Type: "string", Doc: "Whether it has a file system.", Priority: 1, Cell: orUnset("spec", "volumeMode")},
	}
}

// prepareClaim makes a new claim wait for a volume, and says what it is to be filled
// from in both of the fields for that, where there are both. Unless
// CrossNamespaceVolumeDataSource is on nobody may hand over volumes from one namespace
// to another.
func prepareClaim(w *registry.Change[PersistentVolumeClaim]) {
	s := &w.New.Spec
	if w.Old == nil {
		w.New.Status = PersistentVolumeClaimStatus{Phase: volumePending}
	}
	if ref := s.DataSourceRef; ref != nil && elsewhere(ref) && !w.Features.Enabled(features.CrossNamespaceVolumeDataSource) &&
		(w.Old == nil || w.Old.Spec.DataSourceRef == nil || !elsewhere(w.Old.Spec.DataSourceRef)) {
		s.DataSourceRef = nil
	}
	d := s.DataSource
	if d != nil && s.DataSourceRef == nil && (w.Old == nil || w.Old.Spec.DataSource == nil) && !oldSource(w.Names, d) {
		s.DataSource = nil
	}
	if w.Features.Enabled(features.AnyVolumeDataSource) {
		pairSources(s)
	}
}

// pairSources says what a claim is filled from in both of the fields for that.
func pairSources(s *PersistentVolumeClaimSpec) {
	switch d, ref := s.DataSource, s.DataSourceRef; {
	case d != nil && ref == nil:
		s.DataSourceRef = &TypedObjectReference{APIGroup: d.APIGroup, Kind: d.Kind, Name: d.Name}
	case d == nil && ref != nil && !elsewhere(ref):
		s.DataSource = &TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

// elsewhere reports whether a reference names a namespace.
func elsewhere(ref *TypedObjectReference) bool { return ref.Namespace != nil && *ref.Namespace != "" }

// oldSource reports whether a claim can be filled from an object by the older field:
// by a claim or a snapshot.
func oldSource(p names.Profile, d *TypedLocalObjectReference) bool {
	switch {
	case d.APIGroup == nil || *d.APIGroup == "":
		return d.Kind == "PersistentVolumeClaim"
	default:
		return *d.APIGroup == p.Group(names.GroupSnapshots) && d.Kind == "VolumeSnapshot"
	}
}
