package core

import "orch.io/controlplane/api/meta"

// PodSpec is the desired state of a pod.
type PodSpec struct {
	// Volumes that the containers can mount.
	Volumes []Volume `json:"volumes,omitempty" protobuf:"1" patchStrategy:"merge,retainKeys" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,ratcheting"`

	// InitContainers run to completion in order before the containers start. Sidecars, with
	// restartPolicy Always, keep running.
	InitContainers []Container `json:"initContainers,omitempty" protobuf:"20" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// Containers of the pod; at least one. The list is immutable.
	Containers []Container `json:"containers" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// EphemeralContainers are added to a running pod for debugging, through the subresource
	// ephemeralcontainers.
	EphemeralContainers []EphemeralContainer `json:"ephemeralContainers,omitempty" protobuf:"34" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// RestartPolicy of the containers: Always (default), OnFailure or Never.
	RestartPolicy string `json:"restartPolicy,omitempty" protobuf:"3" schema:"default=Always,enum=Always|OnFailure|Never"`

	// TerminationGracePeriodSeconds is the number of seconds between the termination signal and the
	// kill signal; default 30.
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty" protobuf:"4" schema:"default=30"`

	// ActiveDeadlineSeconds is the number of seconds after the start at which the pod fails. It can
	// only be reduced.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty" protobuf:"5" schema:"range=1|2147483647"`

	// DNSPolicy is ClusterFirst (default), ClusterFirstWithHostNet, Default or None, which requires
	// dnsConfig.
	DNSPolicy string `json:"dnsPolicy,omitempty" protobuf:"6" schema:"default=ClusterFirst,enum=ClusterFirstWithHostNet|ClusterFirst|Default|None"`

	// NodeSelector lists labels that the node must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" protobuf:"7" schema:"mapType=atomic,format=labels"`

	// ServiceAccountName is the service account of the pod.
	ServiceAccountName string `json:"serviceAccountName,omitempty" protobuf:"8" schema:"format=dns-subdomain"`

	// DeprecatedServiceAccount is the old name of serviceAccountName. Both are always equal.
	DeprecatedServiceAccount string `json:"serviceAccount,omitempty" protobuf:"9"`

	// AutomountServiceAccountToken decides whether a token of the service account is mounted.
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken,omitempty" protobuf:"21"`

	// NodeName is the node of the pod. The scheduler sets it through the subresource binding.
	NodeName string `json:"nodeName,omitempty" protobuf:"10" schema:"format=dns-subdomain"`

	// HostNetwork uses the network namespace of the node. Container ports must then equal host ports.
	HostNetwork bool `json:"hostNetwork,omitempty" protobuf:"11"`

	// HostPID uses the process namespace of the node.
	HostPID bool `json:"hostPID,omitempty" protobuf:"12"`

	// HostIPC uses the IPC namespace of the node.
	HostIPC bool `json:"hostIPC,omitempty" protobuf:"13"`

	// ShareProcessNamespace shares a process namespace between all containers. It excludes hostPID.
	ShareProcessNamespace *bool `json:"shareProcessNamespace,omitempty" protobuf:"27"`

	// SecurityContext holds security settings of the pod and defaults for its containers.
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty" protobuf:"14"`

	// ImagePullSecrets are Secrets with credentials for pulling images.
	ImagePullSecrets []LocalObjectReference `json:"imagePullSecrets,omitempty" protobuf:"15" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// Hostname of the pod; default its name.
	Hostname string `json:"hostname,omitempty" protobuf:"16" schema:"format=dns-label,unchecked"`

	// Subdomain of the pod. The full name is hostname.subdomain.namespace.svc.domain.
	Subdomain string `json:"subdomain,omitempty" protobuf:"17" schema:"format=dns-label,unchecked"`

	// Affinity restricts the placement of the pod.
	Affinity *Affinity `json:"affinity,omitempty" protobuf:"18"`

	// SchedulerName is the scheduler of the pod; default default-scheduler.
	SchedulerName string `json:"schedulerName,omitempty" protobuf:"19" schema:"default=default-scheduler"`

	// Tolerations allow the pod on nodes with matching taints.
	Tolerations []Toleration `json:"tolerations,omitempty" protobuf:"22" schema:"listType=atomic"`

	// HostAliases are entries of the hosts file of the pod.
	HostAliases []HostAlias `json:"hostAliases,omitempty" protobuf:"23" patchStrategy:"merge" patchMergeKey:"ip" schema:"listType=map,listMapKeys=ip,repeats"`

	// PriorityClassName is the PriorityClass of the pod.
	PriorityClassName string `json:"priorityClassName,omitempty" protobuf:"24" schema:"format=dns-subdomain"`

	// Priority of the pod: higher is more important. Admission sets it from the class.
	Priority *int32 `json:"priority,omitempty" protobuf:"25"`

	// DNSConfig is merged with the configuration of dnsPolicy.
	DNSConfig *PodDNSConfig `json:"dnsConfig,omitempty" protobuf:"26"`

	// ReadinessGates are conditions that must be True for the pod to be ready.
	ReadinessGates []PodReadinessGate `json:"readinessGates,omitempty" protobuf:"28" schema:"listType=atomic"`

	// RuntimeClassName is the RuntimeClass of the pod.
	RuntimeClassName *string `json:"runtimeClassName,omitempty" protobuf:"29" schema:"format=dns-subdomain"`

	// EnableServiceLinks sets environment variables with the addresses of services; default true.
	EnableServiceLinks *bool `json:"enableServiceLinks,omitempty" protobuf:"30"`

	// PreemptionPolicy is PreemptLowerPriority or Never.
	PreemptionPolicy *string `json:"preemptionPolicy,omitempty" protobuf:"31" schema:"enum=PreemptLowerPriority|Never"`

	// Overhead is the amount of resources that the pod needs in addition to its containers. Admission
	// sets it from the RuntimeClass.
	Overhead map[string]meta.Quantity `json:"overhead,omitempty" protobuf:"32" schema:"values.milli"`

	// TopologySpreadConstraints spread pods over topology domains.
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty" protobuf:"33" patchStrategy:"merge" patchMergeKey:"topologyKey" schema:"listType=map,listMapKeys=topologyKey|whenUnsatisfiable,repeats"`

	// SetHostnameAsFQDN sets the host name to the fully qualified domain name.
	SetHostnameAsFQDN *bool `json:"setHostnameAsFQDN,omitempty" protobuf:"35"`

	// OS is the operating system of the containers.
	OS *PodOS `json:"os,omitempty" protobuf:"36"`

	// HostUsers, if false, gives the pod a user namespace of its own.
	HostUsers *bool `json:"hostUsers,omitempty" protobuf:"37"`

	// SchedulingGates prevent the scheduling of the pod until all are removed. They can be set on
	// create only.
	SchedulingGates []PodSchedulingGate `json:"schedulingGates,omitempty" protobuf:"38" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// ResourceClaims that must be allocated before the pod starts. Containers refer to them by name.
	ResourceClaims []PodResourceClaim `json:"resourceClaims,omitempty" protobuf:"39" patchStrategy:"merge,retainKeys" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// Resources are pod-level requests and limits.
	Resources *ResourceRequirements `json:"resources,omitempty" protobuf:"40"`

	// HostnameOverride overrides the host name. It excludes hostNetwork and setHostnameAsFQDN.
	HostnameOverride *string `json:"hostnameOverride,omitempty" protobuf:"41" schema:"format=dns-subdomain,unchecked"`

	// SchedulingGroup is the group that the pod is scheduled with.
	SchedulingGroup *PodSchedulingGroup `json:"schedulingGroup,omitempty" protobuf:"43" schema:"gate=GenericWorkload"`

	// EvictionResponders are notified in order of priority when the pod is to be evicted, so that it
	// can end gracefully; at most 10. Immutable, and not allowed with schedulingGroup.
	EvictionResponders []EvictionResponder `json:"evictionResponders,omitempty" protobuf:"44" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,maxItems=10,gate=EvictionRequestAPI"`
}

