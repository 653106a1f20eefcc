package resource

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// ResourceClaim requests devices for the pods that refer to it. The scheduler allocates the devices and
// records them in the status.
type ResourceClaim struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request. It is immutable.
	Spec ResourceClaimSpec `json:"spec" protobuf:"2"`
	// Status is the allocation and its users.
	Status ResourceClaimStatus `json:"status,omitempty" protobuf:"3"`
}

// ResourceClaimSpec is the request of a claim.
type ResourceClaimSpec struct {
	// Devices that are requested.
	Devices DeviceClaim `json:"devices" protobuf:"1"`
}

// DeviceClaim requests devices.
type DeviceClaim struct {
	// Requests each ask for one or more devices; at most 32, with unique names. Either all are
	// satisfied or none.
	Requests []DeviceRequest `json:"requests" protobuf:"1" schema:"optional,listType=atomic,maxItems=32"`
	// Constraints relate the devices of several requests; at most 32.
	Constraints []DeviceConstraint `json:"constraints,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=32"`
	// Config is passed to the drivers; at most 32 entries.
	Config []DeviceClaimConfiguration `json:"config,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=32"`
}

// DeviceRequest requests devices of a kind. Either exactly or firstAvailable must be set.
type DeviceRequest struct {
	// Name of the request, a DNS label.
	Name string `json:"name" protobuf:"1" schema:"format=dns-label"`
	// Exactly describes the only acceptable kind of device.
	Exactly *ExactDeviceRequest `json:"exactly,omitempty" protobuf:"2"`
	// FirstAvailable describes alternatives in order of preference; at most 8.
	FirstAvailable []DeviceSubRequest `json:"firstAvailable,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=8"`
}

// ExactDeviceRequest describes the requested devices and their number.
type ExactDeviceRequest struct {
	// DeviceClassName is the class of the devices.
	DeviceClassName string `json:"deviceClassName" protobuf:"1" schema:"required,format=dns-subdomain"`
	// Selectors must all match a device, in addition to the selectors of its class; at most 32.
	Selectors []DeviceSelector `json:"selectors,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=32"`
	// AllocationMode is ExactCount (default), which requests count devices, or All, which requests all
	// matching devices of a pool.
	AllocationMode string `json:"allocationMode,omitempty" protobuf:"3" schema:"default=ExactCount,enum=All|ExactCount"`
	// Count is the number of devices for ExactCount; default 1. It must be unset for All.
	Count int64 `json:"count,omitempty" protobuf:"4"`
	// AdminAccess requests access to devices for administration, even if they are in use. The namespace
	// needs the label that permits it.
	AdminAccess *bool `json:"adminAccess,omitempty" protobuf:"5"`
	// Tolerations tolerate taints of the devices.
	Tolerations []DeviceToleration `json:"tolerations,omitempty" protobuf:"6" schema:"listType=atomic"`
	// Capacity is the amount that the claim needs of a device that can be shared.
	Capacity *CapacityRequirements `json:"capacity,omitempty" protobuf:"7"`
	// DerivedAttributes are computed from a device for use in constraints; at most 32.
	DerivedAttributes []DeviceDerivedAttribute `json:"derivedAttributes,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=32,gate=DRADerivedAttributes"`
}

// DeviceSubRequest is an alternative of a request.
type DeviceSubRequest struct {
	// Name of the alternative, a DNS label. Other fields refer to it as request/name.
	Name string `json:"name" protobuf:"1" schema:"format=dns-label"`
	// DeviceClassName is the class of the devices.
	DeviceClassName string `json:"deviceClassName" protobuf:"2" schema:"required,format=dns-subdomain"`
	// Selectors must all match a device, in addition to the selectors of its class; at most 32.
	Selectors []DeviceSelector `json:"selectors,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=32"`
	// AllocationMode is ExactCount (default), which requests count devices, or All, which requests all
	// matching devices of a pool.
	AllocationMode string `json:"allocationMode,omitempty" protobuf:"4" schema:"default=ExactCount,enum=All|ExactCount"`
	// Count is the number of devices for ExactCount; default 1. It must be unset for All.
	Count int64 `json:"count,omitempty" protobuf:"5"`
	// Tolerations tolerate taints of the devices.
	Tolerations []DeviceToleration `json:"tolerations,omitempty" protobuf:"6" schema:"listType=atomic"`
	// Capacity is the amount that the claim needs of a device that can be shared.
	Capacity *CapacityRequirements `json:"capacity,omitempty" protobuf:"7"`
	// DerivedAttributes are computed from a device for use in constraints; at most 32.
	DerivedAttributes []DeviceDerivedAttribute `json:"derivedAttributes,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=32,gate=DRADerivedAttributes"`
}

