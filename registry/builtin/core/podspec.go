package core

import "orch.io/controlplane/api/meta"

// PodSpec describes a pod.
type PodSpec struct {
	// Volumes that the containers can mount.
	Volumes []Volume `json:"volumes,omitempty" protobuf:"1" patchStrategy:"merge,retainKeys" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,ratcheting"`

	// InitContainers run one after the other, each to its end, before the
	// containers start; one with restartPolicy Always keeps running beside them.
	InitContainers []Container `json:"initContainers,omitempty" protobuf:"20" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// Containers of the pod; at least one. They cannot be added or removed
	// later.
	Containers []Container `json:"containers" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// EphemeralContainers are added to a running pod to look into it, through
	// the sub-resource ephemeralcontainers.
	EphemeralContainers []EphemeralContainer `json:"ephemeralContainers,omitempty" protobuf:"34" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// RestartPolicy of all containers: Always, OnFailure or Never. Always by
	// default.
	RestartPolicy string `json:"restartPolicy,omitempty" protobuf:"3" schema:"default=Always,enum=Always|OnFailure|Never"`

	// TerminationGracePeriodSeconds is how long the processes get between the
	// signal to end and the kill; 30 by default.
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty" protobuf:"4" schema:"default=30"`

	// ActiveDeadlineSeconds is how long the pod may be active on its node before
	// it is failed.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty" protobuf:"5" schema:"range=1|2147483647"`

	// DNSPolicy is ClusterFirst, ClusterFirstWithHostNet, Default or None.
	// ClusterFirst by default.
	DNSPolicy string `json:"dnsPolicy,omitempty" protobuf:"6" schema:"default=ClusterFirst,enum=ClusterFirstWithHostNet|ClusterFirst|Default|None"`

	// NodeSelector is labels that the node must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" protobuf:"7" schema:"mapType=atomic,format=labels"`

	// ServiceAccountName is the identity that the pod runs under.
	ServiceAccountName string `json:"serviceAccountName,omitempty" protobuf:"8" schema:"format=dns-subdomain"`

	// DeprecatedServiceAccount is the old name of serviceAccountName and always
	// equal to it.
	DeprecatedServiceAccount string `json:"serviceAccount,omitempty" protobuf:"9"`

	// AutomountServiceAccountToken says whether a token of the service account
	// is mounted.
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken,omitempty" protobuf:"21"`

	// NodeName is the node that the pod is bound to; the scheduler sets it
	// through the sub-resource binding.
	NodeName string `json:"nodeName,omitempty" protobuf:"10" schema:"format=dns-subdomain"`

	// HostNetwork uses the node's network; ports that are named must be free on
	// the node.
	HostNetwork bool `json:"hostNetwork,omitempty" protobuf:"11"`

	// HostPID uses the node's process namespace.
	HostPID bool `json:"hostPID,omitempty" protobuf:"12"`

	// HostIPC uses the node's namespace of interprocess communication.
	HostIPC bool `json:"hostIPC,omitempty" protobuf:"13"`

	// ShareProcessNamespace gives all containers one process namespace; not
	// together with hostPID.
	ShareProcessNamespace *bool `json:"shareProcessNamespace,omitempty" protobuf:"27"`

	// SecurityContext holds the security settings of the pod and the defaults of
	// its containers.
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty" protobuf:"14"`

	// ImagePullSecrets name the secrets to pull the images with.
	ImagePullSecrets []LocalObjectReference `json:"imagePullSecrets,omitempty" protobuf:"15" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// Hostname of the pod; its name by default.
	Hostname string `json:"hostname,omitempty" protobuf:"16" schema:"format=dns-label,unchecked"`

	// Subdomain makes the pod's name hostname.subdomain.namespace.svc.domain.
	Subdomain string `json:"subdomain,omitempty" protobuf:"17" schema:"format=dns-label,unchecked"`

	// Affinity says which nodes and which pods this one shall be near to, or far
	// from.
	Affinity *Affinity `json:"affinity,omitempty" protobuf:"18"`

	// SchedulerName is the scheduler that places the pod.
	SchedulerName string `json:"schedulerName,omitempty" protobuf:"19" schema:"default=default-scheduler"`

	// Tolerations are the taints that do not keep the pod from a node.
	Tolerations []Toleration `json:"tolerations,omitempty" protobuf:"22" schema:"listType=atomic"`

	// HostAliases are lines for the hosts file of the pod.
	HostAliases []HostAlias `json:"hostAliases,omitempty" protobuf:"23" patchStrategy:"merge" patchMergeKey:"ip" schema:"listType=map,listMapKeys=ip,repeats"`

	// PriorityClassName names the class that gives the pod its priority.
	PriorityClassName string `json:"priorityClassName,omitempty" protobuf:"24" schema:"format=dns-subdomain"`

	// Priority of the pod, the higher the more important; admission fills it in
	// from the class.
	Priority *int32 `json:"priority,omitempty" protobuf:"25"`

	// DNSConfig is merged into what dnsPolicy gives.
	DNSConfig *PodDNSConfig `json:"dnsConfig,omitempty" protobuf:"26"`

	// ReadinessGates are conditions that must be True for the pod to be ready.
	ReadinessGates []PodReadinessGate `json:"readinessGates,omitempty" protobuf:"28" schema:"listType=atomic"`

	// RuntimeClassName names the RuntimeClass that runs the pod.
	RuntimeClassName *string `json:"runtimeClassName,omitempty" protobuf:"29" schema:"format=dns-subdomain"`

	// EnableServiceLinks puts the addresses of services into the containers'
	// variables; true by default.
	EnableServiceLinks *bool `json:"enableServiceLinks,omitempty" protobuf:"30"`

	// PreemptionPolicy is PreemptLowerPriority or Never.
	PreemptionPolicy *string `json:"preemptionPolicy,omitempty" protobuf:"31" schema:"enum=PreemptLowerPriority|Never"`

	// Overhead is what running the pod costs beside its containers; it comes
	// from the RuntimeClass.
	Overhead map[string]meta.Quantity `json:"overhead,omitempty" protobuf:"32" schema:"values.milli"`

	// TopologySpreadConstraints spread pods over zones, nodes or other domains.
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty" protobuf:"33" patchStrategy:"merge" patchMergeKey:"topologyKey" schema:"listType=map,listMapKeys=topologyKey|whenUnsatisfiable,repeats"`

	// SetHostnameAsFQDN makes the host name the whole name with domain.
	SetHostnameAsFQDN *bool `json:"setHostnameAsFQDN,omitempty" protobuf:"35"`

	// OS that the containers need.
	OS *PodOS `json:"os,omitempty" protobuf:"36"`

	// HostUsers false gives the pod a user namespace of its own.
	HostUsers *bool `json:"hostUsers,omitempty" protobuf:"37"`

	// SchedulingGates keep the pod from being scheduled until each is removed;
	// they can be set on create only.
	SchedulingGates []PodSchedulingGate `json:"schedulingGates,omitempty" protobuf:"38" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// ResourceClaims that must be allocated before the pod starts; containers
	// use them by name.
	ResourceClaims []PodResourceClaim `json:"resourceClaims,omitempty" protobuf:"39" patchStrategy:"merge,retainKeys" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// Resources of the pod as a whole.
	Resources *ResourceRequirements `json:"resources,omitempty" protobuf:"40"`

	// HostnameOverride is a host name that wins over all other rules.
	HostnameOverride *string `json:"hostnameOverride,omitempty" protobuf:"41" schema:"format=dns-subdomain,unchecked"`

	// SchedulingGroup names the group that the pod is scheduled with.
	SchedulingGroup *PodSchedulingGroup `json:"schedulingGroup,omitempty" protobuf:"43" schema:"gate=GenericWorkload"`

	// EvictionResponders are told, one after the other, when the pod is to leave its
	// node, so that it can end well. They cannot change, and a pod of a scheduling group
	// has none.
	EvictionResponders []EvictionResponder `json:"evictionResponders,omitempty" protobuf:"44" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,maxItems=10,gate=EvictionRequestAPI"`
}

