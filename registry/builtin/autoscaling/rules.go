package autoscaling

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

func validate(w *registry.Change[HorizontalPodAutoscaler]) {
	if w.Subresource != "" {
		return
	}
	f, at, s := &w.Faults, check.At("spec"), &w.New.Spec
	if least := leastReplicas(w); s.MinReplicas != nil && *s.MinReplicas < least {
		f.Invalid(at.Field("minReplicas"), *s.MinReplicas, fmt.Sprintf("must be greater than or equal to %d", least))
	}
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		f.Invalid(at.Field("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`")
	}
	s.ScaleTargetRef.validate(f, at.Field("scaleTargetRef"))
	if old := w.Old; old == nil || old.Spec.ScaleTargetRef.APIVersion != s.ScaleTargetRef.APIVersion || old.Spec.ScaleTargetRef.Kind != s.ScaleTargetRef.Kind {
		s.ScaleTargetRef.version(f, at.Field("scaleTargetRef"), s.ScaleTargetRef.Kind != "ReplicationController")
	}
	judged := w.Old == nil || !w.Old.Spec.misdescribed() // a fault that is stored may stay
	outside := false
	for i := range s.Metrics {
		m := &s.Metrics[i]
		outside = outside || m.Type == "Object" || m.Type == "External"
		m.validate(w, at.Field("metrics").Index(i))
		if judged && m.Type == "Object" && m.Object != nil {
			m.Object.DescribedObject.version(f, at.Field("metrics").Index(i).Field("object").Field("describedObject"), false)
		}
	}
	if s.MinReplicas != nil && *s.MinReplicas == 0 && !outside {
		f.Forbidden(at.Field("metrics"), "must specify at least one Object or External metric to support scaling to zero replicas")
	}
	if b := s.Behavior; b != nil {
		b.ScaleUp.validate(f, at.Field("behavior").Field("scaleUp"))
		b.ScaleDown.validate(f, at.Field("behavior").Field("scaleDown"))
	}
}

// leastReplicas returns the lower bound of minReplicas. An object that scales to zero may
// go on doing so while the feature is off.
func leastReplicas(w *registry.Change[HorizontalPodAutoscaler]) int32 {
	stored := w.Old != nil && w.Old.Spec.MinReplicas != nil && *w.Old.Spec.MinReplicas == 0
	if stored || w.Features.Enabled(features.HPAScaleToZero) {
		return 0
	}
	return 1
}

func (r *HPAScalingRules) validate(f *check.Faults, at *check.Path) {
	if r != nil && r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		f.Invalid(at.Field("tolerance"), r.Tolerance, "must be greater than or equal to 0")
	}
}

func (r *CrossVersionObjectReference) validate(f *check.Faults, at *check.Path) {
	segment(f, at.Field("kind"), r.Kind)
	segment(f, at.Field("name"), r.Name)
}

// version checks the form of the version, which needs a group for what is no kind of the
// core.
func (r *CrossVersionObjectReference) version(f *check.Faults, at *check.Path, grouped bool) {
	at = at.Field("apiVersion")
	switch {
	case strings.Count(r.APIVersion, "/") > 1:
		f.Invalid(at, r.APIVersion, "unexpected GroupVersion string: "+r.APIVersion)
	case grouped && strings.Index(r.APIVersion, "/") < 1:
		f.Invalid(at, r.APIVersion, "apiVersion must specify API group")
	}
}

// misdescribed reports whether a metric is about an object whose version is none.
func (s *HorizontalPodAutoscalerSpec) misdescribed() bool {
	return slices.ContainsFunc(s.Metrics, func(m MetricSpec) bool {
		var f check.Faults
		if m.Type == "Object" && m.Object != nil {
			m.Object.DescribedObject.version(&f, check.At(), false)
		}
		return len(f) > 0
	})
}

// segment checks what becomes a part of a path; that it is there the schema says.
func segment(f *check.Faults, at *check.Path, text string) {
	if text != "" {
		f.Format(at, text, meta.CheckPathSegment(text))
	}
}

