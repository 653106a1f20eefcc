package batch

import (
	"fmt"
	"strings"
	"time"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CronJob makes jobs by the clock.
type CronJob struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is when jobs are made, and which.
	Spec CronJobSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what was made so far.
	Status CronJobStatus `json:"status,omitempty" protobuf:"3"`
}

// CronJobSpec says when jobs are made, and which.
type CronJobSpec struct {
	// Schedule is when, as five fields: minute, hour, day of the month, month, day of
	// the week; or @hourly, @daily, @weekly, @monthly, @yearly or @every 90m.
	Schedule string `json:"schedule" protobuf:"1" schema:"required"`

	// TimeZone that the schedule is meant in, such as Europe/Berlin; unset: that of the
	// controller.
	TimeZone *string `json:"timeZone,omitempty" protobuf:"8"`

	// StartingDeadlineSeconds is how many seconds late a job may be made; unset: any.
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty" protobuf:"2" schema:"min=0"`

	// ConcurrencyPolicy says what happens while the last job still runs: Allow makes
	// the next one all the same, Forbid leaves it out, Replace ends the last one.
	ConcurrencyPolicy string `json:"concurrencyPolicy,omitempty" protobuf:"3" schema:"default=Allow,enum=Allow|Forbid|Replace"`

	// Suspend makes no further jobs; those that run go on.
	Suspend *bool `json:"suspend,omitempty" protobuf:"4" schema:"default=false"`

	// JobTemplate of the jobs.
	JobTemplate JobTemplateSpec `json:"jobTemplate" protobuf:"5"`

	// SuccessfulJobsHistoryLimit is how many jobs that succeeded are kept; 3 by default.
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty" protobuf:"6" schema:"default=3,min=0"`

	// FailedJobsHistoryLimit is how many jobs that failed are kept; 1 by default.
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty" protobuf:"7" schema:"default=1,min=0"`
}

// JobTemplateSpec is a job to be made.
type JobTemplateSpec struct {
	// Metadata that the jobs get.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec of the jobs.
	Spec JobSpec `json:"spec,omitempty" protobuf:"2"`
}

// CronJobStatus is what was made so far.
type CronJobStatus struct {
	// Active are the jobs that run.
	Active []core.ObjectReference `json:"active,omitempty" protobuf:"1" schema:"listType=atomic"`

	// LastScheduleTime is when a job was last made.
	LastScheduleTime *meta.Time `json:"lastScheduleTime,omitempty" protobuf:"4"`

	// LastSuccessfulTime is when a job last succeeded.
	LastSuccessfulTime *meta.Time `json:"lastSuccessfulTime,omitempty" protobuf:"5"`
}

func cronJobs() *registry.Kind {
	return registry.Of(registry.Definition[CronJob]{
		Group: names.GroupBatch, Version: "v1", ShortNames: []string{"cj"}, Categories: []string{"all"}, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.21"},
		Versions: []registry.VersionOf[CronJob]{
			older.Same[CronJob]("v1beta1", "1.8", "1.21", "1.25", names.GroupBatch+"/v1"),
		},
		Columns:  cronJobColumns(),
		Validate: validateCronJob,
		Behavior: registry.Behavior{
			Default: func(w *registry.Change[meta.Object]) {
				if pod := w.New.Map("spec", "jobTemplate", "spec", "template", "spec"); pod != nil {
					core.DefaultPodSpec(pod)
				}
			},
			Warn: func(w *registry.Change[meta.Object]) []string {
				return append(warnOfName(w), core.WarnOfPod(w, "spec", "jobTemplate", "spec", "template", "spec")...)
			},
		},
		Reference: &compat.Reference{
			StatusMetadata:      compat.CallersMetadata(),
			DeleteAnswersStatus: true,
		},
	})
}

func cronJobColumns() []registry.Column {
	return append([]registry.Column{
		registry.Text("Schedule", "When jobs are made.", "spec", "schedule"),
		{Name: "Timezone", Type: "string", Doc: "The time zone of the schedule.", Cell: func(o *meta.Object) any {
			if zone := o.String("spec", "timeZone"); zone != "" {
				return zone
			}
			return "<none>"
		}},
		{Name: "Suspend", Type: "boolean", Doc: "Whether no further jobs are made.", Cell: func(o *meta.Object) any {
			if o.Bool("spec", "suspend") {
				return "True"
			}
			return "False"
		}},
		{Name: "Active", Type: "integer", Doc: "How many jobs run.", Cell: func(o *meta.Object) any {
			return int64(len(o.List("status", "active")))
		}},
		{Name: "Last Schedule", Type: "string", Doc: "How long ago a job was last made.", Cell: func(o *meta.Object) any {
			at, err := time.Parse(time.RFC3339, o.String("status", "lastScheduleTime"))
			if err != nil {
				return "<none>"
			}
			return meta.FormatAge(at, time.Now())
		}},
		registry.Age(),
	}, templateColumns([]string{"spec", "jobTemplate", "spec", "template", "spec"}, []string{"spec", "jobTemplate", "spec", "selector"})...)
}

func validateCronJob(w *registry.Change[CronJob]) {
	if w.Subresource != "" {
		return
	}
	const maxName = 52 // the names of the jobs are up to 11 characters longer, and have 63 at most
	if len(w.New.Name) > maxName && w.Old == nil {
		w.Invalid(check.At("metadata", "name"), w.New.Name, fmt.Sprintf("must be no more than %d characters", maxName))
	}
	at, s := check.At("spec"), &w.New.Spec
	if s.Schedule != "" {
		if err := checkSchedule(s.Schedule); err != nil {
			w.Invalid(at.Field("schedule"), s.Schedule, err.Error())
		}
		if strings.Contains(s.Schedule, "TZ") && (w.Old == nil || w.Old.Spec.Schedule != s.Schedule) {
			w.Invalid(at.Field("schedule"), s.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
		}
	}
	if s.TimeZone != nil && (w.Old == nil || !check.Same(s.TimeZone, w.Old.Spec.TimeZone)) {
		for _, err := range checkZone(*s.TimeZone) {
			w.Invalid(at.Field("timeZone"), *s.TimeZone, err.Error())
		}
	}
	at = at.Field("jobTemplate").Field("spec")
	kept := w.Old != nil && check.Same(s.JobTemplate.Spec.Template, w.Old.Spec.JobTemplate.Spec.Template)
	w.Faults = append(w.Faults, specFaults(w.Names, w.Found, at, &s.JobTemplate.Spec, kept)...)
	if job := &s.JobTemplate.Spec; job.Selector != nil {
		w.Invalid(at.Field("selector"), job.Selector, "`selector` will be auto-generated")
	}
	if isTrue(s.JobTemplate.Spec.ManualSelector) {
		w.NotSupported(at.Field("manualSelector"), true, "nil", "false")
	}
}
