package core

import "orch.io/controlplane/api/meta"

// PodStatus is the observed state of a pod.
type PodStatus struct {
	// ObservedGeneration is the latest generation that the kubelet has processed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"17" schema:"min=0"`

	// Phase is Pending, Running, Succeeded, Failed or Unknown.
	Phase string `json:"phase,omitempty" protobuf:"1"`

	// Conditions such as Ready and PodScheduled.
	Conditions []PodCondition `json:"conditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// Message explains the state to people.
	Message string `json:"message,omitempty" protobuf:"3"`

	// Reason is a CamelCase identifier of the state, such as Evicted.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// NominatedNodeName is the node on which pods are preempted to make room for the pod.
	NominatedNodeName string `json:"nominatedNodeName,omitempty" protobuf:"11"`

	// HostIP is the IP address of the node.
	HostIP string `json:"hostIP,omitempty" protobuf:"5"`

	// HostIPs are the IP addresses of the node, at most 1 of each family. The first equals hostIP.
	HostIPs []HostIP `json:"hostIPs,omitempty" protobuf:"16" patchStrategy:"merge" patchMergeKey:"ip" schema:"listType=atomic"`

	// PodIP is the IP address of the pod.
	PodIP string `json:"podIP,omitempty" protobuf:"6"`

	// PodIPs are the IP addresses of the pod, at most 1 of each family. The first equals podIP.
	PodIPs []PodIP `json:"podIPs,omitempty" protobuf:"12" patchStrategy:"merge" patchMergeKey:"ip" schema:"listType=map,listMapKeys=ip,repeats"`

	// StartTime is the time at which the kubelet accepted the pod.
	StartTime *meta.Time `json:"startTime,omitempty" protobuf:"7"`

	// InitContainerStatuses are the states of the init containers.
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses,omitempty" protobuf:"10" schema:"listType=atomic"`

	// ContainerStatuses are the states of the containers.
	ContainerStatuses []ContainerStatus `json:"containerStatuses,omitempty" protobuf:"8" schema:"listType=atomic"`

	// QOSClass is Guaranteed, Burstable or BestEffort, according to requests and limits. Immutable.
	QOSClass string `json:"qosClass,omitempty" protobuf:"9"`

	// EphemeralContainerStatuses are the states of the ephemeral containers.
	EphemeralContainerStatuses []ContainerStatus `json:"ephemeralContainerStatuses,omitempty" protobuf:"13" schema:"listType=atomic"`

	// Resize is the state of a resize. Deprecated: use the conditions.
	Resize string `json:"resize,omitempty" protobuf:"14"`

	// ResourceClaimStatuses lists the claims that were created for the pod.
	ResourceClaimStatuses []PodResourceClaimStatus `json:"resourceClaimStatuses,omitempty" protobuf:"15" patchStrategy:"merge,retainKeys" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// ExtendedResourceClaimStatus is the claim for extended resources.
	ExtendedResourceClaimStatus *PodExtendedResourceClaimStatus `json:"extendedResourceClaimStatus,omitempty" protobuf:"18"`

	// AllocatedResources are the amounts that the node has reserved.
	AllocatedResources map[string]meta.Quantity `json:"allocatedResources,omitempty" protobuf:"19" schema:"values.milli"`

	// Resources are the pod-level requests and limits in effect.
	Resources *ResourceRequirements `json:"resources,omitempty" protobuf:"20"`

	// NodeAllocatableResourceClaimStatuses lists the claims that use resources of the node.
	NodeAllocatableResourceClaimStatuses []NodeAllocatableResourceClaimStatus `json:"nodeAllocatableResourceClaimStatuses,omitempty" protobuf:"21" patchStrategy:"merge" patchMergeKey:"resourceClaimName" schema:"listType=map,listMapKeys=resourceClaimName,repeats,gate=DRANodeAllocatableResources"`

	// VolumeHealth is the health of the volumes as reported by the node.
	VolumeHealth []PodVolumeHealth `json:"volumeHealth,omitempty" protobuf:"22" schema:"listType=map,listMapKeys=name,gate=CSIVolumeHealth"`
}

// PodCondition is an aspect of the state of a pod.
type PodCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`

	// ObservedGeneration is the generation that the condition was computed for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"7" schema:"min=0"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastProbeTime is the time of the last check.
	LastProbeTime meta.Time `json:"lastProbeTime,omitempty" protobuf:"3"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

// HostIP is an IP address of a node.
type HostIP struct {
	// IP is the IP address.
	IP string `json:"ip" protobuf:"1"`
}

// PodIP is an IP address of a pod.
type PodIP struct {
	// IP is the IP address.
	IP string `json:"ip" protobuf:"1"`
}

// PodResourceClaimStatus is a claim that was created for a pod.
type PodResourceClaimStatus struct {
	// Name of the claim in the pod.
	Name string `json:"name" protobuf:"1"`

	// ResourceClaimName is the name of the claim. Unset means that none was needed.
	ResourceClaimName *string `json:"resourceClaimName,omitempty" protobuf:"2"`
}

// PodExtendedResourceClaimStatus is the claim for extended resources of a pod.
type PodExtendedResourceClaimStatus struct {
	// RequestMappings map the extended resources of containers to requests of the claim.
	RequestMappings []ContainerExtendedResourceRequest `json:"requestMappings" protobuf:"1" schema:"listType=atomic"`

	// ResourceClaimName is the name of the claim.
	ResourceClaimName string `json:"resourceClaimName" protobuf:"2"`
}

// ContainerExtendedResourceRequest maps an extended resource of a container to a request of a claim.
type ContainerExtendedResourceRequest struct {
	// ContainerName is the name of the container.
	ContainerName string `json:"containerName" protobuf:"1"`

	// ResourceName is the extended resource.
	ResourceName string `json:"resourceName" protobuf:"2"`

	// RequestName is the name of the request.
	RequestName string `json:"requestName" protobuf:"3"`
}

// NodeAllocatableResourceClaimStatus is a claim that uses resources of the node.
type NodeAllocatableResourceClaimStatus struct {
	// ResourceClaimName is the name of the claim.
	ResourceClaimName string `json:"resourceClaimName" protobuf:"1"`

	// Containers that use the claim.
	Containers []string `json:"containers,omitempty" protobuf:"2" schema:"listType=set,repeats"`

	// Resources that the claim uses.
	Resources map[string]meta.Quantity `json:"resources,omitempty" protobuf:"3"`

	// Mapping lists the amounts that the devices provide.
	Mapping []NodeAllocatableMappedResources `json:"mapping,omitempty" protobuf:"4" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name"`

	// Overhead lists the amounts that the devices use in addition.
	Overhead []NodeAllocatableOverheadResources `json:"overhead,omitempty" protobuf:"5" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name"`
}

// NodeAllocatableMappedResources is the amount of a node resource that devices provide.
type NodeAllocatableMappedResources struct {
	// Name of the resource, such as memory.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// Quantity that the containers of the claim share.
	Quantity *meta.Quantity `json:"quantity" protobuf:"2" schema:"required"`
}

// NodeAllocatableOverheadResources is the additional amount of a node resource that devices use.
type NodeAllocatableOverheadResources struct {
	// Name of the resource, such as memory.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// PerPod is the amount for the pod.
	PerPod *meta.Quantity `json:"perPod,omitempty" protobuf:"2"`

	// PerContainer is the amount for each container of the claim.
	PerContainer *meta.Quantity `json:"perContainer,omitempty" protobuf:"3"`
}

// PodVolumeHealth is the health of a volume of a pod.
type PodVolumeHealth struct {
	// Name of the volume in the pod.
	Name string `json:"name" protobuf:"1" schema:"required"`

	// HealthConditions are the problems; at most 16. Empty means healthy.
	HealthConditions []VolumeHealthCondition `json:"healthConditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"status" schema:"listType=map,listMapKeys=status|reason,maxItems=16"`

	// LastTransitionTime is the time at which the conditions last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`
}
