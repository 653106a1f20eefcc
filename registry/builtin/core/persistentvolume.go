package core

import (
	"path"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// PersistentVolume is storage with a lifetime independent of pods. It is bound to a
// PersistentVolumeClaim.
type PersistentVolume struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec describes the storage.
	Spec PersistentVolumeSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status PersistentVolumeStatus `json:"status,omitempty" protobuf:"3"`
}

// PersistentVolumeSpec describes the storage of a volume.
type PersistentVolumeSpec struct {
	// Capacity is the size of the volume: the resource storage, in bytes.
	Capacity map[string]meta.Quantity `json:"capacity,omitempty" protobuf:"1" schema:"values.milli"`

	// PersistentVolumeSource is the source of the volume. Exactly 1 field must be set. Immutable.
	PersistentVolumeSource `json:",inline" protobuf:"2"`

	// AccessModes that the volume supports: ReadWriteOnce, ReadOnlyMany, ReadWriteMany or
	// ReadWriteOncePod, which excludes the others.
	AccessModes []string `json:"accessModes,omitempty" protobuf:"3" schema:"required,optional,listType=atomic"`

	// ClaimRef is the claim that the volume is bound to. The binding is complete when the claim refers
	// to the volume, too.
	ClaimRef *ObjectReference `json:"claimRef,omitempty" protobuf:"4" schema:"mapType=granular"`

	// PersistentVolumeReclaimPolicy decides about the volume after its claim is deleted: Retain
	// (default) keeps it, Delete deletes it with its data, Recycle (deprecated) erases it for another
	// claim.
	PersistentVolumeReclaimPolicy string `json:"persistentVolumeReclaimPolicy,omitempty" protobuf:"5" schema:"enum=Delete|Recycle|Retain"`

	// StorageClassName is the class of the volume. Empty means no class.
	StorageClassName string `json:"storageClassName,omitempty" protobuf:"6" schema:"format=dns-subdomain"`

	// MountOptions of the volume. They are not validated; invalid options make mounts fail.
	MountOptions []string `json:"mountOptions,omitempty" protobuf:"7" schema:"listType=atomic"`

	// VolumeMode is Filesystem (default) or Block.
	VolumeMode *string `json:"volumeMode,omitempty" protobuf:"8" schema:"enum=Block|Filesystem"`

	// NodeAffinity selects the nodes that can access the volume. Immutable once set.
	NodeAffinity *VolumeNodeAffinity `json:"nodeAffinity,omitempty" protobuf:"9"`

	// VolumeAttributesClassName is the attributes class of the volume. CSI volumes only.
	VolumeAttributesClassName *string `json:"volumeAttributesClassName,omitempty" protobuf:"10"`
}

// VolumeNodeAffinity selects the nodes that can access a volume.
type VolumeNodeAffinity struct {
	// Required must match the node.
	Required *NodeSelector `json:"required,omitempty" protobuf:"1" schema:"required,optional,reason.required=must specify required node constraints"`
}

// PersistentVolumeStatus is the observed state of a volume.
type PersistentVolumeStatus struct {
	// Phase is Pending, Available, Bound, Released (the claim was deleted) or Failed (the reclaim
	// failed).
	Phase string `json:"phase,omitempty" protobuf:"1"`

	// Message explains the phase to people.
	Message string `json:"message,omitempty" protobuf:"2"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"3"`

	// LastPhaseTransitionTime is the time at which the phase last changed.
	LastPhaseTransitionTime *meta.Time `json:"lastPhaseTransitionTime,omitempty" protobuf:"4"`
}

// Values of fields of volumes and claims, and the resource storage.
const (
	volumePending = "Pending"
	claimBound    = "Bound"
	filesystem    = "Filesystem"
	retain        = "Retain"
	recycle       = "Recycle"
	storage       = "storage" // the resource
)

