package autoscaling

import (
	"encoding/json"

	"orch.io/controlplane/api/meta"
)

// annotationMetric is a metric or a measurement as version v1 keeps it in an annotation: the JSON
// that v2beta1 uses. Exactly the field that Type names is set.
type annotationMetric struct {
	Type              string            `json:"type"`
	Object            *annotationSource `json:"object,omitempty"`
	Pods              *annotationSource `json:"pods,omitempty"`
	Resource          *annotationSource `json:"resource,omitempty"`
	ContainerResource *annotationSource `json:"containerResource,omitempty"`
	External          *annotationSource `json:"external,omitempty"`
}

// annotationSource holds the fields of every type of metric source; each type uses some of them.
type annotationSource struct {
	Name                      string                       `json:"name,omitempty"`
	Object                    *CrossVersionObjectReference `json:"target,omitempty"`
	MetricName                string                       `json:"metricName,omitempty"`
	MetricSelector            *meta.LabelSelector          `json:"metricSelector,omitempty"` // External only
	TargetValue               *meta.Quantity               `json:"targetValue,omitempty"`
	TargetAverageUtilization  *int32                       `json:"targetAverageUtilization,omitempty"`
	TargetAverageValue        *meta.Quantity               `json:"targetAverageValue,omitempty"`
	CurrentValue              *meta.Quantity               `json:"currentValue,omitempty"`
	CurrentAverageUtilization *int32                       `json:"currentAverageUtilization,omitempty"`
	CurrentAverageValue       *meta.Quantity               `json:"currentAverageValue,omitempty"`
	Selector                  *meta.LabelSelector          `json:"selector,omitempty"`
	AverageValue              *meta.Quantity               `json:"averageValue,omitempty"` // Object only
	Container                 string                       `json:"container,omitempty"`
}