// CapacityRequirements are the amounts that a claim needs of a device.
type CapacityRequirements struct {
	// Requests maps capacity names to amounts.
	Requests map[string]meta.Quantity `json:"requests,omitempty" protobuf:"1"`
}

// DeviceDerivedAttribute is an attribute that is computed from a device.
type DeviceDerivedAttribute struct {
	// Name of the attribute, as domain/name.
	Name string `json:"name" protobuf:"1" schema:"required"`
	// Expression is a CEL expression for the value, of at most 10,240 characters.
	Expression string `json:"expression" protobuf:"2" schema:"required,maxLength=10240"`
}

// DeviceConstraint relates the devices of several requests. Set either matchAttribute or
// distinctAttribute.
type DeviceConstraint struct {
	// Requests that the constraint applies to, as request or request/alternative; at most 32. Empty
	// means all.
	Requests []string `json:"requests,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=32"`
	// MatchAttribute is an attribute (domain/name) that must have the same value in all devices.
	MatchAttribute *string `json:"matchAttribute,omitempty" protobuf:"2"`
	// DistinctAttribute is an attribute (domain/name) that must have a different value in each device.
	DistinctAttribute *string `json:"distinctAttribute,omitempty" protobuf:"3"`
}

// DeviceClaimConfiguration is a driver configuration for devices of a claim.
type DeviceClaimConfiguration struct {
	// Requests that the configuration applies to, as request or request/alternative; at most 32. Empty
	// means all.
	Requests []string `json:"requests,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=32"`

	DeviceConfiguration `json:",inline" protobuf:"2"`
}

func claims() *registry.Kind {
	return registry.Of(registry.Definition[ResourceClaim]{
		Group: wellknown.GroupDevices, Version: "v1", Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.34"},
		Columns: []registry.Column{
			{Name: "State", Type: "string", Doc: "Whether the claim is allocated, and reserved for pods.", Cell: claimState},
			registry.AgeColumn(),
		},
		Validate: validateClaim,
		Behavior: registry.Behavior{
			Default: func(w *registry.Change[meta.Object]) {
				defaultRequests(w.New, "spec", "devices", "requests")
				dropDeallocated(w)
			},
		},
		Reference: &compat.Reference{NoGeneration: true},
	})
}

// claimState lists the states of a claim: deleted, and pending or allocated and reserved.
func claimState(o *meta.Object) any {
	var words []string
	if !o.DeletionTimestamp().IsZero() {
		words = append(words, "deleted")
	}
	if o.Map("status", "allocation") == nil {
		return strings.Join(append(words, "pending"), ",")
	}
	words = append(words, "allocated")
	if len(o.List("status", "reservedFor")) > 0 {
		words = append(words, "reserved")
	}
	return strings.Join(words, ",")
}

// defaultRequests sets the count of requests with mode ExactCount to 1 if it is unset.
func defaultRequests(o *meta.Object, path ...string) {
	setCount := func(request *meta.Object) {
		if request.String("allocationMode") == exactCount && request.Int("count") == 0 {
			request.Set(int64(1), "count")
		}
	}
	for _, r := range o.Objects(path...) {
		if exactly := r.Map("exactly"); exactly != nil {
			setCount(meta.NewObject(exactly))
		}
		for _, alternative := range r.Objects("firstAvailable") {
			setCount(alternative)
		}
	}
}

// validateClaim checks the spec on create, and its immutability and the status on update.
func validateClaim(w *registry.Change[ResourceClaim]) {
	if w.Old == nil {
		checkClaim(&w.Violations, check.At("spec", "devices"), &w.New.Spec.Devices)
		return
	}
	w.Unchanged(check.At("spec"), w.New.Spec, w.Old.Spec)
	checkStatus(w)
}
