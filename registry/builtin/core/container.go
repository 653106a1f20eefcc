package core

import "orch.io/controlplane/api/meta"

// Container is one program of a pod.
type Container struct {
	// Name of the container, a DNS label, unique in the pod. It cannot change.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`

	// Image to run.
	Image string `json:"image,omitempty" protobuf:"2"`

	// Command replaces the image's entry point. $(NAME) is expanded.
	Command []string `json:"command,omitempty" protobuf:"3" schema:"listType=atomic"`

	// Args replace the image's arguments. $(NAME) is expanded.
	Args []string `json:"args,omitempty" protobuf:"4" schema:"listType=atomic"`

	// WorkingDir is where the program starts; the image's by default.
	WorkingDir string `json:"workingDir,omitempty" protobuf:"5"`

	// Ports that the container listens on; for information, and for others to
	// refer to.
	Ports []ContainerPort `json:"ports,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"containerPort" schema:"listType=map,listMapKeys=containerPort|protocol,repeats"`

	// EnvFrom are sources of variables; later ones win, and env wins over all.
	EnvFrom []EnvFromSource `json:"envFrom,omitempty" protobuf:"19" schema:"listType=atomic"`

	// Env are variables.
	Env []EnvVar `json:"env,omitempty" protobuf:"7" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// Resources that the container needs and may use.
	Resources ResourceRequirements `json:"resources,omitempty" protobuf:"8"`

	// ResizePolicy says per resource what a change of it asks for.
	ResizePolicy []ContainerResizePolicy `json:"resizePolicy,omitempty" protobuf:"23" schema:"listType=atomic"`

	// RestartPolicy of this container alone; on an init container, Always makes
	// it a sidecar.
	RestartPolicy *string `json:"restartPolicy,omitempty" protobuf:"24" schema:"enum=Always|OnFailure|Never"`

	// RestartPolicyRules decide about a restart by exit code, before
	// restartPolicy.
	RestartPolicyRules []ContainerRestartRule `json:"restartPolicyRules,omitempty" protobuf:"25" schema:"listType=atomic,maxItems=20"`

	// VolumeMounts say where volumes appear in the container.
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty" protobuf:"9" patchStrategy:"merge" patchMergeKey:"mountPath" schema:"listType=map,listMapKeys=mountPath,repeats"`

	// VolumeDevices say where block devices appear in the container.
	VolumeDevices []VolumeDevice `json:"volumeDevices,omitempty" protobuf:"21" patchStrategy:"merge" patchMergeKey:"devicePath" schema:"listType=map,listMapKeys=devicePath,repeats"`

	// LivenessProbe restarts the container when it fails.
	LivenessProbe *Probe `json:"livenessProbe,omitempty" protobuf:"10"`

	// ReadinessProbe takes the pod out of services while it fails.
	ReadinessProbe *Probe `json:"readinessProbe,omitempty" protobuf:"11"`

	// StartupProbe must succeed before the other probes begin.
	StartupProbe *Probe `json:"startupProbe,omitempty" protobuf:"22"`

	// Lifecycle are actions at the start and before the end.
	Lifecycle *Lifecycle `json:"lifecycle,omitempty" protobuf:"12"`

	// TerminationMessagePath is the file with the container's last words;
	// /dev/termination-log by default.
	TerminationMessagePath string `json:"terminationMessagePath,omitempty" protobuf:"13" schema:"default=/dev/termination-log"`

	// TerminationMessagePolicy is File, or FallbackToLogsOnError.
	TerminationMessagePolicy string `json:"terminationMessagePolicy,omitempty" protobuf:"20" schema:"default=File,enum=File|FallbackToLogsOnError"`

	// ImagePullPolicy is Always, IfNotPresent or Never; Always by default for
	// images with tag latest or none.
	ImagePullPolicy string `json:"imagePullPolicy,omitempty" protobuf:"14" schema:"enum=Always|IfNotPresent|Never"`

	// SecurityContext holds security settings; they win over the pod's.
	SecurityContext *SecurityContext `json:"securityContext,omitempty" protobuf:"15"`

	// Stdin keeps a buffer for standard input.
	Stdin bool `json:"stdin,omitempty" protobuf:"16"`

	// StdinOnce closes standard input after the first client.
	StdinOnce bool `json:"stdinOnce,omitempty" protobuf:"17"`

	// TTY gives the container a terminal; it needs stdin.
	TTY bool `json:"tty,omitempty" protobuf:"18"`
}

// EphemeralContainer is a container that is added to a running pod.
type EphemeralContainer struct {
	// EphemeralContainerCommon has the fields of a container.
	Container `json:",inline" protobuf:"1"`

	// TargetContainerName is the container whose process namespace it joins.
	TargetContainerName string `json:"targetContainerName,omitempty" protobuf:"2"`
}

