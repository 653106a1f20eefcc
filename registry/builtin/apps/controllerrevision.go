package apps

import (
	"bytes"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// ControllerRevision is an immutable snapshot of the state of a workload, to which its controller can
// return. Only that controller interprets it.
type ControllerRevision struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Data is the snapshot, a JSON object. Immutable.
	Data meta.RawExtension `json:"data" protobuf:"2"`

	// Revision numbers the snapshots of a workload in the order of their creation; not negative.
	Revision int64 `json:"revision" protobuf:"3" schema:"min=0"`
}

func controllerRevisions() *registry.Kind {
	return registry.Of(registry.Definition[ControllerRevision]{
		Group: wellknown.GroupApps, Version: "v1",
		Versions: []registry.VersionOf[ControllerRevision]{
			older.Same[ControllerRevision]("v1beta2", "1.8", "1.9", "1.16", wellknown.GroupApps+"/v1"),
			older.Same[ControllerRevision]("v1beta1", "1.7", "1.8", "1.16", wellknown.GroupApps+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Controller", Type: "string", Doc: "The workload of the snapshot.", Cell: controllerCell},
			{Name: "Revision", Type: "string", Doc: "The number of the snapshot.", Cell: func(o *meta.Object) any { return o.Int("revision") }},
			registry.AgeColumn(),
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

// controllerCell shows the owner that is marked as controller, as kind.group/name.
func controllerCell(o *meta.Object) any {
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
