package resource

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/builtin/core"
)

// ResourceClaimStatus is the allocation of a claim and its users.
type ResourceClaimStatus struct {
	// Allocation lists the allocated devices; unset before the allocation. It cannot change except by
	// deallocation.
	Allocation *AllocationResult `json:"allocation,omitempty" protobuf:"1"`
	// ReservedFor lists the objects that may use the devices; at most 256. The devices are deallocated
	// only when it is empty.
	ReservedFor []ResourceClaimConsumerReference `json:"reservedFor,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"uid" schema:"listType=map,listMapKeys=uid,maxItems=256"`
	// Devices is the state of the allocated devices, as reported by their drivers.
	Devices []AllocatedDeviceStatus `json:"devices,omitempty" protobuf:"4" schema:"listType=map,listMapKeys=driver|device|pool|shareID"`
}

// ResourceClaimConsumerReference identifies a user of a claim in the same namespace.
type ResourceClaimConsumerReference struct {
	// APIGroup of the object. Empty is the core group.
	APIGroup string `json:"apiGroup,omitempty" protobuf:"1"`
	// Resource is the plural name of the resource, such as pods.
	Resource string `json:"resource" protobuf:"3" schema:"required"`
	// Name of the object.
	Name string `json:"name" protobuf:"4" schema:"required"`
	// UID of the object.
	UID string `json:"uid" protobuf:"5" schema:"required"`
}

// AllocationResult is the result of an allocation.
type AllocationResult struct {
	// Devices that are allocated.
	Devices DeviceAllocationResult `json:"devices,omitempty" protobuf:"1"`
	// NodeSelector selects the nodes on which the devices can be used. Unset means all nodes.
	NodeSelector *core.NodeSelector `json:"nodeSelector,omitempty" protobuf:"3"`
	// AllocationTimestamp is the time of the allocation.
	AllocationTimestamp *meta.Time `json:"allocationTimestamp,omitempty" protobuf:"5"`
}

// DeviceAllocationResult lists the allocated devices and their configuration.
type DeviceAllocationResult struct {
	// Results are the allocated devices; at most 32.
	Results []DeviceRequestAllocationResult `json:"results,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=32"`
	// Config is passed to the drivers: the configuration of the classes, then of the claim; at most 64
	// entries.
	Config []DeviceAllocationConfiguration `json:"config,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=64"`
}

// DeviceRequestAllocationResult is an allocated device.
type DeviceRequestAllocationResult struct {
	// Request that the device satisfies, as request or request/alternative.
	Request string `json:"request" protobuf:"1"`
	// Driver of the device.
	Driver string `json:"driver" protobuf:"2" schema:"required,maxLength=63,format=csi-driver"`
	// Pool of the device.
	Pool string `json:"pool" protobuf:"3" schema:"required,maxLength=253"`
	// Device is the name of the device in its pool.
	Device string `json:"device" protobuf:"4" schema:"format=dns-label"`
	// AdminAccess is true if the device was allocated for administration and may be in use elsewhere.
	AdminAccess *bool `json:"adminAccess,omitempty" protobuf:"5"`
	// Tolerations of the request.
	Tolerations []DeviceToleration `json:"tolerations,omitempty" protobuf:"6" schema:"listType=atomic"`
	// BindingConditions of the device at the time of the allocation; at most 4.
	BindingConditions []string `json:"bindingConditions,omitempty" protobuf:"7" schema:"listType=atomic,maxItems=4"`
	// BindingFailureConditions of the device at the time of the allocation; at most 4.
	BindingFailureConditions []string `json:"bindingFailureConditions,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=4"`
	// ShareID identifies the share of a device that several claims use, a UUID in lower case.
	ShareID *string `json:"shareID,omitempty" protobuf:"9"`
	// ConsumedCapacity maps capacity names to the amounts that the claim uses of a shared device.
	ConsumedCapacity map[string]meta.Quantity `json:"consumedCapacity,omitempty" protobuf:"10"`
	// SkipNodeOperations lists operations that the node omits for the device: NodePrepareResources,
	// NodeUnprepareResources, or * for all.
	SkipNodeOperations []string `json:"skipNodeOperations,omitempty" protobuf:"11" schema:"listType=set,items.enum=NodePrepareResources|NodeUnprepareResources|*,gate=DRAOptionalNodeOperations"`
}

// DeviceAllocationConfiguration is a driver configuration for allocated devices.
type DeviceAllocationConfiguration struct {
	// Source of the configuration: FromClass or FromClaim.
	Source string `json:"source" protobuf:"1" schema:"required,enum=FromClaim|FromClass"`
	// Requests that the configuration applies to, as request or request/alternative; at most 32. Empty
	// means all.
	Requests []string `json:"requests,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=32"`

	DeviceConfiguration `json:",inline" protobuf:"3"`
}

// AllocatedDeviceStatus is the state of an allocated device, as reported by its driver.
type AllocatedDeviceStatus struct {
	// Driver of the device.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// Pool of the device.
	Pool string `json:"pool" protobuf:"2" schema:"required,maxLength=253"`
	// Device is the name of the device in its pool.
	Device string `json:"device" protobuf:"3" schema:"format=dns-label"`
	// ShareID identifies the share of a device that several claims use, a UUID in lower case.
	ShareID *string `json:"shareID,omitempty" protobuf:"7"`
	// Conditions of the device; at most 8.
	Conditions []meta.Condition `json:"conditions" protobuf:"4" schema:"optional,listType=map,listMapKeys=type,repeats,unchecked"`
	// Data is a driver-specific JSON object of at most 10 KiB.
	Data *meta.RawExtension `json:"data,omitempty" protobuf:"5"`
	// NetworkData describes a network interface.
	NetworkData *NetworkDeviceData `json:"networkData,omitempty" protobuf:"6"`
}

// NetworkDeviceData describes a network interface.
type NetworkDeviceData struct {
	// InterfaceName is the name of the interface in the pod, of at most 256 characters.
	InterfaceName string `json:"interfaceName,omitempty" protobuf:"1" schema:"maxLength=256"`
	// IPs are the addresses of the interface in CIDR notation, such as 192.0.2.5/24; at most 16.
	IPs []string `json:"ips,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=16"`
	// HardwareAddress is the MAC address or similar, of at most 128 characters.
	HardwareAddress string `json:"hardwareAddress,omitempty" protobuf:"3" schema:"maxLength=128"`
}
