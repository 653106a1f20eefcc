package core

// Volume is a volume that the containers of a pod can mount.
type Volume struct {
	// Name of the volume, a DNS label, unique in the pod.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`

	// VolumeSource is the source of the volume. Exactly 1 field must be set.
	VolumeSource `json:",inline" protobuf:"2"`
}

// VolumeSource is the source of a volume. Exactly 1 field must be set.
type VolumeSource struct {
	// HostPath is a file or directory of the node.
	HostPath *HostPathVolumeSource `json:"hostPath,omitempty" protobuf:"1"`

	// EmptyDir is an initially empty directory that is deleted with the pod.
	EmptyDir *EmptyDirVolumeSource `json:"emptyDir,omitempty" protobuf:"2"`

	// CloudCPersistentDisk is a disk of cloud C.
	CloudCPersistentDisk *CloudCPersistentDiskVolumeSource `json:"cloudCPersistentDisk,omitempty" protobuf:"3"`

	// CloudAElasticBlockStore is a disk of cloud A.
	CloudAElasticBlockStore *CloudAElasticBlockStoreVolumeSource `json:"cloudAElasticBlockStore,omitempty" protobuf:"4"`

	// GitRepo is a checkout of a git repository. Deprecated: clone in an init container instead.
	GitRepo *GitRepoVolumeSource `json:"gitRepo,omitempty" protobuf:"5"`

	// Secret is a directory with the entries of a Secret.
	Secret *SecretVolumeSource `json:"secret,omitempty" protobuf:"6"`

	// NFS is a directory of an NFS server.
	NFS *NFSVolumeSource `json:"nfs,omitempty" protobuf:"7"`

	// ISCSI is a disk of an iSCSI target.
	ISCSI *ISCSIVolumeSource `json:"iscsi,omitempty" protobuf:"8"`

	// StoreBfs is a volume of store B.
	StoreBfs *StoreBfsVolumeSource `json:"storeBfs,omitempty" protobuf:"9"`

	// PersistentVolumeClaim is the volume of a PersistentVolumeClaim.
	PersistentVolumeClaim *PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty" protobuf:"10"`

	// StoreAblock is a block device of store A.
	StoreAblock *StoreAblockVolumeSource `json:"storeAblock,omitempty" protobuf:"11"`

	// FlexVolume is a volume of a FlexVolume driver on the node. Deprecated: use csi.
	FlexVolume *FlexVolumeSource `json:"flexVolume,omitempty" protobuf:"12"`

	// BlockSvcVolume is a volume of the block service.
	BlockSvcVolume *BlockSvcVolumeSource `json:"blockSvcVolume,omitempty" protobuf:"13"`

	// StoreAfs is a file system of store A.
	StoreAfs *StoreAfsVolumeSource `json:"storeAfs,omitempty" protobuf:"14"`

	// StoreGVolume is a dataset of store G.
	StoreGVolume *StoreGVolumeSource `json:"storeGVolume,omitempty" protobuf:"15"`

	// DownwardAPI is a directory with fields of the pod.
	DownwardAPI *DownwardAPIVolumeSource `json:"downwardAPI,omitempty" protobuf:"16"`

	// FC is a Fibre Channel disk.
	FC *FCVolumeSource `json:"fc,omitempty" protobuf:"17"`

	// CloudBFile is a file share of cloud B.
	CloudBFile *CloudBFileVolumeSource `json:"cloudBFile,omitempty" protobuf:"18"`

	// ConfigMap is a directory with the entries of a ConfigMap.
	ConfigMap *ConfigMapVolumeSource `json:"configMap,omitempty" protobuf:"19"`

	// CloudDVolume is a virtual disk of cloud D.
	CloudDVolume *CloudDVolumeSource `json:"cloudDVolume,omitempty" protobuf:"20"`

	// StoreDfs is a volume of store D.
	StoreDfs *StoreDfsVolumeSource `json:"storeDfs,omitempty" protobuf:"21"`

	// CloudBDisk is a disk of cloud B.
	CloudBDisk *CloudBDiskVolumeSource `json:"cloudBDisk,omitempty" protobuf:"22"`

	// CloudEPersistentDisk is a disk of cloud E.
	CloudEPersistentDisk *CloudEPersistentDiskVolumeSource `json:"cloudEPersistentDisk,omitempty" protobuf:"23"`

	// Projected combines several sources in a directory.
	Projected *ProjectedVolumeSource `json:"projected,omitempty" protobuf:"26"`

	// StoreCVolume is a volume of store C.
	StoreCVolume *StoreCVolumeSource `json:"storeCVolume,omitempty" protobuf:"24"`

	// StoreEVolume is a volume of store E.
	StoreEVolume *StoreEVolumeSource `json:"storeEVolume,omitempty" protobuf:"25"`

	// StoreFVolume is a volume of store F.
	StoreFVolume *StoreFVolumeSource `json:"storeFVolume,omitempty" protobuf:"27"`

	// CSI is an inline volume of a CSI driver.
	CSI *CSIVolumeSource `json:"csi,omitempty" protobuf:"28"`

	// Ephemeral is the volume of a claim that is created for the pod and deleted with it.
	Ephemeral *EphemeralVolumeSource `json:"ephemeral,omitempty" protobuf:"29"`

	// Image is the content of an OCI image or artifact, read-only.
	Image *ImageVolumeSource `json:"image,omitempty" protobuf:"30"`
}
