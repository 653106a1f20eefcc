package resource

import (
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// ResourceSlice publishes devices of a pool. A pool is complete when all slices of its newest
// generation exist.
type ResourceSlice struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec lists the devices.
	Spec ResourceSliceSpec `json:"spec" protobuf:"2"`
}

// ResourceSliceSpec lists devices of a pool. Exactly one of nodeName, nodeSelector, allNodes and
// perDeviceNodeSelection must be set. Devices and sharedCounters exclude each other.
type ResourceSliceSpec struct {
	// Driver that publishes the devices, a DNS subdomain of at most 63 characters. Immutable.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// Pool of the devices.
	Pool ResourcePool `json:"pool" protobuf:"2"`
	// NodeName is the only node on which the devices can be used. Immutable.
	NodeName *string `json:"nodeName,omitempty" protobuf:"3"`
	// NodeSelector selects the nodes on which the devices can be used, in a single term.
	NodeSelector *core.NodeSelector `json:"nodeSelector,omitempty" protobuf:"4"`
	// AllNodes is true if the devices can be used on every node. false is not allowed.
	AllNodes *bool `json:"allNodes,omitempty" protobuf:"5"`
	// Devices, with unique names; at most 128, or 64 if any device has taints, list attributes or
	// consumes counters.
	Devices []Device `json:"devices,omitempty" protobuf:"6" schema:"listType=atomic"`
	// PerDeviceNodeSelection is true if each device has its own node, selector or allNodes. false is
	// not allowed.
	PerDeviceNodeSelection *bool `json:"perDeviceNodeSelection,omitempty" protobuf:"7"`
	// SharedCounters are counters that several devices of the pool consume; at most 8 sets with unique
	// names.
	SharedCounters []CounterSet `json:"sharedCounters,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=8"`
	// PartitionTypeAttribute is the attribute (domain/name) for the type of partition that a device is.
	PartitionTypeAttribute *string `json:"partitionTypeAttribute,omitempty" protobuf:"9" schema:"gate=DRAPartitionableDevicesType"`
	// SkipNodeOperations lists operations that nodes omit for the devices: NodePrepareResources,
	// NodeUnprepareResources, or * for all.
	SkipNodeOperations []string `json:"skipNodeOperations,omitempty" protobuf:"10" schema:"listType=set,items.enum=NodePrepareResources|NodeUnprepareResources|*,gate=DRAOptionalNodeOperations"`
}

// ResourcePool identifies a pool of devices of a driver, often the devices of a node.
type ResourcePool struct {
	// Name of the pool: DNS subdomains separated by slashes, often the name of a node. Immutable.
	Name string `json:"name" protobuf:"1" schema:"required,maxLength=253"`
	// Generation increases with each change of the pool. Only slices of the highest generation are
	// used.
	Generation int64 `json:"generation" protobuf:"2" schema:"min=0,reason.min=must be greater than or equal to zero"`
	// ResourceSliceCount is the number of slices of the pool in this generation.
	ResourceSliceCount int64 `json:"resourceSliceCount" protobuf:"3" schema:"min=1,reason.min=must be greater than zero"`
}

// CounterSet is a set of counters that several devices consume.
type CounterSet struct {
	// Name of the set, a DNS label.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`
	// Counters maps names (DNS labels) to the available amounts; at most 32.
	Counters map[string]Counter `json:"counters,omitempty" protobuf:"2" schema:"required,optional,maxProperties=32"`
}

// Counter is an amount.
type Counter struct {
	// Value of the counter.
	Value meta.Quantity `json:"value" protobuf:"1"`
}

