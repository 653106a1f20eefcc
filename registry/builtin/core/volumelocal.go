package core

import "orch.io/controlplane/api/meta"

// HostPathVolumeSource is a file or directory of the node.
type HostPathVolumeSource struct {
	// Path on the node. It must not contain "..".
	Path string `json:"path" protobuf:"1" schema:"required,format=inner-path"`

	// Type is checked before the mount: empty (no check), DirectoryOrCreate, Directory, FileOrCreate,
	// File, Socket, CharDevice or BlockDevice.
	Type *string `json:"type,omitempty" protobuf:"2" schema:"default=,enum=|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket"`
}

// EmptyDirVolumeSource is an initially empty directory that is deleted with the pod.
type EmptyDirVolumeSource struct {
	// Medium is the storage: empty (the node's default), Memory or HugePages.
	Medium string `json:"medium,omitempty" protobuf:"1"`

	// SizeLimit is the largest size. In memory, the limits of the containers apply, too.
	SizeLimit *meta.Quantity `json:"sizeLimit,omitempty" protobuf:"2"`

	// Mode is the permission of the directory: 0 to 1023 (octal 01777), default 0777.
	Mode *int32 `json:"mode,omitempty" protobuf:"3" schema:"range=0|1023,reason.range=must be a number between 0 and 01777 (octal)\\, both inclusive,gate=EmptyDirVolumeMode"`
}

// GitRepoVolumeSource is a checkout of a git repository.
type GitRepoVolumeSource struct {
	// Repository is the URL of the repository.
	Repository string `json:"repository" protobuf:"1" schema:"required"`

	// Revision is the commit.
	Revision string `json:"revision,omitempty" protobuf:"2"`

	// Directory of the checkout. "." is the volume itself. It must not contain "..".
	Directory string `json:"directory,omitempty" protobuf:"3" schema:"format=relative-path"`
}

// ImageVolumeSource is the content of an OCI image or artifact.
type ImageVolumeSource struct {
	// Reference of the image. Required in pods.
	Reference string `json:"reference,omitempty" protobuf:"1"`

	// PullPolicy is Always, IfNotPresent or Never.
	PullPolicy string `json:"pullPolicy,omitempty" protobuf:"2" schema:"enum=Always|IfNotPresent|Never"`
}

// SecretVolumeSource is a directory with the entries of a Secret.
type SecretVolumeSource struct {
	// SecretName is the name of the Secret in the namespace of the pod.
	SecretName string `json:"secretName,omitempty" protobuf:"1" schema:"required,optional"`

	// Items select entries and their paths. Unset means that each key is a file.
	Items []KeyToPath `json:"items,omitempty" protobuf:"2" schema:"listType=atomic"`

	// DefaultMode is the default permission of files: 0 to 511 (octal 0777), default 0644.
	DefaultMode *int32 `json:"defaultMode,omitempty" protobuf:"3" schema:"default=420,range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// Optional allows the pod to start if the Secret or a key does not exist.
	Optional *bool `json:"optional,omitempty" protobuf:"4"`

	// DefaultUser is the default user ID of the owner of files.
	DefaultUser *int64 `json:"defaultUser,omitempty" protobuf:"5" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// ConfigMapVolumeSource is a directory with the entries of a ConfigMap.
type ConfigMapVolumeSource struct {
	// LocalObjectReference is the name of the ConfigMap.
	LocalObjectReference `json:",inline" protobuf:"1" schema:"name.required,name.optional"`

	// Items select entries and their paths. Unset means that each key is a file.
	Items []KeyToPath `json:"items,omitempty" protobuf:"2" schema:"listType=atomic"`

	// DefaultMode is the default permission of files: 0 to 511 (octal 0777), default 0644.
	DefaultMode *int32 `json:"defaultMode,omitempty" protobuf:"3" schema:"default=420,range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// Optional allows the pod to start if the ConfigMap or a key does not exist.
	Optional *bool `json:"optional,omitempty" protobuf:"4"`

	// DefaultUser is the default user ID of the owner of files.
	DefaultUser *int64 `json:"defaultUser,omitempty" protobuf:"5" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// KeyToPath maps an entry to a file.
type KeyToPath struct {
	// Key of the entry.
	Key string `json:"key" protobuf:"1" schema:"required"`

	// Path of the file, relative to the volume. It must not contain "..".
	Path string `json:"path" protobuf:"2" schema:"required,format=file-path"`

	// Mode is the permission of the file: 0 to 511 (octal 0777); default defaultMode.
	Mode *int32 `json:"mode,omitempty" protobuf:"3" schema:"range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// User is the user ID of the owner of the file; default defaultUser.
	User *int64 `json:"user,omitempty" protobuf:"4" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// DownwardAPIVolumeSource is a directory with fields of the pod.
type DownwardAPIVolumeSource struct {
	// Items are the files.
	Items []DownwardAPIVolumeFile `json:"items,omitempty" protobuf:"1" schema:"listType=atomic"`

	// DefaultMode is the default permission of files: 0 to 511 (octal 0777), default 0644.
	DefaultMode *int32 `json:"defaultMode,omitempty" protobuf:"2" schema:"default=420,range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// DefaultUser is the default user ID of the owner of files.
	DefaultUser *int64 `json:"defaultUser,omitempty" protobuf:"3" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// DownwardAPIVolumeFile is a file with a field of the pod. Either fieldRef or resourceFieldRef must be
// set.
type DownwardAPIVolumeFile struct {
	// Path of the file, relative to the volume. It must not contain "..".
	Path string `json:"path" protobuf:"1"`

	// FieldRef is a field of the pod: annotations, labels, name, namespace or uid.
	FieldRef *ObjectFieldSelector `json:"fieldRef,omitempty" protobuf:"2"`

	// ResourceFieldRef is a limit or a request of a container.
	ResourceFieldRef *ResourceFieldSelector `json:"resourceFieldRef,omitempty" protobuf:"3"`

	// Mode is the permission of the file: 0 to 511 (octal 0777); default defaultMode.
	Mode *int32 `json:"mode,omitempty" protobuf:"4"`

	// User is the user ID of the owner of the file; default defaultUser.
	User *int64 `json:"user,omitempty" protobuf:"5" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}
