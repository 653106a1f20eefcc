package resource

import (
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// ResourceSlice is a part of the devices of a pool, as its driver tells of them. A pool
// is whole when all of its slices of the newest generation are there.
type ResourceSlice struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the devices.
	Spec ResourceSliceSpec `json:"spec" protobuf:"2"`
}

// ResourceSliceSpec is devices of a pool. Exactly one of nodeName, nodeSelector, allNodes
// and perDeviceNodeSelection says where they can be used; and there are devices or
// sharedCounters, not both.
type ResourceSliceSpec struct {
	// Driver of the devices, a DNS subdomain of at most 63 characters. It cannot change.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// Pool that the devices are in.
	Pool ResourcePool `json:"pool" protobuf:"2"`
	// NodeName is the node on which the devices can be used. It cannot change.
	NodeName *string `json:"nodeName,omitempty" protobuf:"3"`
	// NodeSelector is the nodes on which the devices can be used, in one term.
	NodeSelector *core.NodeSelector `json:"nodeSelector,omitempty" protobuf:"4"`
	// AllNodes, if true, says that the devices can be used everywhere.
	AllNodes *bool `json:"allNodes,omitempty" protobuf:"5"`
	// Devices, by different names; at most 128, and 64 if any has taints or attributes that
	// are lists, or consumes counters.
	Devices []Device `json:"devices,omitempty" protobuf:"6" schema:"listType=atomic"`
	// PerDeviceNodeSelection, if true, says that each device tells where it can be used.
	PerDeviceNodeSelection *bool `json:"perDeviceNodeSelection,omitempty" protobuf:"7"`
	// SharedCounters are what devices of the pool share, by different names; at most 8 sets.
	SharedCounters []CounterSet `json:"sharedCounters,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=8"`
	// PartitionTypeAttribute is the attribute, domain/name, that tells what sort of part of a
	// bigger one a device is.
	PartitionTypeAttribute *string `json:"partitionTypeAttribute,omitempty" protobuf:"9" schema:"gate=DRAPartitionableDevicesType"`
	// SkipNodeOperations is what need not be done on the node before and after a device is
	// used: NodePrepareResources, NodeUnprepareResources, or * for all.
	SkipNodeOperations []string `json:"skipNodeOperations,omitempty" protobuf:"10" schema:"listType=set,items.enum=NodePrepareResources|NodeUnprepareResources|*,gate=DRAOptionalNodeOperations"`
}

// ResourcePool is a pool of devices that one driver tells of, often those of a node.
type ResourcePool struct {
	// Name of the pool, DNS subdomains with slashes between them; often that of a node. It
	// cannot change.
	Name string `json:"name" protobuf:"1" schema:"required,maxLength=253"`
	// Generation grows with each change of what the pool has. Only slices of the highest
	// one count.
	Generation int64 `json:"generation" protobuf:"2" schema:"min=0,reason.min=must be greater than or equal to zero"`
	// ResourceSliceCount is how many slices the pool has in this generation.
	ResourceSliceCount int64 `json:"resourceSliceCount" protobuf:"3" schema:"min=1,reason.min=must be greater than zero"`
}

// CounterSet is a set of amounts that several devices take from.
type CounterSet struct {
	// Name of the set, a DNS label.
	Name string `json:"name" protobuf:"1" schema:"required,format=dns-label"`
	// Counters are what there is, by DNS labels; at most 32.
	Counters map[string]Counter `json:"counters,omitempty" protobuf:"2" schema:"required,optional,maxProperties=32"`
}

// Counter is an amount.
type Counter struct {
	// Value is how much.
	Value meta.Quantity `json:"value" protobuf:"1"`
}

