// Package storagemigration defines the kind StorageVersionMigration, which rewrites the stored objects
// of a resource in the current storage version. The kind is not among the default kinds of a server;
// register it:
//
//	b.Register(storagemigration.Kinds()...)
package storagemigration

import (
	"slices"
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/conditions"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// StorageVersionMigration requests a migration of a resource. The controller storage-version-migrator
// runs it once.
type StorageVersionMigration struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec selects the resource.
	Spec StorageVersionMigrationSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is the progress of the migration.
	Status StorageVersionMigrationStatus `json:"status,omitempty" protobuf:"3"`
}

// StorageVersionMigrationSpec selects the resource to migrate. It is immutable.
type StorageVersionMigrationSpec struct {
	// Resource whose objects are rewritten.
	Resource Resource `json:"resource" protobuf:"1" schema:"immutable"`
}

// Resource identifies a resource, independent of the version.
type Resource struct {
	// Group of the resource. Empty is the core group.
	Group string `json:"group" protobuf:"1"`
	// Resource is the plural name.
	Resource string `json:"resource" protobuf:"2" schema:"required"`
}

// StorageVersionMigrationStatus is the progress of a migration.
type StorageVersionMigrationStatus struct {
	// Conditions are Running, and then Succeeded or Failed, which are final.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
	// ResourceVersion at the start of the migration. Objects that existed at this version are migrated.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"2"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[StorageVersionMigration]{
		Group: wellknown.GroupMigration, Version: "v1", Storage: "v1beta1", Scope: registry.Cluster, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.37"},
		Versions: []registry.VersionOf[StorageVersionMigration]{
			older.Same[StorageVersionMigration]("v1beta1", "1.35", "1.37", "1.40", wellknown.GroupMigration+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Resource", Type: "string", Doc: "The resource that is migrated.", Cell: func(o *meta.Object) any {
				return meta.GroupResource{Group: o.String("spec", "resource", "group"), Resource: o.String("spec", "resource", "resource")}.String()
			}},
			{Name: "Status", Type: "string", Doc: "The progress of the migration.", Cell: stateCell},
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

// validateStatus keeps status.resourceVersion once it is set, and Succeeded and Failed once they are
// true. Both cannot be true.
func validateStatus(w *registry.Change[StorageVersionMigration]) {
	at, status, old := check.At("status"), &w.New.Status, &w.Old.Status
	if version := status.ResourceVersion; version != "" {
		if _, err := strconv.ParseUint(version, 10, 63); err != nil {
			w.Invalid(at.Field("resourceVersion"), version, "must be a resourceVersion")
		}
	}
	conditions.Check(&w.Violations, at.Field("conditions"), status.Conditions)
	if old.ResourceVersion != "" {
		w.Unchanged(at.Field("resourceVersion"), status.ResourceVersion, old.ResourceVersion)
	}
	if list := at.Field("conditions"); status.hasCondition("Succeeded") && status.hasCondition("Failed") {
		w.Invalid(list, status.Conditions, "Both success and failed conditions cannot be true at the same time")
	} else {
		for _, end := range []string{"Succeeded", "Failed"} {
			if old.hasCondition(end) && !status.hasCondition(end) {
				w.Invalid(list, status.Conditions, end+" condition cannot be set to false once it is true")
			}
		}
	}
}

// hasCondition reports whether a condition of the given type is True.
func (s *StorageVersionMigrationStatus) hasCondition(kind string) bool {
	return slices.ContainsFunc(s.Conditions, func(c meta.Condition) bool { return c.Type == kind && c.Status == "True" })
}

// stateCell shows the type of the condition that is True.
func stateCell(o *meta.Object) any {
	for _, kind := range []string{"Succeeded", "Failed", "Running"} {
		if o.HasCondition(kind) {
			return kind
		}
	}
	return "Unknown"
}
