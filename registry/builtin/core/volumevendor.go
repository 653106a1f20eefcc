package core

// CloudAElasticBlockStoreVolumeSource is a disk of cloud A, which can be attached to a single node at a
// time.
type CloudAElasticBlockStoreVolumeSource struct {
	// VolumeID identifies the volume at the provider.
	VolumeID string `json:"volumeID" protobuf:"1" schema:"required"`

	// FSType is the file system, such as xfs; default ext4.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// Partition is the number of the partition; 0 means the whole volume.
	Partition int32 `json:"partition,omitempty" protobuf:"3" schema:"range=0|255"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`
}

// CloudBDiskVolumeSource is a disk of cloud B.
type CloudBDiskVolumeSource struct {
	// DiskName is the name of the disk.
	DiskName string `json:"diskName" protobuf:"1" schema:"required"`

	// DiskURI is the URI of the disk.
	DiskURI string `json:"diskURI" protobuf:"2" schema:"required"`

	// CachingMode is None, ReadOnly or ReadWrite.
	CachingMode *string `json:"cachingMode,omitempty" protobuf:"3" schema:"default=ReadWrite,enum=None|ReadOnly|ReadWrite"`

	// FSType is the file system, such as ext4 or xfs; default ext4.
	FSType *string `json:"fsType,omitempty" protobuf:"4" schema:"default=ext4"`

	// ReadOnly mounts the volume read-only.
	ReadOnly *bool `json:"readOnly,omitempty" protobuf:"5" schema:"default=false"`

	// Kind is Shared (the default), Dedicated or Managed.
	Kind *string `json:"kind,omitempty" protobuf:"6" schema:"default=Shared,enum=Dedicated|Managed|Shared"`
}

// CloudBFileVolumeSource is a file share of cloud B.
type CloudBFileVolumeSource struct {
	// SecretName is the Secret with the name and the key of the account.
	SecretName string `json:"secretName" protobuf:"1" schema:"required"`

	// ShareName is the name of the share.
	ShareName string `json:"shareName" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// CloudCPersistentDiskVolumeSource is a disk of cloud C, which can be attached to a single node at a
// time unless it is read-only.
type CloudCPersistentDiskVolumeSource struct {
	// PDName is the name of the disk.
	PDName string `json:"pdName" protobuf:"1"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// Partition is the number of the partition; 0 means the whole volume.
	Partition int32 `json:"partition,omitempty" protobuf:"3"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`
}

// CloudDVolumeSource is a virtual disk of cloud D.
type CloudDVolumeSource struct {
	// VolumePath is the path of the disk.
	VolumePath string `json:"volumePath" protobuf:"1" schema:"required"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// StoragePolicyName is the name of the storage policy.
	StoragePolicyName string `json:"storagePolicyName,omitempty" protobuf:"3"`

	// StoragePolicyID is the ID of the storage policy.
	StoragePolicyID string `json:"storagePolicyID,omitempty" protobuf:"4"`
}

// CloudEPersistentDiskVolumeSource is a disk of cloud E.
type CloudEPersistentDiskVolumeSource struct {
	// PdID identifies the disk.
	PdID string `json:"pdID" protobuf:"1" schema:"required"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`
}

// BlockSvcVolumeSource is a volume of the block service.
type BlockSvcVolumeSource struct {
	BlockSvcVolume `json:",inline"`

	// SecretRef is the Secret with the credentials in the namespace of the pod.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"4" schema:"name.required"`
}

// BlockSvcVolume describes a volume of the block service without its credentials.
type BlockSvcVolume struct {
	// VolumeID identifies the volume at the provider.
	VolumeID string `json:"volumeID" protobuf:"1" schema:"required"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// StoreAfsVolumeSource is a file system of store A.
type StoreAfsVolumeSource struct {
	StoreAfsPath `json:",inline"`

	// SecretRef is the Secret with the credentials in the namespace of the pod.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"5"`
}

// StoreAfsPath describes a path in a file system of store A without its credentials.
type StoreAfsPath struct {
	// Monitors are the addresses of the monitors.
	Monitors []string `json:"monitors" protobuf:"1" schema:"required,listType=atomic"`

	// Path in the file system; default /.
	Path string `json:"path,omitempty" protobuf:"2"`

	// User for the login; default admin.
	User string `json:"user,omitempty" protobuf:"3"`

	// SecretFile is the file with the key of the user; default /etc/ceph/user.secret.
	SecretFile string `json:"secretFile,omitempty" protobuf:"4"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"6"`
}

// StoreAblockVolumeSource is a block device of store A.
type StoreAblockVolumeSource struct {
	StoreAblockImage `json:",inline"`

	// SecretRef is the Secret with the credentials in the namespace of the pod.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"7"`
}

