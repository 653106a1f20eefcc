package storage

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CSIStorageCapacity is how much room there is for volumes of a class, for some nodes. A driver
// that wants pods to go where its volumes fit keeps one for each class and part of the
// cluster. Without one there is no room.
type CSIStorageCapacity struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// NodeTopology selects the nodes that reach the storage: {} is all of them, unset none. It
	// cannot change.
	NodeTopology *meta.Selector `json:"nodeTopology,omitempty" protobuf:"2" schema:"format=label-selector"`
	// StorageClassName is the class of the volumes that it is about. It cannot change.
	StorageClassName string `json:"storageClassName" protobuf:"3" schema:"format=dns-subdomain,immutable"`
	// Capacity is the room for new volumes, in bytes. Unset, nobody knows, which is as none.
	Capacity *meta.Quantity `json:"capacity,omitempty" protobuf:"4"`
	// MaximumVolumeSize is the size of the biggest volume that there is room for, in bytes.
	// Unset, capacity says so.
	MaximumVolumeSize *meta.Quantity `json:"maximumVolumeSize,omitempty" protobuf:"5"`
}

func capacities() *registry.Kind {
	return registry.Of(registry.Definition[CSIStorageCapacity]{
		Group: names.GroupStorage, Version: "v1", Plural: "csistoragecapacities",
		Lifetime: registry.Lifetime{Introduced: "1.24"},
		Versions: []registry.VersionOf[CSIStorageCapacity]{
			older.Same[CSIStorageCapacity]("v1beta1", "1.21", "1.24", "1.27", names.GroupStorage+"/v1"),
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
