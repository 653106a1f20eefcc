package autoscaling

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// HorizontalPodAutoscalerV2beta1 is an autoscaler in version v2beta1. Metrics name their target by
// separate fields instead of a target with a type, and there is no behavior.
type HorizontalPodAutoscalerV2beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the scaled workload, the bounds of its size and the metrics that decide it.
	Spec HorizontalPodAutoscalerSpecV2beta1 `json:"spec,omitempty" protobuf:"2"`

	// Status is the last observed state.
	Status HorizontalPodAutoscalerStatusV2beta1 `json:"status,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerSpecV2beta1 is the configuration of an autoscaler.
type HorizontalPodAutoscalerSpecV2beta1 struct {
	// ScaleTargetRef is the workload. Its kind must have a scale subresource.
	ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef" protobuf:"1"`

	// MinReplicas is the lower bound of the number of replicas; default 1.
	MinReplicas *int32 `json:"minReplicas,omitempty" protobuf:"2" schema:"default=1,min=0"`

	// MaxReplicas is the upper bound of the number of replicas.
	MaxReplicas int32 `json:"maxReplicas" protobuf:"3" schema:"required"`

	// Metrics decide the number of replicas: each metric yields a size, and the largest is used.
	Metrics []MetricSpecV2beta1 `json:"metrics,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// HorizontalPodAutoscalerStatusV2beta1 is the last observed state of an autoscaler.
type HorizontalPodAutoscalerStatusV2beta1 struct {
	// ObservedGeneration is the latest generation that the controller has processed.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"1"`

	// LastScaleTime is the time of the last change of the size.
	LastScaleTime *meta.Time `json:"lastScaleTime,omitempty" protobuf:"2"`

	// CurrentReplicas is the number of pods at the last observation.
	CurrentReplicas int32 `json:"currentReplicas" protobuf:"3"`

	// DesiredReplicas is the number of pods that the controller last computed.
	DesiredReplicas int32 `json:"desiredReplicas" protobuf:"4"`

	// CurrentMetrics are the last measurements, in the order of spec.metrics.
	CurrentMetrics []MetricStatusV2beta1 `json:"currentMetrics" protobuf:"5" schema:"optional,listType=atomic"`

	// Conditions include AbleToScale, ScalingActive and ScalingLimited.
	Conditions []HorizontalPodAutoscalerCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// MetricSpecV2beta1 is a metric and its target. Exactly the field that type names must be set.
type MetricSpecV2beta1 struct {
	// Type is Object, Pods, Resource, ContainerResource or External.
	Type string `json:"type" protobuf:"1"`

	// Object is a metric that describes a single object.
	Object *ObjectMetricSourceV2beta1 `json:"object,omitempty" protobuf:"2"`

	// Pods is a custom metric of each pod, averaged over all pods.
	Pods *PodsMetricSourceV2beta1 `json:"pods,omitempty" protobuf:"3"`

	// Resource is the usage of a resource by all containers of each pod.
	Resource *ResourceMetricSourceV2beta1 `json:"resource,omitempty" protobuf:"4"`

	// ContainerResource is the usage of a resource by a single container of each pod.
	ContainerResource *ContainerResourceMetricSourceV2beta1 `json:"containerResource,omitempty" protobuf:"7"`

	// External is a metric from outside the cluster.
	External *ExternalMetricSourceV2beta1 `json:"external,omitempty" protobuf:"5"`
}

// ObjectMetricSourceV2beta1 is a metric that describes a single object.
type ObjectMetricSourceV2beta1 struct {
	// Target is the object that the metric describes.
	Target CrossVersionObjectReference `json:"target" protobuf:"1"`

	// MetricName identifies the metric.
	MetricName string `json:"metricName" protobuf:"2"`

	// TargetValue is the target for the metric as a whole.
	TargetValue meta.Quantity `json:"targetValue" protobuf:"3"`

	// Selector restricts the metric. It is passed to the metrics server without validation.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"4" schema:"unchecked"`

	// AverageValue is the target for the average over all pods.
	AverageValue *meta.Quantity `json:"averageValue,omitempty" protobuf:"5"`
}

// PodsMetricSourceV2beta1 is a custom metric of each pod.
type PodsMetricSourceV2beta1 struct {
	// MetricName identifies the metric.
	MetricName string `json:"metricName" protobuf:"1"`

	// TargetAverageValue is the target for the average over all pods.
	TargetAverageValue meta.Quantity `json:"targetAverageValue" protobuf:"2"`

	// Selector restricts the metric. It is passed to the metrics server without validation.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"3" schema:"unchecked"`
}

