// Package autoscaling defines the kinds of the autoscaling group: HorizontalPodAutoscaler, in its
// versions v1 to v2.
package autoscaling

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// HorizontalPodAutoscaler adjusts the number of replicas of a workload so that metrics stay near their
// targets.
type HorizontalPodAutoscaler struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the scaled workload, the bounds of its size and the metrics that decide it.
	Spec HorizontalPodAutoscalerSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the last observed state.
	Status HorizontalPodAutoscalerStatus `json:"status,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerSpec is the configuration of an autoscaler.
type HorizontalPodAutoscalerSpec struct {
	// ScaleTargetRef is the workload. Its kind must have a scale subresource.
	ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef" protobuf:"1"`

	// MinReplicas is the lower bound of the number of replicas; default 1. 0 requires the feature
	// HPAScaleToZero and at least one metric of type Object or External.
	MinReplicas *int32 `json:"minReplicas,omitempty" protobuf:"2" schema:"default=1"`

	// MaxReplicas is the upper bound of the number of replicas. It must be at least 1 and not less than
	// minReplicas.
	MaxReplicas int32 `json:"maxReplicas" protobuf:"3" schema:"required,reason.required=must be set and greater than 0,min=1"`

	// Metrics decide the number of replicas: each metric yields a size, and the largest is used. By
	// default the autoscaler keeps the average CPU usage at 80 percent of the request.
	Metrics []MetricSpec `json:"metrics,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Behavior limits the rate of scaling up and down. Without it, the defaults of the controller
	// apply.
	Behavior *HorizontalPodAutoscalerBehavior `json:"behavior,omitempty" protobuf:"5"`
}

// CrossVersionObjectReference identifies an object in the namespace of the autoscaler.
type CrossVersionObjectReference struct {
	// Kind of the object; it must be a valid path segment.
	Kind string `json:"kind" protobuf:"1" schema:"required"`

	// Name of the object; it must be a valid path segment.
	Name string `json:"name" protobuf:"2" schema:"required"`

	// APIVersion of the object, as group/version. A scale target other than a ReplicationController
	// needs a group.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerBehavior limits the rate of scaling in each direction.
type HorizontalPodAutoscalerBehavior struct {
	// ScaleUp limits growth. By default the size may grow by 4 pods or double every 15 seconds,
	// whichever is more, and no stabilization window delays it.
	ScaleUp *HPAScalingRules `json:"scaleUp,omitempty" protobuf:"1"`

	// ScaleDown limits shrinking. By default all pods above minReplicas may go within 15 seconds, after
	// the stabilization window of the controller (300 seconds).
	ScaleDown *HPAScalingRules `json:"scaleDown,omitempty" protobuf:"2"`
}

// HPAScalingRules limit the rate of scaling in one direction.
type HPAScalingRules struct {
	// StabilizationWindowSeconds is the length of the window of past recommendations from which the
	// controller takes the most conservative: 0 to 3600 seconds. The default is 0 for scaling up and
	// 300 for scaling down.
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty" protobuf:"3" schema:"min=0,max=3600,reason.min=must be greater than or equal to zero,reason.max=must be less than or equal to 3600"`

	// SelectPolicy decides among the policies: Max (default) takes the largest change that any of them
	// allows, Min the smallest, and Disabled forbids scaling in this direction.
	SelectPolicy *string `json:"selectPolicy,omitempty" protobuf:"1" schema:"enum=Disabled|Max|Min"`

	// Policies each limit the change within a period. Unset means the default of the direction.
	Policies []HPAScalingPolicy `json:"policies,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Tolerance is the relative deviation of a metric from its target that causes no scaling, such as
	// 0.05. It must not be negative. Unset means the controller's global setting.
	Tolerance *meta.Quantity `json:"tolerance,omitempty" protobuf:"4"`
}

// HPAScalingPolicy limits the change of the size within a period.
type HPAScalingPolicy struct {
	// Type is the unit of value: Pods, or Percent of the current size.
	Type string `json:"type" protobuf:"1" schema:"enum=Percent|Pods"`

	// Value is the largest change within the period; it must be positive.
	Value int32 `json:"value" protobuf:"2" schema:"exclusiveMin=0,reason.exclusiveMin=must be greater than zero"`

	// PeriodSeconds is the length of the period: 1 to 1800 seconds.
	PeriodSeconds int32 `json:"periodSeconds" protobuf:"3" schema:"exclusiveMin=0,max=1800,reason.exclusiveMin=must be greater than zero,reason.max=must be less than or equal to 1800"`
}

// HorizontalPodAutoscalerStatus is the last observed state of an autoscaler.
type HorizontalPodAutoscalerStatus struct {
	// ObservedGeneration is the latest generation that the controller has processed.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"1"`

	// LastScaleTime is the time of the last change of the size.
	LastScaleTime *meta.Time `json:"lastScaleTime,omitempty" protobuf:"2"`

	// CurrentReplicas is the number of pods at the last observation.
	CurrentReplicas int32 `json:"currentReplicas,omitempty" protobuf:"3" schema:"min=0"`

	// DesiredReplicas is the number of pods that the controller last computed.
	DesiredReplicas int32 `json:"desiredReplicas" protobuf:"4" schema:"min=0"`

	// CurrentMetrics are the last measurements, in the order of spec.metrics.
	CurrentMetrics []MetricStatus `json:"currentMetrics" protobuf:"5" schema:"optional,listType=atomic"`

	// Conditions include AbleToScale, ScalingActive and ScalingLimited.
	Conditions []HorizontalPodAutoscalerCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// HorizontalPodAutoscalerCondition is an aspect of an autoscaler's state.
type HorizontalPodAutoscalerCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"5"`

	// ObservedGeneration is the generation that the condition was computed for.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"6"`
}

// Kinds returns the kinds of the autoscaling group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[HorizontalPodAutoscaler]{
		Group: wellknown.GroupAutoscaling, Version: "v2", ShortNames: []string{"hpa"}, Categories: []string{"all"}, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.23"},
		Versions: []registry.VersionOf[HorizontalPodAutoscaler]{
			v1Version(), older.Same[HorizontalPodAutoscaler]("v2beta2", "1.12", "1.23", "1.26", wellknown.GroupAutoscaling+"/v2"), v2beta1(),
		},
		Columns:  columns(),
		Default:  setDefaults,
		Validate: validate,
		Reference: &compat.Reference{
			StatusMetadata:      compat.CallersMetadata(),
			DeleteAnswersStatus: true,
		},
	})}
}

func ptr[T any](v T) *T { return &v }

// setDefaults fills in metrics and, if there is a behavior, its rules. It removes the annotations in
// which v1 shows fields of v2, because the hub keeps these fields themselves; a stale annotation would
// override them on the next read through v1.
func setDefaults(w *registry.Change[HorizontalPodAutoscaler]) {
	for _, name := range v1Annotations() {
		delete(w.New.Annotations, w.Names.Wire(name))
	}
	const utilization, period = 80, 15
	s := &w.New.Spec
	if len(s.Metrics) == 0 {
		s.Metrics = []MetricSpec{cpuMetric(utilization)}
	}
	if s.Behavior == nil {
		return
	}
	all := HPAScalingPolicy{Type: "Percent", Value: 100, PeriodSeconds: period}
	for _, side := range []struct {
		rules    **HPAScalingRules
		window   *int32
		policies []HPAScalingPolicy
	}{
		{&s.Behavior.ScaleUp, ptr(int32(0)), []HPAScalingPolicy{{Type: "Pods", Value: 4, PeriodSeconds: period}, all}},
		{&s.Behavior.ScaleDown, nil, []HPAScalingPolicy{all}},
	} {
		if *side.rules == nil {
			*side.rules = &HPAScalingRules{}
		}
		r := *side.rules
		if r.StabilizationWindowSeconds == nil {
			r.StabilizationWindowSeconds = side.window
		}
		if r.SelectPolicy == nil {
			r.SelectPolicy = ptr("Max")
		}
		if r.Policies == nil {
			r.Policies = side.policies
		}
	}
}

// cpuMetric returns the metric that keeps the average CPU usage at a percentage of the request.
func cpuMetric(percent int32) MetricSpec {
	return MetricSpec{Type: "Resource", Resource: &ResourceMetricSource{
		Name: "cpu", Target: MetricTarget{Type: "Utilization", AverageUtilization: &percent},
	}}
}
