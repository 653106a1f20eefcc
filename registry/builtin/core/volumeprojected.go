package core

import "orch.io/controlplane/api/meta"

// ProjectedVolumeSource combines several sources in a directory.
type ProjectedVolumeSource struct {
	// Sources with distinct paths.
	Sources []VolumeProjection `json:"sources" protobuf:"1" schema:"optional,listType=atomic"`

	// DefaultMode is the default permission of files: 0 to 511 (octal 0777), default 0644.
	DefaultMode *int32 `json:"defaultMode,omitempty" protobuf:"2" schema:"default=420,range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// DefaultUser is the default user ID of the owner of files.
	DefaultUser *int64 `json:"defaultUser,omitempty" protobuf:"3" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// VolumeProjection is a source of a projected volume. Exactly 1 field must be set.
type VolumeProjection struct {
	// Secret provides entries of a Secret.
	Secret *SecretProjection `json:"secret,omitempty" protobuf:"1"`

	// DownwardAPI provides fields of the pod.
	DownwardAPI *DownwardAPIProjection `json:"downwardAPI,omitempty" protobuf:"2"`

	// ConfigMap provides entries of a ConfigMap.
	ConfigMap *ConfigMapProjection `json:"configMap,omitempty" protobuf:"3"`

	// ServiceAccountToken provides a token of the pod's service account.
	ServiceAccountToken *ServiceAccountTokenProjection `json:"serviceAccountToken,omitempty" protobuf:"4"`

	// ClusterTrustBundle provides trust anchors.
	ClusterTrustBundle *ClusterTrustBundleProjection `json:"clusterTrustBundle,omitempty" protobuf:"5"`

	// PodCertificate provides a key and a certificate for the pod.
	PodCertificate *PodCertificateProjection `json:"podCertificate,omitempty" protobuf:"6"`
}

// SecretProjection provides entries of a Secret.
type SecretProjection struct {
	// LocalObjectReference is the name of the Secret.
	LocalObjectReference `json:",inline" protobuf:"1" schema:"name.required,name.optional"`

	// Items select entries and their paths. Unset means that each key is a file.
	Items []KeyToPath `json:"items,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Optional allows the pod to start if the Secret or a key does not exist.
	Optional *bool `json:"optional,omitempty" protobuf:"4"`
}

// ConfigMapProjection provides entries of a ConfigMap.
type ConfigMapProjection struct {
	// LocalObjectReference is the name of the ConfigMap.
	LocalObjectReference `json:",inline" protobuf:"1" schema:"name.required,name.optional"`

	// Items select entries and their paths. Unset means that each key is a file.
	Items []KeyToPath `json:"items,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Optional allows the pod to start if the ConfigMap or a key does not exist.
	Optional *bool `json:"optional,omitempty" protobuf:"4"`
}

// DownwardAPIProjection provides fields of the pod.
type DownwardAPIProjection struct {
	// Items are the files.
	Items []DownwardAPIVolumeFile `json:"items,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// ServiceAccountTokenProjection provides a token that is renewed before it expires.
type ServiceAccountTokenProjection struct {
	// Audience of the token; default the API server.
	Audience string `json:"audience,omitempty" protobuf:"1"`

	// ExpirationSeconds is the requested lifetime of the token in seconds: at least 600, default 3600.
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty" protobuf:"2" schema:"default=3600,min=600,max=4294967296,reason.min=may not specify a duration less than 10 minutes,reason.max=may not specify a duration larger than 2^32 seconds"`

	// Path of the file, relative to the volume.
	Path string `json:"path" protobuf:"3"`

	// User is the user ID of the owner of the file; default defaultUser.
	User *int64 `json:"user,omitempty" protobuf:"4" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// ClusterTrustBundleProjection provides trust anchors as a PEM file.
type ClusterTrustBundleProjection struct {
	// Name of a bundle. It excludes signerName.
	Name *string `json:"name,omitempty" protobuf:"1"`

	// SignerName selects the bundles of a signer.
	SignerName *string `json:"signerName,omitempty" protobuf:"2" schema:"format=signer-name"`

	// LabelSelector restricts the bundles of a signer by label.
	LabelSelector *meta.LabelSelector `json:"labelSelector,omitempty" protobuf:"3" schema:"format=label-selector"`

	// Optional allows the pod to start if no bundle matches.
	Optional *bool `json:"optional,omitempty" protobuf:"5"`

	// Path of the file, relative to the volume.
	Path string `json:"path" protobuf:"4" schema:"required,format=file-path"`

	// User is the user ID of the owner of the file; default defaultUser.
	User *int64 `json:"user,omitempty" protobuf:"6" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// PodCertificateProjection provides a key and a certificate for the pod. At least one path must be set.
type PodCertificateProjection struct {
	// SignerName is the name of the signer.
	SignerName string `json:"signerName,omitempty" protobuf:"1" schema:"required,format=signer-name"`

	// KeyType is the type of the key: RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519.
	KeyType string `json:"keyType,omitempty" protobuf:"2" schema:"required"`

	// MaxExpirationSeconds is the largest validity in seconds: at least 3600, at most 91 days, or 1 day
	// for Kubernetes signers.
	MaxExpirationSeconds *int32 `json:"maxExpirationSeconds,omitempty" protobuf:"3"`

	// CredentialBundlePath is the path of a file with the key and the certificate chain.
	CredentialBundlePath string `json:"credentialBundlePath,omitempty" protobuf:"4"`

	// KeyPath is the path of a file with the key.
	KeyPath string `json:"keyPath,omitempty" protobuf:"5"`

	// CertificateChainPath is the path of a file with the certificate chain.
	CertificateChainPath string `json:"certificateChainPath,omitempty" protobuf:"6"`

	// UserAnnotations are passed to the signer. Keys need a domain.
	UserAnnotations map[string]string `json:"userAnnotations,omitempty" protobuf:"7"`

	// User is the user ID of the owner of the file; default defaultUser.
	User *int64 `json:"user,omitempty" protobuf:"8" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}
