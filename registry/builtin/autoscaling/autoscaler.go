// Package autoscaling holds the kind of the autoscaling group,
// HorizontalPodAutoscaler, which scales others by what is measured.
package autoscaling

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// HorizontalPodAutoscaler keeps the size of another object such that metrics stay at
// their targets.
type HorizontalPodAutoscaler struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is scaled, within which bounds and by which metrics.
	Spec HorizontalPodAutoscalerSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what was measured and wanted last.
	Status HorizontalPodAutoscalerStatus `json:"status,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerSpec says what is scaled, within which bounds and by which
// metrics.
type HorizontalPodAutoscalerSpec struct {
	// ScaleTargetRef is the object that is scaled, through its scale.
	ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef" protobuf:"1"`

	// MinReplicas is the least number of pods; 1 by default. It may be 0 if an Object or
	// External metric is used.
	MinReplicas *int32 `json:"minReplicas,omitempty" protobuf:"2" schema:"default=1"`

	// MaxReplicas is the greatest number of pods.
	MaxReplicas int32 `json:"maxReplicas" protobuf:"3" schema:"required,reason.required=must be set and greater than 0,min=1"`

	// Metrics are what the size follows; the one that asks for most pods wins. By
	// default the pods shall use 80 percent of the cpu that they request.
	Metrics []MetricSpec `json:"metrics,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Behavior says how fast the size may change.
	Behavior *HorizontalPodAutoscalerBehavior `json:"behavior,omitempty" protobuf:"5"`
}

// CrossVersionObjectReference points at an object of some kind in the same namespace.
type CrossVersionObjectReference struct {
	// Kind of the object.
	Kind string `json:"kind" protobuf:"1" schema:"required"`

	// Name of the object.
	Name string `json:"name" protobuf:"2" schema:"required"`

	// APIVersion of the object.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerBehavior says how fast the size may change.
type HorizontalPodAutoscalerBehavior struct {
	// ScaleUp is for more pods: by default up to 4 more or twice as many every 15
	// seconds, at once.
	ScaleUp *HPAScalingRules `json:"scaleUp,omitempty" protobuf:"1"`

	// ScaleDown is for fewer pods: by default any number every 15 seconds, when that
	// has been right for five minutes.
	ScaleDown *HPAScalingRules `json:"scaleDown,omitempty" protobuf:"2"`
}

// HPAScalingRules say how fast the size may change in one direction.
type HPAScalingRules struct {
	// StabilizationWindowSeconds is how many seconds of wanted sizes are looked back
	// at, of which the most careful is taken: 0 to 3600.
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty" protobuf:"3" schema:"min=0,max=3600,reason.min=must be greater than or equal to zero,reason.max=must be less than or equal to 3600"`

	// SelectPolicy says which policy counts: Max, by default, allows the greatest
	// change, Min the least, Disabled none at all.
	SelectPolicy *string `json:"selectPolicy,omitempty" protobuf:"1" schema:"enum=Disabled|Max|Min"`

	// Policies bound the change.
	Policies []HPAScalingPolicy `json:"policies,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Tolerance is by how much a metric may differ from its target, as a part of it,
	// before the size changes; unset: what the controller is set to.
	Tolerance *meta.Quantity `json:"tolerance,omitempty" protobuf:"4"`
}

// HPAScalingPolicy bounds the change in a time.
type HPAScalingPolicy struct {
	// Type says what value counts: Pods, or Percent of those that there are.
	Type string `json:"type" protobuf:"1" schema:"enum=Percent|Pods"`

	// Value is the greatest change, above 0.
	Value int32 `json:"value" protobuf:"2" schema:"exclusiveMin=0,reason.exclusiveMin=must be greater than zero"`

	// PeriodSeconds is the time, 1 to 1800 seconds.
	PeriodSeconds int32 `json:"periodSeconds" protobuf:"3" schema:"exclusiveMin=0,max=1800,reason.exclusiveMin=must be greater than zero,reason.max=must be less than or equal to 1800"`
}

// HorizontalPodAutoscalerStatus is what was measured and wanted last.
type HorizontalPodAutoscalerStatus struct {
	// ObservedGeneration is the generation that the controller has seen.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"1"`

	// LastScaleTime is when the size was last changed.
	LastScaleTime *meta.Time `json:"lastScaleTime,omitempty" protobuf:"2"`

	// CurrentReplicas is how many pods there were.
	CurrentReplicas int32 `json:"currentReplicas,omitempty" protobuf:"3" schema:"min=0"`

	// DesiredReplicas is how many there shall be.
	DesiredReplicas int32 `json:"desiredReplicas" protobuf:"4" schema:"min=0"`

	// CurrentMetrics is what was measured.
	CurrentMetrics []MetricStatus `json:"currentMetrics" protobuf:"5" schema:"optional,listType=atomic"`

	// Conditions are AbleToScale, ScalingActive, ScalingLimited and others.
	Conditions []HorizontalPodAutoscalerCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// HorizontalPodAutoscalerCondition is one aspect of an autoscaler's state.
type HorizontalPodAutoscalerCondition struct {
	// Type names the aspect that the condition is about.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"5"`

	// ObservedGeneration is the generation that the condition speaks of.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"6"`
}

// Kinds returns the kinds of the autoscaling group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[HorizontalPodAutoscaler]{
		Group: names.GroupAutoscaling, Version: "v2", ShortNames: []string{"hpa"}, Categories: []string{"all"}, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.23"},
		Versions: []registry.VersionOf[HorizontalPodAutoscaler]{
			olderForm(), older.Same[HorizontalPodAutoscaler]("v2beta2", "1.12", "1.23", "1.26", names.GroupAutoscaling+"/v2"), v2beta1(),
		},
		Columns:  columns(),
		Default:  fillIn,
		Validate: validate,
		Reference: &compat.Reference{
			StatusMetadata:      compat.CallersMetadata(),
			DeleteAnswersStatus: true,
		},
	})}
}

func ptr[T any](v T) *T { return &v }

// fillIn fills in metrics, and rules where there is some behavior. What v1 shows in
// annotations the hub has in fields alone.
func fillIn(w *registry.Change[HorizontalPodAutoscaler]) {
	for _, name := range shownAsAnnotations() {
		delete(w.New.Annotations, w.Names.Wire(name))
	}
	const usual, period = 80, 15
	s := &w.New.Spec
	if len(s.Metrics) == 0 {
		s.Metrics = []MetricSpec{cpuMetric(usual)}
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

// cpuMetric keeps the cpu that pods use at a percentage of what they request.
func cpuMetric(percent int32) MetricSpec {
	return MetricSpec{Type: "Resource", Resource: &ResourceMetricSource{
		Name: "cpu", Target: MetricTarget{Type: "Utilization", AverageUtilization: &percent},
	}}
}
