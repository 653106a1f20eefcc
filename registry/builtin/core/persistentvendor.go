package core

// BlockSvcPersistentVolumeSource is a volume of the block service.
type BlockSvcPersistentVolumeSource struct {
	// VolumeID identifies the volume at its provider.
	VolumeID string `json:"volumeID" protobuf:"1" schema:"required"`

	// FSType is the file system to mount, such as ext4 or xfs; the default depends on
	// the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// SecretRef names the secret with the credentials.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"4" schema:"name.required,namespace.required"`
}

// CloudBFilePersistentVolumeSource is a file share of cloud B.
type CloudBFilePersistentVolumeSource struct {
	// SecretName is the secret with the account's name and key.
	SecretName string `json:"secretName" protobuf:"1" schema:"required"`

	// ShareName is the name of the share.
	ShareName string `json:"shareName" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// SecretNamespace is where the secret is; unset: in the pod's namespace.
	SecretNamespace *string `json:"secretNamespace" protobuf:"4" schema:"optional"`
}

// StoreAfsPersistentVolumeSource is a file system of store A.
type StoreAfsPersistentVolumeSource struct {
	// Monitors are the addresses of the store's monitors.
	Monitors []string `json:"monitors" protobuf:"1" schema:"required,listType=atomic"`

	// Path in the file system to mount; / by default.
	Path string `json:"path,omitempty" protobuf:"2"`

	// User to log in as; admin by default.
	User string `json:"user,omitempty" protobuf:"3"`

	// SecretFile is the file with the user's key; /etc/ceph/user.secret by default.
	SecretFile string `json:"secretFile,omitempty" protobuf:"4"`

	// SecretRef names the secret with the user's key, which goes before the file.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"5"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"6"`
}

// StoreAblockPersistentVolumeSource is a block device of store A.
type StoreAblockPersistentVolumeSource struct {
	// Monitors are the addresses of the store's monitors.
	Monitors []string `json:"monitors" protobuf:"1" schema:"required,listType=atomic"`

	// Image is the name of the device.
	Image string `json:"image" protobuf:"2" schema:"required"`

	// FSType is the file system to mount, such as ext4 or xfs; the default depends on
	// the volume.
	FSType string `json:"fsType,omitempty" protobuf:"3"`

	// Pool that the device is in; rbd by default.
	Pool string `json:"pool,omitempty" protobuf:"4" schema:"default=rbd"`

	// User to log in as; admin by default.
	User string `json:"user,omitempty" protobuf:"5" schema:"default=admin"`

	// Keyring is the file with the user's key; /etc/ceph/keyring by default.
	Keyring string `json:"keyring,omitempty" protobuf:"6" schema:"default=/etc/ceph/keyring"`

	// SecretRef names the secret with the user's key, which goes before the file.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"7"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"8"`
}

// StoreBfsPersistentVolumeSource is a volume of store B.
type StoreBfsPersistentVolumeSource struct {
	// EndpointsName names the Endpoints object with the store's addresses.
	EndpointsName string `json:"endpoints" protobuf:"1" schema:"required"`

	// Path is the name of the volume.
	Path string `json:"path" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// EndpointsNamespace is where the Endpoints object is; unset: in the namespace of
	// the claim.
	EndpointsNamespace *string `json:"endpointsNamespace,omitempty" protobuf:"4"`
}

// StoreEPersistentVolumeSource is a volume of store E.
type StoreEPersistentVolumeSource struct {
	// Gateway is the address of the API.
	Gateway string `json:"gateway" protobuf:"1" schema:"required"`

	// System is the name of the storage system.
	System string `json:"system" protobuf:"2" schema:"required"`

	// SecretRef names the secret with the credentials.
	SecretRef *SecretReference `json:"secretRef" protobuf:"3"`

	// SSLEnabled talks to the gateway by TLS.
	SSLEnabled bool `json:"sslEnabled,omitempty" protobuf:"4"`

	// ProtectionDomain that the volume is in.
	ProtectionDomain string `json:"protectionDomain,omitempty" protobuf:"5"`

	// StoragePool in that domain.
	StoragePool string `json:"storagePool,omitempty" protobuf:"6"`

	// StorageMode is ThinProvisioned (the default) or ThickProvisioned.
	StorageMode string `json:"storageMode,omitempty" protobuf:"7" schema:"default=ThinProvisioned"`

	// VolumeName is the name of the volume.
	VolumeName string `json:"volumeName,omitempty" protobuf:"8" schema:"required,optional"`

	// FSType is the file system to mount; xfs by default.
	FSType string `json:"fsType,omitempty" protobuf:"9" schema:"default=xfs"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"10"`
}

// StoreFPersistentVolumeSource is a volume of store F.
type StoreFPersistentVolumeSource struct {
	// VolumeName is the name of the volume in its namespace.
	VolumeName string `json:"volumeName,omitempty" protobuf:"1" schema:"required,optional,format=dns-label"`

	// VolumeNamespace is the store's namespace; the pod's by default.
	VolumeNamespace string `json:"volumeNamespace,omitempty" protobuf:"2" schema:"format=dns-label"`

	// FSType is the file system to mount, such as ext4 or xfs; the default depends on
	// the volume.
	FSType string `json:"fsType,omitempty" protobuf:"3"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`

	// SecretRef names the secret with the credentials.
	SecretRef *ObjectReference `json:"secretRef,omitempty" protobuf:"5" schema:"name.required,namespace.required"`
}