// Device is a device or a partition of a device. It has at most 32 attributes and capacities in total.
type Device struct {
	// Name of the device, unique in its pool; a DNS label.
	Name string `json:"name" protobuf:"1" schema:"format=dns-label"`
	// Attributes by name or domain/name; at most 48 values in total.
	Attributes map[string]DeviceAttribute `json:"attributes,omitempty" protobuf:"2"`
	// Capacity by name or domain/name.
	Capacity map[string]DeviceCapacity `json:"capacity,omitempty" protobuf:"3"`
	// ConsumesCounters lists the amounts that the device consumes of shared counters; at most 2 sets.
	ConsumesCounters []DeviceCounterConsumption `json:"consumesCounters,omitempty" protobuf:"4" schema:"listType=atomic,maxItems=2"`
	// NodeName is the only node on which the device can be used. Requires perDeviceNodeSelection.
	NodeName *string `json:"nodeName,omitempty" protobuf:"5"`
	// NodeSelector selects the nodes on which the device can be used. Requires perDeviceNodeSelection.
	NodeSelector *core.NodeSelector `json:"nodeSelector,omitempty" protobuf:"6"`
	// AllNodes is true if the device can be used on every node. Requires perDeviceNodeSelection.
	AllNodes *bool `json:"allNodes,omitempty" protobuf:"7"`
	// Taints keep the device from claims that do not tolerate them; at most 16.
	Taints []DeviceTaint `json:"taints,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=16"`
	// BindsToNode restricts a claim with the device to the node that was chosen at its allocation.
	BindsToNode *bool `json:"bindsToNode,omitempty" protobuf:"9"`
	// BindingConditions are condition types that must all be True in the status of the claim before a
	// pod is bound; at most 4. They require bindingFailureConditions.
	BindingConditions []string `json:"bindingConditions,omitempty" protobuf:"10" schema:"listType=atomic,maxItems=4,items.format=qualified-name"`
	// BindingFailureConditions are condition types; if any of them is True, the device is unsuitable
	// and the claim is allocated again. At most 4, distinct from bindingConditions, which they require.
	BindingFailureConditions []string `json:"bindingFailureConditions,omitempty" protobuf:"11" schema:"listType=atomic,maxItems=4,items.format=qualified-name"`
	// AllowMultipleAllocations allows several claims to share the device.
	AllowMultipleAllocations *bool `json:"allowMultipleAllocations,omitempty" protobuf:"12"`
	// NodeAllocatableResources maps resources of the node to the amounts that the device provides or
	// consumes.
	NodeAllocatableResources map[string]NodeAllocatableResource `json:"nodeAllocatableResources,omitempty" protobuf:"14" schema:"gate=DRANodeAllocatableResources"`
}

// NodeAllocatableResource is the amount of a node resource that a device provides or consumes. At least
// one field must be set.
type NodeAllocatableResource struct {
	// Mapping is the amount that the device provides.
	Mapping *NodeAllocatableMapping `json:"mapping,omitempty" protobuf:"3"`
	// Overhead is the amount that the device consumes in addition.
	Overhead *NodeAllocatableOverhead `json:"overhead,omitempty" protobuf:"4"`
}

// NodeAllocatableMapping is the amount of a node resource that a device provides. Exactly one of
// capacityKey and deviceMultiplier must be set.
type NodeAllocatableMapping struct {
	// CapacityKey is the capacity of the device that is multiplied by capacityMultiplier.
	CapacityKey *string `json:"capacityKey,omitempty" protobuf:"1"`
	// CapacityMultiplier is the factor for the capacity; it must be positive, and is required with
	// capacityKey.
	CapacityMultiplier *meta.Quantity `json:"capacityMultiplier,omitempty" protobuf:"2"`
	// DeviceMultiplier is the amount for each device; it must be positive.
	DeviceMultiplier *meta.Quantity `json:"deviceMultiplier,omitempty" protobuf:"3"`
}

// NodeAllocatableOverhead is the additional amount of a node resource that a device consumes. At least
// one field must be set.
type NodeAllocatableOverhead struct {
	// PerPod is the amount for each pod that uses the device; not negative.
	PerPod *meta.Quantity `json:"perPod,omitempty" protobuf:"1"`
	// PerContainer is the amount for each container that uses the device; not negative.
	PerContainer *meta.Quantity `json:"perContainer,omitempty" protobuf:"2"`
}

// DeviceCounterConsumption lists the amounts that a device consumes of a counter set.
type DeviceCounterConsumption struct {
	// CounterSet is the name of the set, unique in the list.
	CounterSet string `json:"counterSet" protobuf:"1" schema:"required,format=dns-label"`
	// Counters maps counter names to the consumed amounts; at most 32.
	Counters map[string]Counter `json:"counters,omitempty" protobuf:"2" schema:"required,optional,maxProperties=32"`
	// CompatibilityGroups are DNS labels; devices that consume the set at the same time must have a
	// group in common. At most 2. A device without groups is compatible with devices without groups
	// only.
	CompatibilityGroups []string `json:"compatibilityGroups,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=2,items.format=dns-label,gate=DRADeviceCompatibilityGroups"`
}