// marshalAnnotation returns v as JSON, or "" if it cannot be encoded.
func marshalAnnotation(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// unmarshalAnnotation decodes an annotation. An annotation that does not decode gives the zero value:
// callers may write any text there, and reads of v1 must not fail because of it.
func unmarshalAnnotation[T any](annotation string) (v T) {
	if err := json.Unmarshal([]byte(annotation), &v); err != nil {
		return *new(T)
	}
	return v
}

// metricsToAnnotation returns the annotation for metrics, or "" if there are none.
func metricsToAnnotation(metrics []MetricSpec) string {
	if len(metrics) == 0 {
		return ""
	}
	out := make([]annotationMetric, len(metrics))
	for i, m := range metrics {
		out[i].Type = m.Type
		if s := m.Object; s != nil {
			value := s.Target.Value
			if value == nil {
				value = &meta.Quantity{} // clients of v1 expect targetValue in every Object metric
			}
			out[i].Object = &annotationSource{Object: &s.DescribedObject, MetricName: s.Metric.Name, Selector: s.Metric.Selector,
				TargetValue: value, AverageValue: s.Target.AverageValue}
		}
		if s := m.Pods; s != nil {
			out[i].Pods = &annotationSource{MetricName: s.Metric.Name, Selector: s.Metric.Selector, TargetAverageValue: s.Target.AverageValue}
		}
		if s := m.Resource; s != nil {
			out[i].Resource = &annotationSource{Name: s.Name, TargetAverageUtilization: s.Target.AverageUtilization, TargetAverageValue: s.Target.AverageValue}
		}
		if s := m.ContainerResource; s != nil {
			out[i].ContainerResource = &annotationSource{Name: s.Name, Container: s.Container,
				TargetAverageUtilization: s.Target.AverageUtilization, TargetAverageValue: s.Target.AverageValue}
		}
		if s := m.External; s != nil {
			out[i].External = &annotationSource{MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector,
				TargetValue: s.Target.Value, TargetAverageValue: s.Target.AverageValue}
		}
	}
	return marshalAnnotation(out)
}

// metricsFromAnnotation is the inverse of metricsToAnnotation. The result is not validated.
func metricsFromAnnotation(annotation string) []MetricSpec {
	var out []MetricSpec
	for _, m := range unmarshalAnnotation[[]annotationMetric](annotation) {
		spec := MetricSpec{Type: m.Type}
		if s := m.Object; s != nil {
			spec.Object = &ObjectMetricSource{DescribedObject: s.object(), Metric: MetricIdentifier{s.MetricName, s.Selector},
				Target: targetOf(s.TargetValue, s.AverageValue, nil)}
		}
		if s := m.Pods; s != nil {
			spec.Pods = &PodsMetricSource{Metric: MetricIdentifier{s.MetricName, s.Selector}, Target: targetOf(nil, s.TargetAverageValue, nil)}
		}
		if s := m.Resource; s != nil {
			spec.Resource = &ResourceMetricSource{Name: s.Name, Target: targetOf(nil, s.TargetAverageValue, s.TargetAverageUtilization)}
		}
		if s := m.ContainerResource; s != nil {
			spec.ContainerResource = &ContainerResourceMetricSource{Name: s.Name, Container: s.Container,
				Target: targetOf(nil, s.TargetAverageValue, s.TargetAverageUtilization)}
		}
		if s := m.External; s != nil {
			spec.External = &ExternalMetricSource{Metric: MetricIdentifier{s.MetricName, s.MetricSelector}, Target: targetOf(s.TargetValue, s.TargetAverageValue, nil)}
		}
		out = append(out, spec)
	}
	return out
}

// targetOf derives the type of a target from the values that are set. A zero value beside an average is
// the placeholder of metricsToAnnotation and is dropped.
func targetOf(value, average *meta.Quantity, utilization *int32) MetricTarget {
	t := MetricTarget{Type: "Value", Value: value, AverageValue: average, AverageUtilization: utilization}
	switch {
	case utilization != nil:
		t.Type = "Utilization"
	case average != nil || value == nil:
		t.Type = "AverageValue"
	}
	if value != nil && value.IsZero() && average != nil {
		t.Value = nil
	}
	return t
}

func (s *annotationSource) object() CrossVersionObjectReference {
	if s.Object == nil {
		return CrossVersionObjectReference{}
	}
	return *s.Object
}

// currentMetricsToAnnotation returns the annotation for measurements, or "" if
// status.currentCPUUtilizationPercentage of v1 holds all of them.
func currentMetricsToAnnotation(metrics []MetricStatus) string {
	if len(metrics) == 0 || len(metrics) == 1 && currentCPUIndex(metrics) == 0 && metrics[0].Resource.Current.AverageValue == nil {
		return ""
	}
	return marshalAnnotation(currentMetricsOf(metrics))
}

// currentMetricsOf converts measurements to the form of the annotation. It keeps nil and empty apart.
func currentMetricsOf(metrics []MetricStatus) []annotationMetric {
	if metrics == nil {
		return nil
	}
	out := make([]annotationMetric, len(metrics))
	for i, m := range metrics {
		out[i].Type = m.Type
		if s := m.Object; s != nil {
			out[i].Object = &annotationSource{Object: &s.DescribedObject, MetricName: s.Metric.Name, Selector: s.Metric.Selector,
				CurrentValue: s.Current.Value, AverageValue: s.Current.AverageValue}
		}
		if s := m.Pods; s != nil {
			out[i].Pods = &annotationSource{MetricName: s.Metric.Name, Selector: s.Metric.Selector, CurrentAverageValue: s.Current.AverageValue}
		}
		if s := m.Resource; s != nil {
			out[i].Resource = &annotationSource{Name: s.Name, CurrentAverageUtilization: s.Current.AverageUtilization, CurrentAverageValue: s.Current.AverageValue}
		}
		if s := m.ContainerResource; s != nil {
			out[i].ContainerResource = &annotationSource{Name: s.Name, Container: s.Container,
				CurrentAverageUtilization: s.Current.AverageUtilization, CurrentAverageValue: s.Current.AverageValue}
		}
		if s := m.External; s != nil {
			out[i].External = &annotationSource{MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector,
				CurrentValue: s.Current.Value, CurrentAverageValue: s.Current.AverageValue}
		}
	}
	return out
}

// currentMetricsFromAnnotation is the inverse of currentMetricsToAnnotation.
func currentMetricsFromAnnotation(annotation string) []MetricStatus {
	var out []MetricStatus
	for _, m := range unmarshalAnnotation[[]annotationMetric](annotation) {
		status := MetricStatus{Type: m.Type}
		if s := m.Object; s != nil {
			status.Object = &ObjectMetricStatus{DescribedObject: s.object(), Metric: MetricIdentifier{s.MetricName, s.Selector},
				Current: MetricValueStatus{Value: s.CurrentValue, AverageValue: s.AverageValue}}
		}
		if s := m.Pods; s != nil {
			status.Pods = &PodsMetricStatus{Metric: MetricIdentifier{s.MetricName, s.Selector}, Current: MetricValueStatus{AverageValue: s.CurrentAverageValue}}
		}
		if s := m.Resource; s != nil {
			status.Resource = &ResourceMetricStatus{Name: s.Name, Current: s.current()}
		}
		if s := m.ContainerResource; s != nil {
			status.ContainerResource = &ContainerResourceMetricStatus{Name: s.Name, Container: s.Container, Current: s.current()}
		}
		if s := m.External; s != nil {
			status.External = &ExternalMetricStatus{Metric: MetricIdentifier{s.MetricName, s.MetricSelector}, Current: s.current()}
		}
		out = append(out, status)
	}
	return out
}

func (s *annotationSource) current() MetricValueStatus {
	return MetricValueStatus{Value: s.CurrentValue, AverageValue: s.CurrentAverageValue, AverageUtilization: s.CurrentAverageUtilization}
}

func conditionsToAnnotation(conditions []HorizontalPodAutoscalerCondition) string {
	if len(conditions) == 0 {
		return ""
	}
	return marshalAnnotation(conditions)
}

func conditionsFromAnnotation(annotation string) []HorizontalPodAutoscalerCondition {
	return unmarshalAnnotation[[]HorizontalPodAutoscalerCondition](annotation)
}

// annotationBehavior is a scaling behavior in its annotation. The keys are the Go names, because that
// is what kube-apiserver writes; decoding ignores case.
type annotationBehavior struct {
	ScaleUp, ScaleDown *annotationRules
}

type annotationRules struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *string
	Policies                   []annotationPolicy
	Tolerance                  *meta.Quantity
}

