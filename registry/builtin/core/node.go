package core

import (
	"orch.io/controlplane/api/meta"
)

// Node is a machine that runs pods.
type Node struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec NodeSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state, which the kubelet reports.
	Status NodeStatus `json:"status,omitempty" protobuf:"3"`
}

// NodeSpec is the desired state of a node.
type NodeSpec struct {
	// PodCIDR is the range of the pods' IP addresses, equal to the first of podCIDRs.
	PodCIDR string `json:"podCIDR,omitempty" protobuf:"1"`

	// PodCIDRs are the ranges of the pods' IP addresses, at most 1 for each IP family. Immutable once
	// set.
	PodCIDRs []string `json:"podCIDRs,omitempty" protobuf:"7" patchStrategy:"merge" schema:"listType=set,repeats"`

	// ProviderID identifies the machine at the cloud provider, in the form provider://id. Immutable
	// once set.
	ProviderID string `json:"providerID,omitempty" protobuf:"3"`

	// Unschedulable keeps new pods from the node.
	Unschedulable bool `json:"unschedulable,omitempty" protobuf:"4"`

	// Taints keep pods from the node that do not tolerate them.
	Taints []Taint `json:"taints,omitempty" protobuf:"5" schema:"listType=atomic"`

	// ConfigSource is ignored. Deprecated.
	ConfigSource *NodeConfigSource `json:"configSource,omitempty" protobuf:"6"`

	// DoNotUseExternalID is immutable and unused. Deprecated.
	DoNotUseExternalID string `json:"externalID,omitempty" protobuf:"2"`

	// PodPreemptionPolicy configures the preemption of pods.
	PodPreemptionPolicy *NodePodPreemptionPolicy `json:"podPreemptionPolicy,omitempty" protobuf:"8" schema:"gate=InPlacePodVerticalScalingSchedulerPreemption"`
}

// Taint keeps pods from a node that do not tolerate it.
type Taint struct {
	// Key of the taint. Key and effect together are unique on a node.
	Key string `json:"key" protobuf:"1"`

	// Value of the taint, in the form of a label value.
	Value string `json:"value,omitempty" protobuf:"2"`

	// Effect is NoSchedule, which keeps new pods away, PreferNoSchedule, which the scheduler tries to
	// respect, or NoExecute, which also evicts running pods.
	Effect string `json:"effect" protobuf:"3" schema:"enum=NoSchedule|PreferNoSchedule|NoExecute,unchecked"`

	// TimeAdded is the time at which the taint was added.
	TimeAdded *meta.Time `json:"timeAdded,omitempty" protobuf:"4"`
}

// NodePodPreemptionPolicy configures the preemption of pods on a node.
type NodePodPreemptionPolicy struct {
	// DisableResizePreemption lists the parties that disable preemption for the resize of pods; at most
	// 20. Empty enables it.
	DisableResizePreemption []string `json:"disableResizePreemption,omitempty" protobuf:"1" schema:"listType=set,maxItems=20,items.format=qualified-name"`
}

// NodeConfigSource is a source of the kubelet configuration.
type NodeConfigSource struct {
	// ConfigMap with the configuration.
	ConfigMap *ConfigMapNodeConfigSource `json:"configMap,omitempty" protobuf:"2"`
}

// ConfigMapNodeConfigSource is a ConfigMap with a kubelet configuration.
type ConfigMapNodeConfigSource struct {
	// Namespace of the ConfigMap.
	Namespace string `json:"namespace" protobuf:"1"`

	// Name of the ConfigMap.
	Name string `json:"name" protobuf:"2"`

	// UID of the ConfigMap; only in the status.
	UID string `json:"uid,omitempty" protobuf:"3"`

	// ResourceVersion of the ConfigMap; only in the status.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"4"`

	// KubeletConfigKey is the key of the entry with the configuration.
	KubeletConfigKey string `json:"kubeletConfigKey" protobuf:"5"`
}

// NodeStatus is the observed state of a node.
type NodeStatus struct {
	// Capacity is the total amount of each resource.
	Capacity map[string]meta.Quantity `json:"capacity,omitempty" protobuf:"1"`

	// Allocatable is the amount of each resource that is available to pods; default the capacity.
	Allocatable map[string]meta.Quantity `json:"allocatable,omitempty" protobuf:"2"`

	// Phase is unused. Deprecated.
	Phase string `json:"phase,omitempty" protobuf:"3"`

	// Conditions such as Ready and DiskPressure.
	Conditions []NodeCondition `json:"conditions,omitempty" protobuf:"4" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// Addresses of the node. A type may occur several times, which strategic merge patches do not
	// support.
	Addresses []NodeAddress `json:"addresses,omitempty" protobuf:"5" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// DaemonEndpoints are the ports of daemons on the node.
	DaemonEndpoints NodeDaemonEndpoints `json:"daemonEndpoints,omitempty" protobuf:"6"`

	// NodeInfo identifies the machine and its software.
	NodeInfo NodeSystemInfo `json:"nodeInfo,omitempty" protobuf:"7"`

	// Images on the node.
	Images []ContainerImage `json:"images,omitempty" protobuf:"8" schema:"listType=atomic"`

	// VolumesInUse are the attached volumes that are mounted; they cannot be detached safely.
	VolumesInUse []string `json:"volumesInUse,omitempty" protobuf:"9" schema:"listType=atomic"`

	// VolumesAttached are the volumes that are attached to the node.
	VolumesAttached []AttachedVolume `json:"volumesAttached,omitempty" protobuf:"10" schema:"listType=atomic"`

	// Config is ignored. Deprecated.
	Config *NodeConfigStatus `json:"config,omitempty" protobuf:"11"`

	// RuntimeHandlers are the handlers of the container runtime.
	RuntimeHandlers []NodeRuntimeHandler `json:"runtimeHandlers,omitempty" protobuf:"12" schema:"listType=atomic"`

	// Features of the container runtime.
	Features *NodeFeatures `json:"features,omitempty" protobuf:"13"`

	// DeclaredFeatures are features of the node that other nodes may lack, sorted, such as MyFeature or
	// MyFeature/part.
	DeclaredFeatures []string `json:"declaredFeatures,omitempty" protobuf:"14" schema:"listType=atomic"`
}

