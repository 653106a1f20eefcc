package core

// Volume is a directory that containers can mount, and where it comes from.
type Volume struct {
	// Name of the volume, a DNS label, unique in the pod.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`

	// VolumeSource is where the volume comes from; exactly one is set.
	VolumeSource `json:",inline" protobuf:"2"`
}

// VolumeSource is where a volume comes from. Exactly one field is set.
type VolumeSource struct {
	// HostPath is a file or directory of the node.
	HostPath *HostPathVolumeSource `json:"hostPath,omitempty" protobuf:"1"`

	// EmptyDir is a directory that is empty at first and goes with the pod.
	EmptyDir *EmptyDirVolumeSource `json:"emptyDir,omitempty" protobuf:"2"`

	// CloudCPersistentDisk is a disk of cloud C.
	CloudCPersistentDisk *CloudCPersistentDiskVolumeSource `json:"cloudCPersistentDisk,omitempty" protobuf:"3"`

	// CloudAElasticBlockStore is a disk of cloud A.
	CloudAElasticBlockStore *CloudAElasticBlockStoreVolumeSource `json:"cloudAElasticBlockStore,omitempty" protobuf:"4"`

	// GitRepo is a checkout of a repository. Deprecated: clone in an init
	// container instead.
	GitRepo *GitRepoVolumeSource `json:"gitRepo,omitempty" protobuf:"5"`

	// Secret is a directory with the entries of a secret.
	Secret *SecretVolumeSource `json:"secret,omitempty" protobuf:"6"`

	// NFS is a directory of an NFS server.
	NFS *NFSVolumeSource `json:"nfs,omitempty" protobuf:"7"`

	// ISCSI is a disk of an iSCSI target.
	ISCSI *ISCSIVolumeSource `json:"iscsi,omitempty" protobuf:"8"`

	// StoreBfs is a volume of store B.
	StoreBfs *StoreBfsVolumeSource `json:"storeBfs,omitempty" protobuf:"9"`

	// PersistentVolumeClaim is the volume that a claim is bound to.
	PersistentVolumeClaim *PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty" protobuf:"10"`

	// StoreAblock is a block device of store A.
	StoreAblock *StoreAblockVolumeSource `json:"storeAblock,omitempty" protobuf:"11"`

	// FlexVolume is mounted by a driver that is a program on the node.
	// Deprecated: use csi.
	FlexVolume *FlexVolumeSource `json:"flexVolume,omitempty" protobuf:"12"`

	// BlockSvcVolume is a volume of the block service.
	BlockSvcVolume *BlockSvcVolumeSource `json:"blockSvcVolume,omitempty" protobuf:"13"`

	// StoreAfs is a file system of store A.
	StoreAfs *StoreAfsVolumeSource `json:"storeAfs,omitempty" protobuf:"14"`

	// StoreGVolume is a dataset of store G.
	StoreGVolume *StoreGVolumeSource `json:"storeGVolume,omitempty" protobuf:"15"`

	// DownwardAPI is files with fields of the pod.
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

	// Projected joins several sources in one directory.
	Projected *ProjectedVolumeSource `json:"projected,omitempty" protobuf:"26"`

	// StoreCVolume is a volume of store C.
	StoreCVolume *StoreCVolumeSource `json:"storeCVolume,omitempty" protobuf:"24"`

	// StoreEVolume is a volume of store E.
	StoreEVolume *StoreEVolumeSource `json:"storeEVolume,omitempty" protobuf:"25"`

	// StoreFVolume is a volume of store F.
	StoreFVolume *StoreFVolumeSource `json:"storeFVolume,omitempty" protobuf:"27"`

	// CSI is a volume that a CSI driver makes for this pod alone.
	CSI *CSIVolumeSource `json:"csi,omitempty" protobuf:"28"`

	// Ephemeral is a volume that a claim made for this pod gives, and that goes
	// with it.
	Ephemeral *EphemeralVolumeSource `json:"ephemeral,omitempty" protobuf:"29"`

	// Image is the content of an OCI image or artifact.
	Image *ImageVolumeSource `json:"image,omitempty" protobuf:"30"`
}
