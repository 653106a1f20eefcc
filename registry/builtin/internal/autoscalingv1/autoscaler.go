// Package autoscalingv1 defines the Go types of version v1 of the autoscaling group. They have a
// package of their own because v2 has types of the same names.
package autoscalingv1

import "orch.io/controlplane/api/meta"

// HorizontalPodAutoscaler adjusts the number of replicas of a workload to its CPU usage. Other metrics,
// the behavior and the conditions are kept in annotations.
type HorizontalPodAutoscaler struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the scaled workload, the bounds of its size and the target.
	Spec HorizontalPodAutoscalerSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the last observed state.
	Status HorizontalPodAutoscalerStatus `json:"status,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerSpec is the configuration of an autoscaler.
type HorizontalPodAutoscalerSpec struct {
	// ScaleTargetRef is the workload. Its kind must have a scale subresource.
	ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef" protobuf:"1"`

	// MinReplicas is the lower bound of the number of replicas; default 1.
	MinReplicas *int32 `json:"minReplicas,omitempty" protobuf:"2" schema:"default=1"`

	// MaxReplicas is the upper bound of the number of replicas. It must not be less than minReplicas.
	MaxReplicas int32 `json:"maxReplicas" protobuf:"3"`

	// TargetCPUUtilizationPercentage is the target of the average CPU usage, in percent of the request;
	// default 80.
	TargetCPUUtilizationPercentage *int32 `json:"targetCPUUtilizationPercentage,omitempty" protobuf:"4"`
}

// CrossVersionObjectReference identifies an object in the namespace of the autoscaler.
type CrossVersionObjectReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Kind of the object.
	Kind string `json:"kind" protobuf:"1"`

	// Name of the object.
	Name string `json:"name" protobuf:"2"`

	// APIVersion of the object, as group/version.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"3"`
}

// HorizontalPodAutoscalerStatus is the last observed state of an autoscaler.
type HorizontalPodAutoscalerStatus struct {
	// ObservedGeneration is the latest generation that the controller has processed.
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"1"`

	// LastScaleTime is the time of the last change of the size.
	LastScaleTime *meta.Time `json:"lastScaleTime,omitempty" protobuf:"2"`

	// CurrentReplicas is the number of pods at the last observation.
	CurrentReplicas int32 `json:"currentReplicas" protobuf:"3"`

	// DesiredReplicas is the number of pods that the controller last computed.
	DesiredReplicas int32 `json:"desiredReplicas" protobuf:"4"`

	// CurrentCPUUtilizationPercentage is the measured average CPU usage, in percent of the request.
	CurrentCPUUtilizationPercentage *int32 `json:"currentCPUUtilizationPercentage,omitempty" protobuf:"5"`
}
