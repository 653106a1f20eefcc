package core

// CloudAElasticBlockStoreVolumeSource is a disk of cloud A, attached to one node
// at a time.
type CloudAElasticBlockStoreVolumeSource struct {
	// VolumeID identifies the volume at its provider.
	VolumeID string `json:"volumeID" protobuf:"1" schema:"required"`

	// FSType is the file system to mount, such as xfs; ext4 by default.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// Partition is the number of the partition to mount; 0 or unset: the whole
	// volume.
	Partition int32 `json:"partition,omitempty" protobuf:"3" schema:"range=0|255"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`
}

// CloudBDiskVolumeSource is a disk of cloud B.
type CloudBDiskVolumeSource struct {
	// DiskName is the disk's name.
	DiskName string `json:"diskName" protobuf:"1" schema:"required"`

	// DataDiskURI is where the disk is stored.
	DiskURI string `json:"diskURI" protobuf:"2" schema:"required"`

	// CachingMode is None, ReadOnly or ReadWrite.
	CachingMode *string `json:"cachingMode,omitempty" protobuf:"3" schema:"default=ReadWrite,enum=None|ReadOnly|ReadWrite"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType *string `json:"fsType,omitempty" protobuf:"4" schema:"default=ext4"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly *bool `json:"readOnly,omitempty" protobuf:"5" schema:"default=false"`

	// Kind is Shared (the default), Dedicated or Managed.
	Kind *string `json:"kind,omitempty" protobuf:"6" schema:"default=Shared,enum=Dedicated|Managed|Shared"`
}

// CloudBFileVolumeSource is a file share of cloud B.
type CloudBFileVolumeSource struct {
	// SecretName is the secret with the account's name and key.
	SecretName string `json:"secretName" protobuf:"1" schema:"required"`

	// ShareName is the name of the share.
	ShareName string `json:"shareName" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// CloudCPersistentDiskVolumeSource is a disk of cloud C, attached to one node at
// a time unless read-only.
type CloudCPersistentDiskVolumeSource struct {
	// PDName is the name of the disk.
	PDName string `json:"pdName" protobuf:"1"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// Partition is the number of the partition to mount; 0 or unset: the whole
	// volume.
	Partition int32 `json:"partition,omitempty" protobuf:"3"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`
}

// CloudDVolumeSource is a virtual disk of cloud D.
type CloudDVolumeSource struct {
	// VolumePath leads to the disk.
	VolumePath string `json:"volumePath" protobuf:"1" schema:"required"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// StoragePolicyName is the policy's name.
	StoragePolicyName string `json:"storagePolicyName,omitempty" protobuf:"3"`

	// StoragePolicyID is the policy's identifier.
	StoragePolicyID string `json:"storagePolicyID,omitempty" protobuf:"4"`
}

// CloudEPersistentDiskVolumeSource is a disk of cloud E.
type CloudEPersistentDiskVolumeSource struct {
	// PdID identifies the disk.
	PdID string `json:"pdID" protobuf:"1" schema:"required"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`
}

// BlockSvcVolumeSource is a volume of the block service.
type BlockSvcVolumeSource struct {
	BlockSvcVolume `json:",inline"`

	// SecretRef names the secret with the credentials, in the pod's namespace.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"4" schema:"name.required"`
}

// BlockSvcVolume is a volume of the block service, but for its credentials.
type BlockSvcVolume struct {
	// VolumeID identifies the volume at its provider.
	VolumeID string `json:"volumeID" protobuf:"1" schema:"required"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// StoreAfsVolumeSource is a file system of store A.
type StoreAfsVolumeSource struct {
	StoreAfsPath `json:",inline"`

	// SecretRef names the secret with the credentials, in the pod's namespace.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"5"`
}

// StoreAfsPath is a path in a file system of store A, but for its credentials.
type StoreAfsPath struct {
	// Monitors are the addresses of the store's monitors.
	Monitors []string `json:"monitors" protobuf:"1" schema:"required,listType=atomic"`

	// Path in the file system to mount; / by default.
	Path string `json:"path,omitempty" protobuf:"2"`

	// User to log in as; admin by default.
	User string `json:"user,omitempty" protobuf:"3"`

	// SecretFile is the file with the user's key; /etc/ceph/user.secret by
	// default.
	SecretFile string `json:"secretFile,omitempty" protobuf:"4"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"6"`
}

// StoreAblockVolumeSource is a block device of store A.
type StoreAblockVolumeSource struct {
	StoreAblockImage `json:",inline"`

	// SecretRef names the secret with the credentials, in the pod's namespace.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"7"`
}

