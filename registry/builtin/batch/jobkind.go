package batch

import (
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

func jobs() *registry.Kind {
	return registry.Of(registry.Definition[Job]{
		Group: wellknown.GroupBatch, Version: "v1", Categories: []string{"all"}, Status: true,
		Columns:  jobColumns(),
		Fields:   []registry.SelectableField{{Name: "status.successful", Path: []string{"status", "succeeded"}, Absent: "0"}},
		Validate: validateJob,
		Behavior: registry.Behavior{
			Default: defaultJob,
			Prepare: prepareJob,
			Warn: func(w *registry.Change[meta.Object]) []string {
				return append(warnOfJobName(w), core.WarnOfPod(w, "spec", "template", "spec")...)
			},
		},
		Reference: &compat.Reference{
			StatusMetadata:      compat.CallersMetadata(),
			DeleteAnswersStatus: true,
			OrphansDependents:   true,
			OrphanWarning:       "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
		},
	})
}

// warnOfJobName warns about a new object with a name, which is part of pod names, that is not a valid host
// name.
func warnOfJobName(w *registry.Change[meta.Object]) []string {
	if w.Old != nil {
		return nil
	}
	if faults := meta.CheckDNSLabel(w.New.Name()); len(faults) > 0 {
		return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", faults)}
	}
	return nil
}

func jobColumns() []registry.Column {
	return append([]registry.Column{
		{Name: "Status", Type: "string", Doc: "The state of the Job.", Cell: jobStatusCell},
		{Name: "Completions", Type: "string", Doc: "The successful pods and the number of completions.", Cell: func(o *meta.Object) any {
			done := o.Int("status", "succeeded")
			if n, ok := o.Get("spec", "completions"); ok {
				return fmt.Sprintf("%d/%v", done, n)
			}
			if n := o.Int("spec", "parallelism"); n > 1 {
				return fmt.Sprintf("%d/1 of %d", done, n)
			}
			return fmt.Sprintf("%d/1", done)
		}},
		{Name: "Duration", Type: "string", Doc: "The duration of the Job so far.", Cell: func(o *meta.Object) any {
			start, err := time.Parse(time.RFC3339, o.String("status", "startTime"))
			if err != nil {
				return ""
			}
			end, err := time.Parse(time.RFC3339, o.String("status", "completionTime"))
			if err != nil {
				end = time.Now()
			}
			return meta.FormatDuration(end.Sub(start))
		}},
		registry.AgeColumn(),
	}, templateColumns([]string{"spec", "template", "spec"}, []string{"spec", "selector"})...)
}

// jobStatusCell shows the most significant condition that is True, or Running.
func jobStatusCell(o *meta.Object) any {
	holds := map[string]bool{}
	for _, v := range o.List("status", "conditions") {
		c, _ := v.(map[string]any)
		if t, _ := c["type"].(string); c["status"] == "True" {
			holds[t] = true
		}
	}
	switch {
	case holds[complete]:
		return complete
	case holds[failed]:
		return failed
	case o.Terminating():
		return "Terminating"
	}
	for _, c := range []string{suspended, failureTarget, successCriteriaMet} {
		if holds[c] {
			return c
		}
	}
	return "Running"
}

// templateColumns returns columns for the containers, the images and the selector, at the given paths.
func templateColumns(template, selector []string) []registry.Column {
	return []registry.Column{
		{Name: "Containers", Type: "string", Doc: "The names of the containers.", Priority: 1, Cell: func(o *meta.Object) any {
			names, _ := core.ContainerNames(o.Map(template...))
			return names
		}},
		{Name: "Images", Type: "string", Doc: "The images of the containers.", Priority: 1, Cell: func(o *meta.Object) any {
			_, images := core.ContainerNames(o.Map(template...))
			return images
		}},
		{Name: "Selector", Type: "string", Doc: "The selector of the pods.", Priority: 1, Cell: func(o *meta.Object) any {
			in := o.Map(selector...)
			s, err := meta.LabelSelectorAsSelector(in)
			switch {
			case in == nil:
				return "<none>"
			case err != nil:
				return "<error>"
			}
			return s.String()
		}},
	}
}