type annotationPolicy struct {
	Type                 string
	Value, PeriodSeconds int32
}

func behaviorToAnnotation(b *HorizontalPodAutoscalerBehavior) string {
	if b == nil {
		return ""
	}
	side := func(r *HPAScalingRules) *annotationRules {
		if r == nil {
			return nil
		}
		out := &annotationRules{r.StabilizationWindowSeconds, r.SelectPolicy, nil, r.Tolerance}
		for _, p := range r.Policies {
			out.Policies = append(out.Policies, annotationPolicy(p))
		}
		return out
	}
	return marshalAnnotation(annotationBehavior{side(b.ScaleUp), side(b.ScaleDown)})
}

func behaviorFromAnnotation(annotation string) *HorizontalPodAutoscalerBehavior {
	b := unmarshalAnnotation[*annotationBehavior](annotation)
	if b == nil {
		return nil
	}
	side := func(r *annotationRules) *HPAScalingRules {
		if r == nil {
			return nil
		}
		out := &HPAScalingRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
		for _, p := range r.Policies {
			out.Policies = append(out.Policies, HPAScalingPolicy(p))
		}
		return out
	}
	return &HorizontalPodAutoscalerBehavior{ScaleUp: side(b.ScaleUp), ScaleDown: side(b.ScaleDown)}
}
