package core

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// ComponentStatus is whether a part of the control plane works, as the server finds it
// when it is asked. Deprecated: the health endpoints of the server and of the other
// programs say more.
type ComponentStatus struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Conditions are what was found, by their types.
	Conditions []ComponentCondition `json:"conditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type"`
}

// ComponentCondition is an aspect of the state of a part of the control plane.
type ComponentCondition struct {
	// Type of the condition: Healthy.
	Type string `json:"type" protobuf:"1"`
	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`
	// Message is a text for people, such as ok.
	Message string `json:"message,omitempty" protobuf:"3"`
	// Error is why the state is not known.
	Error string `json:"error,omitempty" protobuf:"4"`
}

// componentStatuses is the kind without its Read, which the server has.
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
			{Name: "Status", Type: "string", Doc: "Whether the part works.", Cell: func(o *meta.Object) any {
				switch healthy("status")(o) {
				case "True":
					return "Healthy"
				case "False":
					return "Unhealthy"
				}
				return "Unknown"
			}},
			{Name: "Message", Type: "string", Doc: "What the part said.", Cell: healthy("message")},
			{Name: "Error", Type: "string", Doc: "Why the state is not known.", Cell: healthy("error")},
		},
		Reference: &compat.Reference{AnyNamespace: true},
	})
}
