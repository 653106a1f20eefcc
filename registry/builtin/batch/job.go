// Package batch holds the kinds of the batch group, which run pods to an end:
// Job, and CronJob, which makes Jobs by the clock.
package batch

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// The completion modes of a job.
const (
	nonIndexed = "NonIndexed"
	indexed    = "Indexed"
)

// Job runs pods until enough of them have succeeded.
type Job struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods run, how many, and when the job ends.
	Spec JobSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is how far the job has come.
	Status JobStatus `json:"status,omitempty" protobuf:"3"`
}

// JobSpec says which pods run, how many, and when the job ends.
type JobSpec struct {
	// Parallelism is how many pods may run at once. By default 1.
	Parallelism *int32 `json:"parallelism,omitempty" protobuf:"1" schema:"min=0"`

	// Completions is how many pods shall succeed. Without it the first success ends
	// the job; without parallelism, too, it is 1.
	Completions *int32 `json:"completions,omitempty" protobuf:"2" schema:"min=0"`

	// ActiveDeadlineSeconds is how long the job may take from its start, in seconds,
	// before it is stopped and failed.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty" protobuf:"3" schema:"min=0"`

	// PodFailurePolicy says what a failed pod means for the job. Without it each
	// counts against backoffLimit.
	PodFailurePolicy *PodFailurePolicy `json:"podFailurePolicy,omitempty" protobuf:"11"`

	// SuccessPolicy says when an Indexed job has succeeded before all of its indexes
	// have.
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty" protobuf:"16"`

	// BackoffLimit is how many pods may fail before the job does; 6 by default, and
	// without a bound where backoffLimitPerIndex is set.
	BackoffLimit *int32 `json:"backoffLimit,omitempty" protobuf:"7" schema:"min=0"`

	// BackoffLimitPerIndex is how many pods of one index may fail before the index
	// does. Only of Indexed jobs.
	BackoffLimitPerIndex *int32 `json:"backoffLimitPerIndex,omitempty" protobuf:"12" schema:"min=0"`

	// MaxFailedIndexes is how many indexes may fail before the job does; unset: any
	// number. It needs backoffLimitPerIndex.
	MaxFailedIndexes *int32 `json:"maxFailedIndexes,omitempty" protobuf:"13" schema:"min=0"`

	// Selector of the pods. It is made by the server, but for a job with
	// manualSelector.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"4" schema:"unchecked"`

	// ManualSelector leaves selector and labels to the writer, who answers for it that
	// no other job has the same pods.
	ManualSelector *bool `json:"manualSelector,omitempty" protobuf:"5"`

	// Template of the pods; their restartPolicy is Never or OnFailure.
	Template core.PodTemplateSpec `json:"template" protobuf:"6" schema:"ratcheting"`

	// TTLSecondsAfterFinished is how many seconds after its end the job is deleted;
	// unset: never.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty" protobuf:"8" schema:"min=0"`

	// CompletionMode is NonIndexed, where all pods are alike, or Indexed, where there is
	// one success for each number from 0 to completions-1, which the pod knows.
	CompletionMode *string `json:"completionMode,omitempty" protobuf:"9" schema:"enum=NonIndexed|Indexed"`

	// Suspend keeps the job from having pods: those that run are ended, and its time
	// begins anew when it goes on.
	Suspend *bool `json:"suspend,omitempty" protobuf:"10"`

	// PodReplacementPolicy says when a new pod takes the place of another:
	// TerminatingOrFailed, as soon as that is being deleted, or Failed, when it has
	// ended. With a podFailurePolicy it is Failed.
	PodReplacementPolicy *string `json:"podReplacementPolicy,omitempty" protobuf:"14" schema:"enum=Failed|TerminatingOrFailed,unchecked"`

	// ManagedBy names another controller, as domain/name, that does the work of the
	// usual one for this job.
	ManagedBy *string `json:"managedBy,omitempty" protobuf:"15"`

	// Scheduling says how the pods are scheduled together.
	Scheduling *JobSchedulingConfiguration `json:"scheduling,omitempty" protobuf:"17" schema:"gate=WorkloadWithJob"`
}

