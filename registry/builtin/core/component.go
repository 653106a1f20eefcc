package core

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// ComponentStatus reports the health of a component of the control plane. The server checks the
// component for each request. Deprecated: use the health endpoints of the components.
type ComponentStatus struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Conditions of the component, by type.
	Conditions []ComponentCondition `json:"conditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type"`
}

// ComponentCondition is an aspect of the health of a component.
type ComponentCondition struct {
	// Type is Healthy.
	Type string `json:"type" protobuf:"1"`
	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`
	// Message explains the status to people, such as ok.
	Message string `json:"message,omitempty" protobuf:"3"`
	// Error describes why the status is unknown.
	Error string `json:"error,omitempty" protobuf:"4"`
}

// componentStatuses returns the kind without its function Read; the server sets it.
func componentStatuses() *registry.Kind {
	healthy := func(field string) func(*meta.Object) any {
		return func(o *meta.Object) any {
			for _, c := range o.Objects("conditions") {
				if c.String("type") == "Healthy" {
					return c.String(field)
				}
			}
			return ""
		}
	}
	return registry.Of(registry.Definition[ComponentStatus]{
		Version: version, Scope: registry.Cluster, Plural: "componentstatuses", ShortNames: []string{"cs"},
		Deprecated: "v1 ComponentStatus is deprecated in v1.19+",
		Columns: []registry.Column{
			{Name: "Status", Type: "string", Doc: "Healthy, Unhealthy or Unknown.", Cell: func(o *meta.Object) any {
				switch healthy("status")(o) {
				case "True":
					return "Healthy"
				case "False":
					return "Unhealthy"
				}
				return "Unknown"
			}},
			{Name: "Message", Type: "string", Doc: "The message of the component.", Cell: healthy("message")},
			{Name: "Error", Type: "string", Doc: "The error if the status is unknown.", Cell: healthy("error")},
		},
		Reference: &compat.Reference{AnyNamespace: true},
	})
}
