package storage

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// VolumeAttributesClass describes attributes of volumes that can change while the volumes are in use,
// such as the throughput. A claim can switch to another class.
type VolumeAttributesClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// DriverName is the driver of the volumes. Immutable.
	DriverName string `json:"driverName" protobuf:"2" schema:"required,format=qualified-name"`
	// Parameters for the driver: 1 to 512 entries of at most 256 KiB in total. Immutable.
	Parameters map[string]string `json:"parameters,omitempty" protobuf:"3" schema:"required,optional,reason.required=must contain at least one key/value pair"`
}

func attributesClasses() *registry.Kind {
	return registry.Of(registry.Definition[VolumeAttributesClass]{
		Group: wellknown.GroupStorage, Version: "v1", Scope: registry.Cluster, Plural: "volumeattributesclasses", ShortNames: []string{"vac"},
		Lifetime:  registry.Lifetime{Introduced: "1.34"},
		Columns:   []registry.Column{registry.TextColumn("DriverName", "The driver of the volumes.", "driverName"), registry.AgeColumn()},
		Validate:  validateAttributesClass,
		Reference: &compat.Reference{AnyNamespace: true, NoGeneration: true},
	})
}

// validateAttributesClass checks the parameters and that nothing changes.
func validateAttributesClass(w *registry.Change[VolumeAttributesClass]) {
	checkParameters(&w.Violations, w.New.Parameters)
	if w.Old == nil {
		return
	}
	for _, c := range []struct {
		field    string
		new, old any
	}{
		{"driverName", w.New.DriverName, w.Old.DriverName},
		{"parameters", w.New.Parameters, w.Old.Parameters},
	} {
		if !check.SemanticEqual(c.new, c.old) {
			w.Forbidden(check.At(c.field), "updates to "+c.field+" are forbidden.")
		}
	}
}