// StoreAblockImage describes a block device of store A without its credentials.
type StoreAblockImage struct {
	// Monitors are the addresses of the monitors.
	Monitors []string `json:"monitors" protobuf:"1" schema:"required,listType=atomic"`

	// Image is the name of the device.
	Image string `json:"image" protobuf:"2" schema:"required"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"3"`

	// Pool of the device; default rbd.
	Pool string `json:"pool,omitempty" protobuf:"4" schema:"default=rbd"`

	// User for the login; default admin.
	User string `json:"user,omitempty" protobuf:"5" schema:"default=admin"`

	// Keyring is the file with the key of the user; default /etc/ceph/keyring.
	Keyring string `json:"keyring,omitempty" protobuf:"6" schema:"default=/etc/ceph/keyring"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"8"`
}

// StoreBfsVolumeSource is a volume of store B.
type StoreBfsVolumeSource struct {
	// EndpointsName is the name of the Endpoints object with the addresses of the store.
	EndpointsName string `json:"endpoints" protobuf:"1" schema:"required"`

	// Path is the name of the volume.
	Path string `json:"path" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// StoreCVolumeSource is a volume of store C.
type StoreCVolumeSource struct {
	// VolumeID identifies the volume at the provider.
	VolumeID string `json:"volumeID" protobuf:"1" schema:"required"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"2"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`
}

// StoreDfsVolumeSource is a volume of store D.
type StoreDfsVolumeSource struct {
	// Registry lists the addresses of the registries as host:port, separated by commas.
	Registry string `json:"registry" protobuf:"1" schema:"required,reason.required=must be a host:port pair or multiple pairs separated by commas"`

	// Volume is the name of the volume.
	Volume string `json:"volume" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// User for the access; default the user of the service.
	User string `json:"user,omitempty" protobuf:"4"`

	// Group for the access; default none.
	Group string `json:"group,omitempty" protobuf:"5"`

	// Tenant that owns the volume.
	Tenant string `json:"tenant,omitempty" protobuf:"6"`
}

// StoreEVolumeSource is a volume of store E.
type StoreEVolumeSource struct {
	StoreEVolume `json:",inline"`

	// SecretRef is the Secret with the credentials in the namespace of the pod.
	SecretRef *LocalObjectReference `json:"secretRef" protobuf:"3" schema:"required"`
}

// StoreEVolume describes a volume of store E without its credentials.
type StoreEVolume struct {
	// Gateway is the address of the API.
	Gateway string `json:"gateway" protobuf:"1" schema:"required"`

	// System is the name of the storage system.
	System string `json:"system" protobuf:"2" schema:"required"`

	// SSLEnabled enables TLS for the gateway; default false.
	SSLEnabled bool `json:"sslEnabled,omitempty" protobuf:"4"`

	// ProtectionDomain of the volume.
	ProtectionDomain string `json:"protectionDomain,omitempty" protobuf:"5"`

	// StoragePool of the volume in the protection domain.
	StoragePool string `json:"storagePool,omitempty" protobuf:"6"`

	// StorageMode is ThinProvisioned (the default) or ThickProvisioned.
	StorageMode string `json:"storageMode,omitempty" protobuf:"7" schema:"default=ThinProvisioned,enum=ThickProvisioned|ThinProvisioned"`

	// VolumeName is the name of the volume.
	VolumeName string `json:"volumeName,omitempty" protobuf:"8" schema:"required,optional"`

	// FSType is the file system; default xfs.
	FSType string `json:"fsType,omitempty" protobuf:"9" schema:"default=xfs"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"10"`
}

// StoreFVolumeSource is a volume of store F.
type StoreFVolumeSource struct {
	StoreFVolume `json:",inline"`

	// SecretRef is the Secret with the credentials in the namespace of the pod.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty" protobuf:"5" schema:"name.required"`
}

// StoreFVolume describes a volume of store F without its credentials.
type StoreFVolume struct {
	// VolumeName is the name of the volume, unique in its namespace.
	VolumeName string `json:"volumeName,omitempty" protobuf:"1" schema:"required,optional,format=dns-label"`

	// VolumeNamespace is the namespace at the store; default the namespace of the pod.
	VolumeNamespace string `json:"volumeNamespace,omitempty" protobuf:"2" schema:"format=dns-label"`

	// FSType is the file system, such as ext4 or xfs; the default depends on the volume.
	FSType string `json:"fsType,omitempty" protobuf:"3"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"4"`
}

// StoreGVolumeSource is a dataset of store G. Exactly 1 field must be set.
type StoreGVolumeSource struct {
	// DatasetName is the name of the dataset.
	DatasetName string `json:"datasetName,omitempty" protobuf:"1"`

	// DatasetUUID is the UUID of the dataset.
	DatasetUUID string `json:"datasetUUID,omitempty" protobuf:"2"`
}
