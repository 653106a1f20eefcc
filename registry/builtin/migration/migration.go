// Package migration holds the kind by which a caller has the objects of a resource stored
// anew, in the version and shape that writes have now: StorageVersionMigration. It is none of
// those that a server has by itself:
//
//	b.Register(migration.Kinds()...)
package migration

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// StorageVersionMigration asks for the migration of a resource, once. The controller
// storage-version-migrator carries it out.
type StorageVersionMigration struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec says what is migrated.
	Spec StorageVersionMigrationSpec `json:"spec,omitempty" protobuf:"2"`
	// Status tells how far it is.
	Status StorageVersionMigrationStatus `json:"status,omitempty" protobuf:"3"`
}

// StorageVersionMigrationSpec says what is migrated. It cannot change.
type StorageVersionMigrationSpec struct {
	// Resource whose objects are stored anew.
	Resource Resource `json:"resource" protobuf:"1" schema:"immutable"`
}

// Resource names a resource type in whatever version.
type Resource struct {
	// Group of the resource, empty for the core group.
	Group string `json:"group" protobuf:"1"`
	// Resource is the plural name.
	Resource string `json:"resource" protobuf:"2" schema:"required"`
}

// StorageVersionMigrationStatus tells how far a migration is.
type StorageVersionMigrationStatus struct {
	// Conditions of the migration: Running, then Succeeded or Failed.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type"`
	// ResourceVersion at which the migration began: what is as old was looked at.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"2"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[StorageVersionMigration]{
		Group: names.GroupMigration, Version: "v1beta1", Scope: registry.Cluster, Status: true,
		Columns: []registry.Column{
			{Name: "Resource", Type: "string", Doc: "What is migrated.", Cell: func(o *meta.Object) any {
				return meta.GroupResource{Group: o.String("spec", "resource", "group"), Resource: o.String("spec", "resource", "resource")}.String()
			}},
			{Name: "State", Type: "string", Doc: "How far it is.", Cell: state},
			registry.Age(),
		},
		Validate: func(w *registry.Change[StorageVersionMigration]) {
			s := w.New.Spec.Resource
			if at := check.At("spec", "resource"); s.Group != "" {
				w.Format(at.Field("group"), s.Group, meta.CheckDNSSubdomain(s.Group))
			}
		},
	})}
}

// state is the newest condition.
func state(o *meta.Object) any {
	for _, kind := range []string{"Succeeded", "Failed", "Running"} {
		if o.HasCondition(kind) {
			return kind
		}
	}
	return "Pending"
}
