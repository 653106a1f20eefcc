package batch

import (
	"fmt"
	"strings"
	"time"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CronJob creates Jobs on a schedule.
type CronJob struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the schedule and the template of the Jobs.
	Spec CronJobSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status CronJobStatus `json:"status,omitempty" protobuf:"3"`
}

// CronJobSpec is the schedule and the template of the Jobs.
type CronJobSpec struct {
	// Schedule has 5 fields: minute, hour, day of the month, month and day of the week. @hourly,
	// @daily, @weekly, @monthly, @yearly and @every followed by a duration such as 90m are also valid.
	Schedule string `json:"schedule" protobuf:"1" schema:"required"`

	// TimeZone of the schedule, such as Europe/Berlin. Unset means the time zone of the controller.
	TimeZone *string `json:"timeZone,omitempty" protobuf:"8"`

	// StartingDeadlineSeconds is the number of seconds after the scheduled time within which a missed
	// Job may still be created. Unset means no limit.
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty" protobuf:"2" schema:"min=0"`

	// ConcurrencyPolicy decides about a Job that is due while the previous Job is still running: Allow
	// (default) creates it, Forbid skips it, Replace deletes the previous Job first.
	ConcurrencyPolicy string `json:"concurrencyPolicy,omitempty" protobuf:"3" schema:"default=Allow,enum=Allow|Forbid|Replace"`

	// Suspend stops the creation of Jobs; running Jobs continue. Default false.
	Suspend *bool `json:"suspend,omitempty" protobuf:"4" schema:"default=false"`

	// JobTemplate describes the Jobs.
	JobTemplate JobTemplateSpec `json:"jobTemplate" protobuf:"5"`

	// SuccessfulJobsHistoryLimit is the number of successful Jobs that are kept; default 3.
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty" protobuf:"6" schema:"default=3,min=0"`

	// FailedJobsHistoryLimit is the number of failed Jobs that are kept; default 1.
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty" protobuf:"7" schema:"default=1,min=0"`
}

// JobTemplateSpec describes the Jobs that a CronJob creates.
type JobTemplateSpec struct {
	// Labels and annotations of the Jobs.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec of the Jobs. The selector must be unset.
	Spec JobSpec `json:"spec,omitempty" protobuf:"2"`
}

// CronJobStatus is the observed state of a CronJob.
type CronJobStatus struct {
	// Active lists the running Jobs.
	Active []core.ObjectReference `json:"active,omitempty" protobuf:"1" schema:"listType=atomic"`

	// LastScheduleTime is the time of the last creation of a Job.
	LastScheduleTime *meta.Time `json:"lastScheduleTime,omitempty" protobuf:"4"`

	// LastSuccessfulTime is the time at which a Job last succeeded.
	LastSuccessfulTime *meta.Time `json:"lastSuccessfulTime,omitempty" protobuf:"5"`
}

func cronJobs() *registry.Kind {
	return registry.Of(registry.Definition[CronJob]{
		Group: wellknown.GroupBatch, Version: "v1", ShortNames: []string{"cj"}, Categories: []string{"all"}, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.21"},
		Versions: []registry.VersionOf[CronJob]{
			older.Same[CronJob]("v1beta1", "1.8", "1.21", "1.25", wellknown.GroupBatch+"/v1"),
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
				return append(warnOfJobName(w), core.WarnOfPod(w, "spec", "jobTemplate", "spec", "template", "spec")...)
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
		registry.TextColumn("Schedule", "The schedule.", "spec", "schedule"),
		{Name: "Timezone", Type: "string", Doc: "The time zone of the schedule.", Cell: func(o *meta.Object) any {
			if zone := o.String("spec", "timeZone"); zone != "" {
				return zone
			}
			return "<none>"
		}},
		{Name: "Suspend", Type: "boolean", Doc: "Whether the creation of Jobs is suspended.", Cell: func(o *meta.Object) any {
			if o.Bool("spec", "suspend") {
				return "True"
			}
			return "False"
		}},
		{Name: "Active", Type: "integer", Doc: "The number of running Jobs.", Cell: func(o *meta.Object) any {
			return int64(len(o.List("status", "active")))
		}},
		{Name: "Last Schedule", Type: "string", Doc: "The time since the last creation of a Job.", Cell: func(o *meta.Object) any {
			at, err := time.Parse(time.RFC3339, o.String("status", "lastScheduleTime"))
			if err != nil {
				return "<none>"
			}
			return meta.FormatAge(at, time.Now())
		}},
		registry.AgeColumn(),
	}, templateColumns([]string{"spec", "jobTemplate", "spec", "template", "spec"}, []string{"spec", "jobTemplate", "spec", "selector"})...)
}

// validateCronJob checks the spec. A schedule or time zone that was stored before its rule existed may
// stay.
func validateCronJob(w *registry.Change[CronJob]) {
	if w.Subresource != "" {
		return
	}
	const maxName = 52 // the names of Jobs are up to 11 bytes longer and limited to 63
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
	if s.TimeZone != nil && (w.Old == nil || !check.SemanticEqual(s.TimeZone, w.Old.Spec.TimeZone)) {
		for _, err := range checkZone(*s.TimeZone) {
			w.Invalid(at.Field("timeZone"), *s.TimeZone, err.Error())
		}
	}
	at = at.Field("jobTemplate").Field("spec")
	unchanged := w.Old != nil && check.SemanticEqual(s.JobTemplate.Spec.Template, w.Old.Spec.JobTemplate.Spec.Template)
	w.Violations = append(w.Violations, specFaults(w.Names, w.SchemaViolations, at, &s.JobTemplate.Spec, unchanged)...)
	if job := &s.JobTemplate.Spec; job.Selector != nil {
		w.Invalid(at.Field("selector"), job.Selector, "`selector` will be auto-generated")
	}
	if isTrue(s.JobTemplate.Spec.ManualSelector) {
		w.NotSupported(at.Field("manualSelector"), true, "nil", "false")
	}
}
