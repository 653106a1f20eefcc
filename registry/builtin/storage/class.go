// Package storage holds the kinds of the storage group, which say how volumes come to
// be and reach the nodes.
package storage

import (
	"encoding/json"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// StorageClass is a way to make volumes for claims that name it.
type StorageClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Provisioner is who makes the volumes.
	Provisioner string `json:"provisioner" protobuf:"2" schema:"required,immutable,format=qualified-name"`
	// Parameters are for the provisioner.
	Parameters map[string]string `json:"parameters,omitempty" protobuf:"3"`
	// ReclaimPolicy of the volumes that are made.
	ReclaimPolicy *string `json:"reclaimPolicy,omitempty" protobuf:"4" schema:"default=Delete,enum=Delete|Retain,immutable"`
	// MountOptions of the volumes that are made. Nobody checks them before one is mounted.
	MountOptions []string `json:"mountOptions,omitempty" protobuf:"5" schema:"listType=atomic"`
	// AllowVolumeExpansion lets claims grow.
	AllowVolumeExpansion *bool `json:"allowVolumeExpansion,omitempty" protobuf:"6"`
	// VolumeBindingMode says when volumes are made and bound: at once, or when a pod needs one.
	VolumeBindingMode *string `json:"volumeBindingMode,omitempty" protobuf:"7" schema:"required,optional,default=Immediate,enum=Immediate|WaitForFirstConsumer,immutable"`
	// AllowedTopologies are where volumes may be: one of the terms holds. None is anywhere.
	AllowedTopologies []core.TopologySelectorTerm `json:"allowedTopologies,omitempty" protobuf:"8" schema:"listType=atomic"`
}

// Kinds returns the kinds of the storage group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{classes(), drivers(), nodes(), capacities(), attributesClasses(), attachments()}
}

func classes() *registry.Kind {
	return registry.Of(registry.Definition[StorageClass]{
		Group: names.GroupStorage, Version: "v1", Scope: registry.Cluster, Plural: "storageclasses", ShortNames: []string{"sc"},
		Versions: []registry.VersionOf[StorageClass]{
			older.Same[StorageClass]("v1beta1", "1.4", "1.19", "1.22", names.GroupStorage+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Name", Type: "string", Format: "name", Doc: "Name of the class; the default one is marked.", Cell: func(o *meta.Object) any {
				for key, value := range o.Annotations() {
					if value == "true" && names.Same(key, names.DefaultStorageClass) {
						return o.Name() + " (default)"
					}
				}
				return o.Name()
			}},
			registry.Text("Provisioner", "Who makes the volumes.", "provisioner"),
			registry.Text("ReclaimPolicy", "What becomes of a volume that nobody claims any more.", "reclaimPolicy"),
			registry.Text("VolumeBindingMode", "When volumes are made and bound.", "volumeBindingMode"),
			{Name: "AllowVolumeExpansion", Type: "string", Doc: "Whether claims may grow.", Cell: func(o *meta.Object) any { return o.Bool("allowVolumeExpansion") }},
			registry.Age(),
		},
		Validate:  validateClass,
		Reference: &compat.Reference{AnyNamespace: true, NoGeneration: true},
	})
}

// validateClass bounds the parameters, and keeps them as they were.
func validateClass(w *registry.Change[StorageClass]) {
	checkParameters(&w.Faults, w.New.Parameters)
	checkTopologies(&w.Faults, w.New.AllowedTopologies)
	if w.Old != nil {
		w.Unchanged(check.At("parameters"), w.New.Parameters, w.Old.Parameters)
	}
}

// checkTopologies checks that each term asks for something, and for something else
// than those before it, and for each label once.
func checkTopologies(f *check.Faults, terms []core.TopologySelectorTerm) {
	seen := map[string]bool{"{}": true}
	for i, term := range terms {
		at, asked := check.At("allowedTopologies").Index(i).Field("matchLabelExpressions"), map[string][]string{}
		for j, e := range term.MatchLabelExpressions {
			f.Unique(at.Index(j).Field("values"), e.Values)
			if _, again := asked[e.Key]; again {
				f.Duplicate(at.Index(j).Field("key"), e.Key)
			}
			asked[e.Key] = slices.Sorted(slices.Values(e.Values))
		}
		text, err := json.Marshal(asked)
		if err == nil && seen[string(text)] {
			f.Duplicate(at, "")
		}
		seen[string(text)] = true
	}
}

// checkParameters bounds what is passed to a driver.
func checkParameters(f *check.Faults, parameters map[string]string) {
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