// DeviceAttribute is the value of a property of a device. Exactly 1 field must be set.
type DeviceAttribute struct {
	// IntValue is an integer.
	IntValue *int64 `json:"int,omitempty" protobuf:"2"`
	// BoolValue is a boolean.
	BoolValue *bool `json:"bool,omitempty" protobuf:"3"`
	// StringValue is a string of at most 64 bytes.
	StringValue *string `json:"string,omitempty" protobuf:"4"`
	// VersionValue is a semantic version (semver.org 2.0.0) of at most 64 bytes.
	VersionValue *string `json:"version,omitempty" protobuf:"5"`
	// IntValues are integers.
	IntValues []int64 `json:"ints,omitempty" protobuf:"6" schema:"listType=atomic,gate=DRAListTypeAttributes"`
	// BoolValues are booleans.
	BoolValues []bool `json:"bools,omitempty" protobuf:"7" schema:"listType=atomic,gate=DRAListTypeAttributes"`
	// StringValues are strings of at most 64 bytes each.
	StringValues []string `json:"strings,omitempty" protobuf:"8" schema:"listType=atomic,gate=DRAListTypeAttributes"`
	// VersionValues are semantic versions of at most 64 bytes each.
	VersionValues []string `json:"versions,omitempty" protobuf:"9" schema:"listType=atomic,gate=DRAListTypeAttributes"`
}

// DeviceCapacity is the amount of a capacity of a device.
type DeviceCapacity struct {
	// Value is the total amount.
	Value meta.Quantity `json:"value" protobuf:"1"`
	// RequestPolicy restricts the amounts that claims can request. Requires allowMultipleAllocations.
	RequestPolicy *CapacityRequestPolicy `json:"requestPolicy,omitempty" protobuf:"2"`
}

// CapacityRequestPolicy restricts the amounts that claims can request, to a list or a range. Requests
// are rounded up to the next allowed amount.
type CapacityRequestPolicy struct {
	// Default is the amount for claims that request none; required with validValues or validRange.
	// Without a policy the default is the total amount.
	Default *meta.Quantity `json:"default" protobuf:"1" schema:"optional"`
	// ValidValues are the allowed amounts in ascending order; at most 10. They exclude validRange.
	ValidValues []meta.Quantity `json:"validValues,omitempty" protobuf:"3" schema:"listType=atomic"`
	// ValidRange is the range of allowed amounts. It excludes validValues.
	ValidRange *CapacityRequestPolicyRange `json:"validRange,omitempty" protobuf:"4"`
}

// CapacityRequestPolicyRange is a range of amounts.
type CapacityRequestPolicyRange struct {
	// Min is the smallest amount. Required.
	Min *meta.Quantity `json:"min,omitempty" protobuf:"1"`
	// Max is the largest amount. Unset means the total amount.
	Max *meta.Quantity `json:"max,omitempty" protobuf:"2"`
	// Step between the allowed amounts, counted from min; it must be positive.
	Step *meta.Quantity `json:"step,omitempty" protobuf:"3"`
}

// DeviceTaint keeps a device from claims that do not tolerate it.
type DeviceTaint struct {
	// Key of the taint.
	Key string `json:"key" protobuf:"1" schema:"format=qualified-name"`
	// Value of the taint, in the form of a label value.
	Value string `json:"value,omitempty" protobuf:"2" schema:"format=label-value"`
	// Effect is NoSchedule, which prevents new allocations, NoExecute, which also evicts pods that use
	// the device, or None, which is informational.
	Effect string `json:"effect" protobuf:"3" schema:"required,enum=NoExecute|NoSchedule|None"`
	// TimeAdded is the time at which the taint was added; default the current time.
	TimeAdded *meta.Time `json:"timeAdded,omitempty" protobuf:"4"`
}

func deviceSlices() *registry.Kind {
	return registry.Of(registry.Definition[ResourceSlice]{
		Group: wellknown.GroupDevices, Version: "v1", Scope: registry.Cluster,
		Lifetime: registry.Lifetime{Introduced: "1.34"},
		Columns: []registry.Column{
			registry.TextColumn("Node", "The only node on which the devices can be used.", "spec", "nodeName"),
			registry.TextColumn("Driver", "The driver of the devices.", "spec", "driver"),
			registry.TextColumn("Pool", "The pool of the devices.", "spec", "pool", "name"),
			registry.AgeColumn(),
		},
		Fields:   []registry.SelectableField{{Name: "spec.driver"}, {Name: "spec.nodeName"}},
		Validate: validateSlice,
		Behavior: registry.Behavior{
			Default: defaultTaints,
			Warn: func(w *registry.Change[meta.Object]) []string {
				if driver := w.New.String("spec", "driver"); driver != strings.ToLower(driver) {
					return []string{`spec.driver: driver names should be lowercase; "` + driver + `" contains uppercase characters`}
				}
				return nil
			},
		},
	})
}

// defaultTaints sets the time of new taints.
func defaultTaints(w *registry.Change[meta.Object]) {
	for _, d := range w.New.Objects("spec", "devices") {
		for _, t := range d.Objects("taints") {
			if v, _ := t.Get("timeAdded"); v == nil {
				t.Set(meta.FormatTime(time.Now()), "timeAdded")
			}
		}
	}
}
