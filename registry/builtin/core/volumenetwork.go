package core

// NFSVolumeSource is a directory of an NFS server.
type NFSVolumeSource struct {
	// Server is the host name or IP address of the server.
	Server string `json:"server" protobuf:"1" schema:"required"`

	// Path is the exported path; it must be absolute.
	Path string `json:"path" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// ISCSIVolumeSource is a disk of an iSCSI target.
type ISCSIVolumeSource struct {
	ISCSIDisk `json:",inline"`

	// SecretRef is the Secret with the credentials in the namespace of the pod.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"10"`
}

// ISCSIDisk describes a disk of an iSCSI target without its credentials.
type ISCSIDisk struct {
	// TargetPortal is the address of the target, with the port unless it is the default.
	TargetPortal string `json:"targetPortal" protobuf:"1" schema:"required"`

	// IQN is the qualified name of the target.
	IQN string `json:"iqn" protobuf:"2" schema:"required"`

	// Lun is the logical unit number: 0 to 255.
	Lun int32 `json:"lun" protobuf:"3" schema:"range=0|255"`

	// ISCSIInterface is the name of the interface; default "default".
	ISCSIInterface string `json:"iscsiInterface,omitempty" protobuf:"4" schema:"default=default"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"5"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"6"`

	// Portals are further addresses of the target.
	Portals []string `json:"portals,omitempty" protobuf:"7" schema:"listType=atomic"`

	// DiscoveryCHAPAuth enables CHAP authentication for discovery. It requires secretRef.
	DiscoveryCHAPAuth bool `json:"chapAuthDiscovery,omitempty" protobuf:"8"`

	// SessionCHAPAuth enables CHAP authentication for the session. It requires secretRef.
	SessionCHAPAuth bool `json:"chapAuthSession,omitempty" protobuf:"11"`

	// InitiatorName is the name of the initiator.
	InitiatorName *string `json:"initiatorName,omitempty" protobuf:"12"`
}

// FCVolumeSource is a Fibre Channel disk, identified either by targetWWNs and lun or by wwids.
type FCVolumeSource struct {
	// TargetWWNs are the world-wide names of the target.
	TargetWWNs []string `json:"targetWWNs,omitempty" protobuf:"1" schema:"listType=atomic"`

	// Lun is the logical unit number: 0 to 255. Required with targetWWNs.
	Lun *int32 `json:"lun,omitempty" protobuf:"2"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"3"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`

	// WWIDs are the world-wide identifiers of the volume.
	WWIDs []string `json:"wwids,omitempty" protobuf:"5" schema:"listType=atomic"`
}

// FlexVolumeSource is a volume of a FlexVolume driver.
type FlexVolumeSource struct {
	FlexDriver `json:",inline"`

	// SecretRef is the Secret with the credentials in the namespace of the pod.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"3"`
}

// FlexDriver describes a volume of a FlexVolume driver without its credentials.
type FlexDriver struct {
	// Driver is the name of the driver.
	Driver string `json:"driver" protobuf:"1" schema:"required"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the driver.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`

	// Options for the driver. Keys in the domains of Kubernetes are reserved.
	Options map[string]string `json:"options,omitempty" protobuf:"5"`
}

// CSIVolumeSource is an inline volume of a CSI driver.
type CSIVolumeSource struct {
	// Driver is the name of the driver.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`

	// ReadOnly mounts the volume read-only.
	ReadOnly *bool `json:"readOnly,omitempty" protobuf:"2"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the driver.
	FSType *string `json:"fsType,omitempty" protobuf:"3"`

	// VolumeAttributes are passed to the driver.
	VolumeAttributes map[string]string `json:"volumeAttributes,omitempty" protobuf:"4"`

	// NodePublishSecretRef is the Secret that is passed to the driver.
	NodePublishSecretRef *LocalObjectReference `json:"nodePublishSecretRef,omitempty" protobuf:"5" schema:"name.required"`
}
