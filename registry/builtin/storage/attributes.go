package storage

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// VolumeAttributesClass is what volumes shall be like that can change while they are used,
// such as how fast they are. Claims name it, and may name another one later.
type VolumeAttributesClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// DriverName is the driver of the volumes. It cannot change.
	DriverName string `json:"driverName" protobuf:"2" schema:"required,format=qualified-name"`
	// Parameters are for the driver: 1 to 512 of them, of at most 256 KiB. They cannot change.
	Parameters map[string]string `json:"parameters,omitempty" protobuf:"3" schema:"required,optional,reason.required=must contain at least one key/value pair"`
}

func attributesClasses() *registry.Kind {
	return registry.Of(registry.Definition[VolumeAttributesClass]{
		Group: names.GroupStorage, Version: "v1", Scope: registry.Cluster, Plural: "volumeattributesclasses", ShortNames: []string{"vac"},
		Lifetime:  registry.Lifetime{Introduced: "1.34"},
		Columns:   []registry.Column{registry.Text("DriverName", "The driver of the volumes.", "driverName"), registry.Age()},
		Validate:  validateAttributesClass,
		Reference: &compat.Reference{AnyNamespace: true, NoGeneration: true},
	})
}

func validateAttributesClass(w *registry.Change[VolumeAttributesClass]) {
	checkParameters(&w.Faults, w.New.Parameters)
	if w.Old == nil {
		return
	}
	for _, c := range []struct {
		field       string
		now, before any
	}{
		{"driverName", w.New.DriverName, w.Old.DriverName},
		{"parameters", w.New.Parameters, w.Old.Parameters},
	} {
		if !check.Same(c.now, c.before) {
			w.Forbidden(check.At(c.field), "updates to "+c.field+" are forbidden.")
		}
	}
}
