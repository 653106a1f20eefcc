package core

import (
	"orch.io/controlplane/api/meta"
)

// Node is a machine that runs pods.
type Node struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is decided about the node.
	Spec NodeSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the node says of itself.
	Status NodeStatus `json:"status,omitempty" protobuf:"3"`
}

// NodeSpec is what is decided about a node.
type NodeSpec struct {
	// PodCIDR is the range of the addresses of its pods, the first of podCIDRs.
	PodCIDR string `json:"podCIDR,omitempty" protobuf:"1"`

	// PodCIDRs are the ranges of the addresses of its pods, at most one of each IP
	// family. They cannot change.
	PodCIDRs []string `json:"podCIDRs,omitempty" protobuf:"7" patchStrategy:"merge" schema:"listType=set,repeats"`

	// ProviderID is the machine as its provider knows it, provider://id. It cannot
	// change.
	ProviderID string `json:"providerID,omitempty" protobuf:"3"`

	// Unschedulable keeps new pods away.
	Unschedulable bool `json:"unschedulable,omitempty" protobuf:"4"`

	// Taints keep pods away that do not tolerate them.
	Taints []Taint `json:"taints,omitempty" protobuf:"5" schema:"listType=atomic"`

	// ConfigSource is ignored. Deprecated: nodes have their configuration from
	// elsewhere.
	ConfigSource *NodeConfigSource `json:"configSource,omitempty" protobuf:"6"`

	// DoNotUseExternalID is kept as it was first. Deprecated: nothing reads it.
	DoNotUseExternalID string `json:"externalID,omitempty" protobuf:"2"`

	// PodPreemptionPolicy says when pods make way for others.
	PodPreemptionPolicy *NodePodPreemptionPolicy `json:"podPreemptionPolicy,omitempty" protobuf:"8" schema:"gate=InPlacePodVerticalScalingSchedulerPreemption"`
}

// Taint keeps pods from a node that do not tolerate it.
type Taint struct {
	// Key of the taint; with its effect it is there once.
	Key string `json:"key" protobuf:"1"`

	// Value of the taint, as of a label.
	Value string `json:"value,omitempty" protobuf:"2"`

	// Effect on pods: NoSchedule keeps new ones away, PreferNoSchedule does if others
	// will do, NoExecute removes those that run, too.
	Effect string `json:"effect" protobuf:"3" schema:"enum=NoSchedule|PreferNoSchedule|NoExecute,unchecked"`

	// TimeAdded is when the taint was added.
	TimeAdded *meta.Time `json:"timeAdded,omitempty" protobuf:"4"`
}

// NodePodPreemptionPolicy says when pods of a node make way for others.
type NodePodPreemptionPolicy struct {
	// DisableResizePreemption names those who ask that no pod makes way when another one
	// is resized, at most 20. None: pods do.
	DisableResizePreemption []string `json:"disableResizePreemption,omitempty" protobuf:"1" schema:"listType=set,maxItems=20,items.format=qualified-name"`
}

// NodeConfigSource is where a node has its configuration from.
type NodeConfigSource struct {
	// ConfigMap that holds it.
	ConfigMap *ConfigMapNodeConfigSource `json:"configMap,omitempty" protobuf:"2"`
}

// ConfigMapNodeConfigSource is a ConfigMap with the configuration of a node.
type ConfigMapNodeConfigSource struct {
	// Namespace of the ConfigMap.
	Namespace string `json:"namespace" protobuf:"1"`

	// Name of the ConfigMap.
	Name string `json:"name" protobuf:"2"`

	// UID of the ConfigMap; in the status only.
	UID string `json:"uid,omitempty" protobuf:"3"`

	// ResourceVersion of the ConfigMap; in the status only.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"4"`

	// KubeletConfigKey is the key of its data that has the configuration.
	KubeletConfigKey string `json:"kubeletConfigKey" protobuf:"5"`
}

// NodeStatus is what a node says of itself.
type NodeStatus struct {
	// Capacity is what the machine has of each resource.
	Capacity map[string]meta.Quantity `json:"capacity,omitempty" protobuf:"1"`

	// Allocatable is what of that pods may have; all by default.
	Allocatable map[string]meta.Quantity `json:"allocatable,omitempty" protobuf:"2"`

	// Phase is Pending, Running or Terminated. Deprecated: nobody sets it.
	Phase string `json:"phase,omitempty" protobuf:"3"`

	// Conditions are aspects of the state, such as Ready and DiskPressure.
	Conditions []NodeCondition `json:"conditions,omitempty" protobuf:"4" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// Addresses at which the node is reached. A type may be there more than once, which
	// patches that merge by type do not know.
	Addresses []NodeAddress `json:"addresses,omitempty" protobuf:"5" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// DaemonEndpoints are the ports of what runs on the node.
	DaemonEndpoints NodeDaemonEndpoints `json:"daemonEndpoints,omitempty" protobuf:"6"`

	// NodeInfo identifies the machine and its software.
	NodeInfo NodeSystemInfo `json:"nodeInfo,omitempty" protobuf:"7"`

	// Images that are on the node.
	Images []ContainerImage `json:"images,omitempty" protobuf:"8" schema:"listType=atomic"`

	// VolumesInUse are volumes that the node has mounted; they cannot be detached.
	VolumesInUse []string `json:"volumesInUse,omitempty" protobuf:"9" schema:"listType=atomic"`

	// VolumesAttached are the volumes that are attached to the node.
	VolumesAttached []AttachedVolume `json:"volumesAttached,omitempty" protobuf:"10" schema:"listType=atomic"`

	// Config is ignored. Deprecated: see the configSource of the spec.
	Config *NodeConfigStatus `json:"config,omitempty" protobuf:"11"`

	// RuntimeHandlers are the ways to run containers that the node knows.
	RuntimeHandlers []NodeRuntimeHandler `json:"runtimeHandlers,omitempty" protobuf:"12" schema:"listType=atomic"`

	// Features that the container runtime has.
	Features *NodeFeatures `json:"features,omitempty" protobuf:"13"`

	// DeclaredFeatures are what the node can do that others cannot, sorted, such as
	// MyFeature or MyFeature/part.
	DeclaredFeatures []string `json:"declaredFeatures,omitempty" protobuf:"14" schema:"listType=atomic"`
}

