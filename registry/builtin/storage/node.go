package storage

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CSINode lists the storage drivers that run on a node. It has the name of the node, whose
// agent makes it when drivers register. Without it the node has none.
type CSINode struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec lists the drivers.
	Spec CSINodeSpec `json:"spec" protobuf:"2"`
	// Status is how the drivers are.
	Status CSINodeStatus `json:"status,omitempty" protobuf:"3"`
}

// CSINodeSpec lists the drivers of a node.
type CSINodeSpec struct {
	// Drivers that run on the node, by different names.
	Drivers []CSINodeDriver `json:"drivers" protobuf:"1" patchStrategy:"merge" patchMergeKey:"name" schema:"optional,listType=map,listMapKeys=name,repeats"`
}

// CSINodeDriver is a driver that runs on a node. Only its limits change while it does.
type CSINodeDriver struct {
	// Name of the driver, as that of its CSIDriver.
	Name string `json:"name" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// NodeID is what the storage behind the driver calls the node, at most 256 characters.
	NodeID string `json:"nodeID" protobuf:"2" schema:"required"`
	// TopologyKeys are the labels of the node that say where it is to the driver.
	TopologyKeys []string `json:"topologyKeys" protobuf:"3" schema:"optional,listType=atomic"`
	// Allocatable is how much the node takes of the driver.
	Allocatable *VolumeNodeResources `json:"allocatable,omitempty" protobuf:"4"`
}

// VolumeNodeResources is how many volumes a node takes.
type VolumeNodeResources struct {
	// Count of different volumes that the node can use at a time. Unset, it has no limit.
	Count *int32 `json:"count,omitempty" protobuf:"1" schema:"min=0"`
}

// CSINodeStatus is how the drivers of a node are.
type CSINodeStatus struct {
	// StorageHealth says of each driver what is wrong with the storage behind it.
	StorageHealth []StorageHealth `json:"storageHealth,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,gate=CSIVolumeHealth"`
}

// StorageHealth is what is wrong with the storage behind a driver, as a node sees it.
type StorageHealth struct {
	// Name of the driver.
	Name string `json:"name" protobuf:"1"`
	// HealthConditions are what is wrong; none is healthy.
	HealthConditions []StorageHealthCondition `json:"healthConditions,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// StorageHealthCondition is one thing that is wrong with a storage.
type StorageHealthCondition struct {
	// Status is how bad it is: StorageUnreachable or StorageDegraded.
	Status string `json:"status" protobuf:"1" schema:"enum=StorageDegraded|StorageUnreachable"`
	// Reason is a word for programs.
	Reason string `json:"reason" protobuf:"2"`
	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"3"`
	// AccessMode of the volumes that it concerns; unset: all.
	AccessMode *string `json:"accessMode,omitempty" protobuf:"4"`
	// VolumeMode of the volumes that it concerns; unset: all.
	VolumeMode *string `json:"volumeMode,omitempty" protobuf:"5"`
	// LastTransitionTime is since when the status is so.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"6"`
}

func nodes() *registry.Kind {
	return registry.Of(registry.Definition[CSINode]{
		Group: names.GroupStorage, Version: "v1", Scope: registry.Cluster,
		Lifetime: registry.Lifetime{Introduced: "1.17"},
		Versions: []registry.VersionOf[CSINode]{
			older.Same[CSINode]("v1beta1", "1.14", "1.17", "1.22", names.GroupStorage+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Drivers", Type: "integer", Doc: "How many drivers run on the node.", Cell: func(o *meta.Object) any { return int64(len(o.List("spec", "drivers"))) }},
			registry.Age(),
		},
		Prepare: func(w *registry.Change[CSINode]) {
			if len(w.New.Spec.Drivers) == 0 {
				w.New.Spec.Drivers = nil // clients read null
			}
		},
		Status:    true,
		Validate:  validateNode,
		Reference: &compat.Reference{StatusRule: compat.NodeDriverStatus, AnyNamespace: true, NoGeneration: true, PutWithVersion: true},
	})
}

// validateNode checks the drivers, and that one that goes on running is the same one. What
// is wrong with the keys is told of the driver.
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
		if old, ok := before[d.Name]; ok && (d.NodeID != old.NodeID || !check.Same(d.TopologyKeys, old.TopologyKeys)) {
			w.Unchanged(list, d, old)
		}
	}
}
