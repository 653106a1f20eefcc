package autoscaling

import (
	"encoding/json"

	"orch.io/controlplane/api/meta"
)

// shownMetric is a metric in an annotation of v1: what it shall be or what was
// measured. Which words are set depends on its type.
type shownMetric struct {
	Type              string       `json:"type"`
	Object            *shownSource `json:"object,omitempty"`
	Pods              *shownSource `json:"pods,omitempty"`
	Resource          *shownSource `json:"resource,omitempty"`
	ContainerResource *shownSource `json:"containerResource,omitempty"`
	External          *shownSource `json:"external,omitempty"`
}

type shownSource struct {
	Name                      string                       `json:"name,omitempty"`
	Object                    *CrossVersionObjectReference `json:"target,omitempty"`
	MetricName                string                       `json:"metricName,omitempty"`
	MetricSelector            *meta.Selector               `json:"metricSelector,omitempty"` // of External
	TargetValue               *meta.Quantity               `json:"targetValue,omitempty"`
	TargetAverageUtilization  *int32                       `json:"targetAverageUtilization,omitempty"`
	TargetAverageValue        *meta.Quantity               `json:"targetAverageValue,omitempty"`
	CurrentValue              *meta.Quantity               `json:"currentValue,omitempty"`
	CurrentAverageUtilization *int32                       `json:"currentAverageUtilization,omitempty"`
	CurrentAverageValue       *meta.Quantity               `json:"currentAverageValue,omitempty"`
	Selector                  *meta.Selector               `json:"selector,omitempty"`
	AverageValue              *meta.Quantity               `json:"averageValue,omitempty"` // of Object
	Container                 string                       `json:"container,omitempty"`
}

// text returns a value as an annotation has it.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// read reads an annotation; one that is none of this server's says nothing.
func read[T any](annotation string) (v T) {
	if err := json.Unmarshal([]byte(annotation), &v); err != nil {
		return *new(T)
	}
	return v
}

func showMetrics(metrics []MetricSpec) string {
	if len(metrics) == 0 {
		return ""
	}
	out := make([]shownMetric, len(metrics))
	for i, m := range metrics {
		out[i].Type = m.Type
		if s := m.Object; s != nil {
			value := s.Target.Value
			if value == nil {
				value = &meta.Quantity{} // readers know no object without
			}
			out[i].Object = &shownSource{Object: &s.DescribedObject, MetricName: s.Metric.Name, Selector: s.Metric.Selector,
				TargetValue: value, AverageValue: s.Target.AverageValue}
		}
		if s := m.Pods; s != nil {
			out[i].Pods = &shownSource{MetricName: s.Metric.Name, Selector: s.Metric.Selector, TargetAverageValue: s.Target.AverageValue}
		}
		if s := m.Resource; s != nil {
			out[i].Resource = &shownSource{Name: s.Name, TargetAverageUtilization: s.Target.AverageUtilization, TargetAverageValue: s.Target.AverageValue}
		}
		if s := m.ContainerResource; s != nil {
			out[i].ContainerResource = &shownSource{Name: s.Name, Container: s.Container,
				TargetAverageUtilization: s.Target.AverageUtilization, TargetAverageValue: s.Target.AverageValue}
		}
		if s := m.External; s != nil {
			out[i].External = &shownSource{MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector,
				TargetValue: s.Target.Value, TargetAverageValue: s.Target.AverageValue}
		}
	}
	return text(out)
}

func shownMetrics(annotation string) []MetricSpec {
	var out []MetricSpec
	for _, m := range read[[]shownMetric](annotation) {
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

// targetOf returns a target of the type that its values have.
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

func (s *shownSource) object() CrossVersionObjectReference {
	if s.Object == nil {
		return CrossVersionObjectReference{}
	}
	return *s.Object
}

// showMeasured returns nothing for what the field of v1 says alone.
func showMeasured(metrics []MetricStatus) string {
	if len(metrics) == 0 || len(metrics) == 1 && measuredCPU(metrics) == 0 && metrics[0].Resource.Current.AverageValue == nil {
		return ""
	}
	return text(shownAll(metrics))
}

func shownAll(metrics []MetricStatus) []shownMetric {
	if metrics == nil {
		return nil
	}
	out := make([]shownMetric, len(metrics))
	for i, m := range metrics {
		out[i].Type = m.Type
		if s := m.Object; s != nil {
			out[i].Object = &shownSource{Object: &s.DescribedObject, MetricName: s.Metric.Name, Selector: s.Metric.Selector,
				CurrentValue: s.Current.Value, AverageValue: s.Current.AverageValue}
		}
		if s := m.Pods; s != nil {
			out[i].Pods = &shownSource{MetricName: s.Metric.Name, Selector: s.Metric.Selector, CurrentAverageValue: s.Current.AverageValue}
		}
		if s := m.Resource; s != nil {
			out[i].Resource = &shownSource{Name: s.Name, CurrentAverageUtilization: s.Current.AverageUtilization, CurrentAverageValue: s.Current.AverageValue}
		}
		if s := m.ContainerResource; s != nil {
			out[i].ContainerResource = &shownSource{Name: s.Name, Container: s.Container,
				CurrentAverageUtilization: s.Current.AverageUtilization, CurrentAverageValue: s.Current.AverageValue}
		}
		if s := m.External; s != nil {
			out[i].External = &shownSource{MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector,
				CurrentValue: s.Current.Value, CurrentAverageValue: s.Current.AverageValue}
		}
	}
	return out
}

func shownMeasured(annotation string) []MetricStatus {
	var out []MetricStatus
	for _, m := range read[[]shownMetric](annotation) {
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

func (s *shownSource) current() MetricValueStatus {
	return MetricValueStatus{Value: s.CurrentValue, AverageValue: s.CurrentAverageValue, AverageUtilization: s.CurrentAverageUtilization}
}

func showConditions(conditions []HorizontalPodAutoscalerCondition) string {
	if len(conditions) == 0 {
		return ""
	}
	return text(conditions)
}

func shownConditions(annotation string) []HorizontalPodAutoscalerCondition {
	return read[[]HorizontalPodAutoscalerCondition](annotation)
}

// shownBehaviors has the names that this annotation has; case does not matter to who
// reads it.
type shownBehaviors struct {
	ScaleUp, ScaleDown *shownRules
}

type shownRules struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *string
	Policies                   []shownPolicy
	Tolerance                  *meta.Quantity
}

type shownPolicy struct {
	Type                 string
	Value, PeriodSeconds int32
}

func showBehavior(b *HorizontalPodAutoscalerBehavior) string {
	if b == nil {
		return ""
	}
	side := func(r *HPAScalingRules) *shownRules {
		if r == nil {
			return nil
		}
		out := &shownRules{r.StabilizationWindowSeconds, r.SelectPolicy, nil, r.Tolerance}
		for _, p := range r.Policies {
			out.Policies = append(out.Policies, shownPolicy(p))
		}
		return out
	}
	return text(shownBehaviors{side(b.ScaleUp), side(b.ScaleDown)})
}

func shownBehavior(annotation string) *HorizontalPodAutoscalerBehavior {
	b := read[*shownBehaviors](annotation)
	if b == nil {
		return nil
	}
	side := func(r *shownRules) *HPAScalingRules {
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
