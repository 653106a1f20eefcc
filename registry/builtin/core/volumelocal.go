package core

import "orch.io/controlplane/api/meta"

// HostPathVolumeSource is a file or directory of the node.
type HostPathVolumeSource struct {
	// Path on the node; it may not go up by "..".
	Path string `json:"path" protobuf:"1" schema:"required,format=inner-path"`

	// Type is what must be there, or what is made: empty (no check),
	// DirectoryOrCreate, Directory, FileOrCreate, File, Socket, CharDevice or
	// BlockDevice.
	Type *string `json:"type,omitempty" protobuf:"2" schema:"default=,enum=|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket"`
}

// EmptyDirVolumeSource is a directory that lives as long as the pod.
type EmptyDirVolumeSource struct {
	// Medium is where it is kept: empty (the node's default), Memory, or huge
	// pages.
	Medium string `json:"medium,omitempty" protobuf:"1"`

	// SizeLimit is how much it may hold; in memory also the containers' limits
	// count.
	SizeLimit *meta.Quantity `json:"sizeLimit,omitempty" protobuf:"2"`

	// Mode is the permission of the directory, 0 to 1023 (octal 01777); 0777 without
	// it.
	Mode *int32 `json:"mode,omitempty" protobuf:"3" schema:"range=0|1023,reason.range=must be a number between 0 and 01777 (octal)\\, both inclusive,gate=EmptyDirVolumeMode"`
}

// GitRepoVolumeSource is a checkout of a repository.
type GitRepoVolumeSource struct {
	// Repository is its URL.
	Repository string `json:"repository" protobuf:"1" schema:"required"`

	// Revision is the commit to check out.
	Revision string `json:"revision,omitempty" protobuf:"2"`

	// Directory to clone into; "." is the volume itself; no ".." in it.
	Directory string `json:"directory,omitempty" protobuf:"3" schema:"format=relative-path"`
}

// ImageVolumeSource is the content of an OCI image or artifact.
type ImageVolumeSource struct {
	// Reference of the image.
	Reference string `json:"reference,omitempty" protobuf:"1"`

	// PullPolicy is Always, IfNotPresent or Never.
	PullPolicy string `json:"pullPolicy,omitempty" protobuf:"2" schema:"enum=Always|IfNotPresent|Never"`
}

// SecretVolumeSource is a directory with the entries of a secret.
type SecretVolumeSource struct {
	// SecretName is the secret, in the pod's namespace.
	SecretName string `json:"secretName,omitempty" protobuf:"1" schema:"required,optional"`

	// Items choose entries and say where they go; unset: every key becomes a
	// file of its name.
	Items []KeyToPath `json:"items,omitempty" protobuf:"2" schema:"listType=atomic"`

	// DefaultMode is the permission of files that say nothing else, 0 to 511
	// (octal 0777); 0644 by default.
	DefaultMode *int32 `json:"defaultMode,omitempty" protobuf:"3" schema:"default=420,range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"4"`

	// DefaultUser is the id of the user whom files belong to that say nothing else.
	DefaultUser *int64 `json:"defaultUser,omitempty" protobuf:"5" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// ConfigMapVolumeSource is a directory with the entries of a ConfigMap.
type ConfigMapVolumeSource struct {
	// LocalObjectReference names it.
	LocalObjectReference `json:",inline" protobuf:"1" schema:"name.required,name.optional"`

	// Items choose entries and say where they go; unset: every key becomes a
	// file of its name.
	Items []KeyToPath `json:"items,omitempty" protobuf:"2" schema:"listType=atomic"`

	// DefaultMode is the permission of files that say nothing else, 0 to 511
	// (octal 0777); 0644 by default.
	DefaultMode *int32 `json:"defaultMode,omitempty" protobuf:"3" schema:"default=420,range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"4"`

	// DefaultUser is the id of the user whom files belong to that say nothing else.
	DefaultUser *int64 `json:"defaultUser,omitempty" protobuf:"5" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// KeyToPath says where an entry goes.
type KeyToPath struct {
	// Key of the entry.
	Key string `json:"key" protobuf:"1" schema:"required"`

	// Path of the file, relative to the volume and without "..".
	Path string `json:"path" protobuf:"2" schema:"required,format=file-path"`

	// Mode is the permission of the file, 0 to 511 (octal 0777); the volume's
	// default by default.
	Mode *int32 `json:"mode,omitempty" protobuf:"3" schema:"range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// User is the id of the user whom the file belongs to; the volume's default by
	// default.
	User *int64 `json:"user,omitempty" protobuf:"4" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// DownwardAPIVolumeSource is files with fields of the pod.
type DownwardAPIVolumeSource struct {
	// Items are the files.
	Items []DownwardAPIVolumeFile `json:"items,omitempty" protobuf:"1" schema:"listType=atomic"`

	// DefaultMode is the permission of files that say nothing else, 0 to 511
	// (octal 0777); 0644 by default.
	DefaultMode *int32 `json:"defaultMode,omitempty" protobuf:"2" schema:"default=420,range=0|511,reason.range=must be a number between 0 and 0777 (octal)\\, both inclusive"`

	// DefaultUser is the id of the user whom files belong to that say nothing else.
	DefaultUser *int64 `json:"defaultUser,omitempty" protobuf:"3" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}

// DownwardAPIVolumeFile is a file with a field of the pod.
type DownwardAPIVolumeFile struct {
	// Path of the file, relative to the volume and without "..".
	Path string `json:"path" protobuf:"1"`

	// FieldRef is a field of the pod: annotations, labels, name, namespace or
	// uid.
	FieldRef *ObjectFieldSelector `json:"fieldRef,omitempty" protobuf:"2"`

	// ResourceFieldRef is a limit or request of a container.
	ResourceFieldRef *ResourceFieldSelector `json:"resourceFieldRef,omitempty" protobuf:"3"`

	// Mode is the permission of the file, 0 to 511 (octal 0777); the volume's
	// default by default.
	Mode *int32 `json:"mode,omitempty" protobuf:"4"`

	// User is the id of the user whom the file belongs to; the volume's default by
	// default.
	User *int64 `json:"user,omitempty" protobuf:"5" schema:"range=0|2147483647,gate=AtomicWriteVolumeUserFields"`
}
