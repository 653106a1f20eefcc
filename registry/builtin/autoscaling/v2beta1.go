package autoscaling

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// HorizontalPodAutoscalerV2beta1 is an autoscaler as version v2beta1 shows it: a metric
// says its target by the field that it stands in, and there is no behavior.
type HorizontalPodAutoscalerV2beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is scaled, within which bounds and by which metrics.
	Spec HorizontalPodAutoscalerSpecV2beta1 `json:"spec,omitempty" protobuf:"2"`

	// Status is what was measured and wanted last.
	Status HorizontalPodAutoscalerStatusV2beta1 `json:"status,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerSpecV2beta1 says what is scaled, within which bounds and by
// which metrics.
type HorizontalPodAutoscalerSpecV2beta1 struct {
	// ScaleTargetRef is the object that is scaled, through its scale.
	ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef" protobuf:"1"`

	// MinReplicas is the least number of pods; 1 by default.
	MinReplicas *int32 `json:"minReplicas,omitempty" protobuf:"2" schema:"default=1,min=0"`

	// MaxReplicas is the greatest number of pods.
	MaxReplicas int32 `json:"maxReplicas" protobuf:"3" schema:"required"`

	// Metrics are what the size follows.
	Metrics []MetricSpecV2beta1 `json:"metrics,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// HorizontalPodAutoscalerStatusV2beta1 is what was measured and wanted last.
type HorizontalPodAutoscalerStatusV2beta1 struct {
	// ObservedGeneration is the generation that the controller has seen.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"1"`

	// LastScaleTime is when the size was last changed.
	LastScaleTime *meta.Time `json:"lastScaleTime,omitempty" protobuf:"2"`

	// CurrentReplicas is how many pods there were.
	CurrentReplicas int32 `json:"currentReplicas" protobuf:"3"`

	// DesiredReplicas is how many there shall be.
	DesiredReplicas int32 `json:"desiredReplicas" protobuf:"4"`

	// CurrentMetrics is what was measured.
	CurrentMetrics []MetricStatusV2beta1 `json:"currentMetrics" protobuf:"5" schema:"optional,listType=atomic"`

	// Conditions are AbleToScale, ScalingActive, ScalingLimited and others.
	Conditions []HorizontalPodAutoscalerCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// MetricSpecV2beta1 is a metric and what it shall be.
type MetricSpecV2beta1 struct {
	// Type is the field that is set: Object, Pods, Resource, ContainerResource or External.
	Type string `json:"type" protobuf:"1"`

	// Object is a metric of an object.
	Object *ObjectMetricSourceV2beta1 `json:"object,omitempty" protobuf:"2"`

	// Pods is a metric of the pods.
	Pods *PodsMetricSourceV2beta1 `json:"pods,omitempty" protobuf:"3"`

	// Resource is what the pods use of a resource.
	Resource *ResourceMetricSourceV2beta1 `json:"resource,omitempty" protobuf:"4"`

	// ContainerResource is what a container of each pod uses of a resource.
	ContainerResource *ContainerResourceMetricSourceV2beta1 `json:"containerResource,omitempty" protobuf:"7"`

	// External is a metric of nothing in the cluster.
	External *ExternalMetricSourceV2beta1 `json:"external,omitempty" protobuf:"5"`
}

// ObjectMetricSourceV2beta1 is what a metric of an object shall be.
type ObjectMetricSourceV2beta1 struct {
	// Target is the object.
	Target CrossVersionObjectReference `json:"target" protobuf:"1"`

	// MetricName is the name of the metric.
	MetricName string `json:"metricName" protobuf:"2"`

	// TargetValue is what it shall be.
	TargetValue meta.Quantity `json:"targetValue" protobuf:"3"`

	// Selector chooses among metrics of the name.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"4" schema:"unchecked"`

	// AverageValue is what it shall be for each pod.
	AverageValue *meta.Quantity `json:"averageValue,omitempty" protobuf:"5"`
}