// validate checks that the metric has what its type names and nothing else.
func (m *MetricSpec) validate(w *registry.Change[HorizontalPodAutoscaler], at *check.Path) {
	f := &w.Faults
	sources := []struct {
		name, field string
		set         bool
	}{
		{"Object", "object", m.Object != nil}, {"Pods", "pods", m.Pods != nil}, {"Resource", "resource", m.Resource != nil},
		{"ContainerResource", "containerResource", m.ContainerResource != nil}, {"External", "external", m.External != nil},
	}
	known, missing := false, false
	for _, s := range sources {
		if s.name == m.Type {
			known, missing = true, !s.set
			if missing {
				f.Required(at.Field(s.field), "must populate information for the given metric source")
			}
		}
	}
	if !known {
		f.NotSupported(at.Field("type"), m.Type, "ContainerResource", "External", "Object", "Pods", "Resource") // clients are told twice
	}
	if missing {
		return
	}
	source := m.Type
	for _, s := range sources {
		switch {
		case !s.set || s.name == source:
		case known:
			f.Forbidden(at.Field(s.field), "must populate the given metric source only")
		case source == m.Type:
			source = s.name // without a type that is known, the first source is checked
		}
	}
	m.checkSource(w, at, source)
}

// checkSource checks the source of the metric that belongs to a type.
func (m *MetricSpec) checkSource(w *registry.Change[HorizontalPodAutoscaler], at *check.Path, of string) {
	f := &w.Faults
	switch of {
	case "Object":
		at := at.Field("object")
		m.Object.DescribedObject.validate(f, at.Field("describedObject"))
		segment(f, at.Field("metric").Field("name"), m.Object.Metric.Name)
		at = at.Field("target")
		if m.Object.Target.validate(f, at); m.Object.Target.Value == nil && m.Object.Target.AverageValue == nil {
			f.Required(at.Field("averageValue"), "must set either a target value or averageValue")
		}
	case "External":
		at := at.Field("external")
		segment(f, at.Field("metric").Field("name"), m.External.Metric.Name)
		at, t := at.Field("target"), &m.External.Target
		switch t.validate(f, at); {
		case t.Value == nil && t.AverageValue == nil:
			f.Required(at.Field("averageValue"), "must set either a target value for metric or a per-pod target")
		case t.Value != nil && t.AverageValue != nil:
			f.Forbidden(at.Field("value"), "may not set both a target value for metric and a per-pod target")
		}
	case "Pods":
		at := at.Field("pods")
		segment(f, at.Field("metric").Field("name"), m.Pods.Metric.Name)
		if m.Pods.Target.validate(f, at.Field("target")); m.Pods.Target.AverageValue == nil {
			f.Required(at.Field("target").Field("averageValue"), "must specify a positive target averageValue")
		}
	case "Resource":
		m.Resource.Target.ofResource(f, at.Field("resource").Field("target"))
	case "ContainerResource":
		at := at.Field("containerResource")
		if m.ContainerResource.Name != "" {
			w.Faults = append(w.Faults, core.CheckContainerResource(w.Names, at.Field("name"), m.ContainerResource.Name)...)
		}
		m.ContainerResource.Target.ofResource(f, at.Field("target"))
	}
}

// ofResource checks the target of what pods use of a resource.
func (t *MetricTarget) ofResource(f *check.Faults, at *check.Path) {
	t.validate(f, at)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		f.Required(at.Field("averageUtilization"), "must set either a target raw value or a target utilization")
	case t.AverageUtilization != nil && t.AverageValue != nil:
		f.Forbidden(at.Field("averageValue"), "may not set both a target raw value and a target utilization")
	}
}

func (t *MetricTarget) validate(f *check.Faults, at *check.Path) {
	switch t.Type {
	case "Utilization", "Value", "AverageValue":
	default:
		f.Invalid(at.Field("type"), t.Type, "must be either Utilization, Value, or AverageValue")
	}
	for _, q := range []struct {
		field string
		value *meta.Quantity
	}{{"value", t.Value}, {"averageValue", t.AverageValue}} {
		if q.value != nil && q.value.Sign() <= 0 {
			f.Invalid(at.Field(q.field), q.value, "must be positive")
		}
	}
}