// StoreAblockImage is a block device of store A, but for its credentials.
type StoreAblockImage struct {
	// Monitors are the addresses of the store's monitors.
	Monitors []string `json:"monitors" protobuf:"1" schema:"required,listType=atomic"`

	// Image is the name of the device.
	Image string `json:"image" protobuf:"2" schema:"required"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"3"`

	// Pool that the device is in; rbd by default.
	Pool string `json:"pool,omitempty" protobuf:"4" schema:"default=rbd"`

	// User to log in as; admin by default.
	User string `json:"user,omitempty" protobuf:"5" schema:"default=admin"`

	// Keyring is the file with the user's key; /etc/ceph/keyring by default.
	Keyring string `json:"keyring,omitempty" protobuf:"6" schema:"default=/etc/ceph/keyring"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"8"`
}

// StoreBfsVolumeSource is a volume of store B.
type StoreBfsVolumeSource struct {
	// EndpointsName names the Endpoints object with the store's addresses.
	EndpointsName string `json:"endpoints" protobuf:"1" schema:"required"`

	// Path is the name of the volume.
	Path string `json:"path" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// StoreCVolumeSource is a volume of store C.
type StoreCVolumeSource struct {
	// VolumeID identifies the volume at its provider.
	VolumeID string `json:"volumeID" protobuf:"1" schema:"required"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// StoreDfsVolumeSource is a volume of store D.
type StoreDfsVolumeSource struct {
	// Registry is the addresses of the registries, as host:port with commas
	// between.
	Registry string `json:"registry" protobuf:"1" schema:"required,reason.required=must be a host:port pair or multiple pairs separated by commas"`

	// Volume is its name.
	Volume string `json:"volume" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// User to access it as; the service's user by default.
	User string `json:"user,omitempty" protobuf:"4"`

	// Group to access it as; none by default.
	Group string `json:"group,omitempty" protobuf:"5"`

	// Tenant that owns it.
	Tenant string `json:"tenant,omitempty" protobuf:"6"`
}

// StoreEVolumeSource is a volume of store E.
type StoreEVolumeSource struct {
	StoreEVolume `json:",inline"`

	// SecretRef names the secret with the credentials, in the pod's namespace.
	SecretRef *LocalObjectReference `json:"secretRef" protobuf:"3" schema:"required"`
}

// StoreEVolume is a volume of store E, but for its credentials.
type StoreEVolume struct {
	// Gateway is the address of the API.
	Gateway string `json:"gateway" protobuf:"1" schema:"required"`

	// System is the name of the storage system.
	System string `json:"system" protobuf:"2" schema:"required"`

	// SSLEnabled talks to the gateway by TLS; false by default.
	SSLEnabled bool `json:"sslEnabled,omitempty" protobuf:"4"`

	// ProtectionDomain that the volume is in.
	ProtectionDomain string `json:"protectionDomain,omitempty" protobuf:"5"`

	// StoragePool in that domain.
	StoragePool string `json:"storagePool,omitempty" protobuf:"6"`

	// StorageMode is ThinProvisioned (the default) or ThickProvisioned.
	StorageMode string `json:"storageMode,omitempty" protobuf:"7" schema:"default=ThinProvisioned,enum=ThickProvisioned|ThinProvisioned"`

	// VolumeName is the name of the volume.
	VolumeName string `json:"volumeName,omitempty" protobuf:"8" schema:"required,optional"`

	// FSType is the file system to mount; xfs by default.
	FSType string `json:"fsType,omitempty" protobuf:"9" schema:"default=xfs"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"10"`
}

// StoreFVolumeSource is a volume of store F.
type StoreFVolumeSource struct {
	StoreFVolume `json:",inline"`

	// SecretRef names the secret with the credentials, in the pod's namespace.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"5" schema:"name.required"`
}

// StoreFVolume is a volume of store F, but for its credentials.
type StoreFVolume struct {
	// VolumeName is the name of the volume in its namespace.
	VolumeName string `json:"volumeName,omitempty" protobuf:"1" schema:"required,optional,format=dns-label"`

	// VolumeNamespace is the store's namespace; the pod's by default.
	VolumeNamespace string `json:"volumeNamespace,omitempty" protobuf:"2" schema:"format=dns-label"`

	// FSType is the file system to mount, such as ext4 or xfs; the default
	// depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"3"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`
}

// StoreGVolumeSource is a dataset of store G; exactly one field is set.
type StoreGVolumeSource struct {
	// DatasetName is the dataset's name.
	DatasetName string `json:"datasetName,omitempty" protobuf:"1"`

	// DatasetUUID is the dataset's identifier.
	DatasetUUID string `json:"datasetUUID,omitempty" protobuf:"2"`
}