// Toleration is about taints that do not keep a pod from a node.
type Toleration struct {
	// Key of the taint; empty with Exists: all.
	Key string `json:"key,omitempty" protobuf:"1" schema:"format=qualified-name"`

	// Operator is Equal (the default) or Exists.
	Operator string `json:"operator,omitempty" protobuf:"2"`

	// Value of the taint, with Equal.
	Value string `json:"value,omitempty" protobuf:"3"`

	// Effect of the taint: NoSchedule, PreferNoSchedule, NoExecute; empty: all.
	Effect string `json:"effect,omitempty" protobuf:"4" schema:"enum=NoSchedule|PreferNoSchedule|NoExecute"`

	// TolerationSeconds is how long a NoExecute taint is tolerated; unset: for
	// ever.
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty" protobuf:"5"`
}

// HostAlias is a line of the hosts file.
type HostAlias struct {
	// IP is the address.
	IP string `json:"ip" protobuf:"1" schema:"format=ip"`

	// Hostnames of the address.
	Hostnames []string `json:"hostnames,omitempty" protobuf:"2" schema:"listType=atomic,items.format=dns-subdomain"`
}

// PodDNSConfig is the DNS configuration of a pod.
type PodDNSConfig struct {
	// Nameservers, by address; at most three together.
	Nameservers []string `json:"nameservers,omitempty" protobuf:"1" schema:"listType=atomic,items.format=ip"`

	// Searches are domains that short names are looked up in.
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

// PodReadinessGate names a condition that readiness needs.
type PodReadinessGate struct {
	// ConditionType is the type in status.conditions.
	ConditionType string `json:"conditionType" protobuf:"1" schema:"format=qualified-name"`
}

// TopologySpreadConstraint spreads pods over domains.
type TopologySpreadConstraint struct {
	// MaxSkew is how much the numbers of pods may differ.
	MaxSkew int32 `json:"maxSkew" protobuf:"1" schema:"exclusiveMin=0"`

	// TopologyKey is the node label whose values are the domains.
	TopologyKey string `json:"topologyKey" protobuf:"2" schema:"required,reason.required=can not be empty"`

	// WhenUnsatisfiable is DoNotSchedule or ScheduleAnyway.
	WhenUnsatisfiable string `json:"whenUnsatisfiable" protobuf:"3" schema:"enum=DoNotSchedule|ScheduleAnyway"`

	// LabelSelector chooses the pods that are counted.
	LabelSelector *meta.Selector `json:"labelSelector,omitempty" protobuf:"4" schema:"format=label-selector"`

	// MinDomains is how many domains there must be.
	MinDomains *int32 `json:"minDomains,omitempty" protobuf:"5" schema:"exclusiveMin=0"`

	// NodeAffinityPolicy is Honor (the default) or Ignore: whether nodes that
	// the pod cannot use count.
	NodeAffinityPolicy *string `json:"nodeAffinityPolicy,omitempty" protobuf:"6" schema:"enum=Ignore|Honor"`

	// NodeTaintsPolicy is Honor or Ignore (the default): whether tainted nodes
	// count.
	NodeTaintsPolicy *string `json:"nodeTaintsPolicy,omitempty" protobuf:"7" schema:"enum=Ignore|Honor"`

	// MatchLabelKeys are labels in which counted pods must equal this one.
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty" protobuf:"8" schema:"listType=atomic,items.format=qualified-name"`
}

// PodOS is an operating system.
type PodOS struct {
	// Name is linux or windows.
	Name string `json:"name" protobuf:"1"`
}

// PodSchedulingGate keeps a pod from being scheduled.
type PodSchedulingGate struct {
	// Name of the gate, unique in the pod.
	Name string `json:"name" protobuf:"1"`
}

// PodResourceClaim is a resource claim of a pod; exactly one source is set.
type PodResourceClaim struct {
	// Name of the claim in the pod, a DNS label.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`

	// ResourceClaimName is a claim in the pod's namespace.
	ResourceClaimName *string `json:"resourceClaimName,omitempty" protobuf:"3" schema:"format=dns-subdomain"`

	// ResourceClaimTemplateName is a template that a claim of the pod's own is
	// made from.
	ResourceClaimTemplateName *string `json:"resourceClaimTemplateName,omitempty" protobuf:"4" schema:"format=dns-subdomain"`
}

// PodSchedulingGroup names what a pod is scheduled with.
type PodSchedulingGroup struct {
	// PodGroupName is the group, in the pod's namespace.
	PodGroupName *string `json:"podGroupName,omitempty" protobuf:"1"`
}

// EvictionResponder is a program that helps a pod to leave its node.
type EvictionResponder struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the program, with a domain before it.
	Name string `json:"name" protobuf:"1" schema:"required,format=qualified-name"`

	// Priority is the higher the earlier it is told, from 0 to 100000. The controller that
	// the pod belongs to takes 10000.
	Priority *int32 `json:"priority" protobuf:"2" schema:"required,range=0|100000"`
}
