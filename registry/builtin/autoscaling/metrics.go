package autoscaling

import "orch.io/controlplane/api/meta"

// MetricSpec is a metric and its target. Exactly the field that type names must be set.
type MetricSpec struct {
	// Type is Resource, ContainerResource, Pods, Object or External.
	Type string `json:"type" protobuf:"1" schema:"required,reason.required=must specify a metric source type,enum=ContainerResource|External|Object|Pods|Resource"`

	// Object is a metric that describes a single object.
	Object *ObjectMetricSource `json:"object,omitempty" protobuf:"2"`

	// Pods is a custom metric of each pod, averaged over all pods.
	Pods *PodsMetricSource `json:"pods,omitempty" protobuf:"3"`

	// Resource is the usage of a resource by all containers of each pod, averaged over all pods.
	Resource *ResourceMetricSource `json:"resource,omitempty" protobuf:"4"`

	// ContainerResource is the usage of a resource by a single container of each pod, averaged over all
	// pods.
	ContainerResource *ContainerResourceMetricSource `json:"containerResource,omitempty" protobuf:"7"`

	// External is a metric from outside the cluster.
	External *ExternalMetricSource `json:"external,omitempty" protobuf:"5"`
}

// ObjectMetricSource is a metric that describes a single object.
type ObjectMetricSource struct {
	// DescribedObject is the object that the metric describes.
	DescribedObject CrossVersionObjectReference `json:"describedObject" protobuf:"1"`

	// Target of the metric: a value, or an averageValue for each pod.
	Target MetricTarget `json:"target" protobuf:"2"`

	// Metric that is measured.
	Metric MetricIdentifier `json:"metric" protobuf:"3"`
}

// PodsMetricSource is a custom metric of each pod.
type PodsMetricSource struct {
	// Metric that is measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1"`

	// Target is an averageValue.
	Target MetricTarget `json:"target" protobuf:"2"`
}

// ResourceMetricSource is the usage of a resource by all containers of each pod.
type ResourceMetricSource struct {
	// Name of the resource, such as cpu.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=must specify a resource name"`

	// Target is either an averageUtilization or an averageValue.
	Target MetricTarget `json:"target" protobuf:"2"`
}

// ContainerResourceMetricSource is the usage of a resource by a single container of each pod.
type ContainerResourceMetricSource struct {
	// Name of the resource, such as cpu.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=must specify a resource name"`

	// Target is either an averageUtilization or an averageValue.
	Target MetricTarget `json:"target" protobuf:"2"`

	// Container is the name of the container in the pods.
	Container string `json:"container" protobuf:"3" schema:"required,reason.required=must specify a container,format=dns-label"`
}

// ExternalMetricSource is a metric from outside the cluster.
type ExternalMetricSource struct {
	// Metric that is measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1"`

	// Target of the metric: either a value or an averageValue for each pod.
	Target MetricTarget `json:"target" protobuf:"2"`
}

// MetricIdentifier identifies a metric.
type MetricIdentifier struct {
	// Name of the metric.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=must specify a metric name"`

	// Selector restricts the metric. It is passed to the metrics server without validation.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"2" schema:"unchecked"`
}

// MetricTarget is the value that the autoscaler aims at. Quantities must be positive.
type MetricTarget struct {
	// Type is Utilization, Value or AverageValue.
	Type string `json:"type" protobuf:"1" schema:"required,reason.required=must specify a metric target type"`

	// Value is the target for the metric as a whole.
	Value *meta.Quantity `json:"value,omitempty" protobuf:"2"`

	// AverageValue is the target for the average over all pods.
	AverageValue *meta.Quantity `json:"averageValue,omitempty" protobuf:"3"`

	// AverageUtilization is the target for the average over all pods, in percent of the requested
	// amount. It must be positive; only resource metrics have it.
	AverageUtilization *int32 `json:"averageUtilization,omitempty" protobuf:"4" schema:"exclusiveMin=0,reason.exclusiveMin=must be greater than 0"`
}

// MetricStatus is the last measurement of a metric.
type MetricStatus struct {
	// Type is Resource, ContainerResource, Pods, Object or External.
	Type string `json:"type" protobuf:"1"`

	// Object is a metric that describes a single object.
	Object *ObjectMetricStatus `json:"object,omitempty" protobuf:"2"`

	// Pods is a custom metric of each pod, averaged over all pods.
	Pods *PodsMetricStatus `json:"pods,omitempty" protobuf:"3"`

	// Resource is the usage of a resource by all containers of each pod, averaged over all pods.
	Resource *ResourceMetricStatus `json:"resource,omitempty" protobuf:"4"`

	// ContainerResource is the usage of a resource by a single container of each pod, averaged over all
	// pods.
	ContainerResource *ContainerResourceMetricStatus `json:"containerResource,omitempty" protobuf:"7"`

	// External is a metric from outside the cluster.
	External *ExternalMetricStatus `json:"external,omitempty" protobuf:"5"`
}

// ObjectMetricStatus is the measurement of a metric that describes a single object.
type ObjectMetricStatus struct {
	// Metric that was measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1" schema:"unchecked"`

	// Current is the measured value.
	Current MetricValueStatus `json:"current" protobuf:"2"`

	// DescribedObject is the object that the metric describes.
	DescribedObject CrossVersionObjectReference `json:"describedObject" protobuf:"3" schema:"unchecked"`
}

// PodsMetricStatus is the measurement of a custom metric of each pod.
type PodsMetricStatus struct {
	// Metric that was measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1" schema:"unchecked"`

	// Current is the measured value.
	Current MetricValueStatus `json:"current" protobuf:"2"`
}

// ResourceMetricStatus is the measured usage of a resource by all containers of each pod.
type ResourceMetricStatus struct {
	// Name of the resource, such as cpu.
	Name string `json:"name" protobuf:"1"`

	// Current is the measured value.
	Current MetricValueStatus `json:"current" protobuf:"2"`
}

// ContainerResourceMetricStatus is the measured usage of a resource by a single container of each pod.
type ContainerResourceMetricStatus struct {
	// Name of the resource, such as cpu.
	Name string `json:"name" protobuf:"1"`

	// Current is the measured value.
	Current MetricValueStatus `json:"current" protobuf:"2"`

	// Container is the name of the container in the pods.
	Container string `json:"container" protobuf:"3"`
}

// ExternalMetricStatus is the measurement of a metric from outside the cluster.
type ExternalMetricStatus struct {
	// Metric that was measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1" schema:"unchecked"`

	// Current is the measured value.
	Current MetricValueStatus `json:"current" protobuf:"2"`
}

// MetricValueStatus is a measured value.
type MetricValueStatus struct {
	// Value of the metric as a whole.
	Value *meta.Quantity `json:"value,omitempty" protobuf:"1"`

	// AverageValue is the average over all pods.
	AverageValue *meta.Quantity `json:"averageValue,omitempty" protobuf:"2"`

	// AverageUtilization is the average over all pods, in percent of the requested amount.
	AverageUtilization *int32 `json:"averageUtilization,omitempty" protobuf:"3"`
}
