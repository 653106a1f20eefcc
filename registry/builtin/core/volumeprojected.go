package core

import "orch.io/controlplane/api/meta"

// ProjectedVolumeSource joins several sources in one directory.
type ProjectedVolumeSource struct {
	// Sources that are joined; their paths must differ.
	Sources []VolumeProjection `json:"sources" protobuf:"1" schema:"optional,listType=atomic"`

	// DefaultMode is the permission of files that say nothing else, 0 to 511
	// (octal 0777); 0644 by default.
	DefaultMode *int32 `json:"defaultMode,omitempty" protobuf:"2" schema:"default=420,range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// DefaultUser is the id of the user whom files belong to that say nothing else.
	DefaultUser *int64 `json:"defaultUser,omitempty" protobuf:"3" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// VolumeProjection is one source of a projected volume. Exactly one field is
// set.
type VolumeProjection struct {
	// Secret gives entries of a secret.
	Secret *SecretProjection `json:"secret,omitempty" protobuf:"1"`

	// DownwardAPI gives fields of the pod.
	DownwardAPI *DownwardAPIProjection `json:"downwardAPI,omitempty" protobuf:"2"`

	// ConfigMap gives entries of a ConfigMap.
	ConfigMap *ConfigMapProjection `json:"configMap,omitempty" protobuf:"3"`

	// ServiceAccountToken gives a token of the pod's service account.
	ServiceAccountToken *ServiceAccountTokenProjection `json:"serviceAccountToken,omitempty" protobuf:"4"`

	// ClusterTrustBundle gives trust anchors.
	ClusterTrustBundle *ClusterTrustBundleProjection `json:"clusterTrustBundle,omitempty" protobuf:"5"`

	// PodCertificate gives a key and a certificate made for the pod.
	PodCertificate *PodCertificateProjection `json:"podCertificate,omitempty" protobuf:"6"`
}

// SecretProjection gives entries of a secret.
type SecretProjection struct {
	// LocalObjectReference names it.
	LocalObjectReference `json:",inline" protobuf:"1" schema:"name.required,name.optional"`

	// Items choose entries and say where they go; unset: every key becomes a
	// file of its name.
	Items []KeyToPath `json:"items,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"4"`
}

// ConfigMapProjection gives entries of a ConfigMap.
type ConfigMapProjection struct {
	// LocalObjectReference names it.
	LocalObjectReference `json:",inline" protobuf:"1" schema:"name.required,name.optional"`

	// Items choose entries and say where they go; unset: every key becomes a
	// file of its name.
	Items []KeyToPath `json:"items,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"4"`
}

// DownwardAPIProjection gives fields of the pod.
type DownwardAPIProjection struct {
	// Items are the files.
	Items []DownwardAPIVolumeFile `json:"items,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// ServiceAccountTokenProjection gives a token that is renewed before it ends.
type ServiceAccountTokenProjection struct {
	// Audience that the token is for; the API server by default.
	Audience string `json:"audience,omitempty" protobuf:"1"`

	// ExpirationSeconds is how long a token lasts: 3600 by default, at least
	// 600.
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty" protobuf:"2" schema:"default=3600,min=600,max=4294967296,reason.min=may not specify a duration less than 10 minutes,reason.max=may not specify a duration larger than 2^32 seconds"`

	// Path of the file, relative to the volume.
	Path string `json:"path" protobuf:"3"`

	// User is the id of the user whom the file belongs to; the volume's default by
	// default.
	User *int64 `json:"user,omitempty" protobuf:"4" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// ClusterTrustBundleProjection gives trust anchors as a PEM file.
type ClusterTrustBundleProjection struct {
	// Name of one bundle; not together with signerName.
	Name *string `json:"name,omitempty" protobuf:"1"`

	// SignerName chooses the bundles of a signer.
	SignerName *string `json:"signerName,omitempty" protobuf:"2" schema:"format=signer-name"`

	// LabelSelector limits them by label.
	LabelSelector *meta.Selector `json:"labelSelector,omitempty" protobuf:"3" schema:"format=label-selector"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"5"`

	// Path of the file, relative to the volume.
	Path string `json:"path" protobuf:"4" schema:"required,format=file-path"`

	// User is the id of the user whom the file belongs to; the volume's default by
	// default.
	User *int64 `json:"user,omitempty" protobuf:"6" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// PodCertificateProjection gives a key and a certificate made for the pod.
type PodCertificateProjection struct {
	// SignerName names who signs.
	SignerName string `json:"signerName,omitempty" protobuf:"1" schema:"required,format=signer-name"`

	// KeyType is the algorithm of the key.
	KeyType string `json:"keyType,omitempty" protobuf:"2" schema:"required"`

	// MaxExpirationSeconds is how long the certificate may be valid at most.
	MaxExpirationSeconds *int32 `json:"maxExpirationSeconds,omitempty" protobuf:"3"`

	// CredentialBundlePath is a file for key and chain together.
	CredentialBundlePath string `json:"credentialBundlePath,omitempty" protobuf:"4"`

	// KeyPath is a file for the key.
	KeyPath string `json:"keyPath,omitempty" protobuf:"5"`

	// CertificateChainPath is a file for the chain.
	CertificateChainPath string `json:"certificateChainPath,omitempty" protobuf:"6"`

	// UserAnnotations are passed on to the signer.
	UserAnnotations map[string]string `json:"userAnnotations,omitempty" protobuf:"7"`

	// User is the id of the user whom the file belongs to; the volume's default by
	// default.
	User *int64 `json:"user,omitempty" protobuf:"8" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}
