package storage

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CSIStorageCapacity publishes the storage that is available to new volumes of a class on some nodes. A
// driver with storageCapacity creates such an object for each class and topology segment; without an
// object, the scheduler assumes that there is no capacity.
type CSIStorageCapacity struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// NodeTopology selects the nodes that can access the storage. Empty selects all nodes, unset none.
	// Immutable.
	NodeTopology *meta.LabelSelector `json:"nodeTopology,omitempty" protobuf:"2" schema:"format=label-selector"`
	// StorageClassName is the class of the volumes. Immutable.
	StorageClassName string `json:"storageClassName" protobuf:"3" schema:"format=dns-subdomain,immutable"`
	// Capacity is the available storage in bytes; not negative. Unset means unknown, which counts as
	// none.
	Capacity *meta.Quantity `json:"capacity,omitempty" protobuf:"4"`
	// MaximumVolumeSize is the largest volume that can be created, in bytes. Unset means that capacity
	// is the limit.
	MaximumVolumeSize *meta.Quantity `json:"maximumVolumeSize,omitempty" protobuf:"5"`
}

func capacities() *registry.Kind {
	return registry.Of(registry.Definition[CSIStorageCapacity]{
		Group: wellknown.GroupStorage, Version: "v1", Plural: "csistoragecapacities",
		Lifetime: registry.Lifetime{Introduced: "1.24"},
		Versions: []registry.VersionOf[CSIStorageCapacity]{
			older.Same[CSIStorageCapacity]("v1beta1", "1.21", "1.24", "1.27", wellknown.GroupStorage+"/v1"),
		},
		Validate:  validateCapacity,
		Reference: &compat.Reference{NoGeneration: true, PutWithVersion: true, DeleteAnswersStatus: true},
	})
}

func validateCapacity(w *registry.Change[CSIStorageCapacity]) {
	if c := w.New.Capacity; c != nil && c.Sign() < 0 {
		w.Invalid(check.At("capacity"), *c, "must be greater than or equal to 0")
	}
	if w.Old != nil {
		w.Unchanged(check.At("nodeTopology"), w.New.NodeTopology, w.Old.NodeTopology)
	}
}
