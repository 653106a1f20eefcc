package core

import "orch.io/controlplane/api/meta"

// PersistentVolumeClaimVolumeSource uses the volume of a PersistentVolumeClaim.
type PersistentVolumeClaimVolumeSource struct {
	// ClaimName is the name of the claim in the namespace of the pod.
	ClaimName string `json:"claimName" protobuf:"1" schema:"required"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"2"`
}

// EphemeralVolumeSource uses a claim that is created for the pod and deleted with it.
type EphemeralVolumeSource struct {
	// VolumeClaimTemplate describes the claim. Its name is the name of the pod, a dash and the name of
	// the volume. Immutable.
	VolumeClaimTemplate *PersistentVolumeClaimTemplate `json:"volumeClaimTemplate,omitempty" protobuf:"1" schema:"required,optional"`
}

// PersistentVolumeClaimTemplate describes a claim.
type PersistentVolumeClaimTemplate struct {
	// Labels and annotations of the claim. Other metadata is rejected.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec of the claim.
	Spec PersistentVolumeClaimSpec `json:"spec" protobuf:"2"`
}

// PersistentVolumeClaimSpec is a request for storage. After creation only resources.requests and
// volumeAttributesClassName can change, for bound claims.
type PersistentVolumeClaimSpec struct {
	// AccessModes that the volume must support: ReadWriteOnce, ReadOnlyMany, ReadWriteMany or
	// ReadWriteOncePod, which excludes the others. At least one.
	AccessModes []string `json:"accessModes,omitempty" protobuf:"1" schema:"required,optional,reason.required=at least 1 access mode is required,listType=atomic"`

	// Selector selects volumes by label.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"4" schema:"format=label-selector"`

	// Resources that the volume must have. The request for storage is required.
	Resources VolumeResourceRequirements `json:"resources,omitempty" protobuf:"2"`

	// VolumeName is the volume that the claim is bound to, or is to be bound to.
	VolumeName string `json:"volumeName,omitempty" protobuf:"3"`

	// StorageClassName is the class of the volume. Unset means the default class, "" means no class.
	StorageClassName *string `json:"storageClassName,omitempty" protobuf:"5"`

	// VolumeMode is Filesystem (default) or Block.
	VolumeMode *string `json:"volumeMode,omitempty" protobuf:"6" schema:"default=Filesystem,enum=Block|Filesystem"`

	// DataSource is a VolumeSnapshot or a claim from which the volume is filled. Other kinds are
	// dropped; use dataSourceRef.
	DataSource *TypedLocalObjectReference `json:"dataSource,omitempty" protobuf:"7"`

	// DataSourceRef is an object from which the volume is filled. If dataSource is set, too, both must
	// be equal.
	DataSourceRef *TypedObjectReference `json:"dataSourceRef,omitempty" protobuf:"8" schema:"gate=AnyVolumeDataSource"`

	// VolumeAttributesClassName is the class of the mutable attributes of the volume.
	VolumeAttributesClassName *string `json:"volumeAttributesClassName,omitempty" protobuf:"9"`
}

// VolumeResourceRequirements are the requested amounts of storage.
type VolumeResourceRequirements struct {
	// Limits are the largest amounts.
	Limits map[string]meta.Quantity `json:"limits,omitempty" protobuf:"1" schema:"values.milli"`

	// Requests are the smallest amounts.
	Requests map[string]meta.Quantity `json:"requests,omitempty" protobuf:"2" schema:"values.milli"`
}
