// Package autoscalingv1 holds the older form of the autoscaling group.
package autoscalingv1

import "orch.io/controlplane/api/meta"

// HorizontalPodAutoscaler is the older form: one metric, the cpu that pods use. Other
// metrics, behavior and conditions are in annotations.
type HorizontalPodAutoscaler struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is scaled, and within which bounds.
	Spec HorizontalPodAutoscalerSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what was measured and wanted last.
	Status HorizontalPodAutoscalerStatus `json:"status,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerSpec says what is scaled, and within which bounds.
type HorizontalPodAutoscalerSpec struct {
	// ScaleTargetRef is the object that is scaled, through its scale.
	ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef" protobuf:"1"`

	// MinReplicas is the least number of pods; 1 by default.
	MinReplicas *int32 `json:"minReplicas,omitempty" protobuf:"2" schema:"default=1"`

	// MaxReplicas is the greatest number of pods.
	MaxReplicas int32 `json:"maxReplicas" protobuf:"3"`

	// TargetCPUUtilizationPercentage is the percentage of the cpu that they request
	// that the pods shall use; 80 by default.
	TargetCPUUtilizationPercentage *int32 `json:"targetCPUUtilizationPercentage,omitempty" protobuf:"4"`
}

// CrossVersionObjectReference points at an object of some kind in the same namespace.
type CrossVersionObjectReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Kind of the object.
	Kind string `json:"kind" protobuf:"1"`

	// Name of the object.
	Name string `json:"name" protobuf:"2"`

	// APIVersion of the object.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerStatus is what was measured and wanted last.
type HorizontalPodAutoscalerStatus struct {
	// ObservedGeneration is the generation that the controller has seen.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"1"`

	// LastScaleTime is when the size was last changed.
	LastScaleTime *meta.Time `json:"lastScaleTime,omitempty" protobuf:"2"`

	// CurrentReplicas is how many pods there were.
	CurrentReplicas int32 `json:"currentReplicas" protobuf:"3"`

	// DesiredReplicas is how many there shall be.
	DesiredReplicas int32 `json:"desiredReplicas" protobuf:"4"`

	// CurrentCPUUtilizationPercentage is the percentage of the cpu that they request
	// that the pods used.
	CurrentCPUUtilizationPercentage *int32 `json:"currentCPUUtilizationPercentage,omitempty" protobuf:"5"`
}
