package resource

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// DeviceClass is a sort of devices that claims name. The administrator of a cluster
// says what belongs to it.
type DeviceClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what belongs to the class. Devices that are in use stay so when it changes.
	Spec DeviceClassSpec `json:"spec" protobuf:"2"`
}

// DeviceClassSpec is what belongs to a class of devices.
type DeviceClassSpec struct {
	// Selectors are conditions that all must hold of a device; at most 32.
	Selectors []DeviceSelector `json:"selectors,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=32"`
	// Config is for the drivers of the devices, at most 32 times.
	Config []DeviceClassConfiguration `json:"config,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=32"`
	// ExtendedResourceName is the resource that pods may ask for instead of naming a claim
	// of the class, such as example.com/gpu.
	ExtendedResourceName *string `json:"extendedResourceName,omitempty" protobuf:"4"`
}

// DeviceClassConfiguration is what drivers get to prepare devices of a class.
type DeviceClassConfiguration struct {
	DeviceConfiguration `json:",inline" protobuf:"1"`
}

func classes() *registry.Kind {
	return registry.Of(registry.Definition[DeviceClass]{
		Group: names.GroupDevices, Version: "v1", Scope: registry.Cluster, Plural: "deviceclasses",
		Lifetime: registry.Lifetime{Introduced: "1.34"},
		Columns:  []registry.Column{registry.Age()},
		Validate: func(w *registry.Change[DeviceClass]) {
			at := check.At("spec")
			for i := range w.New.Spec.Config {
				checkConfiguration(&w.Faults, at.Field("config").Index(i), &w.New.Spec.Config[i].DeviceConfiguration)
			}
			if name := w.New.Spec.ExtendedResourceName; name != nil && !core.ExtendedResource(w.Names, *name) {
				w.Invalid(at.Field("extendedResourceName"), *name, "must be a valid extended resource name")
			}
		},
		Reference: &compat.Reference{AnyNamespace: true},
	})
}

// ResourceClaimTemplate is a claim that is made for each pod that names the template.
type ResourceClaimTemplate struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the claim to be made. It cannot change.
	Spec ResourceClaimTemplateSpec `json:"spec" protobuf:"2"`
}

// ResourceClaimTemplateSpec is a claim to be made.
type ResourceClaimTemplateSpec struct {
	// Labels and annotations of the claim; nothing else is allowed.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec of the claim.
	Spec ResourceClaimSpec `json:"spec" protobuf:"2"`
}

func templates() *registry.Kind {
	return registry.Of(registry.Definition[ResourceClaimTemplate]{
		Group: names.GroupDevices, Version: "v1",
		Lifetime: registry.Lifetime{Introduced: "1.34"},
		Columns:  []registry.Column{registry.Age()},
		Validate: func(w *registry.Change[ResourceClaimTemplate]) {
			spec := &w.New.Spec
			if w.Old != nil {
				w.Unchanged(check.At("spec"), *spec, w.Old.Spec)
			}
			w.Faults = append(w.Faults, core.CheckClaimMetadata(check.At("spec", "metadata"), &spec.ObjectMeta)...)
			checkClaim(&w.Faults, check.At("spec", "spec", "devices"), &spec.Spec.Devices)
		},
		Behavior: registry.Behavior{
			Default: func(w *registry.Change[meta.Object]) { defaultRequests(w.New, "spec", "spec", "devices", "requests") },
		},
		Reference: &compat.Reference{NoGeneration: true},
	})
}
