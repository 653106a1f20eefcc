package core

import "orch.io/controlplane/api/meta"

// Container is a container of a pod.
type Container struct {
	// Name of the container, a DNS label that is unique in the pod. Immutable.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`

	// Image to run.
	Image string `json:"image,omitempty" protobuf:"2"`

	// Command replaces the entry point of the image. References $(NAME) to environment variables are
	// expanded.
	Command []string `json:"command,omitempty" protobuf:"3" schema:"listType=atomic"`

	// Args replace the arguments of the image. References $(NAME) to environment variables are
	// expanded.
	Args []string `json:"args,omitempty" protobuf:"4" schema:"listType=atomic"`

	// WorkingDir of the command; default the image's.
	WorkingDir string `json:"workingDir,omitempty" protobuf:"5"`

	// Ports that the container listens on. The list is informational, except for hostPort; services and
	// probes can refer to ports by name.
	Ports []ContainerPort `json:"ports,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"containerPort" schema:"listType=map,listMapKeys=containerPort|protocol,repeats"`

	// EnvFrom are sources of environment variables. Later sources take precedence, and env over all of
	// them.
	EnvFrom []EnvFromSource `json:"envFrom,omitempty" protobuf:"19" schema:"listType=atomic"`

	// Env are environment variables.
	Env []EnvVar `json:"env,omitempty" protobuf:"7" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// Resources that the container requests and is limited to.
	Resources ResourceRequirements `json:"resources,omitempty" protobuf:"8"`

	// ResizePolicy decides for each resource whether a resize restarts the container.
	ResizePolicy []ContainerResizePolicy `json:"resizePolicy,omitempty" protobuf:"23" schema:"listType=atomic"`

	// RestartPolicy of the container, which overrides the pod's. Always makes an init container a
	// sidecar.
	RestartPolicy *string `json:"restartPolicy,omitempty" protobuf:"24" schema:"enum=Always|OnFailure|Never"`

	// RestartPolicyRules are evaluated at each exit before restartPolicy, which they require. At most
	// 20.
	RestartPolicyRules []ContainerRestartRule `json:"restartPolicyRules,omitempty" protobuf:"25" schema:"listType=atomic,maxItems=20"`

	// VolumeMounts mount volumes of the pod into the file system of the container.
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty" protobuf:"9" patchStrategy:"merge" patchMergeKey:"mountPath" schema:"listType=map,listMapKeys=mountPath,repeats"`

	// VolumeDevices map block devices of the pod into the container.
	VolumeDevices []VolumeDevice `json:"volumeDevices,omitempty" protobuf:"21" patchStrategy:"merge" patchMergeKey:"devicePath" schema:"listType=map,listMapKeys=devicePath,repeats"`

	// LivenessProbe restarts the container when it fails.
	LivenessProbe *Probe `json:"livenessProbe,omitempty" protobuf:"10"`

	// ReadinessProbe removes the pod from services while it fails.
	ReadinessProbe *Probe `json:"readinessProbe,omitempty" protobuf:"11"`

	// StartupProbe must succeed before the other probes start.
	StartupProbe *Probe `json:"startupProbe,omitempty" protobuf:"22"`

	// Lifecycle are actions after the start and before the termination.
	Lifecycle *Lifecycle `json:"lifecycle,omitempty" protobuf:"12"`

	// TerminationMessagePath is the file with the termination message; default /dev/termination-log.
	TerminationMessagePath string `json:"terminationMessagePath,omitempty" protobuf:"13" schema:"default=/dev/termination-log"`

	// TerminationMessagePolicy is File (default), or FallbackToLogsOnError, which uses the end of the
	// log if the file is empty and the container failed.
	TerminationMessagePolicy string `json:"terminationMessagePolicy,omitempty" protobuf:"20" schema:"default=File,enum=File|FallbackToLogsOnError"`

	// ImagePullPolicy is Always, IfNotPresent or Never. The default is Always for images with the tag
	// latest or without a tag, else IfNotPresent.
	ImagePullPolicy string `json:"imagePullPolicy,omitempty" protobuf:"14" schema:"enum=Always|IfNotPresent|Never"`

	// SecurityContext holds security settings, which take precedence over the pod's.
	SecurityContext *SecurityContext `json:"securityContext,omitempty" protobuf:"15"`

	// Stdin allocates a buffer for the standard input.
	Stdin bool `json:"stdin,omitempty" protobuf:"16"`

	// StdinOnce closes the standard input after the first client detaches.
	StdinOnce bool `json:"stdinOnce,omitempty" protobuf:"17"`

	// TTY allocates a terminal. It requires stdin.
	TTY bool `json:"tty,omitempty" protobuf:"18"`
}

// EphemeralContainer is a container that is added to a running pod, for debugging.
type EphemeralContainer struct {
	// EphemeralContainerCommon has the fields of a container.
	Container `json:",inline" protobuf:"1"`

	// TargetContainerName is the container whose process namespace the ephemeral container joins.
	TargetContainerName string `json:"targetContainerName,omitempty" protobuf:"2"`
}

