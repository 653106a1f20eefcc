package core

import "orch.io/controlplane/api/meta"

// EnvVar is an environment variable.
type EnvVar struct {
	// Name of the variable.
	Name string `json:"name" protobuf:"1" schema:"required,format=env-name"`

	// Value of the variable. $(NAME) refers to an earlier variable, $$ is a dollar sign.
	Value string `json:"value,omitempty" protobuf:"2"`

	// ValueFrom is the source of the value. It excludes value.
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty" protobuf:"3"`
}

// EnvVarSource is the source of a value. Exactly 1 field must be set.
type EnvVarSource struct {
	// FieldRef is a field of the pod.
	FieldRef *ObjectFieldSelector `json:"fieldRef,omitempty" protobuf:"1"`

	// ResourceFieldRef is a limit or a request of the container.
	ResourceFieldRef *ResourceFieldSelector `json:"resourceFieldRef,omitempty" protobuf:"2"`

	// ConfigMapKeyRef is an entry of a ConfigMap.
	ConfigMapKeyRef *ConfigMapKeySelector `json:"configMapKeyRef,omitempty" protobuf:"3"`

	// SecretKeyRef is an entry of a Secret.
	SecretKeyRef *SecretKeySelector `json:"secretKeyRef,omitempty" protobuf:"4"`

	// FileKeyRef is an entry of a file in a volume.
	FileKeyRef *FileKeySelector `json:"fileKeyRef,omitempty" protobuf:"5"`
}

// ObjectFieldSelector selects a field of the pod.
type ObjectFieldSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// APIVersion of the schema to which fieldPath belongs; default v1.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"1" schema:"default=v1"`

	// FieldPath is the path of the field, such as metadata.name.
	FieldPath string `json:"fieldPath" protobuf:"2"`
}

// ResourceFieldSelector selects a limit or a request of a container.
type ResourceFieldSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// ContainerName is the container. It is required in volumes and optional in environment variables.
	ContainerName string `json:"containerName,omitempty" protobuf:"1"`

	// Resource is the selected limit or request, such as limits.cpu or requests.memory.
	Resource string `json:"resource" protobuf:"2"`

	// Divisor is the unit of the value; default 1.
	Divisor meta.Quantity `json:"divisor,omitempty" protobuf:"3"`
}

// ConfigMapKeySelector selects an entry of a ConfigMap.
type ConfigMapKeySelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// LocalObjectReference is the name of the ConfigMap.
	LocalObjectReference `json:",inline" protobuf:"1"`

	// Key of the entry.
	Key string `json:"key" protobuf:"2" schema:"required,format=config-key"`

	// Optional allows the pod to start if the entry does not exist.
	Optional *bool `json:"optional,omitempty" protobuf:"3"`
}

// SecretKeySelector selects an entry of a Secret.
type SecretKeySelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// LocalObjectReference is the name of the Secret.
	LocalObjectReference `json:",inline" protobuf:"1"`

	// Key of the entry.
	Key string `json:"key" protobuf:"2" schema:"required,format=config-key"`

	// Optional allows the pod to start if the entry does not exist.
	Optional *bool `json:"optional,omitempty" protobuf:"3"`
}

// FileKeySelector selects an entry of a file with environment variables.
type FileKeySelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// VolumeName is the volume with the file.
	VolumeName string `json:"volumeName" protobuf:"1" schema:"required"`

	// Path of the file in the volume.
	Path string `json:"path" protobuf:"2" schema:"required,format=relative-path"`

	// Key of the entry.
	Key string `json:"key" protobuf:"3" schema:"required"`

	// Optional allows the pod to start if the entry does not exist; default false.
	Optional *bool `json:"optional,omitempty" protobuf:"4" schema:"default=false"`
}

// EnvFromSource is a source of environment variables. Exactly one of configMapRef and secretRef must be
// set.
type EnvFromSource struct {
	// Prefix is added to the beginning of each name.
	Prefix string `json:"prefix,omitempty" protobuf:"1" schema:"format=env-name"`

	// ConfigMapRef uses all entries of a ConfigMap.
	ConfigMapRef *ConfigMapEnvSource `json:"configMapRef,omitempty" protobuf:"2"`

	// SecretRef uses all entries of a Secret.
	SecretRef *SecretEnvSource `json:"secretRef,omitempty" protobuf:"3"`
}

// ConfigMapEnvSource uses the entries of a ConfigMap as environment variables.
type ConfigMapEnvSource struct {
	// LocalObjectReference is the name of the ConfigMap.
	LocalObjectReference `json:",inline" protobuf:"1"`

	// Optional allows the pod to start if the ConfigMap does not exist.
	Optional *bool `json:"optional,omitempty" protobuf:"2"`
}

// SecretEnvSource uses the entries of a Secret as environment variables.
type SecretEnvSource struct {
	// LocalObjectReference is the name of the Secret.
	LocalObjectReference `json:",inline" protobuf:"1"`

	// Optional allows the pod to start if the Secret does not exist.
	Optional *bool `json:"optional,omitempty" protobuf:"2"`
}
