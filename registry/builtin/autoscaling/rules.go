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

// validate checks the relations between fields of the spec; schema tags check the rest. A write of the
// status is not checked here. On update, an API version that was stored before these rules existed may
// stay as it is.
func validate(w *registry.Change[HorizontalPodAutoscaler]) {
	if w.Subresource != "" {
		return
	}
	f, at, s := &w.Violations, check.At("spec"), &w.New.Spec
	if least := minReplicasBound(w); s.MinReplicas != nil && *s.MinReplicas < least {
		f.Invalid(at.Field("minReplicas"), *s.MinReplicas, fmt.Sprintf("must be greater than or equal to %d", least))
	}
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		f.Invalid(at.Field("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`")
	}
	s.ScaleTargetRef.validate(f, at.Field("scaleTargetRef"))
	if old := w.Old; old == nil || old.Spec.ScaleTargetRef.APIVersion != s.ScaleTargetRef.APIVersion || old.Spec.ScaleTargetRef.Kind != s.ScaleTargetRef.Kind {
		s.ScaleTargetRef.checkAPIVersion(f, at.Field("scaleTargetRef"), s.ScaleTargetRef.Kind != "ReplicationController")
	}
	checkVersions := w.Old == nil || !w.Old.Spec.hasInvalidObjectVersion() // a stored violation may stay
	scalesToZero := false
	for i := range s.Metrics {
		m := &s.Metrics[i]
		scalesToZero = scalesToZero || m.Type == "Object" || m.Type == "External"
		m.validate(w, at.Field("metrics").Index(i))
		if checkVersions && m.Type == "Object" && m.Object != nil {
			m.Object.DescribedObject.checkAPIVersion(f, at.Field("metrics").Index(i).Field("object").Field("describedObject"), false)
		}
	}
	if s.MinReplicas != nil && *s.MinReplicas == 0 && !scalesToZero {
		f.Forbidden(at.Field("metrics"), "must specify at least one Object or External metric to support scaling to zero replicas")
	}
	if b := s.Behavior; b != nil {
		b.ScaleUp.validate(f, at.Field("behavior").Field("scaleUp"))
		b.ScaleDown.validate(f, at.Field("behavior").Field("scaleDown"))
	}
}

// minReplicasBound returns the lower bound of minReplicas: 0 with the feature HPAScaleToZero, else 1.
// An autoscaler that is stored with 0 keeps the bound 0 when the feature is turned off, so that it can
// still be updated.
func minReplicasBound(w *registry.Change[HorizontalPodAutoscaler]) int32 {
	stored := w.Old != nil && w.Old.Spec.MinReplicas != nil && *w.Old.Spec.MinReplicas == 0
	if stored || w.Features.Enabled(features.HPAScaleToZero) {
		return 0
	}
	return 1
}

func (r *HPAScalingRules) validate(f *check.Violations, at *check.Path) {
	if r != nil && r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		f.Invalid(at.Field("tolerance"), r.Tolerance, "must be greater than or equal to 0")
	}
}

func (r *CrossVersionObjectReference) validate(f *check.Violations, at *check.Path) {
	checkPathSegment(f, at.Field("kind"), r.Kind)
	checkPathSegment(f, at.Field("name"), r.Name)
}

// checkAPIVersion checks the form of the API version. grouped demands a group, as for all kinds outside
// the core group.
func (r *CrossVersionObjectReference) checkAPIVersion(f *check.Violations, at *check.Path, grouped bool) {
	at = at.Field("apiVersion")
	switch {
	case strings.Count(r.APIVersion, "/") > 1:
		f.Invalid(at, r.APIVersion, "unexpected GroupVersion string: "+r.APIVersion)
	case grouped && strings.Index(r.APIVersion, "/") < 1:
		f.Invalid(at, r.APIVersion, "apiVersion must specify API group")
	}
}

// hasInvalidObjectVersion reports whether an Object metric refers to a malformed API version.
func (s *HorizontalPodAutoscalerSpec) hasInvalidObjectVersion() bool {
	return slices.ContainsFunc(s.Metrics, func(m MetricSpec) bool {
		var f check.Violations
		if m.Type == "Object" && m.Object != nil {
			m.Object.DescribedObject.checkAPIVersion(&f, check.At(), false)
		}
		return len(f) > 0
	})
}

// checkPathSegment checks that text can be part of a URL path. The schema reports an empty text.
func checkPathSegment(f *check.Violations, at *check.Path, text string) {
	if text != "" {
		f.Format(at, text, meta.CheckPathSegment(text))
	}
}

// validate checks that exactly the source that Type names is set, and then checks that source. If the
// type is unknown, the first source that is set is checked instead, as kube-apiserver does.
func (m *MetricSpec) validate(w *registry.Change[HorizontalPodAutoscaler], at *check.Path) {
	f := &w.Violations
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
		f.NotSupported(at.Field("type"), m.Type, "ContainerResource", "External", "Object", "Pods", "Resource") // the schema reports it, too: kube-apiserver answers both
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
			source = s.name // unknown type: check the first source
		}
	}
	m.checkSource(w, at, source)
}

// checkSource checks the source of the given type; that source must be set.
func (m *MetricSpec) checkSource(w *registry.Change[HorizontalPodAutoscaler], at *check.Path, of string) {
	f := &w.Violations
	switch of {
	case "Object":
		at := at.Field("object")
		m.Object.DescribedObject.validate(f, at.Field("describedObject"))
		checkPathSegment(f, at.Field("metric").Field("name"), m.Object.Metric.Name)
		at = at.Field("target")
		if m.Object.Target.validate(f, at); m.Object.Target.Value == nil && m.Object.Target.AverageValue == nil {
			f.Required(at.Field("averageValue"), "must set either a target value or averageValue")
		}
	case "External":
		at := at.Field("external")
		checkPathSegment(f, at.Field("metric").Field("name"), m.External.Metric.Name)
		at, t := at.Field("target"), &m.External.Target
		switch t.validate(f, at); {
		case t.Value == nil && t.AverageValue == nil:
			f.Required(at.Field("averageValue"), "must set either a target value for metric or a per-pod target")
		case t.Value != nil && t.AverageValue != nil:
			f.Forbidden(at.Field("value"), "may not set both a target value for metric and a per-pod target")
		}
	case "Pods":
		at := at.Field("pods")
		checkPathSegment(f, at.Field("metric").Field("name"), m.Pods.Metric.Name)
		if m.Pods.Target.validate(f, at.Field("target")); m.Pods.Target.AverageValue == nil {
			f.Required(at.Field("target").Field("averageValue"), "must specify a positive target averageValue")
		}
	case "Resource":
		m.Resource.Target.validateResource(f, at.Field("resource").Field("target"))
	case "ContainerResource":
		at := at.Field("containerResource")
		if m.ContainerResource.Name != "" {
			w.Violations = append(w.Violations, core.CheckContainerResource(w.Names, at.Field("name"), m.ContainerResource.Name)...)
		}
		m.ContainerResource.Target.validateResource(f, at.Field("target"))
	}
}

// validateResource checks the target of a resource metric.
func (t *MetricTarget) validateResource(f *check.Violations, at *check.Path) {
	t.validate(f, at)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		f.Required(at.Field("averageUtilization"), "must set either a target raw value or a target utilization")
	case t.AverageUtilization != nil && t.AverageValue != nil:
		f.Forbidden(at.Field("averageValue"), "may not set both a target raw value and a target utilization")
	}
}

// validate checks the parts of a target that all types of metric share.
func (t *MetricTarget) validate(f *check.Violations, at *check.Path) {
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