// PodsMetricSourceV2beta1 is what a metric of the pods shall be.
type PodsMetricSourceV2beta1 struct {
	// MetricName is the name of the metric.
	MetricName string `json:"metricName" protobuf:"1"`

	// TargetAverageValue is what it shall be on average.
	TargetAverageValue meta.Quantity `json:"targetAverageValue" protobuf:"2"`

	// Selector chooses among metrics of the name.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"3" schema:"unchecked"`
}

// ResourceMetricSourceV2beta1 is what the pods shall use of a resource.
type ResourceMetricSourceV2beta1 struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1"`

	// TargetAverageUtilization is a percentage of what they request.
	TargetAverageUtilization *int32 `json:"targetAverageUtilization,omitempty" protobuf:"2"`

	// TargetAverageValue is an amount.
	TargetAverageValue *meta.Quantity `json:"targetAverageValue,omitempty" protobuf:"3"`
}

// ContainerResourceMetricSourceV2beta1 is what a container shall use of a resource.
type ContainerResourceMetricSourceV2beta1 struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1"`

	// TargetAverageUtilization is a percentage of what it requests.
	TargetAverageUtilization *int32 `json:"targetAverageUtilization,omitempty" protobuf:"2"`

	// TargetAverageValue is an amount.
	TargetAverageValue *meta.Quantity `json:"targetAverageValue,omitempty" protobuf:"3"`

	// Container is its name.
	Container string `json:"container" protobuf:"4"`
}

// ExternalMetricSourceV2beta1 is what a metric of nothing in the cluster shall be.
type ExternalMetricSourceV2beta1 struct {
	// MetricName is the name of the metric.
	MetricName string `json:"metricName" protobuf:"1"`

	// MetricSelector chooses among metrics of the name.
	MetricSelector *meta.Selector `json:"metricSelector,omitempty" protobuf:"2" schema:"unchecked"`

	// TargetValue is what it shall be.
	TargetValue *meta.Quantity `json:"targetValue,omitempty" protobuf:"3"`

	// TargetAverageValue is what it shall be for each pod.
	TargetAverageValue *meta.Quantity `json:"targetAverageValue,omitempty" protobuf:"4"`
}

// MetricStatusV2beta1 is a metric and what it was.
type MetricStatusV2beta1 struct {
	// Type is the field that is set: Object, Pods, Resource, ContainerResource or External.
	Type string `json:"type" protobuf:"1"`

	// Object is a metric of an object.
	Object *ObjectMetricStatusV2beta1 `json:"object,omitempty" protobuf:"2"`

	// Pods is a metric of the pods.
	Pods *PodsMetricStatusV2beta1 `json:"pods,omitempty" protobuf:"3"`

	// Resource is what the pods use of a resource.
	Resource *ResourceMetricStatusV2beta1 `json:"resource,omitempty" protobuf:"4"`

	// ContainerResource is what a container of each pod uses of a resource.
	ContainerResource *ContainerResourceMetricStatusV2beta1 `json:"containerResource,omitempty" protobuf:"7"`

	// External is a metric of nothing in the cluster.
	External *ExternalMetricStatusV2beta1 `json:"external,omitempty" protobuf:"5"`
}

// ObjectMetricStatusV2beta1 is what a metric of an object was.
type ObjectMetricStatusV2beta1 struct {
	// Target is the object.
	Target CrossVersionObjectReference `json:"target" protobuf:"1" schema:"unchecked"`

	// MetricName is the name of the metric.
	MetricName string `json:"metricName" protobuf:"2"`

	// CurrentValue is what it was.
	CurrentValue *meta.Quantity `json:"currentValue,omitempty" protobuf:"3"`

	// Selector chooses among metrics of the name.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"4" schema:"unchecked"`

	// AverageValue is what it was for each pod.
	AverageValue *meta.Quantity `json:"averageValue,omitempty" protobuf:"5"`
}

// PodsMetricStatusV2beta1 is what a metric of the pods was.
type PodsMetricStatusV2beta1 struct {
	// MetricName is the name of the metric.
	MetricName string `json:"metricName" protobuf:"1"`

	// CurrentAverageValue is what it was on average.
	CurrentAverageValue *meta.Quantity `json:"currentAverageValue,omitempty" protobuf:"2"`

	// Selector chooses among metrics of the name.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"3" schema:"unchecked"`
}

