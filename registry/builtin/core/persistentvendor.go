package core

// BlockSvcPersistentVolumeSource is a volume of the block service.
type BlockSvcPersistentVolumeSource struct {
	BlockSvcVolume `json:",inline"`

	// SecretRef is the Secret with the credentials.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"4" schema:"name.required,namespace.required"`
}

// CloudBFilePersistentVolumeSource is a file share of cloud B.
type CloudBFilePersistentVolumeSource struct {
	CloudBFileVolumeSource `json:",inline"`

	// SecretNamespace is the namespace of the Secret. Unset means the namespace of the pod.
	SecretNamespace *string `json:"secretNamespace" protobuf:"4" schema:"optional"`
}

// StoreAfsPersistentVolumeSource is a file system of store A.
type StoreAfsPersistentVolumeSource struct {
	StoreAfsPath `json:",inline"`

	// SecretRef is the Secret with the key of the user. It takes precedence over the file.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"5"`
}

// StoreAblockPersistentVolumeSource is a block device of store A.
type StoreAblockPersistentVolumeSource struct {
	StoreAblockImage `json:",inline"`

	// SecretRef is the Secret with the key of the user. It takes precedence over the file.
	SecretRef *SecretReference `json:"secretRef,omitempty" protobuf:"7"`
}

// StoreBfsPersistentVolumeSource is a volume of store B.
type StoreBfsPersistentVolumeSource struct {
	StoreBfsVolumeSource `json:",inline"`

	// EndpointsNamespace is the namespace of the Endpoints object. Unset means the namespace of the
	// claim.
	EndpointsNamespace *string `json:"endpointsNamespace,omitempty" protobuf:"4"`
}

// StoreEPersistentVolumeSource is a volume of store E.
type StoreEPersistentVolumeSource struct {
	StoreEVolume `json:",inline"`

	// SecretRef is the Secret with the credentials.
	SecretRef *SecretReference `json:"secretRef" protobuf:"3" schema:"required"`
}

// StoreFPersistentVolumeSource is a volume of store F.
type StoreFPersistentVolumeSource struct {
	StoreFVolume `json:",inline"`

	// SecretRef is the Secret with the credentials.
	SecretRef *ObjectReference `json:"secretRef,omitempty" protobuf:"5" schema:"name.required,namespace.required"`
}