// NodeCondition is one aspect of a node's state.
type NodeCondition struct {
	// Type names the aspect that the condition is about.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastHeartbeatTime is when the node last told about it.
	LastHeartbeatTime meta.Time `json:"lastHeartbeatTime,omitempty" protobuf:"3"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

// NodeAddress is an address of a node.
type NodeAddress struct {
	// Type is Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.
	Type string `json:"type" protobuf:"1"`

	// Address is an IP or a name, by the type.
	Address string `json:"address" protobuf:"2"`
}

// NodeDaemonEndpoints are the ports of what runs on a node.
type NodeDaemonEndpoints struct {
	// KubeletEndpoint is that of the node agent.
	KubeletEndpoint DaemonEndpoint `json:"kubeletEndpoint,omitempty" protobuf:"1"`
}

// DaemonEndpoint is where a program on a node listens.
type DaemonEndpoint struct {
	// Port number.
	Port int32 `json:"Port" protobuf:"1"`
}

// NodeSystemInfo identifies a machine and its software.
type NodeSystemInfo struct {
	// MachineID is the machine's own, as the operating system keeps it.
	MachineID string `json:"machineID" protobuf:"1"`

	// SystemUUID is the machine's own, as the hardware has it.
	SystemUUID string `json:"systemUUID" protobuf:"2"`

	// BootID is another one after each start.
	BootID string `json:"bootID" protobuf:"3"`

	// KernelVersion of the operating system.
	KernelVersion string `json:"kernelVersion" protobuf:"4"`

	// OSImage is the name of the operating system for people.
	OSImage string `json:"osImage" protobuf:"5"`

	// ContainerRuntimeVersion is the runtime and its version, runtime://version.
	ContainerRuntimeVersion string `json:"containerRuntimeVersion" protobuf:"6"`

	// KubeletVersion is that of the node agent.
	KubeletVersion string `json:"kubeletVersion" protobuf:"7"`

	// KubeProxyVersion is empty. Deprecated: nodes do not know it.
	KubeProxyVersion string `json:"kubeProxyVersion" protobuf:"8"`

	// OperatingSystem is linux or windows.
	OperatingSystem string `json:"operatingSystem" protobuf:"9"`

	// Architecture of the processor, such as amd64.
	Architecture string `json:"architecture" protobuf:"10"`

	// Swap is the memory that is on disk.
	Swap *NodeSwapStatus `json:"swap,omitempty" protobuf:"11"`

	// RunningInUserNamespace tells that the node agent is root in a user namespace only.
	RunningInUserNamespace *bool `json:"runningInUserNamespace,omitempty" protobuf:"12"`
}

// NodeSwapStatus is the memory of a node that is on disk.
type NodeSwapStatus struct {
	// Capacity in bytes.
	Capacity *int64 `json:"capacity,omitempty" protobuf:"1"`
}

// ContainerImage is an image that is on a node.
type ContainerImage struct {
	// Names of the image, by tag and by digest.
	Names []string `json:"names" protobuf:"1" schema:"listType=atomic"`

	// SizeBytes is how large it is.
	SizeBytes int64 `json:"sizeBytes,omitempty" protobuf:"2"`
}

// AttachedVolume is a volume that is attached to a node.
type AttachedVolume struct {
	// Name of the volume.
	Name string `json:"name" protobuf:"1"`

	// DevicePath is the device that it is on the node.
	DevicePath string `json:"devicePath" protobuf:"2"`
}

// NodeConfigStatus is which configuration a node uses.
type NodeConfigStatus struct {
	// Assigned is the one that it shall use.
	Assigned *NodeConfigSource `json:"assigned,omitempty" protobuf:"1"`

	// Active is the one that it uses.
	Active *NodeConfigSource `json:"active,omitempty" protobuf:"2"`

	// LastKnownGood is the one that it goes back to when another one fails.
	LastKnownGood *NodeConfigSource `json:"lastKnownGood,omitempty" protobuf:"3"`

	// Error says why it does not use the assigned one.
	Error string `json:"error,omitempty" protobuf:"4"`
}

// NodeRuntimeHandler is a way to run containers that a node knows.
type NodeRuntimeHandler struct {
	// Name of the handler; empty: the default one.
	Name string `json:"name" protobuf:"1" schema:"optional"`

	// Features that it has.
	Features *NodeRuntimeHandlerFeatures `json:"features,omitempty" protobuf:"2"`
}

// NodeRuntimeHandlerFeatures are what a handler can do.
type NodeRuntimeHandlerFeatures struct {
	// RecursiveReadOnlyMounts: mounts are read-only with all below them.
	RecursiveReadOnlyMounts *bool `json:"recursiveReadOnlyMounts,omitempty" protobuf:"1"`

	// UserNamespaces: pods have user namespaces of their own.
	UserNamespaces *bool `json:"userNamespaces,omitempty" protobuf:"2"`
}

// NodeFeatures are what the container runtime of a node can do.
type NodeFeatures struct {
	// SupplementalGroupsPolicy: pods choose which supplemental groups they get.
	SupplementalGroupsPolicy *bool `json:"supplementalGroupsPolicy,omitempty" protobuf:"1"`
}