// ResourceMetricSourceV2beta1 is the usage of a resource by all containers of each pod.
type ResourceMetricSourceV2beta1 struct {
	// Name of the resource, such as cpu.
	Name string `json:"name" protobuf:"1"`

	// TargetAverageUtilization is the target in percent of the requested amount.
	TargetAverageUtilization *int32 `json:"targetAverageUtilization,omitempty" protobuf:"2"`

	// TargetAverageValue is the target as an amount.
	TargetAverageValue *meta.Quantity `json:"targetAverageValue,omitempty" protobuf:"3"`
}

// ContainerResourceMetricSourceV2beta1 is the usage of a resource by a single container of each pod.
type ContainerResourceMetricSourceV2beta1 struct {
	// Name of the resource, such as cpu.
	Name string `json:"name" protobuf:"1"`

	// TargetAverageUtilization is the target in percent of the requested amount.
	TargetAverageUtilization *int32 `json:"targetAverageUtilization,omitempty" protobuf:"2"`

	// TargetAverageValue is the target as an amount.
	TargetAverageValue *meta.Quantity `json:"targetAverageValue,omitempty" protobuf:"3"`

	// Container is the name of the container in the pods.
	Container string `json:"container" protobuf:"4"`
}

// ExternalMetricSourceV2beta1 is a metric from outside the cluster.
type ExternalMetricSourceV2beta1 struct {
	// MetricName identifies the metric.
	MetricName string `json:"metricName" protobuf:"1"`

	// MetricSelector restricts the metric. It is passed to the metrics server without validation.
	MetricSelector *meta.LabelSelector `json:"metricSelector,omitempty" protobuf:"2" schema:"unchecked"`

	// TargetValue is the target for the metric as a whole.
	TargetValue *meta.Quantity `json:"targetValue,omitempty" protobuf:"3"`

	// TargetAverageValue is the target for the average over all pods.
	TargetAverageValue *meta.Quantity `json:"targetAverageValue,omitempty" protobuf:"4"`
}

// MetricStatusV2beta1 is the last measurement of a metric.
type MetricStatusV2beta1 struct {
	// Type is Object, Pods, Resource, ContainerResource or External.
	Type string `json:"type" protobuf:"1"`

	// Object is a metric that describes a single object.
	Object *ObjectMetricStatusV2beta1 `json:"object,omitempty" protobuf:"2"`

	// Pods is a custom metric of each pod, averaged over all pods.
	Pods *PodsMetricStatusV2beta1 `json:"pods,omitempty" protobuf:"3"`

	// Resource is the usage of a resource by all containers of each pod.
	Resource *ResourceMetricStatusV2beta1 `json:"resource,omitempty" protobuf:"4"`

	// ContainerResource is the usage of a resource by a single container of each pod.
	ContainerResource *ContainerResourceMetricStatusV2beta1 `json:"containerResource,omitempty" protobuf:"7"`

	// External is a metric from outside the cluster.
	External *ExternalMetricStatusV2beta1 `json:"external,omitempty" protobuf:"5"`
}

// ObjectMetricStatusV2beta1 is the measurement of a metric that describes a single object.
type ObjectMetricStatusV2beta1 struct {
	// Target is the object that the metric describes.
	Target CrossVersionObjectReference `json:"target" protobuf:"1" schema:"unchecked"`

	// MetricName identifies the metric.
	MetricName string `json:"metricName" protobuf:"2"`

	// CurrentValue is the measured value of the metric as a whole.
	CurrentValue *meta.Quantity `json:"currentValue,omitempty" protobuf:"3"`

	// Selector restricts the metric.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"4" schema:"unchecked"`

	// AverageValue is the measured average over all pods.
	AverageValue *meta.Quantity `json:"averageValue,omitempty" protobuf:"5"`
}

// PodsMetricStatusV2beta1 is the measurement of a custom metric of each pod.
type PodsMetricStatusV2beta1 struct {
	// MetricName identifies the metric.
	MetricName string `json:"metricName" protobuf:"1"`

	// CurrentAverageValue is the measured average over all pods.
	CurrentAverageValue *meta.Quantity `json:"currentAverageValue,omitempty" protobuf:"2"`

	// Selector restricts the metric.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"3" schema:"unchecked"`
}