// ContainerPort is a port that a container listens on.
type ContainerPort struct {
	// Name of the port, unique in the pod.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=port-name"`

	// HostPort is the node's port that leads here.
	HostPort int32 `json:"hostPort,omitempty" protobuf:"2" schema:"range=1|65535"`

	// ContainerPort is the number in the pod.
	ContainerPort int32 `json:"containerPort" protobuf:"3" schema:"required,range=1|65535"`

	// Protocol is TCP (the default), UDP or SCTP.
	Protocol string `json:"protocol,omitempty" protobuf:"4" schema:"default=TCP,enum=SCTP|TCP|UDP"`

	// HostIP is the node's address that the port is bound to.
	HostIP string `json:"hostIP,omitempty" protobuf:"5"`
}

// VolumeMount says where a volume appears in a container.
type VolumeMount struct {
	// Name of the volume.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// ReadOnly mounts it so that it cannot be written.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"2"`

	// RecursiveReadOnly is Disabled, IfPossible or Enabled: what is mounted
	// below is read-only too.
	RecursiveReadOnly *string `json:"recursiveReadOnly,omitempty" protobuf:"7" schema:"enum=Disabled|Enabled|IfPossible,unchecked"`

	// MountPath is where it appears; no ':' in it.
	MountPath string `json:"mountPath" protobuf:"3" schema:"required"`

	// SubPath is the part of the volume that is mounted; the root by default.
	SubPath string `json:"subPath,omitempty" protobuf:"4"`

	// MountPropagation is None (the default), HostToContainer or Bidirectional.
	MountPropagation *string `json:"mountPropagation,omitempty" protobuf:"5" schema:"enum=Bidirectional|HostToContainer|None,unchecked"`

	// SubPathExpr is a subPath with $(NAME) expanded; not together with subPath.
	SubPathExpr string `json:"subPathExpr,omitempty" protobuf:"6"`

	// BindMountOptions restrict what can be done with files: nodev, noexec, nosuid. Not
	// for the content of images.
	BindMountOptions []string `json:"bindMountOptions,omitempty" protobuf:"8" schema:"listType=set,items.enum=nodev|noexec|nosuid,gate=VolumeBindMountOptions"`
}

// VolumeDevice says where a block device appears in a container.
type VolumeDevice struct {
	// Name of the volume, which is a claim.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// DevicePath is where it appears.
	DevicePath string `json:"devicePath" protobuf:"2" schema:"required,format=inner-path"`
}

// ResourceRequirements are what a container, or a pod, needs and may use.
type ResourceRequirements struct {
	// Limits are the most that may be used.
	Limits map[string]meta.Quantity `json:"limits,omitempty" protobuf:"1" schema:"values.milli"`

	// Requests are what must be there; limits by default.
	Requests map[string]meta.Quantity `json:"requests,omitempty" protobuf:"2" schema:"values.milli"`

	// Claims are the pod's resource claims that are used.
	Claims []ResourceClaim `json:"claims,omitempty" protobuf:"3" schema:"listType=map,listMapKeys=name,repeats"`
}

// ResourceClaim is the use of a claim of the pod.
type ResourceClaim struct {
	// Name of the claim in the pod.
	Name string `json:"name" protobuf:"1"`

	// Request in the claim; empty: all of it.
	Request string `json:"request,omitempty" protobuf:"2" schema:"format=dns-label"`
}

// ContainerResizePolicy says what a change of a resource asks for.
type ContainerResizePolicy struct {
	// ResourceName is cpu or memory.
	ResourceName string `json:"resourceName" protobuf:"1" schema:"enum=cpu|memory,unchecked"`

	// RestartPolicy is NotRequired or RestartContainer.
	RestartPolicy string `json:"restartPolicy" protobuf:"2" schema:"enum=NotRequired|RestartContainer,unchecked"`
}

// ContainerRestartRule decides what happens after an exit.
type ContainerRestartRule struct {
	// Action is what happens: Restart.
	Action string `json:"action,omitempty" protobuf:"1" schema:"required,enum=Restart"`

	// ExitCodes that the rule is for.
	ExitCodes *ContainerRestartRuleOnExitCodes `json:"exitCodes,omitempty" protobuf:"2"`
}

// ContainerRestartRuleOnExitCodes chooses exit codes.
type ContainerRestartRuleOnExitCodes struct {
	// Operator is In or NotIn.
	Operator string `json:"operator,omitempty" protobuf:"1" schema:"required,enum=In|NotIn"`

	// Values are the codes.
	Values []int32 `json:"values,omitempty" protobuf:"2" schema:"listType=set,repeats,maxItems=255"`
}