func persistentVolumes() *registry.Kind {
	return registry.Of(registry.Definition[PersistentVolume]{
		Version:    version,
		ShortNames: []string{"pv"},
		Scope:      registry.Cluster,
		Status:     true,
		Columns:    persistentVolumeColumns(),
		Default:    defaultPersistentVolume,
		Prepare: func(w *registry.Change[PersistentVolume]) {
			if w.Old != nil {
				return
			}
			now := meta.Time{Time: time.Now()}
			w.New.Status = PersistentVolumeStatus{Phase: volumePending, LastPhaseTransitionTime: &now}
		},
		Validate:  validatePersistentVolume,
		Warn:      warnOfPersistentVolume,
		Reference: &compat.Reference{NoGeneration: true, StatusMetadata: compat.CallersMetadata(), AnyNamespace: true},
	})
}

func persistentVolumeColumns() []registry.Column {
	return []registry.Column{
		registry.TextColumn("Capacity", "The capacity of the volume.", "spec", "capacity", storage),
		{Name: "Access Modes", Type: "string", Doc: "The access modes of the volume.", Cell: func(o *meta.Object) any { return accessWords(o.Strings("spec", "accessModes")) }},
		registry.TextColumn("Reclaim Policy", "The reclaim policy of the volume.", "spec", "persistentVolumeReclaimPolicy"),
		{Name: "Status", Type: "string", Doc: "The phase of the volume, or Terminating.", Cell: phaseOrTerminating},
		{Name: "Claim", Type: "string", Doc: "The claim of the volume.", Cell: func(o *meta.Object) any {
			if o.Map("spec", "claimRef") == nil {
				return ""
			}
			return o.String("spec", "claimRef", "namespace") + "/" + o.String("spec", "claimRef", "name")
		}},
		{Name: "StorageClass", Type: "string", Doc: "The storage class of the volume.", Cell: storageClassOf},
		{Name: "VolumeAttributesClass", Type: "string", Doc: "The attributes class of the volume.", Cell: orUnset("spec", "volumeAttributesClassName")},
		registry.TextColumn("Reason", "The reason of the phase.", "status", "reason"),
		registry.AgeColumn(),
		{Name: "VolumeMode", Type: "string", Doc: "Filesystem or Block.", Priority: 1, Cell: orUnset("spec", "volumeMode")},
	}
}

// accessWords joins the abbreviations of access modes, without duplicates.
func accessWords(modes []string) string {
	text := ""
	for _, m := range [][2]string{{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}} {
		for _, mode := range modes {
			if mode != m[0] {
				continue
			}
			if text != "" {
				text += ","
			}
			text += m[1]
			break
		}
	}
	return text
}

// phaseOrTerminating shows the phase of an object, or Terminating if it is being deleted.
func phaseOrTerminating(o *meta.Object) any {
	if o.String("metadata", "deletionTimestamp") != "" {
		return NamespaceTerminating
	}
	return o.String("status", "phase")
}

// storageClassOf returns the storage class of a volume or a claim, from the annotation or the field.
func storageClassOf(o *meta.Object) any {
	for key, value := range o.Annotations() {
		if names.Same(key, wellknown.StorageClassBeta) {
			return value
		}
	}
	return o.String("spec", "storageClassName")
}

func orUnset(path ...string) func(o *meta.Object) any {
	return func(o *meta.Object) any {
		if v, ok := o.Get(path...); ok && v != nil {
			return v
		}
		return "<unset>"
	}
}

// defaultPersistentVolume sets the defaults of a volume. Schema tags cannot express them, because
// inline volumes have none. A status write that changes the phase without a new transition time gets
// the current time.
func defaultPersistentVolume(w *registry.Change[PersistentVolume]) {
	s, state := &w.New.Spec, &w.New.Status
	if s.PersistentVolumeReclaimPolicy == "" {
		s.PersistentVolumeReclaimPolicy = retain
	}
	if s.VolumeMode == nil {
		mode := filesystem
		s.VolumeMode = &mode
	}
	if state.Phase == "" {
		state.Phase = volumePending
	}
	if w.Subresource == "status" && w.Old != nil && state.Phase != w.Old.Status.Phase && sameTime(state.LastPhaseTransitionTime, w.Old.Status.LastPhaseTransitionTime) {
		now := meta.Time{Time: time.Now()}
		state.LastPhaseTransitionTime = &now
	}
}

func sameTime(a, b *meta.Time) bool {
	return a == nil || b != nil && a.Equal(b.Time)
}

// isRoot reports whether a path is the root of the file system.
func isRoot(p string) bool { return path.Clean(p) == "/" }
