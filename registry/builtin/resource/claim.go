package resource

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// ResourceClaim asks for devices, for pods that name it. The scheduler finds them and
// says so in the status.
type ResourceClaim struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is asked for. It cannot change.
	Spec ResourceClaimSpec `json:"spec" protobuf:"2"`
	// Status is what was found, and who uses it.
	Status ResourceClaimStatus `json:"status,omitempty" protobuf:"3"`
}

// ResourceClaimSpec is what a claim asks for.
type ResourceClaimSpec struct {
	// Devices that are asked for.
	Devices DeviceClaim `json:"devices" protobuf:"1"`
}

// DeviceClaim asks for devices.
type DeviceClaim struct {
	// Requests are for one or more devices each, by different names; at most 32. All of
	// them are met, or none.
	Requests []DeviceRequest `json:"requests" protobuf:"1" schema:"optional,listType=atomic,maxItems=32"`
	// Constraints are what the devices must have in common, or apart; at most 32.
	Constraints []DeviceConstraint `json:"constraints,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=32"`
	// Config is for the drivers, at most 32 times.
	Config []DeviceClaimConfiguration `json:"config,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=32"`
}

// DeviceRequest asks for devices of one sort. Either exactly or firstAvailable is set.
type DeviceRequest struct {
	// Name of the request, a DNS label.
	Name string `json:"name" protobuf:"1" schema:"format=dns-label"`
	// Exactly is the sort that will do.
	Exactly *ExactDeviceRequest `json:"exactly,omitempty" protobuf:"2"`
	// FirstAvailable are sorts of which one will do, best first; at most 8.
	FirstAvailable []DeviceSubRequest `json:"firstAvailable,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=8"`
}

// ExactDeviceRequest is a sort of devices, and how many.
type ExactDeviceRequest struct {
	// DeviceClassName is the class of the devices.
	DeviceClassName string `json:"deviceClassName" protobuf:"1" schema:"required,format=dns-subdomain"`
	// Selectors are conditions that all must hold of a device, beside those of its class;
	// at most 32.
	Selectors []DeviceSelector `json:"selectors,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=32"`
	// AllocationMode is ExactCount (the default), as many as count says, or All, all
	// devices of a pool.
	AllocationMode string `json:"allocationMode,omitempty" protobuf:"3" schema:"default=ExactCount,enum=All|ExactCount"`
	// Count is how many, with ExactCount; 1 unless set.
	Count int64 `json:"count,omitempty" protobuf:"4"`
	// AdminAccess asks for devices that others may use, to look after them. The namespace
	// must have a label that permits it.
	AdminAccess *bool `json:"adminAccess,omitempty" protobuf:"5"`
	// Tolerations are of taints that the devices may have.
	Tolerations []DeviceToleration `json:"tolerations,omitempty" protobuf:"6" schema:"listType=atomic"`
	// Capacity is how much of a device is needed, if it can be shared.
	Capacity *CapacityRequirements `json:"capacity,omitempty" protobuf:"7"`
	// DerivedAttributes are computed of a device for the constraints; at most 32.
	DerivedAttributes []DeviceDerivedAttribute `json:"derivedAttributes,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=32,gate=DRADerivedAttributes"`
}

