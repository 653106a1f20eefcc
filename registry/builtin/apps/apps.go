// Package apps holds the kinds of the apps group, which keep pods running.
//
// What they have in common stands in this file: podsOf completes the definition of a
// kind, and checkPods and its like are rules of several.
package apps

import (
	"fmt"
	"slices"
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

// Kinds returns the kinds of the apps group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{
		controllerRevisions(),
		daemonSets(),
		deployments(),
		replicaSets(),
		statefulSets(),
	}
}

// The ways to replace pods, of which each kind has some.
const (
	rollingUpdate = "RollingUpdate"
	recreate      = "Recreate"
	onDelete      = "OnDelete"
)

// podsOf completes the definition of a kind that makes pods by the template in its
// spec: their defaults, warnings and columns, and what of the reference all these
// kinds share. The columns wide are the last.
func podsOf[T any](d registry.Definition[T], wide ...registry.Column) *registry.Kind {
	d.Group, d.Version, d.Categories, d.Status = names.GroupApps, "v1", []string{"all"}, true
	d.Columns = slices.Concat(d.Columns, []registry.Column{registry.Age()}, core.TemplateColumns(1, "spec", "template", "spec"), wide)
	defaults, warn := d.Behavior.Default, d.Behavior.Warn
	d.Behavior.Default = func(w *registry.Change[meta.Object]) {
		core.DefaultPodSpec(w.New.Map("spec", "template", "spec"))
		if defaults != nil {
			defaults(w)
		}
	}
	d.Behavior.Warn = func(w *registry.Change[meta.Object]) (texts []string) {
		if warn != nil {
			texts = warn(w)
		}
		return append(texts, core.WarnOfPod(w, "spec", "template", "spec")...)
	}
	if d.Reference == nil {
		d.Reference = &compat.Reference{ScaleIsObject: true, StatusMetadata: compat.CallersMetadata()}
	}
	d.Reference.DeleteAnswersStatus = true
	return registry.Of(d)
}

func selectorColumn() registry.Column {
	return registry.Column{Name: "Selector", Type: "string", Doc: "The selector of the pods.", Priority: 1, Cell: func(o *meta.Object) any {
		s, err := meta.LabelSelectorFromObject(o.Map("spec", "selector"))
		if err != nil {
			return "<error>"
		}
		return s.String()
	}}
}

// ready is the column with how many of the wanted pods are ready.
func ready() registry.Column {
	return registry.Column{Name: "Ready", Type: "string", Doc: "How many of the wanted pods are ready.", Cell: func(o *meta.Object) any {
		return fmt.Sprintf("%d/%d", o.Int("status", "readyReplicas"), o.Int("spec", "replicas"))
	}}
}

// fill sets the fields of the object at a path that are not there.
func fill(o *meta.Object, fields map[string]any, path ...string) {
	for name, value := range fields {
		at := append(slices.Clone(path), name)
		if v, ok := o.Get(at...); !ok || v == nil {
			o.Set(value, at...)
		}
	}
}

// checkPods checks the selector and the template of a kind's pods; kept is what
// core.CheckPodTemplate wants to know.
func checkPods[T any](w *registry.Change[T], s *meta.Selector, t *core.PodTemplateSpec, kept bool) {
	at := check.At("spec")
	if !checkSelector(&w.Faults, s) {
		w.Invalid(at.Field("selector"), s, "invalid label selector")
		return
	}
	w.Faults = append(w.Faults, core.CheckLastingTemplate(w.Names, w.Found, at.Field("template"), selector.Matches(s, t.Labels), t, kept)...)
}

// checkSelector checks the selector of a kind's pods, and reports whether it can be
// held against labels.
func checkSelector(f *check.Faults, s *meta.Selector) bool {
	at, before := check.At("spec", "selector"), len(*f)
	f.Selector(at, s)
	if len(*f) > before {
		return false
	}
	if s != nil && selector.Empty(s) {
		f.Invalid(at, s, "empty selector is invalid")
	}
	return true
}

// checkCollisions checks the count that makes names new: it only grows.
func checkCollisions(f *check.Faults, now, before *int32) {
	if before != nil && (now == nil || *now < *before) {
		f.Invalid(check.At("status", "collisionCount"), now, "cannot be decremented")
	}
}

// checkPart checks that a part of the pods is not more than all.
func checkPart(f *check.Faults, at *check.Path, v *meta.IntOrString) {
	if v == nil {
		return
	}
	if n, ok := v.Percent(); ok && n > 100 {
		f.Invalid(at, v, "must not be greater than 100%")
	}
}

// zero reports whether a number of pods is none, as texts that are no number
// are taken to be.
func zero(v *meta.IntOrString) bool {
	if v == nil || !v.IsString {
		return v == nil || v.Int == 0
	}
	n, percent := v.Percent()
	if !percent {
		n, _ = strconv.Atoi(v.Text)
	}
	return n == 0
}
