package core

import "orch.io/controlplane/api/meta"

// ContainerStatus is the state of a container.
type ContainerStatus struct {
	// Name of the container.
	Name string `json:"name" protobuf:"1"`

	// State of the container.
	State ContainerState `json:"state,omitempty" protobuf:"2"`

	// LastTerminationState is the state of the previous instance.
	LastTerminationState ContainerState `json:"lastState,omitempty" protobuf:"3"`

	// Ready is true while the readiness probe succeeds.
	Ready bool `json:"ready" protobuf:"4"`

	// RestartCount is the number of restarts.
	RestartCount int32 `json:"restartCount" protobuf:"5"`

	// Image of the container.
	Image string `json:"image" protobuf:"6"`

	// ImageID identifies the image, usually by digest.
	ImageID string `json:"imageID" protobuf:"7"`

	// ContainerID identifies the container, in the form type://id.
	ContainerID string `json:"containerID,omitempty" protobuf:"8"`

	// Started is true after the startup probe and the postStart action succeeded.
	Started *bool `json:"started,omitempty" protobuf:"9"`

	// AllocatedResources are the amounts that the node has reserved.
	AllocatedResources map[string]meta.Quantity `json:"allocatedResources,omitempty" protobuf:"10" schema:"values.milli"`

	// Resources are the requests and limits in effect.
	Resources *ResourceRequirements `json:"resources,omitempty" protobuf:"11"`

	// VolumeMounts are the states of the mounts.
	VolumeMounts []VolumeMountStatus `json:"volumeMounts,omitempty" protobuf:"12" patchStrategy:"merge" patchMergeKey:"mountPath" schema:"listType=map,listMapKeys=mountPath,repeats"`

	// User of the first process.
	User *ContainerUser `json:"user,omitempty" protobuf:"13"`

	// AllocatedResourcesStatus is the health of allocated devices.
	AllocatedResourcesStatus []ResourceStatus `json:"allocatedResourcesStatus,omitempty" protobuf:"14" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// StopSignal is the signal that terminates the container.
	StopSignal *string `json:"stopSignal,omitempty" protobuf:"15"`
}

// ContainerState is the state of a container. At most 1 field is set; none means waiting.
type ContainerState struct {
	// Waiting is set while the container has not started.
	Waiting *ContainerStateWaiting `json:"waiting,omitempty" protobuf:"1"`

	// Running is set while the container runs.
	Running *ContainerStateRunning `json:"running,omitempty" protobuf:"2"`

	// Terminated is set after the container terminated.
	Terminated *ContainerStateTerminated `json:"terminated,omitempty" protobuf:"3"`
}

// ContainerStateWaiting describes a container that has not started.
type ContainerStateWaiting struct {
	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"1"`

	// Message explains the state to people.
	Message string `json:"message,omitempty" protobuf:"2"`
}

// ContainerStateRunning describes a running container.
type ContainerStateRunning struct {
	// StartedAt is the time of the start.
	StartedAt meta.Time `json:"startedAt,omitempty" protobuf:"1"`
}

// ContainerStateTerminated describes a terminated container.
type ContainerStateTerminated struct {
	// ExitCode of the first process.
	ExitCode int32 `json:"exitCode" protobuf:"1"`

	// Signal that terminated the container.
	Signal int32 `json:"signal,omitempty" protobuf:"2"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"3"`

	// Message explains the state to people.
	Message string `json:"message,omitempty" protobuf:"4"`

	// StartedAt is the time of the start.
	StartedAt meta.Time `json:"startedAt,omitempty" protobuf:"5"`

	// FinishedAt is the time of the termination.
	FinishedAt meta.Time `json:"finishedAt,omitempty" protobuf:"6"`

	// ContainerID identifies the container, in the form type://id.
	ContainerID string `json:"containerID,omitempty" protobuf:"7"`
}

// VolumeMountStatus is the state of a mount.
type VolumeMountStatus struct {
	// Name of the volume.
	Name string `json:"name" protobuf:"1"`

	// MountPath is the path in the container.
	MountPath string `json:"mountPath" protobuf:"2"`

	// ReadOnly is true if the mount is read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"3"`

	// RecursiveReadOnly is Disabled, or Enabled if mounts below are read-only, too.
	RecursiveReadOnly *string `json:"recursiveReadOnly,omitempty" protobuf:"4"`

	// VolumeStatus describes the volume.
	VolumeStatus *VolumeStatus `json:"volumeStatus,omitempty" protobuf:"5" schema:"gate=ImageVolumeWithDigest"`
}

// VolumeStatus describes a mounted volume.
type VolumeStatus struct {
	// Image describes an image volume.
	Image *ImageVolumeStatus `json:"image,omitempty" protobuf:"1"`
}

// ImageVolumeStatus describes an image volume.
type ImageVolumeStatus struct {
	// ImageRef is the digest of the image.
	ImageRef string `json:"imageRef,omitempty" protobuf:"1"`
}

// ContainerUser is the user of a container's first process.
type ContainerUser struct {
	// Linux user and groups.
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

// ResourceStatus is the health of the devices of a resource.
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

	// Message explains the health to people.
	Message *string `json:"message,omitempty" protobuf:"6"`
}
