package storage

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CSINode lists the CSI drivers on a node. The kubelet creates it, with the name of the node, when
// drivers register.
type CSINode struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec lists the drivers.
	Spec CSINodeSpec `json:"spec" protobuf:"2"`
	// Status is the health of the drivers' storage.
	Status CSINodeStatus `json:"status,omitempty" protobuf:"3"`
}

// CSINodeSpec lists the drivers on a node.
type CSINodeSpec struct {
	// Drivers on the node, with unique names.
	Drivers []CSINodeDriver `json:"drivers" protobuf:"1" patchStrategy:"merge" patchMergeKey:"name" schema:"optional,listType=map,listMapKeys=name,repeats"`
}

// CSINodeDriver is a driver on a node. Only its limits can change while it is listed.
type CSINodeDriver struct {
	// Name of the driver, as in its CSIDriver.
	Name string `json:"name" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// NodeID identifies the node at the storage system, in at most 256 characters.
	NodeID string `json:"nodeID" protobuf:"2" schema:"required"`
	// TopologyKeys are the node labels that describe the topology to the driver.
	TopologyKeys []string `json:"topologyKeys" protobuf:"3" schema:"optional,listType=atomic"`
	// Allocatable is the volume limit of the node.
	Allocatable *VolumeNodeResources `json:"allocatable,omitempty" protobuf:"4"`
}

// VolumeNodeResources is a volume limit.
type VolumeNodeResources struct {
	// Count is the number of volumes that the node can use at the same time. Unset means no limit.
	Count *int32 `json:"count,omitempty" protobuf:"1" schema:"min=0"`
}

// CSINodeStatus is the health of the storage on a node.
type CSINodeStatus struct {
	// StorageHealth lists the health of the storage by driver.
	StorageHealth []StorageHealth `json:"storageHealth,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,gate=CSIVolumeHealth"`
}

// StorageHealth is the health of a driver's storage, as seen from a node.
type StorageHealth struct {
	// Name of the driver.
	Name string `json:"name" protobuf:"1"`
	// HealthConditions are the problems. Empty means healthy.
	HealthConditions []StorageHealthCondition `json:"healthConditions,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// StorageHealthCondition is a problem of a storage system.
type StorageHealthCondition struct {
	// Status is StorageUnreachable or StorageDegraded.
	Status string `json:"status" protobuf:"1" schema:"enum=StorageDegraded|StorageUnreachable"`
	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason" protobuf:"2"`
	// Message explains the problem to people.
	Message string `json:"message,omitempty" protobuf:"3"`
	// AccessMode of the affected volumes. Unset means all.
	AccessMode *string `json:"accessMode,omitempty" protobuf:"4"`
	// VolumeMode of the affected volumes. Unset means all.
	VolumeMode *string `json:"volumeMode,omitempty" protobuf:"5"`
	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"6"`
}

func nodes() *registry.Kind {
	return registry.Of(registry.Definition[CSINode]{
		Group: wellknown.GroupStorage, Version: "v1", Scope: registry.Cluster,
		Lifetime: registry.Lifetime{Introduced: "1.17"},
		Versions: []registry.VersionOf[CSINode]{
			older.Same[CSINode]("v1beta1", "1.14", "1.17", "1.22", wellknown.GroupStorage+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Drivers", Type: "integer", Doc: "The number of drivers on the node.", Cell: func(o *meta.Object) any { return int64(len(o.List("spec", "drivers"))) }},
			registry.AgeColumn(),
		},
		Prepare: func(w *registry.Change[CSINode]) {
			if len(w.New.Spec.Drivers) == 0 {
				w.New.Spec.Drivers = nil // clients expect null for an empty list
			}
		},
		Status:    true,
		Validate:  validateNode,
		Reference: &compat.Reference{StatusRule: compat.NodeDriverStatus, AnyNamespace: true, NoGeneration: true, PutWithVersion: true},
	})
}

// validateNode checks the drivers, and that drivers which stay are unchanged except for their limits.
// Violations in topology keys have the path of the driver, as at kube-apiserver.
func validateNode(w *registry.Change[CSINode]) {
	list, before, seen := check.At("spec", "drivers"), map[string]CSINodeDriver{}, map[string]bool{}
	if w.Old != nil {
		for _, d := range w.Old.Spec.Drivers {
			before[d.Name] = d
		}
	}
	for i, d := range w.New.Spec.Drivers {
		at := list.Index(i)
		if len(d.NodeID) > 256 {
			w.Invalid(at.Field("nodeID"), d.NodeID, "must be 256 characters or less")
		}
		keys := map[string]bool{}
		for _, key := range d.TopologyKeys {
			if key == "" {
				w.Required(at, "")
			}
			w.Format(at, key, meta.CheckQualifiedName(key))
			if keys[key] {
				w.Duplicate(at, key)
			}
			keys[key] = true
		}
		if seen[d.Name] {
			w.Duplicate(at.Field("name"), d.Name)
		}
		seen[d.Name] = true
		if old, ok := before[d.Name]; ok && (d.NodeID != old.NodeID || !check.SemanticEqual(d.TopologyKeys, old.TopologyKeys)) {
			w.Unchanged(list, d, old)
		}
	}
}
