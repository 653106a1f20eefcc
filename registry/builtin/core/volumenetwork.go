package core

// NFSVolumeSource is a directory of an NFS server.
type NFSVolumeSource struct {
	// Server is its host name or address.
	Server string `json:"server" protobuf:"1" schema:"required"`

	// Path that the server exports.
	Path string `json:"path" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// ISCSIVolumeSource is a disk of an iSCSI target.
type ISCSIVolumeSource struct {
	ISCSIDisk `json:",inline"`

	// SecretRef names the secret with the credentials, in the pod's namespace.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"10"`
}

// ISCSIDisk is a disk of an iSCSI target, but for its credentials.
type ISCSIDisk struct {
	// TargetPortal is the address of the target, with the port unless it is the
	// usual one.
	TargetPortal string `json:"targetPortal" protobuf:"1" schema:"required"`

	// IQN is the qualified name of the target.
	IQN string `json:"iqn" protobuf:"2" schema:"required"`

	// Lun is the number of the unit.
	Lun int32 `json:"lun" protobuf:"3" schema:"range=0|255"`

	// ISCSIInterface is the interface to use; default by default.
	ISCSIInterface string `json:"iscsiInterface,omitempty" protobuf:"4" schema:"default=default"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"5"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"6"`

	// Portals are further addresses of the target.
	Portals []string `json:"portals,omitempty" protobuf:"7" schema:"listType=atomic"`

	// DiscoveryCHAPAuth authenticates discovery by CHAP.
	DiscoveryCHAPAuth bool `json:"chapAuthDiscovery,omitempty" protobuf:"8"`

	// SessionCHAPAuth authenticates the session by CHAP.
	SessionCHAPAuth bool `json:"chapAuthSession,omitempty" protobuf:"11"`

	// InitiatorName is the name that the node uses.
	InitiatorName *string `json:"initiatorName,omitempty" protobuf:"12"`
}

// FCVolumeSource is a Fibre Channel disk, by targetWWNs and lun or by wwids.
type FCVolumeSource struct {
	// TargetWWNs are the world-wide names of the target.
	TargetWWNs []string `json:"targetWWNs,omitempty" protobuf:"1" schema:"listType=atomic"`

	// Lun is the number of the unit.
	Lun *int32 `json:"lun,omitempty" protobuf:"2"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"3"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`

	// WWIDs are the world-wide identifiers of the volume.
	WWIDs []string `json:"wwids,omitempty" protobuf:"5" schema:"listType=atomic"`
}

// FlexVolumeSource is mounted by a driver that is a program on the node.
type FlexVolumeSource struct {
	FlexDriver `json:",inline"`

	// SecretRef names the secret with the credentials, in the pod's namespace.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"3"`
}

// FlexDriver is what a driver that is a program on the node mounts, but for its credentials.
type FlexDriver struct {
	// Driver is the name of the program.
	Driver string `json:"driver" protobuf:"1" schema:"required"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`

	// Options for the driver.
	Options map[string]string `json:"options,omitempty" protobuf:"5"`
}

// CSIVolumeSource is a volume that a CSI driver makes for the pod.
type CSIVolumeSource struct {
	// Driver is the name of the driver.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly *bool `json:"readOnly,omitempty" protobuf:"2"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType *string `json:"fsType,omitempty" protobuf:"3"`

	// VolumeAttributes are passed to the driver.
	VolumeAttributes map[string]string `json:"volumeAttributes,omitempty" protobuf:"4"`

	// NodePublishSecretRef names the secret that the driver gets.
	NodePublishSecretRef *LocalObjectReference `json:"nodePublishSecretRef,omitempty" protobuf:"5" schema:"name.required"`
}
