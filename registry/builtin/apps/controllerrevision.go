package apps

import (
	"bytes"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// ControllerRevision is a state that a controller may go back to. It belongs to the
// controller; nobody else should rely on what is in it.
type ControllerRevision struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Data is the state, an object that only its controller understands. It cannot
	// change.
	Data meta.RawExtension `json:"data" protobuf:"2"`

	// Revision is the place of the state among those of its controller.
	Revision int64 `json:"revision" protobuf:"3" schema:"min=0"`
}

func controllerRevisions() *registry.Kind {
	return registry.Of(registry.Definition[ControllerRevision]{
		Group: names.GroupApps, Version: "v1",
		Versions: []registry.VersionOf[ControllerRevision]{
			older.Same[ControllerRevision]("v1beta2", "1.8", "1.9", "1.16", names.GroupApps+"/v1"),
			older.Same[ControllerRevision]("v1beta1", "1.7", "1.8", "1.16", names.GroupApps+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Controller", Type: "string", Doc: "The object whose state it is.", Cell: controller},
			{Name: "Revision", Type: "string", Doc: "The place among the states.", Cell: func(o *meta.Object) any { return o.Int("revision") }},
			registry.Age(),
		},
		Validate: func(w *registry.Change[ControllerRevision]) {
			data := w.New.Data.Raw
			switch {
			case w.Old != nil:
				w.Unchanged(check.At("data"), data, w.Old.Data.Raw)
			case len(data) == 0:
				w.Required(check.At("data"), "")
			case !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")):
				w.Required(check.At("data"), "must be an object")
			}
		},
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true},
	})
}

// controller is the cell with the owner that manages an object.
func controller(o *meta.Object) any {
	for _, r := range o.OwnerReferences() {
		if r.Controller {
			owner := strings.ToLower(r.Kind)
			if group, _, ok := strings.Cut(r.APIVersion, "/"); ok {
				owner += "." + group
			}
			return owner + "/" + r.Name
		}
	}
	return "<none>"
}
