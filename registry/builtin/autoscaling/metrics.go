package autoscaling

import "orch.io/controlplane/api/meta"

// MetricSpec is something that the size follows. The field that type names is set.
type MetricSpec struct {
	// Type is Resource, ContainerResource, Pods, Object or External.
	Type string `json:"type" protobuf:"1" schema:"required,reason.required=must specify a metric source type,enum=ContainerResource|External|Object|Pods|Resource"`

	// Object is a metric of one object.
	Object *ObjectMetricSource `json:"object,omitempty" protobuf:"2"`

	// Pods is a metric that each pod has.
	Pods *PodsMetricSource `json:"pods,omitempty" protobuf:"3"`

	// Resource is what the pods use of a resource.
	Resource *ResourceMetricSource `json:"resource,omitempty" protobuf:"4"`

	// ContainerResource is what one container of each pod uses of a resource.
	ContainerResource *ContainerResourceMetricSource `json:"containerResource,omitempty" protobuf:"7"`

	// External is a metric of nothing in the cluster.
	External *ExternalMetricSource `json:"external,omitempty" protobuf:"5"`
}

// ObjectMetricSource is a metric of one object.
type ObjectMetricSource struct {
	// DescribedObject is the object.
	DescribedObject CrossVersionObjectReference `json:"describedObject" protobuf:"1"`

	// Target of the metric.
	Target MetricTarget `json:"target" protobuf:"2"`

	// Metric that is measured.
	Metric MetricIdentifier `json:"metric" protobuf:"3"`
}

// PodsMetricSource is a metric that each pod has.
type PodsMetricSource struct {
	// Metric that is measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1"`

	// Target of the average over the pods.
	Target MetricTarget `json:"target" protobuf:"2"`
}

// ResourceMetricSource is what the pods use of a resource.
type ResourceMetricSource struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=must specify a resource name"`

	// Target of the average over the pods.
	Target MetricTarget `json:"target" protobuf:"2"`
}

// ContainerResourceMetricSource is what one container of each pod uses of a resource.
type ContainerResourceMetricSource struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=must specify a resource name"`

	// Target of the average over the pods.
	Target MetricTarget `json:"target" protobuf:"2"`

	// Container in the pods.
	Container string `json:"container" protobuf:"3" schema:"required,reason.required=must specify a container,format=dns-label"`
}

// ExternalMetricSource is a metric of nothing in the cluster.
type ExternalMetricSource struct {
	// Metric that is measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1"`

	// Target of the metric: value, or averageValue for each pod.
	Target MetricTarget `json:"target" protobuf:"2"`
}

// MetricIdentifier names a metric.
type MetricIdentifier struct {
	// Name of the metric.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=must specify a metric name"`

	// Selector is passed on to who measures.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"2" schema:"unchecked"`
}

// MetricTarget is what a metric shall be.
type MetricTarget struct {
	// Type is Utilization, Value or AverageValue.
	Type string `json:"type" protobuf:"1" schema:"required,reason.required=must specify a metric target type"`

	// Value of the whole.
	Value *meta.Quantity `json:"value,omitempty" protobuf:"2"`

	// AverageValue of a pod.
	AverageValue *meta.Quantity `json:"averageValue,omitempty" protobuf:"3"`

	// AverageUtilization is a percentage of what a pod requests.
	AverageUtilization *int32 `json:"averageUtilization,omitempty" protobuf:"4" schema:"exclusiveMin=0,reason.exclusiveMin=must be greater than 0"`
}

// MetricStatus is what was measured of a metric.
type MetricStatus struct {
	// Type is Resource, ContainerResource, Pods, Object or External.
	Type string `json:"type" protobuf:"1"`

	// Object is a metric of one object.
	Object *ObjectMetricStatus `json:"object,omitempty" protobuf:"2"`

	// Pods is a metric that each pod has.
	Pods *PodsMetricStatus `json:"pods,omitempty" protobuf:"3"`

	// Resource is what the pods use of a resource.
	Resource *ResourceMetricStatus `json:"resource,omitempty" protobuf:"4"`

	// ContainerResource is what one container of each pod uses of a resource.
	ContainerResource *ContainerResourceMetricStatus `json:"containerResource,omitempty" protobuf:"7"`

	// External is a metric of nothing in the cluster.
	External *ExternalMetricStatus `json:"external,omitempty" protobuf:"5"`
}

// ObjectMetricStatus is what was measured of one object.
type ObjectMetricStatus struct {
	// Metric that was measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1" schema:"unchecked"`

	// Current value.
	Current MetricValueStatus `json:"current" protobuf:"2"`

	// DescribedObject is the object.
	DescribedObject CrossVersionObjectReference `json:"describedObject" protobuf:"3" schema:"unchecked"`
}

// PodsMetricStatus is what was measured of the pods.
type PodsMetricStatus struct {
	// Metric that was measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1" schema:"unchecked"`

	// Current value.
	Current MetricValueStatus `json:"current" protobuf:"2"`
}

// ResourceMetricStatus is what the pods used of a resource.
type ResourceMetricStatus struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1"`

	// Current value.
	Current MetricValueStatus `json:"current" protobuf:"2"`
}

// ContainerResourceMetricStatus is what one container of each pod used of a resource.
type ContainerResourceMetricStatus struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"1"`

	// Current value.
	Current MetricValueStatus `json:"current" protobuf:"2"`

	// Container in the pods.
	Container string `json:"container" protobuf:"3"`
}

// ExternalMetricStatus is what was measured outside.
type ExternalMetricStatus struct {
	// Metric that was measured.
	Metric MetricIdentifier `json:"metric" protobuf:"1" schema:"unchecked"`

	// Current value.
	Current MetricValueStatus `json:"current" protobuf:"2"`
}

// MetricValueStatus is a value that was measured.
type MetricValueStatus struct {
	// Value of the whole.
	Value *meta.Quantity `json:"value,omitempty" protobuf:"1"`

	// AverageValue of a pod.
	AverageValue *meta.Quantity `json:"averageValue,omitempty" protobuf:"2"`

	// AverageUtilization is a percentage of what a pod requests.
	AverageUtilization *int32 `json:"averageUtilization,omitempty" protobuf:"3"`
}
