package resource

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

// DeviceClass names a set of devices and their configuration, for use in claims. Administrators create
// it.
type DeviceClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the definition of the class. A change does not affect devices that are already allocated.
	Spec DeviceClassSpec `json:"spec" protobuf:"2"`
}

// DeviceClassSpec is the definition of a class of devices.
type DeviceClassSpec struct {
	// Selectors must all match a device; at most 32.
	Selectors []DeviceSelector `json:"selectors,omitempty" protobuf:"1" schema:"listType=atomic,maxItems=32"`
	// Config is passed to the drivers of the devices; at most 32 entries.
	Config []DeviceClassConfiguration `json:"config,omitempty" protobuf:"2" schema:"listType=atomic,maxItems=32"`
	// ExtendedResourceName is the extended resource, such as example.com/gpu, through which pods can
	// request devices of the class without a claim.
	ExtendedResourceName *string `json:"extendedResourceName,omitempty" protobuf:"4"`
}

// DeviceClassConfiguration is a driver configuration for devices of a class.
type DeviceClassConfiguration struct {
	DeviceConfiguration `json:",inline" protobuf:"1"`
}

func classes() *registry.Kind {
	return registry.Of(registry.Definition[DeviceClass]{
		Group: wellknown.GroupDevices, Version: "v1", Scope: registry.Cluster, Plural: "deviceclasses",
		Lifetime: registry.Lifetime{Introduced: "1.34"},
		Columns:  []registry.Column{registry.AgeColumn()},
		Validate: func(w *registry.Change[DeviceClass]) {
			at := check.At("spec")
			for i := range w.New.Spec.Config {
				checkConfiguration(&w.Violations, at.Field("config").Index(i), &w.New.Spec.Config[i].DeviceConfiguration)
			}
			if name := w.New.Spec.ExtendedResourceName; name != nil && !core.ExtendedResource(w.Names, *name) {
				w.Invalid(at.Field("extendedResourceName"), *name, "must be a valid extended resource name")
			}
		},
		Reference: &compat.Reference{AnyNamespace: true},
	})
}

// ResourceClaimTemplate describes the claims that the control plane creates for the pods that refer to
// it, a claim for each pod.
type ResourceClaimTemplate struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec describes the claims. It is immutable.
	Spec ResourceClaimTemplateSpec `json:"spec" protobuf:"2"`
}

// ResourceClaimTemplateSpec describes a claim.
type ResourceClaimTemplateSpec struct {
	// Labels and annotations of the claim. Other metadata is rejected.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec of the claim.
	Spec ResourceClaimSpec `json:"spec" protobuf:"2"`
}

func templates() *registry.Kind {
	return registry.Of(registry.Definition[ResourceClaimTemplate]{
		Group: wellknown.GroupDevices, Version: "v1",
		Lifetime: registry.Lifetime{Introduced: "1.34"},
		Columns:  []registry.Column{registry.AgeColumn()},
		Validate: func(w *registry.Change[ResourceClaimTemplate]) {
			spec := &w.New.Spec
			if w.Old != nil {
				w.Unchanged(check.At("spec"), *spec, w.Old.Spec)
			}
			w.Violations = append(w.Violations, core.CheckClaimMetadata(check.At("spec", "metadata"), &spec.ObjectMeta)...)
			checkClaim(&w.Violations, check.At("spec", "spec", "devices"), &spec.Spec.Devices)
		},
		Behavior: registry.Behavior{
			Default: func(w *registry.Change[meta.Object]) { defaultRequests(w.New, "spec", "spec", "devices", "requests") },
		},
		Reference: &compat.Reference{NoGeneration: true},
	})
}
