package core

// PersistentVolumeSource is the source of a PersistentVolume. Exactly 1 field must be set.
type PersistentVolumeSource struct {
	// CloudCPersistentDisk is a disk of cloud C.
	CloudCPersistentDisk *CloudCPersistentDiskVolumeSource `json:"cloudCPersistentDisk,omitempty" protobuf:"1"`

	// CloudAElasticBlockStore is a disk of cloud A.
	CloudAElasticBlockStore *CloudAElasticBlockStoreVolumeSource `json:"cloudAElasticBlockStore,omitempty" protobuf:"2"`

	// HostPath is a file or directory of the node, for single-node tests only.
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

	// FlexVolume is a volume of a FlexVolume driver on the node. Deprecated: use csi.
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

	// Local is a disk or directory of a node. It requires nodeAffinity.
	Local *LocalVolumeSource `json:"local,omitempty" protobuf:"20"`

	// StoreFVolume is a volume of store F.
	StoreFVolume *StoreFPersistentVolumeSource `json:"storeFVolume,omitempty" protobuf:"21"`

	// CSI is a volume of a CSI driver.
	CSI *CSIPersistentVolumeSource `json:"csi,omitempty" protobuf:"22"`
}

// SecretReference identifies a Secret.
type SecretReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the Secret.
	Name string `json:"name,omitempty" protobuf:"1"`

	// Namespace of the Secret.
	Namespace string `json:"namespace,omitempty" protobuf:"2"`
}

// LocalVolumeSource is a disk or directory of a node.
type LocalVolumeSource struct {
	// Path of the directory or block device on the node. It must not contain "..".
	Path string `json:"path" protobuf:"1" schema:"required,format=inner-path"`

	// FSType is the file system of a block device, such as ext4 or xfs. Unset means that it is
	// detected.
	FSType *string `json:"fsType,omitempty" protobuf:"2"`
}

// ISCSIPersistentVolumeSource is a disk of an iSCSI target.
type ISCSIPersistentVolumeSource struct {
	ISCSIDisk `json:",inline"`

	// SecretRef is the Secret with the credentials.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"10" schema:"name.required"`
}

// FlexPersistentVolumeSource is a volume of a FlexVolume driver.
type FlexPersistentVolumeSource struct {
	FlexDriver `json:",inline"`

	// SecretRef is the Secret with the credentials.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"3"`
}

// CSIPersistentVolumeSource is a volume of a CSI driver.
type CSIPersistentVolumeSource struct {
	// Driver is the name of the driver.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`

	// VolumeHandle is the unique ID of the volume at the driver.
	VolumeHandle string `json:"volumeHandle" protobuf:"2" schema:"required"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// FSType is the file system, such as ext4 or xfs; the default is up to the driver.
	FSType string `json:"fsType,omitempty" protobuf:"4"`

	// VolumeAttributes are passed to the driver.
	VolumeAttributes map[string]string `json:"volumeAttributes,omitempty" protobuf:"5"`

	// ControllerPublishSecretRef is the Secret for attaching and detaching the volume.
	ControllerPublishSecretRef *SecretReference `json:"controllerPublishSecretRef,omitempty" protobuf:"6" schema:"name.required,namespace.required"`

	// NodeStageSecretRef is the Secret for staging the volume on a node.
	NodeStageSecretRef *SecretReference `json:"nodeStageSecretRef,omitempty" protobuf:"7"`

	// NodePublishSecretRef is the Secret for mounting the volume for a pod.
	NodePublishSecretRef *SecretReference `json:"nodePublishSecretRef,omitempty" protobuf:"8" schema:"name.required,namespace.required"`

	// ControllerExpandSecretRef is the Secret for expanding the volume. It can be added later.
	ControllerExpandSecretRef *SecretReference `json:"controllerExpandSecretRef,omitempty" protobuf:"9" schema:"name.required,namespace.required,gate=ExpandCSIVolumes"`

	// NodeExpandSecretRef is the Secret for expanding the file system on a node.
	NodeExpandSecretRef *SecretReference `json:"nodeExpandSecretRef,omitempty" protobuf:"10" schema:"name.required,namespace.required"`
}
