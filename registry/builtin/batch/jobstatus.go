package batch

import (
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// The types of conditions of a job.
const (
	suspended          = "Suspended"
	complete           = "Complete"
	failed             = "Failed"
	failureTarget      = "FailureTarget"
	successCriteriaMet = "SuccessCriteriaMet"
)

// JobStatus is how far a job has come.
type JobStatus struct {
	// Conditions are Suspended, FailureTarget and SuccessCriteriaMet, with which the
	// end begins, and Complete or Failed, with which it has come.
	Conditions []JobCondition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=atomic"`

	// StartTime is when the job began, or went on after it was suspended.
	StartTime *meta.Time `json:"startTime,omitempty" protobuf:"2"`

	// CompletionTime is when the job succeeded.
	CompletionTime *meta.Time `json:"completionTime,omitempty" protobuf:"3"`

	// Active is how many pods are pending or run and are not being deleted.
	Active int32 `json:"active,omitempty" protobuf:"4" schema:"min=0"`

	// Succeeded is how many pods have succeeded.
	Succeeded int32 `json:"succeeded,omitempty" protobuf:"5" schema:"min=0"`

	// Failed is how many pods have failed.
	Failed int32 `json:"failed,omitempty" protobuf:"6" schema:"min=0"`

	// Terminating is how many pods are being deleted and have not ended yet.
	Terminating *int32 `json:"terminating,omitempty" protobuf:"11" schema:"min=0"`

	// CompletedIndexes are those that have succeeded: 0,3-5.
	CompletedIndexes string `json:"completedIndexes,omitempty" protobuf:"7"`

	// FailedIndexes are those that have failed for good. Only of jobs with
	// backoffLimitPerIndex.
	FailedIndexes *string `json:"failedIndexes,omitempty" protobuf:"10"`

	// UncountedTerminatedPods are those that have ended and are not in the counters yet.
	UncountedTerminatedPods *UncountedTerminatedPods `json:"uncountedTerminatedPods,omitempty" protobuf:"8"`

	// Ready is how many of the active pods are ready.
	Ready *int32 `json:"ready,omitempty" protobuf:"9" schema:"min=0"`
}

// UncountedTerminatedPods are pods, by uid, that are to be counted.
type UncountedTerminatedPods struct {
	// Succeeded pods.
	Succeeded []string `json:"succeeded,omitempty" protobuf:"1" schema:"listType=set,repeats"`

	// Failed pods.
	Failed []string `json:"failed,omitempty" protobuf:"2" schema:"listType=set,repeats"`
}

// JobCondition is one aspect of a job's state.
type JobCondition struct {
	// Type names the aspect that the condition is about.
	Type string `json:"type" protobuf:"1"`

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

// is reports whether a condition holds.
func (s *JobStatus) is(condition string) bool {
	for _, c := range s.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// statusRules check a new status against the spec and the status before. What an
// update leaves as it was need not hold.
type statusRules struct {
	check.Faults
	at       *check.Path
	spec     *JobSpec
	now, old *JobStatus
}

func statusFaults(job, old *Job) []meta.Cause {
	r := &statusRules{at: check.At("status"), spec: &job.Spec, now: &job.Status, old: &old.Status}
	r.uncounted()
	r.ends()
	r.finished()
	r.indexes()
	r.counters()
	r.exclusive(successCriteriaMet, failed)
	r.exclusive(successCriteriaMet, failureTarget)
	r.lasting()
	return r.Faults
}

// uncounted checks that each pod is listed once.
func (r *statusRules) uncounted() {
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

// exclusive checks that two conditions do not hold at once.
func (r *statusRules) exclusive(one, other string) {
	if r.now.is(one) && r.now.is(other) {
		r.conditions(fmt.Sprintf("cannot set %s=True and %s=true conditions", one, other))
	}
}

// needs checks that a condition does not hold without another.
func (r *statusRules) needs(one, other string) {
	if r.now.is(one) && !r.now.is(other) {
		r.conditions(fmt.Sprintf("cannot set %s=True condition without the %s=true condition", one, other))
	}
}

func (r *statusRules) conditions(why string) { broken(&r.Faults, r.at.Field("conditions"), why) }

// ends checks how the end of the job is told.
func (r *statusRules) ends() {
	r.exclusive(complete, failed)
	r.exclusive(complete, failureTarget)
	at, done := r.at.Field("completionTime"), r.now.CompletionTime
	switch {
	case done != nil && !r.now.is(complete):
		r.Invalid(at, done, "cannot set completionTime when there is no Complete=True condition")
	case done == nil && r.now.is(complete):
		r.Required(at, "completionTime is required for Complete jobs")
	}
	if done != nil && r.now.StartTime != nil && done.Before(r.now.StartTime.Time) {
		r.Invalid(at, done, "must be equal to or after `startTime`")
	}
	if !r.old.is(failed) {
		r.needs(failed, failureTarget)
	}
	r.needs(complete, successCriteriaMet)
}

// finished checks that a job that is at its end has nothing left to do.
func (r *statusRules) finished() {
	if !r.now.is(complete) && !r.now.is(failed) {
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

// indexes checks lists of indexes that were changed.
func (r *statusRules) indexes() {
	below := int32(0)
	if r.spec.Completions != nil {
		below = *r.spec.Completions
	}
	newDone, newLost := r.now.CompletedIndexes != r.old.CompletedIndexes, !check.Same(r.now.FailedIndexes, r.old.FailedIndexes)
	if !newDone && !newLost {
		return
	}
	done := r.list("completedIndexes", r.now.CompletedIndexes, below, newDone)
	if newDone && r.now.CompletedIndexes != "" && !r.spec.isIndexed() {
		r.Invalid(r.at.Field("completedIndexes"), r.now.CompletedIndexes, "cannot set non-empty completedIndexes when non-indexed completion mode")
	}
	if r.now.FailedIndexes == nil {
		return
	}
	at, text := r.at.Field("failedIndexes"), *r.now.FailedIndexes
	if newLost && r.spec.BackoffLimitPerIndex == nil {
		r.Invalid(at, text, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
		return
	}
	if n, both := r.list("failedIndexes", text, below, newLost).overlap(done); both {
		r.Invalid(at, text, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", n))
	}
}

// list reads a field with indexes below a number. What is wrong with them is told of new
// ones: fewer completions leave those of before as they are.
func (r *statusRules) list(field, text string, below int32, told bool) indexes {
	list, err := parseIndexes(text, below)
	if err != nil && told {
		r.Invalid(r.at.Field(field), text, "error parsing "+field+": "+err.Error())
	}
	return list
}

// counters checks what pods are counted as.
func (r *statusRules) counters() {
	if n := r.now.Ready; n != nil && *n > r.now.Active {
		r.Invalid(r.at.Field("ready"), *n, "cannot set more ready pods than active")
	}
}

// lasting checks that nothing is taken back.
func (r *statusRules) lasting() {
	for _, c := range []string{failed, complete, failureTarget} {
		if r.old.is(c) && !r.now.is(c) {
			r.conditions("cannot disable the terminal " + c + "=True condition")
		}
	}
	if r.now.Failed < r.old.Failed {
		r.Invalid(r.at.Field("failed"), r.now.Failed, "cannot decrease the failed counter")
	}
	fewer := r.spec.isIndexed() && check.Same(r.spec.Completions, r.spec.Parallelism) // such a job may have lost indexes that had succeeded
	if r.now.Succeeded < r.old.Succeeded && !fewer {
		r.Invalid(r.at.Field("succeeded"), r.now.Succeeded, "cannot decrease the succeeded counter")
	}
	if before, now := r.old.CompletionTime, r.now.CompletionTime; before != nil && now != nil && r.now.is(complete) {
		r.Unchanged(r.at.Field("completionTime"), now, before)
	}
	if before := r.old.StartTime; before != nil && !isTrue(r.spec.Suspend) && !check.Same(r.now.StartTime, before) {
		r.Invalid(r.at.Field("startTime"), r.now.StartTime, "field is immutable for unsuspended job once set")
	}
	if r.old.is(successCriteriaMet) && !r.now.is(successCriteriaMet) {
		r.conditions("cannot disable the SuccessCriteriaMet=True condition")
	}
}

func isTrue(b *bool) bool { return b != nil && *b }