// JobSchedulingConfiguration says how the pods of a job are scheduled together.
type JobSchedulingConfiguration struct {
	// SchedulingPolicy says how many pods must find a place at once.
	SchedulingPolicy *WorkloadPodGroupSchedulingPolicy `json:"schedulingPolicy,omitempty" protobuf:"1"`

	// SchedulingConstraints say where the pods may be together.
	SchedulingConstraints *WorkloadPodGroupSchedulingConstraints `json:"schedulingConstraints,omitempty" protobuf:"2"`

	// DisruptionMode says whether pods are evicted one by one or all together.
	DisruptionMode *WorkloadPodGroupDisruptionMode `json:"disruptionMode,omitempty" protobuf:"3"`

	// ResourceClaims that the pods share.
	ResourceClaims []WorkloadPodGroupResourceClaim `json:"resourceClaims,omitempty" protobuf:"4" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,maxItems=4"`
}

// WorkloadPodGroupSchedulingPolicy is one way to schedule pods; exactly one is set.
type WorkloadPodGroupSchedulingPolicy struct {
	// Basic schedules pods one by one.
	Basic *WorkloadPodGroupBasicSchedulingPolicy `json:"basic,omitempty" protobuf:"1"`

	// Gang schedules pods when there is room for a number of them.
	Gang *WorkloadPodGroupGangSchedulingPolicy `json:"gang,omitempty" protobuf:"2"`
}

// WorkloadPodGroupBasicSchedulingPolicy has no settings.
type WorkloadPodGroupBasicSchedulingPolicy struct{}

// WorkloadPodGroupGangSchedulingPolicy schedules pods together.
type WorkloadPodGroupGangSchedulingPolicy struct {
	// MinCount is how many pods there must be room for.
	MinCount *int32 `json:"minCount,omitempty" protobuf:"1" schema:"min=1"`
}

// WorkloadPodGroupSchedulingConstraints say where pods may be together.
type WorkloadPodGroupSchedulingConstraints struct {
	// Topology says which domain the pods shall share.
	Topology []TopologyConstraint `json:"topology,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=1"`
}

// TopologyConstraint is a domain that pods share.
type TopologyConstraint struct {
	// Key is the label of nodes whose values are the domains.
	Key string `json:"key" protobuf:"1" schema:"required,format=qualified-name"`
}

// WorkloadPodGroupDisruptionMode is one way to evict pods; exactly one is set.
type WorkloadPodGroupDisruptionMode struct {
	// Single lets pods go one by one.
	Single *WorkloadPodGroupSingleDisruptionMode `json:"single,omitempty" protobuf:"1"`

	// All lets pods go together.
	All *WorkloadPodGroupAllDisruptionMode `json:"all,omitempty" protobuf:"2"`
}

// WorkloadPodGroupSingleDisruptionMode has no settings.
type WorkloadPodGroupSingleDisruptionMode struct{}

// WorkloadPodGroupAllDisruptionMode has no settings.
type WorkloadPodGroupAllDisruptionMode struct{}

// WorkloadPodGroupResourceClaim is a claim that pods share; exactly one source is set.
type WorkloadPodGroupResourceClaim struct {
	// Name of the claim among those of the job.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`

	// ResourceClaimName is a claim in the namespace.
	ResourceClaimName *string `json:"resourceClaimName,omitempty" protobuf:"2" schema:"format=dns-subdomain"`

	// ResourceClaimTemplateName is a template that a claim is made from.
	ResourceClaimTemplateName *string `json:"resourceClaimTemplateName,omitempty" protobuf:"3" schema:"format=dns-subdomain"`
}

// Kinds returns the kinds of the batch group.
func Kinds() []*registry.Kind { return []*registry.Kind{jobs(), cronJobs()} }
