// Package batch defines the kinds Job, which runs pods to completion, and CronJob, which creates Jobs
// on a schedule.
package batch

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// Completion modes.
const (
	nonIndexed = "NonIndexed"
	indexed    = "Indexed"
)

// Job runs pods until a number of them has succeeded.
type Job struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec JobSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status JobStatus `json:"status,omitempty" protobuf:"3"`
}

// JobSpec is the desired state of a Job.
type JobSpec struct {
	// Parallelism is the largest number of pods that run at the same time; default 1.
	Parallelism *int32 `json:"parallelism,omitempty" protobuf:"1" schema:"min=0"`

	// Completions is the number of pods that must succeed. If unset, the first success completes the
	// Job; if parallelism is unset, too, the default is 1. Required for Indexed Jobs. Immutable, except
	// for Indexed Jobs together with parallelism.
	Completions *int32 `json:"completions,omitempty" protobuf:"2" schema:"min=0"`

	// ActiveDeadlineSeconds is the number of seconds after the start of the Job at which it is stopped
	// and fails.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty" protobuf:"3" schema:"min=0"`

	// PodFailurePolicy decides about failed pods. Without it each counts towards backoffLimit.
	// Immutable.
	PodFailurePolicy *PodFailurePolicy `json:"podFailurePolicy,omitempty" protobuf:"11"`

	// SuccessPolicy declares an Indexed Job successful before all indexes have succeeded. Immutable.
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty" protobuf:"16"`

	// BackoffLimit is the number of failed pods before the Job fails; default 6, or no limit if
	// backoffLimitPerIndex is set.
	BackoffLimit *int32 `json:"backoffLimit,omitempty" protobuf:"7" schema:"min=0"`

	// BackoffLimitPerIndex is the number of failed pods of an index before the index fails. Indexed
	// Jobs only. Immutable.
	BackoffLimitPerIndex *int32 `json:"backoffLimitPerIndex,omitempty" protobuf:"12" schema:"min=0"`

	// MaxFailedIndexes is the number of failed indexes before the Job fails. Unset means no limit. It
	// requires backoffLimitPerIndex.
	MaxFailedIndexes *int32 `json:"maxFailedIndexes,omitempty" protobuf:"13" schema:"min=0"`

	// Selector of the pods. The server generates it unless manualSelector is true. Immutable.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"4" schema:"unchecked"`

	// ManualSelector lets the caller set the selector and the labels of the pods. The caller must make
	// sure that no other Job selects the same pods.
	ManualSelector *bool `json:"manualSelector,omitempty" protobuf:"5"`

	// Template of the pods. Its restartPolicy must be Never or OnFailure. Immutable, except for
	// scheduling directives of a suspended Job that has not started.
	Template core.PodTemplateSpec `json:"template" protobuf:"6" schema:"ratcheting"`

	// TTLSecondsAfterFinished is the number of seconds after its end at which the Job is deleted. Unset
	// means never.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty" protobuf:"8" schema:"min=0"`

	// CompletionMode is NonIndexed (default), which counts successful pods, or Indexed, which needs a
	// successful pod for each index from 0 to completions-1. Immutable.
	CompletionMode *string `json:"completionMode,omitempty" protobuf:"9" schema:"enum=NonIndexed|Indexed"`

	// Suspend deletes the running pods and creates no others until it is false. The start time is reset
	// when the Job resumes.
	Suspend *bool `json:"suspend,omitempty" protobuf:"10"`

	// PodReplacementPolicy is TerminatingOrFailed, which replaces a pod once it is being deleted or has
	// failed, or Failed, which waits until it has ended. With a podFailurePolicy it must be Failed.
	PodReplacementPolicy *string `json:"podReplacementPolicy,omitempty" protobuf:"14" schema:"enum=Failed|TerminatingOrFailed,unchecked"`

	// ManagedBy is the controller, as domain/name, that runs the Job instead of the built-in
	// controller. Immutable.
	ManagedBy *string `json:"managedBy,omitempty" protobuf:"15"`

	// Scheduling configures the scheduling of the pods as a group.
	Scheduling *JobSchedulingConfiguration `json:"scheduling,omitempty" protobuf:"17" schema:"gate=WorkloadWithJob"`
}