// Device is a device, or a part of one. Attributes and capacities are 32 at most
// together.
type Device struct {
	// Name of the device in its pool, a DNS label.
	Name string `json:"name" protobuf:"1" schema:"format=dns-label"`
	// Attributes of the device, by name or domain/name; at most 48 values in all.
	Attributes map[string]DeviceAttribute `json:"attributes,omitempty" protobuf:"2"`
	// Capacity of the device, by name or domain/name.
	Capacity map[string]DeviceCapacity `json:"capacity,omitempty" protobuf:"3"`
	// ConsumesCounters is what the device takes from shared counters of the pool, at most 2
	// sets.
	ConsumesCounters []DeviceCounterConsumption `json:"consumesCounters,omitempty" protobuf:"4" schema:"listType=atomic,maxItems=2"`
	// NodeName is the node on which the device can be used, if each device tells.
	NodeName *string `json:"nodeName,omitempty" protobuf:"5"`
	// NodeSelector is the nodes on which the device can be used, if each device tells.
	NodeSelector *core.NodeSelector `json:"nodeSelector,omitempty" protobuf:"6"`
	// AllNodes, if true, says that the device can be used everywhere, if each device tells.
	AllNodes *bool `json:"allNodes,omitempty" protobuf:"7"`
	// Taints keep claims from the device that do not tolerate them; at most 16.
	Taints []DeviceTaint `json:"taints,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=16"`
	// BindsToNode says that a claim with the device can only be used on the node that was
	// chosen with it.
	BindsToNode *bool `json:"bindsToNode,omitempty" protobuf:"9"`
	// BindingConditions are those for which a pod waits, until all are true of the device in
	// the status of the claim; at most 4.
	BindingConditions []string `json:"bindingConditions,omitempty" protobuf:"10" schema:"listType=atomic,maxItems=4,items.format=qualified-name"`
	// BindingFailureConditions are those of which one, if true, says that the device will
	// not do and another one is to be found; at most 4.
	BindingFailureConditions []string `json:"bindingFailureConditions,omitempty" protobuf:"11" schema:"listType=atomic,maxItems=4,items.format=qualified-name"`
	// AllowMultipleAllocations lets several claims have the device, with a share each.
	AllowMultipleAllocations *bool `json:"allowMultipleAllocations,omitempty" protobuf:"12"`
	// NodeAllocatableResources are resources of the node that the device takes or stands
	// for, by their names.
	NodeAllocatableResources map[string]NodeAllocatableResource `json:"nodeAllocatableResources,omitempty" protobuf:"14" schema:"gate=DRANodeAllocatableResources"`
}

// NodeAllocatableResource is how much of a resource of its node a device takes or stands
// for.
type NodeAllocatableResource struct {
	// Mapping is what the device stands for.
	Mapping *NodeAllocatableMapping `json:"mapping,omitempty" protobuf:"3"`
	// Overhead is what it takes beside that.
	Overhead *NodeAllocatableOverhead `json:"overhead,omitempty" protobuf:"4"`
}

// NodeAllocatableMapping is how much of a resource of its node a device stands for.
// Either capacityKey or deviceMultiplier is set.
type NodeAllocatableMapping struct {
	// CapacityKey is the capacity of the device that is multiplied.
	CapacityKey *string `json:"capacityKey,omitempty" protobuf:"1"`
	// CapacityMultiplier is by how much, with capacityKey.
	CapacityMultiplier *meta.Quantity `json:"capacityMultiplier,omitempty" protobuf:"2"`
	// DeviceMultiplier is the amount for each device.
	DeviceMultiplier *meta.Quantity `json:"deviceMultiplier,omitempty" protobuf:"3"`
}

// NodeAllocatableOverhead is how much of a resource of its node a device takes beside
// what it stands for.
type NodeAllocatableOverhead struct {
	// PerPod is the amount for each pod that uses the device.
	PerPod *meta.Quantity `json:"perPod,omitempty" protobuf:"1"`
	// PerContainer is the amount for each container that uses the device.
	PerContainer *meta.Quantity `json:"perContainer,omitempty" protobuf:"2"`
}

// DeviceCounterConsumption is what a device takes from a set of counters.
type DeviceCounterConsumption struct {
	// CounterSet is the name of the set; each is there once.
	CounterSet string `json:"counterSet" protobuf:"1" schema:"required,format=dns-label"`
	// Counters are how much the device takes of each; at most 32.
	Counters map[string]Counter `json:"counters,omitempty" protobuf:"2" schema:"required,optional,maxProperties=32"`
	// CompatibilityGroups are words, DNS labels, of which devices that take from the set at
	// the same time must share one; at most 2. None: the device goes with those that have
	// none.
	CompatibilityGroups []string `json:"compatibilityGroups,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=2,items.format=dns-label,gate=DRADeviceCompatibilityGroups"`
}

