package resource

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/builtin/core"
)

// ResourceClaimStatus is what was found for a claim, and who uses it.
type ResourceClaimStatus struct {
	// Allocation is the devices that the claim has; unset: none yet. It changes only by
	// being given back.
	Allocation *AllocationResult `json:"allocation,omitempty" protobuf:"1"`
	// ReservedFor are those who may use the devices now, at most 256. While there are any
	// the devices are not given back.
	ReservedFor []ResourceClaimConsumerReference `json:"reservedFor,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"uid" schema:"listType=map,listMapKeys=uid,maxItems=256"`
	// Devices is what drivers tell of the devices that the claim has.
	Devices []AllocatedDeviceStatus `json:"devices,omitempty" protobuf:"4" schema:"listType=map,listMapKeys=driver|device|pool|shareID"`
}

// ResourceClaimConsumerReference names an object that uses a claim of its namespace.
type ResourceClaimConsumerReference struct {
	// APIGroup of the object; empty: the core group.
	APIGroup string `json:"apiGroup,omitempty" protobuf:"1"`
	// Resource is the plural of the object's kind, such as pods.
	Resource string `json:"resource" protobuf:"3" schema:"required"`
	// Name of the object.
	Name string `json:"name" protobuf:"4" schema:"required"`
	// UID of the object.
	UID string `json:"uid" protobuf:"5" schema:"required"`
}

// AllocationResult is the devices that a claim has.
type AllocationResult struct {
	// Devices that the claim has.
	Devices DeviceAllocationResult `json:"devices,omitempty" protobuf:"1"`
	// NodeSelector is the nodes on which the devices can be used; unset: all.
	NodeSelector *core.NodeSelector `json:"nodeSelector,omitempty" protobuf:"3"`
	// AllocationTimestamp is when the devices were found.
	AllocationTimestamp *meta.Time `json:"allocationTimestamp,omitempty" protobuf:"5"`
}

// DeviceAllocationResult is the devices that a claim has, and their configuration.
type DeviceAllocationResult struct {
	// Results are the devices, at most 32.
	Results []DeviceRequestAllocationResult `json:"results,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=32"`
	// Config is for the drivers: that of the classes, then that of the claim; at most 64
	// times.
	Config []DeviceAllocationConfiguration `json:"config,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=64"`
}

// DeviceRequestAllocationResult is a device that a claim has.
type DeviceRequestAllocationResult struct {
	// Request that the device is for, as request or request/sort.
	Request string `json:"request" protobuf:"1"`
	// Driver of the device.
	Driver string `json:"driver" protobuf:"2" schema:"required,maxLength=63,format=csi-driver"`
	// Pool that the device is in.
	Pool string `json:"pool" protobuf:"3" schema:"required,maxLength=253"`
	// Device is its name in the pool.
	Device string `json:"device" protobuf:"4" schema:"format=dns-label"`
	// AdminAccess says that others may use the device as well.
	AdminAccess *bool `json:"adminAccess,omitempty" protobuf:"5"`
	// Tolerations are those of the request.
	Tolerations []DeviceToleration `json:"tolerations,omitempty" protobuf:"6" schema:"listType=atomic"`
	// BindingConditions are those of the device, as they were when it was found; at most 4.
	BindingConditions []string `json:"bindingConditions,omitempty" protobuf:"7" schema:"listType=atomic,maxItems=4"`
	// BindingFailureConditions are those of the device, as they were when it was found; at
	// most 4.
	BindingFailureConditions []string `json:"bindingFailureConditions,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=4"`
	// ShareID tells this share of a device from others, a UUID in small letters.
	ShareID *string `json:"shareID,omitempty" protobuf:"9"`
	// ConsumedCapacity is how much of a shared device the claim has, by the names of
	// capacities.
	ConsumedCapacity map[string]meta.Quantity `json:"consumedCapacity,omitempty" protobuf:"10"`
	// SkipNodeOperations is what need not be done on the node before and after the device is
	// used: NodePrepareResources, NodeUnprepareResources, or * for all.
	SkipNodeOperations []string `json:"skipNodeOperations,omitempty" protobuf:"11" schema:"listType=set,items.enum=NodePrepareResources|NodeUnprepareResources|*,gate=DRAOptionalNodeOperations"`
}

// DeviceAllocationConfiguration is what drivers get to prepare the devices that a claim
// has.
type DeviceAllocationConfiguration struct {
	// Source is where the configuration stood: FromClass or FromClaim.
	Source string `json:"source" protobuf:"1" schema:"required,enum=FromClaim|FromClass"`
	// Requests whose devices are meant, as request or request/sort; at most 32. None: all.
	Requests []string `json:"requests,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=32"`

	DeviceConfiguration `json:",inline" protobuf:"3"`
}

// AllocatedDeviceStatus is what a driver tells of a device that a claim has.
type AllocatedDeviceStatus struct {
	// Driver of the device.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// Pool that the device is in.
	Pool string `json:"pool" protobuf:"2" schema:"required,maxLength=253"`
	// Device is its name in the pool.
	Device string `json:"device" protobuf:"3" schema:"format=dns-label"`
	// ShareID tells this share of a device from others, a UUID in small letters.
	ShareID *string `json:"shareID,omitempty" protobuf:"7"`
	// Conditions are aspects of the state of the device, at most 8.
	Conditions []meta.Condition `json:"conditions" protobuf:"4" schema:"optional,listType=map,listMapKeys=type,repeats,unchecked"`
	// Data is any object, of at most 10 KiB.
	Data *meta.RawExtension `json:"data,omitempty" protobuf:"5"`
	// NetworkData is for devices that are network interfaces.
	NetworkData *NetworkDeviceData `json:"networkData,omitempty" protobuf:"6"`
}

// NetworkDeviceData is what a driver tells of a network interface.
type NetworkDeviceData struct {
	// InterfaceName is what the pod calls the interface, at most 256 characters.
	InterfaceName string `json:"interfaceName,omitempty" protobuf:"1" schema:"maxLength=256"`
	// IPs are the addresses of the interface with the length of their network, such as
	// 192.0.2.5/24; at most 16.
	IPs []string `json:"ips,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=16"`
	// HardwareAddress of the interface, at most 128 characters.
	HardwareAddress string `json:"hardwareAddress,omitempty" protobuf:"3" schema:"maxLength=128"`
}