// Toleration tolerates taints of nodes.
type Toleration struct {
	// Key of the tolerated taints. Empty with operator Exists means all taints.
	Key string `json:"key,omitempty" protobuf:"1" schema:"format=qualified-name"`

	// Operator is Equal (default), which compares the value, or Exists, which tolerates every value.
	Operator string `json:"operator,omitempty" protobuf:"2"`

	// Value of the tolerated taints, for operator Equal.
	Value string `json:"value,omitempty" protobuf:"3"`

	// Effect of the tolerated taints: NoSchedule, PreferNoSchedule or NoExecute. Empty means every
	// effect.
	Effect string `json:"effect,omitempty" protobuf:"4" schema:"enum=NoSchedule|PreferNoSchedule|NoExecute"`

	// TolerationSeconds is the number of seconds for which a NoExecute taint is tolerated. Unset means
	// forever.
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty" protobuf:"5"`
}

// HostAlias is an entry of the hosts file.
type HostAlias struct {
	// IP is the address.
	IP string `json:"ip" protobuf:"1" schema:"format=ip"`

	// Hostnames of the address.
	Hostnames []string `json:"hostnames,omitempty" protobuf:"2" schema:"listType=atomic,items.format=dns-subdomain"`
}

// PodDNSConfig is the DNS configuration of a pod.
type PodDNSConfig struct {
	// Nameservers are IP addresses of DNS servers; at most 3 including the servers of dnsPolicy.
	Nameservers []string `json:"nameservers,omitempty" protobuf:"1" schema:"listType=atomic,items.format=ip"`

	// Searches are domains in which short names are looked up; at most 32, and 2048 characters in
	// total.
	Searches []string `json:"searches,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Options of the resolver.
	Options []PodDNSConfigOption `json:"options,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// PodDNSConfigOption is an option of the resolver.
type PodDNSConfigOption struct {
	// Name of the option.
	Name string `json:"name,omitempty" protobuf:"1"`

	// Value of the option, if it has one.
	Value *string `json:"value,omitempty" protobuf:"2"`
}

// PodReadinessGate is a condition that must be True for a pod to be ready.
type PodReadinessGate struct {
	// ConditionType is the type of the condition in the status.
	ConditionType string `json:"conditionType" protobuf:"1" schema:"format=qualified-name"`
}

// TopologySpreadConstraint spreads pods over topology domains.
type TopologySpreadConstraint struct {
	// MaxSkew is the largest difference between the numbers of matching pods in the domains; positive.
	MaxSkew int32 `json:"maxSkew" protobuf:"1" schema:"exclusiveMin=0"`

	// TopologyKey is the node label whose values are the domains.
	TopologyKey string `json:"topologyKey" protobuf:"2" schema:"required,reason.required=can not be empty"`

	// WhenUnsatisfiable is DoNotSchedule, or ScheduleAnyway, which makes the constraint a preference.
	WhenUnsatisfiable string `json:"whenUnsatisfiable" protobuf:"3" schema:"enum=DoNotSchedule|ScheduleAnyway"`

	// LabelSelector selects the pods that are counted.
	LabelSelector *meta.LabelSelector `json:"labelSelector,omitempty" protobuf:"4" schema:"format=label-selector"`

	// MinDomains is the minimum number of domains; with fewer domains, the minimum count is taken as 0.
	// It requires DoNotSchedule.
	MinDomains *int32 `json:"minDomains,omitempty" protobuf:"5" schema:"exclusiveMin=0"`

	// NodeAffinityPolicy decides whether nodes that node affinity and selector exclude are ignored:
	// Honor (default) or Ignore the affinity.
	NodeAffinityPolicy *string `json:"nodeAffinityPolicy,omitempty" protobuf:"6" schema:"enum=Ignore|Honor"`

	// NodeTaintsPolicy decides whether nodes with taints that the pod does not tolerate are ignored:
	// Honor or Ignore (default) the taints.
	NodeTaintsPolicy *string `json:"nodeTaintsPolicy,omitempty" protobuf:"7" schema:"enum=Ignore|Honor"`

	// MatchLabelKeys are labels for which the counted pods must have the same value as this pod.
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty" protobuf:"8" schema:"listType=atomic,items.format=qualified-name"`
}

// PodOS is an operating system.
type PodOS struct {
	// Name is linux or windows.
	Name string `json:"name" protobuf:"1"`
}

// PodSchedulingGate prevents the scheduling of a pod.
type PodSchedulingGate struct {
	// Name of the gate, unique in the pod.
	Name string `json:"name" protobuf:"1"`
}

// PodResourceClaim is a resource claim of a pod. Exactly 1 source must be set.
type PodResourceClaim struct {
	// Name of the claim in the pod, a DNS label.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`

	// ResourceClaimName is an existing claim in the namespace of the pod.
	ResourceClaimName *string `json:"resourceClaimName,omitempty" protobuf:"3" schema:"format=dns-subdomain"`

	// ResourceClaimTemplateName is a template from which a claim is created for the pod.
	ResourceClaimTemplateName *string `json:"resourceClaimTemplateName,omitempty" protobuf:"4" schema:"format=dns-subdomain"`
}

// PodSchedulingGroup is the group that a pod is scheduled with.
type PodSchedulingGroup struct {
	// PodGroupName is the name of the group in the namespace of the pod.
	PodGroupName *string `json:"podGroupName,omitempty" protobuf:"1"`
}

// EvictionResponder is a program that takes part in the eviction of a pod.
type EvictionResponder struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the program, with a domain.
	Name string `json:"name" protobuf:"1" schema:"required,format=qualified-name"`

	// Priority of the responder: 0 to 100000. Higher priorities are notified first. The owning
	// controller has 10000.
	Priority *int32 `json:"priority" protobuf:"2" schema:"required,range=0|100000"`
}