// DeviceAttribute is a property of a device. Exactly one of the fields is set.
type DeviceAttribute struct {
	// IntValue is a number.
	IntValue *int64 `json:"int,omitempty" protobuf:"2"`
	// BoolValue is true or false.
	BoolValue *bool `json:"bool,omitempty" protobuf:"3"`
	// StringValue is a text of at most 64 characters.
	StringValue *string `json:"string,omitempty" protobuf:"4"`
	// VersionValue is a version by semver.org 2.0.0, of at most 64 characters.
	VersionValue *string `json:"version,omitempty" protobuf:"5"`
	// IntValues are numbers.
	IntValues []int64 `json:"ints,omitempty" protobuf:"6" schema:"listType=atomic,gate=DRAListTypeAttributes"`
	// BoolValues are each true or false.
	BoolValues []bool `json:"bools,omitempty" protobuf:"7" schema:"listType=atomic,gate=DRAListTypeAttributes"`
	// StringValues are texts of at most 64 characters each.
	StringValues []string `json:"strings,omitempty" protobuf:"8" schema:"listType=atomic,gate=DRAListTypeAttributes"`
	// VersionValues are versions of at most 64 characters each.
	VersionValues []string `json:"versions,omitempty" protobuf:"9" schema:"listType=atomic,gate=DRAListTypeAttributes"`
}

// DeviceCapacity is an amount that a device has.
type DeviceCapacity struct {
	// Value is how much.
	Value meta.Quantity `json:"value" protobuf:"1"`
	// RequestPolicy says in which amounts claims may have it, of a device that several may
	// have.
	RequestPolicy *CapacityRequestPolicy `json:"requestPolicy,omitempty" protobuf:"2"`
}

// CapacityRequestPolicy says in which amounts claims may have a capacity: those of a list
// or of a range. What is asked for is rounded up to one of them.
type CapacityRequestPolicy struct {
	// Default is what a claim gets that asks for nothing; unset: all of the capacity.
	Default *meta.Quantity `json:"default" protobuf:"1" schema:"optional"`
	// ValidValues are the amounts, from small to large; at most 10.
	ValidValues []meta.Quantity `json:"validValues,omitempty" protobuf:"3" schema:"listType=atomic"`
	// ValidRange is the range of the amounts.
	ValidRange *CapacityRequestPolicyRange `json:"validRange,omitempty" protobuf:"4"`
}

// CapacityRequestPolicyRange is a range of amounts.
type CapacityRequestPolicyRange struct {
	// Min is the smallest amount.
	Min *meta.Quantity `json:"min,omitempty" protobuf:"1"`
	// Max is the largest amount; unset: the capacity.
	Max *meta.Quantity `json:"max,omitempty" protobuf:"2"`
	// Step is what amounts are a multiple of, from min on.
	Step *meta.Quantity `json:"step,omitempty" protobuf:"3"`
}

// DeviceTaint keeps claims from a device that do not tolerate it.
type DeviceTaint struct {
	// Key of the taint.
	Key string `json:"key" protobuf:"1" schema:"format=qualified-name"`
	// Value of the taint, as of a label.
	Value string `json:"value,omitempty" protobuf:"2" schema:"format=label-value"`
	// Effect on claims: NoSchedule keeps new ones away, NoExecute ends those that have the
	// device, too, None only tells.
	Effect string `json:"effect" protobuf:"3" schema:"required,enum=NoExecute|NoSchedule|None"`
	// TimeAdded is when the taint was added: now, unless set.
	TimeAdded *meta.Time `json:"timeAdded,omitempty" protobuf:"4"`
}

func deviceSlices() *registry.Kind {
	return registry.Of(registry.Definition[ResourceSlice]{
		Group: names.GroupDevices, Version: "v1", Scope: registry.Cluster,
		Lifetime: registry.Lifetime{Introduced: "1.34"},
		Columns: []registry.Column{
			registry.Text("Node", "The node on which the devices can be used, if it is one.", "spec", "nodeName"),
			registry.Text("Driver", "The driver of the devices.", "spec", "driver"),
			registry.Text("Pool", "The pool that the devices are in.", "spec", "pool", "name"),
			registry.Age(),
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

// defaultTaints dates new taints.
func defaultTaints(w *registry.Change[meta.Object]) {
	for _, d := range w.New.Objects("spec", "devices") {
		for _, t := range d.Objects("taints") {
			if v, _ := t.Get("timeAdded"); v == nil {
				t.Set(meta.FormatTime(time.Now()), "timeAdded")
			}
		}
	}
}
