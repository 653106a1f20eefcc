package batch

import (
	"maps"
	"math"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// defaultJob fills in what the schema's defaults cannot say: the spec of a job that
// somebody else makes later has none of it.
func defaultJob(w *registry.Change[meta.Object]) {
	obj := w.New
	spec := obj.Map("spec")
	if spec == nil {
		spec = map[string]any{}
		obj.Set(spec, "spec")
	}
	fill := func(field string, value any) {
		if spec[field] == nil {
			spec[field] = value
		}
	}
	if spec["parallelism"] == nil {
		fill("completions", int64(1))
	}
	fill("parallelism", int64(1))
	limit := int64(6)
	if spec["backoffLimitPerIndex"] != nil {
		limit = math.MaxInt32
	}
	fill("backoffLimit", limit)
	fill("completionMode", nonIndexed)
	fill("suspend", false)
	fill("manualSelector", false)
	replacement := "TerminatingOrFailed"
	if spec["podFailurePolicy"] != nil {
		replacement = "Failed"
	}
	fill("podReplacementPolicy", replacement)
	if pod := obj.Map("spec", "template", "spec"); pod != nil {
		core.DefaultPodSpec(pod)
	}
	if w.Old != nil {
		labelAsPods(obj)
	}
}

// labelAsPods gives a job that has no labels those of its pods.
func labelAsPods(obj *meta.Object) {
	if labels := obj.Map("spec", "template", "metadata", "labels"); len(obj.Labels()) == 0 && len(labels) > 0 {
		obj.Set(maps.Clone(labels), "metadata", "labels")
	}
}

// prepareJob gives a new job its selector, and it and its pods their labels.
func prepareJob(w *registry.Change[meta.Object]) {
	obj := w.New
	if w.Old != nil {
		return
	}
	if !obj.Bool("spec", "manualSelector") {
		generate(w)
	}
	if len(meta.CheckLabelValue(obj.Name())) == 0 { // else the template says what is wrong
		labelAsPods(obj)
	}
}

// generate makes what identifies the pods, where it is not there.
func generate(w *registry.Change[meta.Object]) {
	obj := w.New
	fill := func(value string, path ...string) {
		if _, ok := obj.Get(path...); !ok {
			obj.Set(value, path...)
		}
	}
	for label, value := range podLabels(w.Names, obj.UID(), obj.Name()) {
		fill(value, "spec", "template", "metadata", "labels", label)
	}
	fill(obj.UID(), "spec", "selector", "matchLabels", w.Names.Wire(names.JobUIDLabel))
}

// podLabels are the labels by which the pods of a job are known: today's and those
// from before labels had domains.
func podLabels(p names.Profile, uid, name string) map[string]string {
	return map[string]string{
		p.Wire(names.JobUIDLabel): uid, names.OldJobUIDLabel: uid,
		p.Wire(names.JobNameLabel): name, names.OldJobNameLabel: name,
	}
}
