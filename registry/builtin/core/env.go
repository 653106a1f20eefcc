package core

import "orch.io/controlplane/api/meta"

// EnvVar is a variable.
type EnvVar struct {
	// Name of the variable.
	Name string `json:"name" protobuf:"1" schema:"required,format=env-name"`

	// Value of the variable; $(NAME) is expanded, $$ is a dollar sign.
	Value string `json:"value,omitempty" protobuf:"2"`

	// ValueFrom takes the value from elsewhere; not together with value.
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty" protobuf:"3"`
}

// EnvVarSource is where a variable gets its value; exactly one is set.
type EnvVarSource struct {
	// FieldRef is a field of the pod.
	FieldRef *ObjectFieldSelector `json:"fieldRef,omitempty" protobuf:"1"`

	// ResourceFieldRef is a limit or request of the container.
	ResourceFieldRef *ResourceFieldSelector `json:"resourceFieldRef,omitempty" protobuf:"2"`

	// ConfigMapKeyRef is an entry of a ConfigMap.
	ConfigMapKeyRef *ConfigMapKeySelector `json:"configMapKeyRef,omitempty" protobuf:"3"`

	// SecretKeyRef is an entry of a secret.
	SecretKeyRef *SecretKeySelector `json:"secretKeyRef,omitempty" protobuf:"4"`

	// FileKeyRef is an entry of a file in a volume.
	FileKeyRef *FileKeySelector `json:"fileKeyRef,omitempty" protobuf:"5"`
}

// ObjectFieldSelector chooses a field of the pod.
type ObjectFieldSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// APIVersion of the schema that fieldPath belongs to; v1 by default.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"1" schema:"default=v1"`

	// FieldPath leads to the field, such as metadata.name.
	FieldPath string `json:"fieldPath" protobuf:"2"`
}

// ResourceFieldSelector chooses a limit or request of a container.
type ResourceFieldSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// ContainerName is needed in volumes; variables mean their own container.
	ContainerName string `json:"containerName,omitempty" protobuf:"1"`

	// Resource is limits.cpu, requests.memory and so on.
	Resource string `json:"resource" protobuf:"2"`

	// Divisor is the unit of the result; 1 by default.
	Divisor meta.Quantity `json:"divisor,omitempty" protobuf:"3"`
}

// ConfigMapKeySelector chooses an entry of a ConfigMap.
type ConfigMapKeySelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// LocalObjectReference names it.
	LocalObjectReference `json:",inline" protobuf:"1"`

	// Key of the entry.
	Key string `json:"key" protobuf:"2" schema:"required,format=config-key"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"3"`
}

// SecretKeySelector chooses an entry of a secret.
type SecretKeySelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// LocalObjectReference names it.
	LocalObjectReference `json:",inline" protobuf:"1"`

	// Key of the entry.
	Key string `json:"key" protobuf:"2" schema:"required,format=config-key"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"3"`
}

// FileKeySelector chooses an entry of a file of variables.
type FileKeySelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// VolumeName is the volume that the file is in.
	VolumeName string `json:"volumeName" protobuf:"1" schema:"required"`

	// Path of the file in the volume.
	Path string `json:"path" protobuf:"2" schema:"required,format=relative-path"`

	// Key of the entry.
	Key string `json:"key" protobuf:"3" schema:"required"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"4" schema:"default=false"`
}

// EnvFromSource is a source of variables.
type EnvFromSource struct {
	// Prefix is put before each name.
	Prefix string `json:"prefix,omitempty" protobuf:"1" schema:"format=env-name"`

	// ConfigMapRef takes all entries of a ConfigMap.
	ConfigMapRef *ConfigMapEnvSource `json:"configMapRef,omitempty" protobuf:"2"`

	// SecretRef takes all entries of a secret.
	SecretRef *SecretEnvSource `json:"secretRef,omitempty" protobuf:"3"`
}

// ConfigMapEnvSource names a ConfigMap whose entries become variables.
type ConfigMapEnvSource struct {
	// LocalObjectReference names it.
	LocalObjectReference `json:",inline" protobuf:"1"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"2"`
}

// SecretEnvSource names a secret whose entries become variables.
type SecretEnvSource struct {
	// LocalObjectReference names it.
	LocalObjectReference `json:",inline" protobuf:"1"`

	// Optional says that the pod may start without it.
	Optional *bool `json:"optional,omitempty" protobuf:"2"`
}
