// Package apps defines the workload kinds of the apps group.
//
// This file holds code that several of them share: workload completes the definition of a kind, and the
// check functions are validation rules.
package apps

import (
	"fmt"
	"slices"
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{
		controllerRevisions(),
		daemonSets(),
		deployments(),
		replicaSets(),
		statefulSets(),
	}
}

// Update strategies. Each kind has two of them.
const (
	rollingUpdate = "RollingUpdate"
	recreate      = "Recreate"
	onDelete      = "OnDelete"
)

// workload completes the definition of a kind with a pod template: defaults and warnings for the
// template, columns, and the compatibility settings that the kinds share. The wide columns come last.
func workload[T any](d registry.Definition[T], wide ...registry.Column) *registry.Kind {
	d.Group, d.Version, d.Categories, d.Status = wellknown.GroupApps, "v1", []string{"all"}, true
	d.Columns = slices.Concat(d.Columns, []registry.Column{registry.AgeColumn()}, core.TemplateColumns(1, "spec", "template", "spec"), wide)
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
		s, err := meta.LabelSelectorAsSelector(o.Map("spec", "selector"))
		if err != nil {
			return "<error>"
		}
		return s.String()
	}}
}

// readyColumn shows the ready pods and the desired number of pods.
func readyColumn() registry.Column {
	return registry.Column{Name: "Ready", Type: "string", Doc: "The ready pods and the desired number of pods.", Cell: func(o *meta.Object) any {
		return fmt.Sprintf("%d/%d", o.Int("status", "readyReplicas"), o.Int("spec", "replicas"))
	}}
}

// setMissing sets the fields of the object at path that are absent or null.
func setMissing(o *meta.Object, fields map[string]any, path ...string) {
	for name, value := range fields {
		at := append(slices.Clone(path), name)
		if v, ok := o.Get(at...); !ok || v == nil {
			o.Set(value, at...)
		}
	}
}

// checkPods checks the selector and the pod template. See core.CheckPodTemplate for unchanged.
func checkPods[T any](w *registry.Change[T], s *meta.LabelSelector, t *core.PodTemplateSpec, unchanged bool) {
	at := check.At("spec")
	if !checkSelector(&w.Violations, s) {
		w.Invalid(at.Field("selector"), s, "invalid label selector")
		return
	}
	w.Violations = append(w.Violations, core.CheckLastingTemplate(w.Names, w.SchemaViolations, at.Field("template"), selector.Matches(s, t.Labels), t, unchanged)...)
}

// checkSelector checks a selector, and reports whether it can be evaluated.
func checkSelector(f *check.Violations, s *meta.LabelSelector) bool {
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

// checkCollisionCount checks that the collision count does not decrease, because it is part of names
// that are already in use.
func checkCollisionCount(f *check.Violations, count, old *int32) {
	if old != nil && (count == nil || *count < *old) {
		f.Invalid(check.At("status", "collisionCount"), count, "cannot be decremented")
	}
}

// checkPercent checks that a percentage is at most 100%.
func checkPercent(f *check.Violations, at *check.Path, v *meta.IntOrString) {
	if v == nil {
		return
	}
	if n, ok := v.Percent(); ok && n > 100 {
		f.Invalid(at, v, "must not be greater than 100%")
	}
}

// isZero reports whether a number or percentage is absent or 0. A text that is neither counts as 0, as
// at kube-apiserver.
func isZero(v *meta.IntOrString) bool {
	if v == nil || !v.IsString {
		return v == nil || v.Int == 0
	}
	n, percent := v.Percent()
	if !percent {
		n, _ = strconv.Atoi(v.Text)
	}
	return n == 0
}
