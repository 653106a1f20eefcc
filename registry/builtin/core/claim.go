package core

import "orch.io/controlplane/api/meta"

// PersistentVolumeClaimVolumeSource is the volume that a claim is bound to.
type PersistentVolumeClaimVolumeSource struct {
	// ClaimName is the claim, in the pod's namespace.
	ClaimName string `json:"claimName" protobuf:"1" schema:"required"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"2"`
}

// EphemeralVolumeSource is a volume by a claim that is made for the pod.
type EphemeralVolumeSource struct {
	// VolumeClaimTemplate is the claim that is made, named pod-volume and owned
	// by the pod. It cannot change.
	VolumeClaimTemplate *PersistentVolumeClaimTemplate `json:"volumeClaimTemplate,omitempty" protobuf:"1" schema:"required,optional"`
}

// PersistentVolumeClaimTemplate is a claim to be made.
type PersistentVolumeClaimTemplate struct {
	// Labels and annotations of the claim; nothing else is allowed.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec of the claim.
	Spec PersistentVolumeClaimSpec `json:"spec" protobuf:"2"`
}

// PersistentVolumeClaimSpec is the storage that is asked for.
type PersistentVolumeClaimSpec struct {
	// AccessModes that the volume must have: ReadWriteOnce, ReadOnlyMany,
	// ReadWriteMany, ReadWriteOncePod.
	AccessModes []string `json:"accessModes,omitempty" protobuf:"1" schema:"required,optional,reason.required=at least 1 access mode is required,listType=atomic"`

	// Selector of volumes by label.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"4" schema:"format=label-selector"`

	// Resources that the volume must have at least.
	Resources VolumeResourceRequirements `json:"resources,omitempty" protobuf:"2"`

	// VolumeName is the volume that the claim is bound to.
	VolumeName string `json:"volumeName,omitempty" protobuf:"3"`

	// StorageClassName is the class asked for; "" is none.
	StorageClassName *string `json:"storageClassName,omitempty" protobuf:"5"`

	// VolumeMode is Filesystem (the default) or Block.
	VolumeMode *string `json:"volumeMode,omitempty" protobuf:"6" schema:"default=Filesystem,enum=Block|Filesystem"`

	// DataSource is a snapshot or claim to fill the volume from.
	DataSource *TypedLocalObjectReference `json:"dataSource,omitempty" protobuf:"7"`

	// DataSourceRef is any object to fill the volume from.
	DataSourceRef *TypedObjectReference `json:"dataSourceRef,omitempty" protobuf:"8" schema:"gate=AnyVolumeDataSource"`

	// VolumeAttributesClassName names the class of changeable attributes.
	VolumeAttributesClassName *string `json:"volumeAttributesClassName,omitempty" protobuf:"9"`
}

// VolumeResourceRequirements are bounds on storage.
type VolumeResourceRequirements struct {
	// Limits are the most that is allowed.
	Limits map[string]meta.Quantity `json:"limits,omitempty" protobuf:"1" schema:"values.milli"`

	// Requests are the least that is needed.
	Requests map[string]meta.Quantity `json:"requests,omitempty" protobuf:"2" schema:"values.milli"`
}