// DeviceSubRequest is a sort of devices among others that would do, too.
type DeviceSubRequest struct {
	// Name of the sort, a DNS label; others call it request/name.
	Name string `json:"name" protobuf:"1" schema:"format=dns-label"`
	// DeviceClassName is the class of the devices.
	DeviceClassName string `json:"deviceClassName" protobuf:"2" schema:"required,format=dns-subdomain"`
	// Selectors are conditions that all must hold of a device, beside those of its class;
	// at most 32.
	Selectors []DeviceSelector `json:"selectors,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=32"`
	// AllocationMode is ExactCount (the default), as many as count says, or All, all
	// devices of a pool.
	AllocationMode string `json:"allocationMode,omitempty" protobuf:"4" schema:"default=ExactCount,enum=All|ExactCount"`
	// Count is how many, with ExactCount; 1 unless set.
	Count int64 `json:"count,omitempty" protobuf:"5"`
	// Tolerations are of taints that the devices may have.
	Tolerations []DeviceToleration `json:"tolerations,omitempty" protobuf:"6" schema:"listType=atomic"`
	// Capacity is how much of a device is needed, if it can be shared.
	Capacity *CapacityRequirements `json:"capacity,omitempty" protobuf:"7"`
	// DerivedAttributes are computed of a device for the constraints; at most 32.
	DerivedAttributes []DeviceDerivedAttribute `json:"derivedAttributes,omitempty" protobuf:"8" schema:"listType=atomic,maxItems=32,gate=DRADerivedAttributes"`
}

// CapacityRequirements is how much of a device is needed.
type CapacityRequirements struct {
	// Requests are amounts by the names of capacities.
	Requests map[string]meta.Quantity `json:"requests,omitempty" protobuf:"1"`
}

// DeviceDerivedAttribute is an attribute that is computed of a device.
type DeviceDerivedAttribute struct {
	// Name of the attribute, domain/name.
	Name string `json:"name" protobuf:"1" schema:"required"`
	// Expression in the Common Expression Language that computes it, of at most 10 Ki
	// characters.
	Expression string `json:"expression" protobuf:"2" schema:"required,maxLength=10240"`
}

// DeviceConstraint is what devices must have in common, or apart. One of the
// attributes is set.
type DeviceConstraint struct {
	// Requests whose devices are meant, as request or request/sort; at most 32. None: all.
	Requests []string `json:"requests,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=32"`
	// MatchAttribute must have the same value in all devices, domain/name.
	MatchAttribute *string `json:"matchAttribute,omitempty" protobuf:"2"`
	// DistinctAttribute must have another value in each device, domain/name.
	DistinctAttribute *string `json:"distinctAttribute,omitempty" protobuf:"3"`
}

// DeviceClaimConfiguration is what drivers get to prepare the devices of a claim.
type DeviceClaimConfiguration struct {
	// Requests whose devices are meant, as request or request/sort; at most 32. None: all.
	Requests []string `json:"requests,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=32"`

	DeviceConfiguration `json:",inline" protobuf:"2"`
}

func claims() *registry.Kind {
	return registry.Of(registry.Definition[ResourceClaim]{
		Group: names.GroupDevices, Version: "v1", Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.34"},
		Columns: []registry.Column{
			{Name: "State", Type: "string", Doc: "Whether devices were found, and whether anybody uses them.", Cell: claimState},
			registry.Age(),
		},
		Validate: validateClaim,
		Behavior: registry.Behavior{
			Default: func(w *registry.Change[meta.Object]) {
				defaultRequests(w.New, "spec", "devices", "requests")
				dropGone(w)
			},
		},
		Reference: &compat.Reference{NoGeneration: true},
	})
}

// claimState is how far a claim is, in words with commas between them.
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

// defaultRequests asks for one device where nobody says how many.
func defaultRequests(o *meta.Object, path ...string) {
	one := func(sort *meta.Object) {
		if sort.String("allocationMode") == exactCount && sort.Int("count") == 0 {
			sort.Set(int64(1), "count")
		}
	}
	for _, r := range o.Objects(path...) {
		if exactly := r.Map("exactly"); exactly != nil {
			one(meta.NewObject(exactly))
		}
		for _, sort := range r.Objects("firstAvailable") {
			one(sort)
		}
	}
}

func validateClaim(w *registry.Change[ResourceClaim]) {
	if w.Old == nil {
		checkClaim(&w.Faults, check.At("spec", "devices"), &w.New.Spec.Devices)
		return
	}
	w.Unchanged(check.At("spec"), w.New.Spec, w.Old.Spec)
	checkStatus(w)
}