// JobSchedulingConfiguration configures the scheduling of the pods of a Job as a group.
type JobSchedulingConfiguration struct {
	// SchedulingPolicy decides whether the pods are scheduled individually or as a gang.
	SchedulingPolicy *WorkloadPodGroupSchedulingPolicy `json:"schedulingPolicy,omitempty" protobuf:"1"`

	// SchedulingConstraints restrict the placement of the group.
	SchedulingConstraints *WorkloadPodGroupSchedulingConstraints `json:"schedulingConstraints,omitempty" protobuf:"2"`

	// DisruptionMode decides whether pods are evicted individually or together.
	DisruptionMode *WorkloadPodGroupDisruptionMode `json:"disruptionMode,omitempty" protobuf:"3"`

	// ResourceClaims that the pods share; at most 4.
	ResourceClaims []WorkloadPodGroupResourceClaim `json:"resourceClaims,omitempty" protobuf:"4" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,maxItems=4"`
}

// WorkloadPodGroupSchedulingPolicy is a scheduling policy. Exactly 1 field must be set.
type WorkloadPodGroupSchedulingPolicy struct {
	// Basic schedules the pods individually.
	Basic *WorkloadPodGroupBasicSchedulingPolicy `json:"basic,omitempty" protobuf:"1"`

	// Gang schedules the pods only if there is room for a minimum number of them.
	Gang *WorkloadPodGroupGangSchedulingPolicy `json:"gang,omitempty" protobuf:"2"`
}

// WorkloadPodGroupBasicSchedulingPolicy has no settings.
type WorkloadPodGroupBasicSchedulingPolicy struct{}

// WorkloadPodGroupGangSchedulingPolicy configures gang scheduling.
type WorkloadPodGroupGangSchedulingPolicy struct {
	// MinCount is the minimum number of pods that are scheduled together; positive.
	MinCount *int32 `json:"minCount,omitempty" protobuf:"1" schema:"min=1"`
}

// WorkloadPodGroupSchedulingConstraints restrict the placement of pods.
type WorkloadPodGroupSchedulingConstraints struct {
	// Topology is the domain in which all pods must be placed; at most 1 entry.
	Topology []TopologyConstraint `json:"topology,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=1"`
}

// TopologyConstraint places pods in the same domain.
type TopologyConstraint struct {
	// Key is the node label whose values are the domains.
	Key string `json:"key" protobuf:"1" schema:"required,format=qualified-name"`
}

// WorkloadPodGroupDisruptionMode is a disruption mode. Exactly 1 field must be set.
type WorkloadPodGroupDisruptionMode struct {
	// Single evicts pods individually.
	Single *WorkloadPodGroupSingleDisruptionMode `json:"single,omitempty" protobuf:"1"`

	// All evicts pods together.
	All *WorkloadPodGroupAllDisruptionMode `json:"all,omitempty" protobuf:"2"`
}

// WorkloadPodGroupSingleDisruptionMode has no settings.
type WorkloadPodGroupSingleDisruptionMode struct{}

// WorkloadPodGroupAllDisruptionMode has no settings.
type WorkloadPodGroupAllDisruptionMode struct{}

// WorkloadPodGroupResourceClaim is a claim that pods share. Exactly 1 source must be set.
type WorkloadPodGroupResourceClaim struct {
	// Name of the claim, unique in the Job.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`

	// ResourceClaimName is an existing claim in the namespace.
	ResourceClaimName *string `json:"resourceClaimName,omitempty" protobuf:"2" schema:"format=dns-subdomain"`

	// ResourceClaimTemplateName is a template from which a claim is created.
	ResourceClaimTemplateName *string `json:"resourceClaimTemplateName,omitempty" protobuf:"3" schema:"format=dns-subdomain"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind { return []*registry.Kind{jobs(), cronJobs()} }
