// Package storage defines the kinds of the storage group, for the provisioning and attachment of
// volumes: StorageClass, VolumeAttributesClass, VolumeAttachment, and the CSI kinds.
package storage

import (
	"encoding/json"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// StorageClass describes a way to provision volumes. Claims refer to it by name.
type StorageClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Provisioner is the name of the driver that provisions the volumes. Immutable.
	Provisioner string `json:"provisioner" protobuf:"2" schema:"required,immutable,format=qualified-name"`
	// Parameters for the provisioner: at most 512 entries of at most 256 KiB in total. Immutable.
	Parameters map[string]string `json:"parameters,omitempty" protobuf:"3"`
	// ReclaimPolicy of provisioned volumes: Delete (default) or Retain. Immutable.
	ReclaimPolicy *string `json:"reclaimPolicy,omitempty" protobuf:"4" schema:"default=Delete,enum=Delete|Retain,immutable"`
	// MountOptions of provisioned volumes. They are not validated; invalid options make mounts fail.
	MountOptions []string `json:"mountOptions,omitempty" protobuf:"5" schema:"listType=atomic"`
	// AllowVolumeExpansion allows claims to increase their size.
	AllowVolumeExpansion *bool `json:"allowVolumeExpansion,omitempty" protobuf:"6"`
	// VolumeBindingMode is Immediate (default), or WaitForFirstConsumer, which provisions and binds a
	// volume when a pod uses the claim. Immutable.
	VolumeBindingMode *string `json:"volumeBindingMode,omitempty" protobuf:"7" schema:"required,optional,default=Immediate,enum=Immediate|WaitForFirstConsumer,immutable"`
	// AllowedTopologies restrict the topology of provisioned volumes; any of the terms suffices. Empty
	// means no restriction.
	AllowedTopologies []core.TopologySelectorTerm `json:"allowedTopologies,omitempty" protobuf:"8" schema:"listType=atomic"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{classes(), drivers(), nodes(), capacities(), attributesClasses(), attachments()}
}

func classes() *registry.Kind {
	return registry.Of(registry.Definition[StorageClass]{
		Group: wellknown.GroupStorage, Version: "v1", Scope: registry.Cluster, Plural: "storageclasses", ShortNames: []string{"sc"},
		Versions: []registry.VersionOf[StorageClass]{
			older.Same[StorageClass]("v1beta1", "1.4", "1.19", "1.22", wellknown.GroupStorage+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Name", Type: "string", Format: "name", Doc: "Name of the class, with a mark if it is the default.", Cell: func(o *meta.Object) any {
				for key, value := range o.Annotations() {
					if value == "true" && names.Same(key, wellknown.DefaultStorageClass) {
						return o.Name() + " (default)"
					}
				}
				return o.Name()
			}},
			registry.TextColumn("Provisioner", "The driver that provisions the volumes.", "provisioner"),
			registry.TextColumn("ReclaimPolicy", "The reclaim policy of the volumes.", "reclaimPolicy"),
			registry.TextColumn("VolumeBindingMode", "The time of provisioning and binding.", "volumeBindingMode"),
			{Name: "AllowVolumeExpansion", Type: "string", Doc: "Whether claims may increase their size.", Cell: func(o *meta.Object) any { return o.Bool("allowVolumeExpansion") }},
			registry.AgeColumn(),
		},
		Validate:  validateClass,
		Reference: &compat.Reference{AnyNamespace: true, NoGeneration: true},
	})
}

// validateClass checks the parameters, which are immutable, and the topologies.
func validateClass(w *registry.Change[StorageClass]) {
	checkParameters(&w.Violations, w.New.Parameters)
	checkTopologies(&w.Violations, w.New.AllowedTopologies)
	if w.Old != nil {
		w.Unchanged(check.At("parameters"), w.New.Parameters, w.Old.Parameters)
	}
}

// checkTopologies checks that no term is empty or equal to an earlier term, and that no term repeats a
// label or a value.
func checkTopologies(f *check.Violations, terms []core.TopologySelectorTerm) {
	seen := map[string]bool{"{}": true}
	for i, term := range terms {
		at, values := check.At("allowedTopologies").Index(i).Field("matchLabelExpressions"), map[string][]string{}
		for j, e := range term.MatchLabelExpressions {
			f.Unique(at.Index(j).Field("values"), e.Values)
			if _, duplicate := values[e.Key]; duplicate {
				f.Duplicate(at.Index(j).Field("key"), e.Key)
			}
			values[e.Key] = slices.Sorted(slices.Values(e.Values))
		}
		text, err := json.Marshal(values)
		if err == nil && seen[string(text)] {
			f.Duplicate(at, "")
		}
		seen[string(text)] = true
	}
}

// checkParameters checks number and size of the parameters of a driver.
func checkParameters(f *check.Violations, parameters map[string]string) {
	const maxParameters, maxBytes = 512, 256 << 10
	at, size := check.At("parameters"), 0
	for k, v := range parameters {
		if size += len(k) + len(v); k == "" {
			f.Invalid(at, k, "field can not be empty.")
		}
	}
	switch {
	case len(parameters) > maxParameters:
		f.TooLong(at, maxParameters)
	case size > maxBytes:
		f.TooLong(at, maxBytes)
	}
}