// ResourceMetricStatusV2beta1 is the measured usage of a resource by all containers of each pod.
type ResourceMetricStatusV2beta1 struct {
	// Name of the resource, such as cpu.
	Name string `json:"name" protobuf:"1"`

	// CurrentAverageUtilization is the measured average in percent of the requested amount.
	CurrentAverageUtilization *int32 `json:"currentAverageUtilization,omitempty" protobuf:"2"`

	// CurrentAverageValue is the measured average as an amount.
	CurrentAverageValue *meta.Quantity `json:"currentAverageValue,omitempty" protobuf:"3"`
}

// ContainerResourceMetricStatusV2beta1 is the measured usage of a resource by a single container of each
// pod.
type ContainerResourceMetricStatusV2beta1 struct {
	// Name of the resource, such as cpu.
	Name string `json:"name" protobuf:"1"`

	// CurrentAverageUtilization is the measured average in percent of the requested amount.
	CurrentAverageUtilization *int32 `json:"currentAverageUtilization,omitempty" protobuf:"2"`

	// CurrentAverageValue is the measured average as an amount.
	CurrentAverageValue *meta.Quantity `json:"currentAverageValue,omitempty" protobuf:"3"`

	// Container is the name of the container in the pods.
	Container string `json:"container" protobuf:"4"`
}

// ExternalMetricStatusV2beta1 is the measurement of a metric from outside the cluster.
type ExternalMetricStatusV2beta1 struct {
	// MetricName identifies the metric.
	MetricName string `json:"metricName" protobuf:"1"`

	// MetricSelector restricts the metric.
	MetricSelector *meta.LabelSelector `json:"metricSelector,omitempty" protobuf:"2" schema:"unchecked"`

	// CurrentValue is the measured value of the metric as a whole.
	CurrentValue *meta.Quantity `json:"currentValue,omitempty" protobuf:"3"`

	// CurrentAverageValue is the measured average over all pods.
	CurrentAverageValue *meta.Quantity `json:"currentAverageValue,omitempty" protobuf:"4"`
}

func v2beta1() registry.VersionOf[HorizontalPodAutoscaler] {
	return registry.Spoke[HorizontalPodAutoscalerV2beta1, HorizontalPodAutoscaler]{
		Version: "v2beta1", ToHub: (*HorizontalPodAutoscalerV2beta1).hub, FromHub: (*HorizontalPodAutoscaler).v2beta1,
		Lifetime:    registry.Lifetime{Introduced: "1.8", Deprecated: "1.22", Removed: "1.25"},
		Replacement: older.Use[HorizontalPodAutoscaler](wellknown.GroupAutoscaling + "/v2"),
	}
}

// hub converts v2beta1 to the hub by way of JSON: metrics have the same fields as in the annotations of
// v1.
func (in *HorizontalPodAutoscalerV2beta1) hub(out *HorizontalPodAutoscaler) error {
	s, st := &in.Spec, &in.Status
	out.Spec = HorizontalPodAutoscalerSpec{ScaleTargetRef: s.ScaleTargetRef, MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas, Metrics: metricsFromAnnotation(marshalAnnotation(s.Metrics))}
	out.Status = HorizontalPodAutoscalerStatus{
		ObservedGeneration: st.ObservedGeneration, LastScaleTime: st.LastScaleTime, CurrentReplicas: st.CurrentReplicas, DesiredReplicas: st.DesiredReplicas,
		CurrentMetrics: currentMetricsFromAnnotation(marshalAnnotation(st.CurrentMetrics)), Conditions: st.Conditions,
	}
	if st.CurrentMetrics != nil && out.Status.CurrentMetrics == nil {
		out.Status.CurrentMetrics = []MetricStatus{}
	}
	return nil
}

func (in *HorizontalPodAutoscaler) v2beta1(out *HorizontalPodAutoscalerV2beta1) error {
	s, st := &in.Spec, &in.Status
	out.Spec = HorizontalPodAutoscalerSpecV2beta1{ScaleTargetRef: s.ScaleTargetRef, MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas,
		Metrics: unmarshalAnnotation[[]MetricSpecV2beta1](metricsToAnnotation(s.Metrics))}
	out.Status = HorizontalPodAutoscalerStatusV2beta1{
		ObservedGeneration: st.ObservedGeneration, LastScaleTime: st.LastScaleTime, CurrentReplicas: st.CurrentReplicas, DesiredReplicas: st.DesiredReplicas,
		CurrentMetrics: unmarshalAnnotation[[]MetricStatusV2beta1](marshalAnnotation(currentMetricsOf(st.CurrentMetrics))), Conditions: st.Conditions,
	}
	return nil
}
