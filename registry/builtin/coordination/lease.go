// Package coordination defines the kind Lease.
package coordination

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// Lease records the holder of a lock and the time until which others must respect it. Leader election
// and node heartbeats use it.
type Lease struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the state of the lock.
	Spec LeaseSpec `json:"spec,omitempty" protobuf:"2"`
}

// LeaseSpec is the state of a lock.
type LeaseSpec struct {
	// HolderIdentity identifies the holder. Unset or empty means that the lease is free.
	HolderIdentity *string `json:"holderIdentity,omitempty" protobuf:"1"`

	// LeaseDurationSeconds is the number of seconds after renewTime that others wait before they take
	// the lease; it must be positive.
	LeaseDurationSeconds *int32 `json:"leaseDurationSeconds,omitempty" protobuf:"2" schema:"exclusiveMin=0"`

	// AcquireTime is the time at which the holder acquired the lease.
	AcquireTime *meta.MicroTime `json:"acquireTime,omitempty" protobuf:"3"`

	// RenewTime is the time of the last renewal by the holder.
	RenewTime *meta.MicroTime `json:"renewTime,omitempty" protobuf:"4"`

	// LeaseTransitions is the number of changes of the holder.
	LeaseTransitions *int32 `json:"leaseTransitions,omitempty" protobuf:"5" schema:"min=0"`

	// Strategy selects the holder among candidates in coordinated leader election.
	Strategy *string `json:"strategy,omitempty" protobuf:"6" schema:"format=qualified-name,gate=CoordinatedLeaderElection"`

	// PreferredHolder is the candidate that the holder should yield to. It requires strategy.
	PreferredHolder *string `json:"preferredHolder,omitempty" protobuf:"7" schema:"gate=CoordinatedLeaderElection"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[Lease]{
		Group: wellknown.GroupCoordination, Version: "v1",
		Versions: []registry.VersionOf[Lease]{
			older.Same[Lease]("v1beta1", "1.12", "1.19", "1.22", wellknown.GroupCoordination+"/v1"),
		},
		Columns:  []registry.Column{registry.TextColumn("Holder", "The holder of the lease.", "spec", "holderIdentity"), registry.AgeColumn()},
		Validate: validate,
		Reference: &compat.Reference{
			NoGeneration: true, DeleteAnswersStatus: true, CreateOnPut: true, PutWithVersion: true,
			FreeFinalizers: true,
		},
	})}
}

func validate(w *registry.Change[Lease]) {
	spec, at := &w.New.Spec, check.At("spec")
	if p := spec.PreferredHolder; p != nil && *p != "" && (spec.Strategy == nil || *spec.Strategy == "") {
		w.Forbidden(at.Field("preferredHolder"), "needs a strategy")
	}
}
