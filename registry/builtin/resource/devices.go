// Package resource holds the kinds of the resource group: claims of devices, templates
// of claims, classes of devices, and slices, by which drivers tell what devices there
// are.
package resource

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Kinds returns the kinds of the resource group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{claims(), templates(), deviceSlices(), classes()}
}

// DeviceSelector is a condition on a device. Exactly one of the fields is set.
type DeviceSelector struct {
	// CEL is a condition in that language.
	CEL *CELDeviceSelector `json:"cel,omitempty" protobuf:"1" schema:"required,optional"`
}

// CELDeviceSelector is a condition on a device in the Common Expression Language.
type CELDeviceSelector struct {
	// Expression is true of the devices that are meant, of at most 10 Ki characters. It
	// knows the device as a variable of that name, with driver, attributes and capacity.
	Expression string `json:"expression" protobuf:"1" schema:"minLength=1,maxLength=10240"`
}

// DeviceConfiguration is what a driver gets to prepare a device. Exactly one of the
// fields is set.
type DeviceConfiguration struct {
	// Opaque is in a form that only the driver knows.
	Opaque *OpaqueDeviceConfiguration `json:"opaque,omitempty" protobuf:"1" schema:"required,optional"`
}

// OpaqueDeviceConfiguration is a configuration in a form that only a driver knows.
type OpaqueDeviceConfiguration struct {
	// Driver that it is for. Others do not look at it.
	Driver string `json:"driver" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// Parameters are any object, of at most 10 KiB. It should name its version.
	Parameters meta.RawExtension `json:"parameters" protobuf:"2"`
}

// DeviceToleration lets a claim have a device in spite of taints that it matches.
type DeviceToleration struct {
	// Key of the taints; empty: all of them, if the operator is Exists.
	Key string `json:"key,omitempty" protobuf:"1" schema:"format=qualified-name"`
	// Operator says how a taint is compared: Equal (the default) wants the same value,
	// Exists takes every one.
	Operator string `json:"operator,omitempty" protobuf:"2" schema:"default=Equal,enum=Equal|Exists"`
	// Value of the taints, for the operator Equal.
	Value string `json:"value,omitempty" protobuf:"3"`
	// Effect of the taints; empty: every one.
	Effect string `json:"effect,omitempty" protobuf:"4" schema:"enum=NoExecute|NoSchedule|None"`
	// TolerationSeconds is how long a taint with the effect NoExecute is tolerated, in
	// seconds; unset: forever, 0 or less: not at all.
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty" protobuf:"5"`
}