// ContainerPort is a port that a container listens on.
type ContainerPort struct {
	// Name of the port, unique in the pod.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=port-name"`

	// HostPort is the port of the node that is forwarded to the container: 1 to 65535.
	HostPort int32 `json:"hostPort,omitempty" protobuf:"2" schema:"range=1|65535"`

	// ContainerPort is the port number: 1 to 65535.
	ContainerPort int32 `json:"containerPort" protobuf:"3" schema:"required,range=1|65535"`

	// Protocol is TCP (the default), UDP or SCTP.
	Protocol string `json:"protocol,omitempty" protobuf:"4" schema:"default=TCP,enum=SCTP|TCP|UDP"`

	// HostIP is the address of the node to which hostPort is bound.
	HostIP string `json:"hostIP,omitempty" protobuf:"5"`
}

// VolumeMount mounts a volume into the file system of a container.
type VolumeMount struct {
	// Name of the volume.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// ReadOnly mounts the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"2"`

	// RecursiveReadOnly decides whether mounts below are read-only, too: Disabled, IfPossible or
	// Enabled. It requires readOnly.
	RecursiveReadOnly *string `json:"recursiveReadOnly,omitempty" protobuf:"7" schema:"enum=Disabled|Enabled|IfPossible,unchecked"`

	// MountPath is the path in the container. It must be unique and must not contain ':'.
	MountPath string `json:"mountPath" protobuf:"3" schema:"required"`

	// SubPath is the path within the volume; default the root.
	SubPath string `json:"subPath,omitempty" protobuf:"4"`

	// MountPropagation is None (default), HostToContainer or, in privileged containers, Bidirectional.
	MountPropagation *string `json:"mountPropagation,omitempty" protobuf:"5" schema:"enum=Bidirectional|HostToContainer|None,unchecked"`

	// SubPathExpr is a subPath in which $(NAME) is expanded. It excludes subPath.
	SubPathExpr string `json:"subPathExpr,omitempty" protobuf:"6"`

	// BindMountOptions are nodev, noexec and nosuid. They are not allowed for image volumes.
	BindMountOptions []string `json:"bindMountOptions,omitempty" protobuf:"8" schema:"listType=set,items.enum=nodev|noexec|nosuid,gate=VolumeBindMountOptions"`
}

// VolumeDevice maps a block device into a container.
type VolumeDevice struct {
	// Name of the volume, whose source must be a claim.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// DevicePath is the path of the device in the container.
	DevicePath string `json:"devicePath" protobuf:"2" schema:"required,format=inner-path"`
}

// ResourceRequirements are the resources that a container or a pod requests and is limited to.
type ResourceRequirements struct {
	// Limits are the largest amounts that may be used.
	Limits map[string]meta.Quantity `json:"limits,omitempty" protobuf:"1" schema:"values.milli"`

	// Requests are the amounts that are guaranteed; default the limits.
	Requests map[string]meta.Quantity `json:"requests,omitempty" protobuf:"2" schema:"values.milli"`

	// Claims are the resource claims of the pod that are used.
	Claims []ResourceClaim `json:"claims,omitempty" protobuf:"3" schema:"listType=map,listMapKeys=name,repeats"`
}

// ResourceClaim is the use of a resource claim of the pod.
type ResourceClaim struct {
	// Name of the claim in the pod.
	Name string `json:"name" protobuf:"1"`

	// Request is the name of a request in the claim. Empty means the whole claim.
	Request string `json:"request,omitempty" protobuf:"2" schema:"format=dns-label"`
}

// ContainerResizePolicy decides whether a resize restarts a container.
type ContainerResizePolicy struct {
	// ResourceName is cpu or memory.
	ResourceName string `json:"resourceName" protobuf:"1" schema:"enum=cpu|memory,unchecked"`

	// RestartPolicy is NotRequired or RestartContainer. It must be NotRequired if the pod's
	// restartPolicy is Never.
	RestartPolicy string `json:"restartPolicy" protobuf:"2" schema:"enum=NotRequired|RestartContainer,unchecked"`
}

// ContainerRestartRule decides about an exit of a container.
type ContainerRestartRule struct {
	// Action is Restart.
	Action string `json:"action,omitempty" protobuf:"1" schema:"required,enum=Restart"`

	// ExitCodes that the rule matches. Required.
	ExitCodes *ContainerRestartRuleOnExitCodes `json:"exitCodes,omitempty" protobuf:"2"`
}

// ContainerRestartRuleOnExitCodes matches exit codes.
type ContainerRestartRuleOnExitCodes struct {
	// Operator is In or NotIn.
	Operator string `json:"operator,omitempty" protobuf:"1" schema:"required,enum=In|NotIn"`

	// Values are exit codes; at most 255.
	Values []int32 `json:"values,omitempty" protobuf:"2" schema:"listType=set,repeats,maxItems=255"`
}
