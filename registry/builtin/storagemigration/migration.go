// Package storagemigration holds the kind by which a caller has the objects of a resource stored
// anew, in the version and shape that writes have now: StorageVersionMigration. It is none of
// those that a server has by itself:
//
//	b.Register(migration.Kinds()...)
package storagemigration

import (
	"slices"
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/conditions"
	"orch.io/controlplane/registry/builtin/internal/older"
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
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
	// ResourceVersion at which the migration began: what is as old was looked at.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"2"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[StorageVersionMigration]{
		Group: names.GroupMigration, Version: "v1", Storage: "v1beta1", Scope: registry.Cluster, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.37"},
		Versions: []registry.VersionOf[StorageVersionMigration]{
			older.Same[StorageVersionMigration]("v1beta1", "1.35", "1.37", "1.40", names.GroupMigration+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Resource", Type: "string", Doc: "What is migrated.", Cell: func(o *meta.Object) any {
				return meta.GroupResource{Group: o.String("spec", "resource", "group"), Resource: o.String("spec", "resource", "resource")}.String()
			}},
			{Name: "Status", Type: "string", Doc: "How far it is.", Cell: state},
		},
		Validate:  validate,
		Reference: &compat.Reference{DeleteAnswersStatus: true, PutWithVersion: true, NoGeneration: true, OptionalVersions: []string{"v1beta1"}},
	})}
}

func validate(w *registry.Change[StorageVersionMigration]) {
	if w.Subresource == "status" {
		validateStatus(w)
		return
	}
	at, s := check.At("spec", "resource"), w.New.Spec.Resource
	if s.Resource != "" {
		w.Format(at.Field("resource"), s.Resource, meta.CheckDNS1035Label(s.Resource))
	}
	if s.Group != "" {
		w.Format(at.Field("group"), s.Group, meta.CheckDNSSubdomain(s.Group))
	}
}

// validateStatus lets a migration begin once and end once.
func validateStatus(w *registry.Change[StorageVersionMigration]) {
	at, now, was := check.At("status"), &w.New.Status, &w.Old.Status
	if version := now.ResourceVersion; version != "" {
		if _, err := strconv.ParseUint(version, 10, 63); err != nil {
			w.Invalid(at.Field("resourceVersion"), version, "must be a resourceVersion")
		}
	}
	conditions.Check(&w.Faults, at.Field("conditions"), now.Conditions)
	if was.ResourceVersion != "" {
		w.Unchanged(at.Field("resourceVersion"), now.ResourceVersion, was.ResourceVersion)
	}
	if list := at.Field("conditions"); now.is("Succeeded") && now.is("Failed") {
		w.Invalid(list, now.Conditions, "Both success and failed conditions cannot be true at the same time")
	} else {
		for _, end := range []string{"Succeeded", "Failed"} {
			if was.is(end) && !now.is(end) {
				w.Invalid(list, now.Conditions, end+" condition cannot be set to false once it is true")
			}
		}
	}
}

// is reports whether a condition is true.
func (s *StorageVersionMigrationStatus) is(kind string) bool {
	return slices.ContainsFunc(s.Conditions, func(c meta.Condition) bool { return c.Type == kind && c.Status == "True" })
}

// state is the condition that is true.
func state(o *meta.Object) any {
	for _, kind := range []string{"Succeeded", "Failed", "Running"} {
		if o.HasCondition(kind) {
			return kind
		}
	}
	return "Unknown"
}
