package batch

import (
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// Condition types of a Job.
const (
	suspended          = "Suspended"
	complete           = "Complete"
	failed             = "Failed"
	failureTarget      = "FailureTarget"
	successCriteriaMet = "SuccessCriteriaMet"
)

// JobStatus is the observed state of a Job.
type JobStatus struct {
	// Conditions include Suspended, the final Complete and Failed, and FailureTarget and
	// SuccessCriteriaMet, which precede them.
	Conditions []JobCondition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=atomic"`

	// StartTime is the time at which the Job started, or last resumed after a suspension.
	StartTime *meta.Time `json:"startTime,omitempty" protobuf:"2"`

	// CompletionTime is the time at which the Job completed successfully.
	CompletionTime *meta.Time `json:"completionTime,omitempty" protobuf:"3"`

	// Active is the number of pending and running pods that are not being deleted.
	Active int32 `json:"active,omitempty" protobuf:"4" schema:"min=0"`

	// Succeeded is the number of successful pods.
	Succeeded int32 `json:"succeeded,omitempty" protobuf:"5" schema:"min=0"`

	// Failed is the number of failed pods.
	Failed int32 `json:"failed,omitempty" protobuf:"6" schema:"min=0"`

	// Terminating is the number of pods that are being deleted and have not ended.
	Terminating *int32 `json:"terminating,omitempty" protobuf:"11" schema:"min=0"`

	// CompletedIndexes are the successful indexes, such as "0,3-5".
	CompletedIndexes string `json:"completedIndexes,omitempty" protobuf:"7"`

	// FailedIndexes are the failed indexes of a Job with backoffLimitPerIndex.
	FailedIndexes *string `json:"failedIndexes,omitempty" protobuf:"10"`

	// UncountedTerminatedPods lists ended pods that the counters do not include yet.
	UncountedTerminatedPods *UncountedTerminatedPods `json:"uncountedTerminatedPods,omitempty" protobuf:"8"`

	// Ready is the number of active pods that are ready.
	Ready *int32 `json:"ready,omitempty" protobuf:"9" schema:"min=0"`
}

// UncountedTerminatedPods lists ended pods by UID. A UID must occur only once.
type UncountedTerminatedPods struct {
	// Succeeded lists successful pods.
	Succeeded []string `json:"succeeded,omitempty" protobuf:"1" schema:"listType=set,repeats"`

	// Failed lists failed pods.
	Failed []string `json:"failed,omitempty" protobuf:"2" schema:"listType=set,repeats"`
}

// JobCondition is an aspect of the state of a Job.
type JobCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastProbeTime is the time at which the condition was last checked.
	LastProbeTime meta.Time `json:"lastProbeTime,omitempty" protobuf:"3"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

// hasCondition reports whether the condition is True.
func (s *JobStatus) hasCondition(condition string) bool {
	for _, c := range s.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// statusRules checks a new status against the spec and the old status. Violations that an update leaves
// unchanged are not reported.
type statusRules struct {
	check.Violations
	at       *check.Path
	spec     *JobSpec
	now, old *JobStatus
}

// statusFaults runs the checks in the order of kube-apiserver.
func statusFaults(job, old *Job) []meta.StatusCause {
	r := &statusRules{at: check.At("status"), spec: &job.Spec, now: &job.Status, old: &old.Status}
	r.checkUncounted()
	r.checkCompletion()
	r.checkFinished()
	r.checkIndexes()
	r.checkCounters()
	r.exclude(successCriteriaMet, failed)
	r.exclude(successCriteriaMet, failureTarget)
	r.checkFinal()
	return r.Violations
}

// checkUncounted checks that the UIDs are unique over both lists.
func (r *statusRules) checkUncounted() {
	u := r.now.UncountedTerminatedPods
	if u == nil {
		return
	}
	seen := map[string]bool{}
	for _, list := range []struct {
		field string
		pods  []string
	}{{"succeeded", u.Succeeded}, {"failed", u.Failed}} {
		for i, uid := range list.pods {
			at := r.at.Field("uncountedTerminatedPods").Field(list.field).Index(i)
			switch {
			case uid == "":
				r.Invalid(at, uid, "must not be empty")
			case seen[uid]:
				r.Duplicate(at, uid)
			}
			seen[uid] = true
		}
	}
}

// exclude reports two conditions that are both True.
func (r *statusRules) exclude(one, other string) {
	if r.now.hasCondition(one) && r.now.hasCondition(other) {
		r.conditions(fmt.Sprintf("cannot set %s=True and %s=true conditions", one, other))
	}
}

// require reports a condition that is True without another.
func (r *statusRules) require(one, other string) {
	if r.now.hasCondition(one) && !r.now.hasCondition(other) {
		r.conditions(fmt.Sprintf("cannot set %s=True condition without the %s=true condition", one, other))
	}
}

func (r *statusRules) conditions(why string) {
	addViolation(&r.Violations, r.at.Field("conditions"), why)
}

// checkCompletion checks the final conditions and the completion time.
func (r *statusRules) checkCompletion() {
	r.exclude(complete, failed)
	r.exclude(complete, failureTarget)
	at, done := r.at.Field("completionTime"), r.now.CompletionTime
	switch {
	case done != nil && !r.now.hasCondition(complete):
		r.Invalid(at, done, "cannot set completionTime when there is no Complete=True condition")
	case done == nil && r.now.hasCondition(complete):
		r.Required(at, "completionTime is required for Complete jobs")
	}
	if done != nil && r.now.StartTime != nil && done.Before(r.now.StartTime.Time) {
		r.Invalid(at, done, "must be equal to or after `startTime`")
	}
	if !r.old.hasCondition(failed) {
		r.require(failed, failureTarget)
	}
	r.require(complete, successCriteriaMet)
}

// checkFinished checks that a finished Job has no active or uncounted pods.
func (r *statusRules) checkFinished() {
	if !r.now.hasCondition(complete) && !r.now.hasCondition(failed) {
		return
	}
	if r.now.Active > 0 {
		r.Invalid(r.at.Field("active"), r.now.Active, "active>0 is invalid for finished job")
	}
	if r.now.StartTime == nil {
		r.Required(r.at.Field("startTime"), "startTime is required for finished job")
	}
	if u := r.now.UncountedTerminatedPods; u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		r.Invalid(r.at.Field("uncountedTerminatedPods"), u, "must be empty for finished job")
	}
	if n := r.now.Terminating; n != nil && *n > 0 {
		r.Invalid(r.at.Field("terminating"), *n, "terminating>0 is invalid for finished job")
	}
}

// checkIndexes checks the lists of indexes if either changed.
func (r *statusRules) checkIndexes() {
	below := int32(0)
	if r.spec.Completions != nil {
		below = *r.spec.Completions
	}
	doneChanged, failedChanged := r.now.CompletedIndexes != r.old.CompletedIndexes, !check.SemanticEqual(r.now.FailedIndexes, r.old.FailedIndexes)
	if !doneChanged && !failedChanged {
		return
	}
	done := r.parse("completedIndexes", r.now.CompletedIndexes, below, doneChanged)
	if doneChanged && r.now.CompletedIndexes != "" && !r.spec.isIndexed() {
		r.Invalid(r.at.Field("completedIndexes"), r.now.CompletedIndexes, "cannot set non-empty completedIndexes when non-indexed completion mode")
	}
	if r.now.FailedIndexes == nil {
		return
	}
	at, text := r.at.Field("failedIndexes"), *r.now.FailedIndexes
	if failedChanged && r.spec.BackoffLimitPerIndex == nil {
		r.Invalid(at, text, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
		return
	}
	if n, both := r.parse("failedIndexes", text, below, failedChanged).overlap(done); both {
		r.Invalid(at, text, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", n))
	}
}

// parse parses a list of indexes. It reports errors only if report is true: after a reduction of
// completions, an unchanged list may exceed the bound.
func (r *statusRules) parse(field, text string, below int32, report bool) indexes {
	list, err := parseIndexes(text, below)
	if err != nil && report {
		r.Invalid(r.at.Field(field), text, "error parsing "+field+": "+err.Error())
	}
	return list
}

// checkCounters compares counters with each other.
func (r *statusRules) checkCounters() {
	if n := r.now.Ready; n != nil && *n > r.now.Active {
		r.Invalid(r.at.Field("ready"), *n, "cannot set more ready pods than active")
	}
}

// checkFinal checks that final conditions, counters and times are not reverted.
func (r *statusRules) checkFinal() {
	for _, c := range []string{failed, complete, failureTarget} {
		if r.old.hasCondition(c) && !r.now.hasCondition(c) {
			r.conditions("cannot disable the terminal " + c + "=True condition")
		}
	}
	if r.now.Failed < r.old.Failed {
		r.Invalid(r.at.Field("failed"), r.now.Failed, "cannot decrease the failed counter")
	}
	resized := r.spec.isIndexed() && check.SemanticEqual(r.spec.Completions, r.spec.Parallelism) // such a Job may have lost successful indexes
	if r.now.Succeeded < r.old.Succeeded && !resized {
		r.Invalid(r.at.Field("succeeded"), r.now.Succeeded, "cannot decrease the succeeded counter")
	}
	if before, now := r.old.CompletionTime, r.now.CompletionTime; before != nil && now != nil && r.now.hasCondition(complete) {
		r.Unchanged(r.at.Field("completionTime"), now, before)
	}
	if before := r.old.StartTime; before != nil && !isTrue(r.spec.Suspend) && !check.SemanticEqual(r.now.StartTime, before) {
		r.Invalid(r.at.Field("startTime"), r.now.StartTime, "field is immutable for unsuspended job once set")
	}
	if r.old.hasCondition(successCriteriaMet) && !r.now.hasCondition(successCriteriaMet) {
		r.conditions("cannot disable the SuccessCriteriaMet=True condition")
	}
}

func isTrue(b *bool) bool { return b != nil && *b }