// NodeCondition is an aspect of the state of a node.
type NodeCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastHeartbeatTime is the time of the last update by the node.
	LastHeartbeatTime meta.Time `json:"lastHeartbeatTime,omitempty" protobuf:"3"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

// NodeAddress is an address of a node.
type NodeAddress struct {
	// Type is Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.
	Type string `json:"type" protobuf:"1"`

	// Address is an IP address or a DNS name, according to the type.
	Address string `json:"address" protobuf:"2"`
}

// NodeDaemonEndpoints are the ports of daemons on a node.
type NodeDaemonEndpoints struct {
	// KubeletEndpoint is the port of the kubelet.
	KubeletEndpoint DaemonEndpoint `json:"kubeletEndpoint,omitempty" protobuf:"1"`
}

// DaemonEndpoint is the port of a daemon.
type DaemonEndpoint struct {
	// Port number.
	Port int32 `json:"Port" protobuf:"1"`
}

// NodeSystemInfo identifies a machine and its software.
type NodeSystemInfo struct {
	// MachineID identifies the machine, as stored by the operating system.
	MachineID string `json:"machineID" protobuf:"1"`

	// SystemUUID identifies the machine, as reported by the hardware.
	SystemUUID string `json:"systemUUID" protobuf:"2"`

	// BootID changes with each boot.
	BootID string `json:"bootID" protobuf:"3"`

	// KernelVersion of the operating system.
	KernelVersion string `json:"kernelVersion" protobuf:"4"`

	// OSImage is the name of the operating system.
	OSImage string `json:"osImage" protobuf:"5"`

	// ContainerRuntimeVersion is the container runtime, in the form runtime://version.
	ContainerRuntimeVersion string `json:"containerRuntimeVersion" protobuf:"6"`

	// KubeletVersion is the version of the kubelet.
	KubeletVersion string `json:"kubeletVersion" protobuf:"7"`

	// KubeProxyVersion is empty. Deprecated.
	KubeProxyVersion string `json:"kubeProxyVersion" protobuf:"8"`

	// OperatingSystem is linux or windows.
	OperatingSystem string `json:"operatingSystem" protobuf:"9"`

	// Architecture of the processor, such as amd64.
	Architecture string `json:"architecture" protobuf:"10"`

	// Swap describes the swap space.
	Swap *NodeSwapStatus `json:"swap,omitempty" protobuf:"11"`

	// RunningInUserNamespace is true if the kubelet runs in a user namespace.
	RunningInUserNamespace *bool `json:"runningInUserNamespace,omitempty" protobuf:"12"`
}

// NodeSwapStatus describes the swap space of a node.
type NodeSwapStatus struct {
	// Capacity in bytes.
	Capacity *int64 `json:"capacity,omitempty" protobuf:"1"`
}

// ContainerImage is an image on a node.
type ContainerImage struct {
	// Names of the image, with tag and with digest.
	Names []string `json:"names" protobuf:"1" schema:"listType=atomic"`

	// SizeBytes is the size of the image in bytes.
	SizeBytes int64 `json:"sizeBytes,omitempty" protobuf:"2"`
}

// AttachedVolume is a volume that is attached to a node.
type AttachedVolume struct {
	// Name of the volume.
	Name string `json:"name" protobuf:"1"`

	// DevicePath is the path of the device on the node.
	DevicePath string `json:"devicePath" protobuf:"2"`
}

// NodeConfigStatus describes the kubelet configuration.
type NodeConfigStatus struct {
	// Assigned is the configuration that the kubelet is to use.
	Assigned *NodeConfigSource `json:"assigned,omitempty" protobuf:"1"`

	// Active is the configuration in use.
	Active *NodeConfigSource `json:"active,omitempty" protobuf:"2"`

	// LastKnownGood is the configuration to which the kubelet returns if another fails.
	LastKnownGood *NodeConfigSource `json:"lastKnownGood,omitempty" protobuf:"3"`

	// Error describes why the assigned configuration is not in use.
	Error string `json:"error,omitempty" protobuf:"4"`
}

// NodeRuntimeHandler is a handler of the container runtime.
type NodeRuntimeHandler struct {
	// Name of the handler. Empty is the default handler.
	Name string `json:"name" protobuf:"1" schema:"optional"`

	// Features of the handler.
	Features *NodeRuntimeHandlerFeatures `json:"features,omitempty" protobuf:"2"`
}

// NodeRuntimeHandlerFeatures are the features of a handler.
type NodeRuntimeHandlerFeatures struct {
	// RecursiveReadOnlyMounts is true if the handler supports recursive read-only mounts.
	RecursiveReadOnlyMounts *bool `json:"recursiveReadOnlyMounts,omitempty" protobuf:"1"`

	// UserNamespaces is true if the handler supports user namespaces.
	UserNamespaces *bool `json:"userNamespaces,omitempty" protobuf:"2"`
}

// NodeFeatures are the features of the container runtime of a node.
type NodeFeatures struct {
	// SupplementalGroupsPolicy is true if the runtime supports the field of that name in pods.
	SupplementalGroupsPolicy *bool `json:"supplementalGroupsPolicy,omitempty" protobuf:"1"`
}
