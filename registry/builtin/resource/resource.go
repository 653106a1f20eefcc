// Package resource defines the kinds of dynamic resource allocation: ResourceClaim and
// ResourceClaimTemplate request devices, DeviceClass describes sets of devices, and ResourceSlice
// publishes the devices of drivers.
package resource

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{claims(), templates(), deviceSlices(), classes()}
}

// DeviceSelector is a condition on a device.
type DeviceSelector struct {
	// CEL is the condition as a CEL expression. Required.
	CEL *CELDeviceSelector `json:"cel,omitempty" protobuf:"1" schema:"required,optional"`
}

// CELDeviceSelector is a condition on a device as a CEL expression.
type CELDeviceSelector struct {
	// Expression must be true for the selected devices; at most 10,240 characters. The variable device
	// has the fields driver, attributes and capacity.
	Expression string `json:"expression" protobuf:"1" schema:"minLength=1,maxLength=10240"`
}

// DeviceConfiguration is a configuration for a driver.
type DeviceConfiguration struct {
	// Opaque is a configuration that only the driver interprets. Required.
	Opaque *OpaqueDeviceConfiguration `json:"opaque,omitempty" protobuf:"1" schema:"required,optional"`
}

// OpaqueDeviceConfiguration is a configuration that only the driver interprets.
type OpaqueDeviceConfiguration struct {
	// Driver that the configuration is for. Other drivers ignore it.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// Parameters are a JSON object of at most 10 KiB. It should have apiVersion and kind, so that the
	// driver can change its form.
	Parameters meta.RawExtension `json:"parameters" protobuf:"2"`
}

// DeviceToleration tolerates taints of devices.
type DeviceToleration struct {
	// Key of the tolerated taints. Empty with operator Exists means all taints.
	Key string `json:"key,omitempty" protobuf:"1" schema:"format=qualified-name"`
	// Operator is Equal (default), which compares the value, or Exists, which tolerates every value.
	Operator string `json:"operator,omitempty" protobuf:"2" schema:"default=Equal,enum=Equal|Exists"`
	// Value of the tolerated taints, for operator Equal.
	Value string `json:"value,omitempty" protobuf:"3"`
	// Effect of the tolerated taints. Empty means every effect.
	Effect string `json:"effect,omitempty" protobuf:"4" schema:"enum=NoExecute|NoSchedule|None"`
	// TolerationSeconds is the number of seconds for which a taint with effect NoExecute is tolerated.
	// Unset means forever; 0 or less means not at all.
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty" protobuf:"5"`
}
