package autoscaling

import (
	"slices"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	v1 "orch.io/controlplane/registry/builtin/internal/autoscalingv1"
)

// olderForm is version v1: it has a field for one metric, the cpu that pods use, and
// annotations for what the hub says beside it.
func olderForm() registry.Spoke[v1.HorizontalPodAutoscaler, HorizontalPodAutoscaler] {
	return registry.Spoke[v1.HorizontalPodAutoscaler, HorizontalPodAutoscaler]{
		Version: "v1", ToHub: fromV1, FromHub: toV1, Annotations: shownAsAnnotations(),
	}
}

func shownAsAnnotations() []string {
	return []string{names.ScalerMetrics, names.ScalerMeasured, names.ScalerConditions, names.ScalerBehavior}
}

// fromV1 takes the metric of the field after those of the annotations. Of what was
// measured the field says what the annotation says otherwise.
func fromV1(in *v1.HorizontalPodAutoscaler, out *HorizontalPodAutoscaler) error {
	s := &in.Spec
	out.Spec = HorizontalPodAutoscalerSpec{
		ScaleTargetRef: CrossVersionObjectReference{Kind: s.ScaleTargetRef.Kind, Name: s.ScaleTargetRef.Name, APIVersion: s.ScaleTargetRef.APIVersion},
		MinReplicas:    s.MinReplicas, MaxReplicas: s.MaxReplicas,
		Metrics: shownMetrics(in.Annotations[names.ScalerMetrics]), Behavior: shownBehavior(in.Annotations[names.ScalerBehavior]),
	}
	if n := s.TargetCPUUtilizationPercentage; n != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, cpuMetric(*n))
	}
	st := &in.Status
	out.Status = HorizontalPodAutoscalerStatus{
		ObservedGeneration: st.ObservedGeneration, LastScaleTime: st.LastScaleTime, CurrentReplicas: st.CurrentReplicas, DesiredReplicas: st.DesiredReplicas,
		CurrentMetrics: shownMeasured(in.Annotations[names.ScalerMeasured]), Conditions: shownConditions(in.Annotations[names.ScalerConditions]),
	}
	if n := st.CurrentCPUUtilizationPercentage; n != nil {
		i := measuredCPU(out.Status.CurrentMetrics)
		if i < 0 {
			i = len(out.Status.CurrentMetrics)
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, MetricStatus{Type: "Resource", Resource: &ResourceMetricStatus{Name: "cpu"}})
		}
		out.Status.CurrentMetrics[i].Resource.Current.AverageUtilization = n
	}
	return nil
}

func toV1(in *HorizontalPodAutoscaler, out *v1.HorizontalPodAutoscaler) error {
	s, cpu := &in.Spec, targetCPU(in.Spec.Metrics)
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
	if i := measuredCPU(st.CurrentMetrics); i >= 0 {
		out.Status.CurrentCPUUtilizationPercentage = st.CurrentMetrics[i].Resource.Current.AverageUtilization
	}
	out.Annotations = map[string]string{}
	for name, text := range map[string]string{
		names.ScalerMetrics: showMetrics(others), names.ScalerBehavior: showBehavior(s.Behavior),
		names.ScalerMeasured: showMeasured(st.CurrentMetrics), names.ScalerConditions: showConditions(st.Conditions),
	} {
		if text != "" {
			out.Annotations[name] = text
		}
	}
	return nil
}

// targetCPU returns where the metric is that v1 has a field for, -1 if there is none:
// of several the last, which is the one that stood in the field when a client of v1
// wrote them.
func targetCPU(metrics []MetricSpec) int {
	for i, m := range slices.Backward(metrics) {
		if m.Type == "Resource" && m.Resource != nil && m.Resource.Name == "cpu" && m.Resource.Target.AverageUtilization != nil {
			return i
		}
	}
	return -1
}

// measuredCPU returns where it says how much cpu pods use, as a percentage, or -1.
func measuredCPU(metrics []MetricStatus) int {
	return slices.IndexFunc(metrics, func(m MetricStatus) bool {
		return m.Type == "Resource" && m.Resource != nil && m.Resource.Name == "cpu" && m.Resource.Current.AverageUtilization != nil
	})
}
