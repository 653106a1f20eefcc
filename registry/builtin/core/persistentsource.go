package core

// PersistentVolumeSource is where a volume is. Exactly one field is set.
type PersistentVolumeSource struct {
	// CloudCPersistentDisk is a disk of cloud C.
	CloudCPersistentDisk *CloudCPersistentDiskVolumeSource `json:"cloudCPersistentDisk,omitempty" protobuf:"1"`

	// CloudAElasticBlockStore is a disk of cloud A.
	CloudAElasticBlockStore *CloudAElasticBlockStoreVolumeSource `json:"cloudAElasticBlockStore,omitempty" protobuf:"2"`

	// HostPath is a directory of the node. It is for trying things out on a single node.
	HostPath *HostPathVolumeSource `json:"hostPath,omitempty" protobuf:"3"`

	// StoreBfs is a volume of store B.
	StoreBfs *StoreBfsPersistentVolumeSource `json:"storeBfs,omitempty" protobuf:"4"`

	// NFS is a directory of an NFS server.
	NFS *NFSVolumeSource `json:"nfs,omitempty" protobuf:"5"`

	// StoreAblock is a block device of store A.
	StoreAblock *StoreAblockPersistentVolumeSource `json:"storeAblock,omitempty" protobuf:"6"`

	// ISCSI is a disk of an iSCSI target.
	ISCSI *ISCSIPersistentVolumeSource `json:"iscsi,omitempty" protobuf:"7"`

	// BlockSvcVolume is a volume of the block service.
	BlockSvcVolume *BlockSvcPersistentVolumeSource `json:"blockSvcVolume,omitempty" protobuf:"8"`

	// StoreAfs is a file system of store A.
	StoreAfs *StoreAfsPersistentVolumeSource `json:"storeAfs,omitempty" protobuf:"9"`

	// FC is a Fibre Channel disk.
	FC *FCVolumeSource `json:"fc,omitempty" protobuf:"10"`

	// StoreGVolume is a dataset of store G.
	StoreGVolume *StoreGVolumeSource `json:"storeGVolume,omitempty" protobuf:"11"`

	// FlexVolume is mounted by a driver that is a program on the node. Deprecated: use
	// csi.
	FlexVolume *FlexPersistentVolumeSource `json:"flexVolume,omitempty" protobuf:"12"`

	// CloudBFile is a file share of cloud B.
	CloudBFile *CloudBFilePersistentVolumeSource `json:"cloudBFile,omitempty" protobuf:"13"`

	// CloudDVolume is a virtual disk of cloud D.
	CloudDVolume *CloudDVolumeSource `json:"cloudDVolume,omitempty" protobuf:"14"`

	// StoreDfs is a volume of store D.
	StoreDfs *StoreDfsVolumeSource `json:"storeDfs,omitempty" protobuf:"15"`

	// CloudBDisk is a disk of cloud B.
	CloudBDisk *CloudBDiskVolumeSource `json:"cloudBDisk,omitempty" protobuf:"16"`

	// CloudEPersistentDisk is a disk of cloud E.
	CloudEPersistentDisk *CloudEPersistentDiskVolumeSource `json:"cloudEPersistentDisk,omitempty" protobuf:"17"`

	// StoreCVolume is a volume of store C.
	StoreCVolume *StoreCVolumeSource `json:"storeCVolume,omitempty" protobuf:"18"`

	// StoreEVolume is a volume of store E.
	StoreEVolume *StoreEPersistentVolumeSource `json:"storeEVolume,omitempty" protobuf:"19"`

	// Local is a disk or directory of one node, which nodeAffinity names.
	Local *LocalVolumeSource `json:"local,omitempty" protobuf:"20"`

	// StoreFVolume is a volume of store F.
	StoreFVolume *StoreFPersistentVolumeSource `json:"storeFVolume,omitempty" protobuf:"21"`

	// CSI is a volume that a CSI driver looks after.
	CSI *CSIPersistentVolumeSource `json:"csi,omitempty" protobuf:"22"`
}

// SecretReference points at a secret in any namespace.
type SecretReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the secret.
	Name string `json:"name,omitempty" protobuf:"1"`

	// Namespace that it is in.
	Namespace string `json:"namespace,omitempty" protobuf:"2"`
}

// LocalVolumeSource is a disk or directory of one node.
type LocalVolumeSource struct {
	// Path on the node of the directory or block device; it may not go up by "..".
	Path string `json:"path" protobuf:"1" schema:"required,format=inner-path"`

	// FSType is the file system of a block device, such as ext4 or xfs; the default is
	// what suits the device.
	FSType *string `json:"fsType,omitempty" protobuf:"2"`
}

// ISCSIPersistentVolumeSource is a disk of an iSCSI target.
type ISCSIPersistentVolumeSource struct {
	ISCSIDisk `json:",inline"`

	// SecretRef names the secret with the credentials.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"10" schema:"name.required"`
}

// FlexPersistentVolumeSource is mounted by a driver that is a program on the node.
type FlexPersistentVolumeSource struct {
	FlexDriver `json:",inline"`

	// SecretRef names the secret with the credentials.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"3"`
}

// CSIPersistentVolumeSource is a volume that a CSI driver looks after.
type CSIPersistentVolumeSource struct {
	// Driver is the name of the driver.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`

	// VolumeHandle is the driver's name of the volume, which no other one has.
	VolumeHandle string `json:"volumeHandle" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// FSType is the file system to mount, such as ext4 or xfs; the default is the
	// driver's.
	FSType string `json:"fsType,omitempty" protobuf:"4"`

	// VolumeAttributes are passed to the driver.
	VolumeAttributes map[string]string `json:"volumeAttributes,omitempty" protobuf:"5"`

	// ControllerPublishSecretRef is the secret for attaching and detaching.
	ControllerPublishSecretRef *SecretReference `json:"controllerPublishSecretRef,omitempty" protobuf:"6" schema:"name.required,namespace.required"`

	// NodeStageSecretRef is the secret for making the volume ready on a node.
	NodeStageSecretRef *SecretReference `json:"nodeStageSecretRef,omitempty" protobuf:"7"`

	// NodePublishSecretRef is the secret for mounting it for a pod.
	NodePublishSecretRef *SecretReference `json:"nodePublishSecretRef,omitempty" protobuf:"8" schema:"name.required,namespace.required"`

	// ControllerExpandSecretRef is the secret for enlarging it. It can be added later.
	ControllerExpandSecretRef *SecretReference `json:"controllerExpandSecretRef,omitempty" protobuf:"9" schema:"name.required,namespace.required,gate=ExpandCSIVolumes"`

	// NodeExpandSecretRef is the secret for enlarging its file system on a node.
	NodeExpandSecretRef *SecretReference `json:"nodeExpandSecretRef,omitempty" protobuf:"10" schema:"name.required,namespace.required"`
}
