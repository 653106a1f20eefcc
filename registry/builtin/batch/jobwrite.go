package batch

import (
	"maps"
	"math"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// defaultJob sets the defaults that schema tags cannot express, because the same spec in a Job template
// has no defaults.
func defaultJob(w *registry.Change[meta.Object]) {
	obj := w.New
	spec := obj.Map("spec")
	if spec == nil {
		spec = map[string]any{}
		obj.Set(spec, "spec")
	}
	setMissing := func(field string, value any) {
		if spec[field] == nil {
			spec[field] = value
		}
	}
	if spec["parallelism"] == nil {
		setMissing("completions", int64(1))
	}
	setMissing("parallelism", int64(1))
	limit := int64(6)
	if spec["backoffLimitPerIndex"] != nil {
		limit = math.MaxInt32
	}
	setMissing("backoffLimit", limit)
	setMissing("completionMode", nonIndexed)
	setMissing("suspend", false)
	setMissing("manualSelector", false)
	replacement := "TerminatingOrFailed"
	if spec["podFailurePolicy"] != nil {
		replacement = "Failed"
	}
	setMissing("podReplacementPolicy", replacement)
	if pod := obj.Map("spec", "template", "spec"); pod != nil {
		core.DefaultPodSpec(pod)
	}
	if w.Old != nil {
		defaultLabels(obj)
	}
}

// defaultLabels sets the labels of a Job without labels to the labels of its pod template.
func defaultLabels(obj *meta.Object) {
	if labels := obj.Map("spec", "template", "metadata", "labels"); len(obj.Labels()) == 0 && len(labels) > 0 {
		obj.Set(maps.Clone(labels), "metadata", "labels")
	}
}

// prepareJob generates the selector and the labels of a new Job.
func prepareJob(w *registry.Change[meta.Object]) {
	obj := w.New
	if w.Old != nil {
		return
	}
	if !obj.Bool("spec", "manualSelector") {
		generateSelector(w)
	}
	if len(meta.CheckLabelValue(obj.Name())) == 0 { // otherwise validation reports the labels of the template
		defaultLabels(obj)
	}
}

// generateSelector sets the pod labels that identify the Job, and the selector, where they are missing.
// The UID makes them unique.
func generateSelector(w *registry.Change[meta.Object]) {
	obj := w.New
	setMissing := func(value string, path ...string) {
		if _, ok := obj.Get(path...); !ok {
			obj.Set(value, path...)
		}
	}
	for label, value := range podLabels(w.Names, obj.UID(), obj.Name()) {
		setMissing(value, "spec", "template", "metadata", "labels", label)
	}
	setMissing(obj.UID(), "spec", "selector", "matchLabels", w.Names.Wire(wellknown.JobUIDLabel))
}

// podLabels returns the labels that identify the pods of a Job: with and without a domain, for clients
// from before labels had domains.
func podLabels(p names.Profile, uid, name string) map[string]string {
	return map[string]string{
		p.Wire(wellknown.JobUIDLabel): uid, wellknown.OldJobUIDLabel: uid,
		p.Wire(wellknown.JobNameLabel): name, wellknown.OldJobNameLabel: name,
	}
}
