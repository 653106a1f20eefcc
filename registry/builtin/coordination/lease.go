// Package coordination holds the kinds of the coordination group: Lease.
package coordination

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// Lease says who holds something, and until when the others must respect it.
// Leader election and node heartbeats use it.
type Lease struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec says who holds the lease and how long.
	Spec LeaseSpec `json:"spec,omitempty" protobuf:"2"`
}

// LeaseSpec is the state of a lease.
type LeaseSpec struct {
	// HolderIdentity names the holder; empty while nobody holds the lease.
	HolderIdentity *string `json:"holderIdentity,omitempty" protobuf:"1"`

	// LeaseDurationSeconds is how long others wait after renewTime before they
	// may take the lease.
	LeaseDurationSeconds *int32 `json:"leaseDurationSeconds,omitempty" protobuf:"2" schema:"exclusiveMin=0"`

	// AcquireTime is when the holder took the lease.
	AcquireTime *meta.MicroTime `json:"acquireTime,omitempty" protobuf:"3"`

	// RenewTime is when the holder last renewed it.
	RenewTime *meta.MicroTime `json:"renewTime,omitempty" protobuf:"4"`

	// LeaseTransitions counts the changes of holder.
	LeaseTransitions *int32 `json:"leaseTransitions,omitempty" protobuf:"5" schema:"min=0"`

	// Strategy names how a holder is chosen among candidates.
	Strategy *string `json:"strategy,omitempty" protobuf:"6" schema:"format=qualified-name,gate=CoordinatedLeaderElection"`

	// PreferredHolder names whom the holder should give the lease to; it needs
	// a strategy.
	PreferredHolder *string `json:"preferredHolder,omitempty" protobuf:"7" schema:"gate=CoordinatedLeaderElection"`
}

// Kinds returns the kinds of the coordination group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[Lease]{
		Group: names.GroupCoordination, Version: "v1",
		Versions: []registry.VersionOf[Lease]{
			older.Same[Lease]("v1beta1", "1.12", "1.19", "1.22", names.GroupCoordination+"/v1"),
		},
		Columns:  []registry.Column{registry.Text("Holder", "Who holds the lease.", "spec", "holderIdentity"), registry.Age()},
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