// ResourceMetricStatusV2beta1 is what the pods used of a resource.
type ResourceMetricStatusV2beta1 struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1"`

	// CurrentAverageUtilization is a percentage of what they request.
	CurrentAverageUtilization *int32 `json:"currentAverageUtilization,omitempty" protobuf:"2"`

	// CurrentAverageValue is an amount.
	CurrentAverageValue *meta.Quantity `json:"currentAverageValue,omitempty" protobuf:"3"`
}

// ContainerResourceMetricStatusV2beta1 is what a container used of a resource.
type ContainerResourceMetricStatusV2beta1 struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1"`

	// CurrentAverageUtilization is a percentage of what it requests.
	CurrentAverageUtilization *int32 `json:"currentAverageUtilization,omitempty" protobuf:"2"`

	// CurrentAverageValue is an amount.
	CurrentAverageValue *meta.Quantity `json:"currentAverageValue,omitempty" protobuf:"3"`

	// Container is its name.
	Container string `json:"container" protobuf:"4"`
}

// ExternalMetricStatusV2beta1 is what a metric of nothing in the cluster was.
type ExternalMetricStatusV2beta1 struct {
	// MetricName is the name of the metric.
	MetricName string `json:"metricName" protobuf:"1"`

	// MetricSelector chooses among metrics of the name.
	MetricSelector *meta.Selector `json:"metricSelector,omitempty" protobuf:"2" schema:"unchecked"`

	// CurrentValue is what it was.
	CurrentValue *meta.Quantity `json:"currentValue,omitempty" protobuf:"3"`

	// CurrentAverageValue is what it was for each pod.
	CurrentAverageValue *meta.Quantity `json:"currentAverageValue,omitempty" protobuf:"4"`
}

func v2beta1() registry.VersionOf[HorizontalPodAutoscaler] {
	return registry.Spoke[HorizontalPodAutoscalerV2beta1, HorizontalPodAutoscaler]{
		Version: "v2beta1", ToHub: (*HorizontalPodAutoscalerV2beta1).hub, FromHub: (*HorizontalPodAutoscaler).v2beta1,
		Lifetime:    registry.Lifetime{Introduced: "1.8", Deprecated: "1.22", Removed: "1.25"},
		Replacement: older.Use[HorizontalPodAutoscaler](names.GroupAutoscaling + "/v2"),
	}
}

// hub reads metrics as those of an annotation of v1, which have the same fields.
func (in *HorizontalPodAutoscalerV2beta1) hub(out *HorizontalPodAutoscaler) error {
	s, st := &in.Spec, &in.Status
	out.Spec = HorizontalPodAutoscalerSpec{ScaleTargetRef: s.ScaleTargetRef, MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas, Metrics: shownMetrics(text(s.Metrics))}
	out.Status = HorizontalPodAutoscalerStatus{
		ObservedGeneration: st.ObservedGeneration, LastScaleTime: st.LastScaleTime, CurrentReplicas: st.CurrentReplicas, DesiredReplicas: st.DesiredReplicas,
		CurrentMetrics: shownMeasured(text(st.CurrentMetrics)), Conditions: st.Conditions,
	}
	if st.CurrentMetrics != nil && out.Status.CurrentMetrics == nil {
		out.Status.CurrentMetrics = []MetricStatus{}
	}
	return nil
}

func (in *HorizontalPodAutoscaler) v2beta1(out *HorizontalPodAutoscalerV2beta1) error {
	s, st := &in.Spec, &in.Status
	out.Spec = HorizontalPodAutoscalerSpecV2beta1{ScaleTargetRef: s.ScaleTargetRef, MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas,
		Metrics: read[[]MetricSpecV2beta1](showMetrics(s.Metrics))}
	out.Status = HorizontalPodAutoscalerStatusV2beta1{
		ObservedGeneration: st.ObservedGeneration, LastScaleTime: st.LastScaleTime, CurrentReplicas: st.CurrentReplicas, DesiredReplicas: st.DesiredReplicas,
		CurrentMetrics: read[[]MetricStatusV2beta1](text(shownAll(st.CurrentMetrics))), Conditions: st.Conditions,
	}
	return nil
}
