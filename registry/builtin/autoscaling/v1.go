package autoscaling

import (
	"slices"

	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	v1 "orch.io/controlplane/registry/builtin/internal/autoscalingv1"
)

// v1Version returns version v1. It has a field for a single metric, the average CPU utilization, and
// keeps the other fields of the hub in annotations.
func v1Version() registry.Spoke[v1.HorizontalPodAutoscaler, HorizontalPodAutoscaler] {
	return registry.Spoke[v1.HorizontalPodAutoscaler, HorizontalPodAutoscaler]{
		Version: "v1", ToHub: fromV1, FromHub: toV1, Annotations: v1Annotations(),
	}
}

// v1Annotations returns the annotations that hold fields of the hub, by spec name.
func v1Annotations() []string {
	return []string{wellknown.ScalerMetrics, wellknown.ScalerMeasured, wellknown.ScalerConditions, wellknown.ScalerBehavior}
}

// fromV1 converts v1 to the hub. The CPU target is appended to the metrics of the annotation. The
// field for the current CPU utilization overrides the same measurement in the annotation.
func fromV1(in *v1.HorizontalPodAutoscaler, out *HorizontalPodAutoscaler) error {
	s := &in.Spec
	out.Spec = HorizontalPodAutoscalerSpec{
		ScaleTargetRef: CrossVersionObjectReference{Kind: s.ScaleTargetRef.Kind, Name: s.ScaleTargetRef.Name, APIVersion: s.ScaleTargetRef.APIVersion},
		MinReplicas:    s.MinReplicas, MaxReplicas: s.MaxReplicas,
		Metrics: metricsFromAnnotation(in.Annotations[wellknown.ScalerMetrics]), Behavior: behaviorFromAnnotation(in.Annotations[wellknown.ScalerBehavior]),
	}
	if n := s.TargetCPUUtilizationPercentage; n != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, cpuMetric(*n))
	}
	st := &in.Status
	out.Status = HorizontalPodAutoscalerStatus{
		ObservedGeneration: st.ObservedGeneration, LastScaleTime: st.LastScaleTime, CurrentReplicas: st.CurrentReplicas, DesiredReplicas: st.DesiredReplicas,
		CurrentMetrics: currentMetricsFromAnnotation(in.Annotations[wellknown.ScalerMeasured]), Conditions: conditionsFromAnnotation(in.Annotations[wellknown.ScalerConditions]),
	}
	if n := st.CurrentCPUUtilizationPercentage; n != nil {
		i := currentCPUIndex(out.Status.CurrentMetrics)
		if i < 0 {
			i = len(out.Status.CurrentMetrics)
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, MetricStatus{Type: "Resource", Resource: &ResourceMetricStatus{Name: "cpu"}})
		}
		out.Status.CurrentMetrics[i].Resource.Current.AverageUtilization = n
	}
	return nil
}

// toV1 converts the hub to v1. It writes an annotation only if the fields of v1 cannot hold the value.
func toV1(in *HorizontalPodAutoscaler, out *v1.HorizontalPodAutoscaler) error {
	s, cpu := &in.Spec, targetCPUIndex(in.Spec.Metrics)
	out.Spec = v1.HorizontalPodAutoscalerSpec{ScaleTargetRef: v1.CrossVersionObjectReference{Kind: s.ScaleTargetRef.Kind, Name: s.ScaleTargetRef.Name, APIVersion: s.ScaleTargetRef.APIVersion},
		MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas}
	others := s.Metrics
	if cpu >= 0 {
		out.Spec.TargetCPUUtilizationPercentage = s.Metrics[cpu].Resource.Target.AverageUtilization
		others = slices.Delete(slices.Clone(others), cpu, cpu+1)
	}
	st := &in.Status
	out.Status = v1.HorizontalPodAutoscalerStatus{ObservedGeneration: st.ObservedGeneration, LastScaleTime: st.LastScaleTime,
		CurrentReplicas: st.CurrentReplicas, DesiredReplicas: st.DesiredReplicas}
	if i := currentCPUIndex(st.CurrentMetrics); i >= 0 {
		out.Status.CurrentCPUUtilizationPercentage = st.CurrentMetrics[i].Resource.Current.AverageUtilization
	}
	out.Annotations = map[string]string{}
	for name, text := range map[string]string{
		wellknown.ScalerMetrics: metricsToAnnotation(others), wellknown.ScalerBehavior: behaviorToAnnotation(s.Behavior),
		wellknown.ScalerMeasured: currentMetricsToAnnotation(st.CurrentMetrics), wellknown.ScalerConditions: conditionsToAnnotation(st.Conditions),
	} {
		if text != "" {
			out.Annotations[name] = text
		}
	}
	return nil
}

// targetCPUIndex returns the index of the metric that v1 shows in targetCPUUtilizationPercentage, or
// -1. It is the last match, because fromV1 appends that metric to the others.
func targetCPUIndex(metrics []MetricSpec) int {
	for i, m := range slices.Backward(metrics) {
		if m.Type == "Resource" && m.Resource != nil && m.Resource.Name == "cpu" && m.Resource.Target.AverageUtilization != nil {
			return i
		}
	}
	return -1
}

// currentCPUIndex returns the index of the measured CPU utilization, or -1.
func currentCPUIndex(metrics []MetricStatus) int {
	return slices.IndexFunc(metrics, func(m MetricStatus) bool {
		return m.Type == "Resource" && m.Resource != nil && m.Resource.Name == "cpu" && m.Resource.Current.AverageUtilization != nil
	})
}
