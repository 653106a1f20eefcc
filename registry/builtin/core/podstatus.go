package core

import "orch.io/controlplane/api/meta"

// PodStatus is the state of a pod.
type PodStatus struct {
	// ObservedGeneration is the pod's generation that the node has seen.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"17" schema:"min=0"`

	// Phase is Pending, Running, Succeeded, Failed or Unknown.
	Phase string `json:"phase,omitempty" protobuf:"1"`

	// Conditions are aspects of the state, such as Ready and PodScheduled.
	Conditions []PodCondition `json:"conditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// Message says for people why the pod is in this state.
	Message string `json:"message,omitempty" protobuf:"3"`

	// Reason says in a word why the pod is in this state, such as Evicted.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// NominatedNodeName is a node that the pod may get once others have made
	// room.
	NominatedNodeName string `json:"nominatedNodeName,omitempty" protobuf:"11"`

	// HostIP is the address of the node.
	HostIP string `json:"hostIP,omitempty" protobuf:"5"`

	// HostIPs are all addresses of the node; the first equals hostIP.
	HostIPs []HostIP `json:"hostIPs,omitempty" protobuf:"16" patchStrategy:"merge" patchMergeKey:"ip" schema:"listType=atomic"`

	// PodIP is the address of the pod.
	PodIP string `json:"podIP,omitempty" protobuf:"6"`

	// PodIPs are all addresses of the pod; the first equals podIP.
	PodIPs []PodIP `json:"podIPs,omitempty" protobuf:"12" patchStrategy:"merge" patchMergeKey:"ip" schema:"listType=map,listMapKeys=ip,repeats"`

	// StartTime is when the node first saw the pod.
	StartTime *meta.Time `json:"startTime,omitempty" protobuf:"7"`

	// InitContainerStatuses are the states of the init containers.
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses,omitempty" protobuf:"10" schema:"listType=atomic"`

	// ContainerStatuses are the states of the containers.
	ContainerStatuses []ContainerStatus `json:"containerStatuses,omitempty" protobuf:"8" schema:"listType=atomic"`

	// QOSClass is Guaranteed, Burstable or BestEffort, by requests and limits.
	QOSClass string `json:"qosClass,omitempty" protobuf:"9"`

	// EphemeralContainerStatuses are the states of the ephemeral containers.
	EphemeralContainerStatuses []ContainerStatus `json:"ephemeralContainerStatuses,omitempty" protobuf:"13" schema:"listType=atomic"`

	// Resize is the state of a change of resources. Deprecated: see the
	// conditions.
	Resize string `json:"resize,omitempty" protobuf:"14"`

	// ResourceClaimStatuses are the claims that were made for the pod.
	ResourceClaimStatuses []PodResourceClaimStatus `json:"resourceClaimStatuses,omitempty" protobuf:"15" patchStrategy:"merge,retainKeys" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// ExtendedResourceClaimStatus is the claim that stands for extended
	// resources.
	ExtendedResourceClaimStatus *PodExtendedResourceClaimStatus `json:"extendedResourceClaimStatus,omitempty" protobuf:"18"`

	// AllocatedResources are what the node has set aside for the pod.
	AllocatedResources map[string]meta.Quantity `json:"allocatedResources,omitempty" protobuf:"19" schema:"values.milli"`

	// Resources that are in effect for the pod as a whole.
	Resources *ResourceRequirements `json:"resources,omitempty" protobuf:"20"`

	// NodeAllocatableResourceClaimStatuses are the claims that count against the
	// node's resources.
	NodeAllocatableResourceClaimStatuses []NodeAllocatableResourceClaimStatus `json:"nodeAllocatableResourceClaimStatuses,omitempty" protobuf:"21" patchStrategy:"merge" patchMergeKey:"resourceClaimName" schema:"listType=map,listMapKeys=resourceClaimName,repeats,gate=DRANodeAllocatableResources"`

	// VolumeHealth is what the node says of the health of the volumes.
	VolumeHealth []PodVolumeHealth `json:"volumeHealth,omitempty" protobuf:"22" schema:"listType=map,listMapKeys=name,gate=CSIVolumeHealth"`
}

// PodCondition is one aspect of a pod's state.
type PodCondition struct {
	// Type names the aspect that the condition is about.
	Type string `json:"type" protobuf:"1"`

	// ObservedGeneration is the generation of the object that this tells about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"7" schema:"min=0"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastProbeTime is when the condition was last looked at.
	LastProbeTime meta.Time `json:"lastProbeTime,omitempty" protobuf:"3"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

// HostIP is an address of a node.
type HostIP struct {
	// IP is the address.
	IP string `json:"ip" protobuf:"1"`
}

// PodIP is an address of a pod.
type PodIP struct {
	// IP is the address.
	IP string `json:"ip" protobuf:"1"`
}

// PodResourceClaimStatus is a claim that was made for a pod.
type PodResourceClaimStatus struct {
	// Name of the claim in the pod.
	Name string `json:"name" protobuf:"1"`

	// ResourceClaimName is the claim's own name; unset: none was needed.
	ResourceClaimName *string `json:"resourceClaimName,omitempty" protobuf:"2"`
}

// PodExtendedResourceClaimStatus is the claim that stands for extended
// resources.
type PodExtendedResourceClaimStatus struct {
	// RequestMappings say which request stands for which resource.
	RequestMappings []ContainerExtendedResourceRequest `json:"requestMappings" protobuf:"1" schema:"listType=atomic"`

	// ResourceClaimName is the claim.
	ResourceClaimName string `json:"resourceClaimName" protobuf:"2"`
}

// ContainerExtendedResourceRequest says which request stands for a container's
// resource.
type ContainerExtendedResourceRequest struct {
	// ContainerName is the container.
	ContainerName string `json:"containerName" protobuf:"1"`

	// ResourceName is the extended resource.
	ResourceName string `json:"resourceName" protobuf:"2"`

	// RequestName is the request in the claim.
	RequestName string `json:"requestName" protobuf:"3"`
}

// NodeAllocatableResourceClaimStatus is a claim that counts against a node's
// resources.
type NodeAllocatableResourceClaimStatus struct {
	// ResourceClaimName is the claim.
	ResourceClaimName string `json:"resourceClaimName" protobuf:"1"`

	// Containers that use the claim.
	Containers []string `json:"containers,omitempty" protobuf:"2" schema:"listType=set,repeats"`

	// Resources that the claim takes.
	Resources map[string]meta.Quantity `json:"resources,omitempty" protobuf:"3"`

	// Mapping is what the devices of the claim take themselves.
	Mapping []NodeAllocatableMappedResources `json:"mapping,omitempty" protobuf:"4" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name"`

	// Overhead is what it costs beside them.
	Overhead []NodeAllocatableOverheadResources `json:"overhead,omitempty" protobuf:"5" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name"`
}

// NodeAllocatableMappedResources is what devices take of a node's resource.
type NodeAllocatableMappedResources struct {
	// Name of the resource, such as memory.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// Quantity that all containers of the claim share.
	Quantity *meta.Quantity `json:"quantity" protobuf:"2" schema:"required"`
}

// NodeAllocatableOverheadResources is what devices cost beside themselves.
type NodeAllocatableOverheadResources struct {
	// Name of the resource, such as memory.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// PerPod is what it costs once.
	PerPod *meta.Quantity `json:"perPod,omitempty" protobuf:"2"`

	// PerContainer is what it costs for each container of the claim.
	PerContainer *meta.Quantity `json:"perContainer,omitempty" protobuf:"3"`
}

// PodVolumeHealth is what is wrong with a volume of a pod.
type PodVolumeHealth struct {
	// Name of the volume in the pod.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// HealthConditions are the faults; none: the volume is well.
	HealthConditions []VolumeHealthCondition `json:"healthConditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"status" schema:"listType=map,listMapKeys=status|reason,maxItems=16"`

	// LastTransitionTime is when they last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`
}
