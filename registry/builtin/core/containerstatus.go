package core

import "orch.io/controlplane/api/meta"

// ContainerStatus is the state of a container.
type ContainerStatus struct {
	// Name of the container.
	Name string `json:"name" protobuf:"1"`

	// State of the container now.
	State ContainerState `json:"state,omitempty" protobuf:"2"`

	// LastTerminationState is how it ended last.
	LastTerminationState ContainerState `json:"lastState,omitempty" protobuf:"3"`

	// Ready is true while the readiness probe succeeds.
	Ready bool `json:"ready" protobuf:"4"`

	// RestartCount is how often it was restarted.
	RestartCount int32 `json:"restartCount" protobuf:"5"`

	// Image that runs.
	Image string `json:"image" protobuf:"6"`

	// ImageID identifies that image.
	ImageID string `json:"imageID" protobuf:"7"`

	// ContainerID identifies the container, as type://id.
	ContainerID string `json:"containerID,omitempty" protobuf:"8"`

	// Started is true when the startup probe and the postStart action are
	// through.
	Started *bool `json:"started,omitempty" protobuf:"9"`

	// AllocatedResources are what the node has set aside for it.
	AllocatedResources map[string]meta.Quantity `json:"allocatedResources,omitempty" protobuf:"10" schema:"values.milli"`

	// Resources that are in effect.
	Resources *ResourceRequirements `json:"resources,omitempty" protobuf:"11"`

	// VolumeMounts are the states of its mounts.
	VolumeMounts []VolumeMountStatus `json:"volumeMounts,omitempty" protobuf:"12" patchStrategy:"merge" patchMergeKey:"mountPath" schema:"listType=map,listMapKeys=mountPath,repeats"`

	// User that its first process got.
	User *ContainerUser `json:"user,omitempty" protobuf:"13"`

	// AllocatedResourcesStatus is the health of its devices.
	AllocatedResourcesStatus []ResourceStatus `json:"allocatedResourcesStatus,omitempty" protobuf:"14" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// StopSignal is the signal that ends it.
	StopSignal *string `json:"stopSignal,omitempty" protobuf:"15"`
}

// ContainerState is a state of a container; at most one field is set, waiting if
// none.
type ContainerState struct {
	// Waiting to start.
	Waiting *ContainerStateWaiting `json:"waiting,omitempty" protobuf:"1"`

	// Running.
	Running *ContainerStateRunning `json:"running,omitempty" protobuf:"2"`

	// Terminated.
	Terminated *ContainerStateTerminated `json:"terminated,omitempty" protobuf:"3"`
}

// ContainerStateWaiting is about a container that does not run yet.
type ContainerStateWaiting struct {
	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"1"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"2"`
}

// ContainerStateRunning is about a container that runs.
type ContainerStateRunning struct {
	// StartedAt is when it was started.
	StartedAt meta.Time `json:"startedAt,omitempty" protobuf:"1"`
}

// ContainerStateTerminated is about a container that ended.
type ContainerStateTerminated struct {
	// ExitCode of its last process.
	ExitCode int32 `json:"exitCode" protobuf:"1"`

	// Signal that ended it.
	Signal int32 `json:"signal,omitempty" protobuf:"2"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"3"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"4"`

	// StartedAt is when it was started.
	StartedAt meta.Time `json:"startedAt,omitempty" protobuf:"5"`

	// FinishedAt is when it ended.
	FinishedAt meta.Time `json:"finishedAt,omitempty" protobuf:"6"`

	// ContainerID identifies the container, as type://id.
	ContainerID string `json:"containerID,omitempty" protobuf:"7"`
}

// VolumeMountStatus is the state of a mount.
type VolumeMountStatus struct {
	// Name of the volume.
	Name string `json:"name" protobuf:"1"`

	// MountPath is where it appears.
	MountPath string `json:"mountPath" protobuf:"2"`

	// ReadOnly says that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// RecursiveReadOnly says whether what is mounted below cannot be written
	// either.
	RecursiveReadOnly *string `json:"recursiveReadOnly,omitempty" protobuf:"4"`

	// VolumeStatus is what else is known about the volume.
	VolumeStatus *VolumeStatus `json:"volumeStatus,omitempty" protobuf:"5" schema:"gate=ImageVolumeWithDigest"`
}

// VolumeStatus is what is known about a mounted volume.
type VolumeStatus struct {
	// Image is about an image volume.
	Image *ImageVolumeStatus `json:"image,omitempty" protobuf:"1"`
}

// ImageVolumeStatus is about an image volume.
type ImageVolumeStatus struct {
	// ImageRef is the digest of the image.
	ImageRef string `json:"imageRef,omitempty" protobuf:"1"`
}

// ContainerUser is whom a container's first process runs as.
type ContainerUser struct {
	// Linux users and groups.
	Linux *LinuxContainerUser `json:"linux,omitempty" protobuf:"1"`
}

// LinuxContainerUser is a Linux user and its groups.
type LinuxContainerUser struct {
	// UID of the process.
	UID int64 `json:"uid" protobuf:"1"`

	// GID of the process.
	GID int64 `json:"gid" protobuf:"2"`

	// SupplementalGroups of the process.
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// ResourceStatus is the health of devices of one kind.
type ResourceStatus struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1"`

	// Resources are the devices.
	Resources []ResourceHealth `json:"resources,omitempty" protobuf:"2" schema:"listType=map,listMapKeys=resourceID,repeats"`
}

// ResourceHealth is the health of a device.
type ResourceHealth struct {
	// ResourceID identifies the device.
	ResourceID string `json:"resourceID" protobuf:"1"`

	// Health is Healthy, Unhealthy or Unknown.
	Health string `json:"health,omitempty" protobuf:"2"`

	// Message is a text for people.
	Message *string `json:"message,omitempty" protobuf:"6"`
}
