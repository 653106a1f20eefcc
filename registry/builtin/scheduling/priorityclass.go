// Package scheduling holds the kinds of the scheduling group: PriorityClass.
package scheduling

import (
	"fmt"
	"strings"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/internal/quirks"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// Kinds returns the kinds of the scheduling group.
func Kinds() []*registry.Kind { return []*registry.Kind{priorityClasses()} }

// PriorityClass gives a name to a priority of pods.
type PriorityClass struct {
	meta.TypeMeta `json:",inline"`

	// Standard object metadata.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Value is the priority of pods of the class, the higher the more important.
	// It cannot change.
	Value int32 `json:"value" protobuf:"2" schema:"expected"`

	// GlobalDefault gives the class to pods that name none. At most one class
	// should have it.
	GlobalDefault bool `json:"globalDefault,omitempty" protobuf:"3"`

	// Description says when the class is to be used.
	Description string `json:"description,omitempty" protobuf:"4"`

	// PreemptionPolicy is PreemptLowerPriority (the default) or Never: whether
	// pods of the class may take the place of less important ones. It cannot
	// change.
	PreemptionPolicy *string `json:"preemptionPolicy,omitempty" protobuf:"5" schema:"default=PreemptLowerPriority,enum=PreemptLowerPriority|Never,immutable"`
}

func priorityClasses() *registry.Kind {
	return registry.Of(registry.Definition[PriorityClass]{
		Group: names.GroupScheduling, Version: "v1", Scope: registry.Cluster,
		Kind: "PriorityClass", Plural: "priorityclasses", ShortNames: []string{"pc"},
		Columns: []registry.Column{
			{Name: "Value", Type: "integer", Doc: "The priority of pods of the class.", JSONPath: ".value"},
			{Name: "Global-Default", Type: "boolean", Doc: "Whether pods that name no class get it.", Cell: func(o *meta.Object) any { return o.Bool("globalDefault") }},
			registry.Age(),
			{Name: "PreemptionPolicy", Type: "string", Doc: "Whether less important pods make way.", JSONPath: ".preemptionPolicy"},
		},
		Validate:  validatePriorityClass,
		Behavior:  registry.Behavior{Changed: func(*registry.Change[meta.Object]) bool { return false }},
		Reference: &quirks.Reference{DeleteAnswersStatus: true, MetadataPasses: []meta.MetadataPass{meta.PassUpdate}},
	})
}

// validatePriorityClass checks what the schema does not know: the highest values
// belong to the two classes of the system, and so do names like theirs.
func validatePriorityClass(w *registry.Change[PriorityClass]) {
	const highest = 1_000_000_000
	system := map[string]int32{"system-cluster-critical": 2 * highest, "system-node-critical": 2*highest + 1000}
	value, reserved := system[w.New.Name]
	name, at := check.At("metadata", "name"), check.At("value")
	const why = "priority class names with 'system-' prefix are reserved for system use only. error: "
	switch {
	case w.Old != nil && w.New.Value != w.Old.Value:
		w.Forbidden(at, "may not be changed in an update.")
	case w.Old != nil:
	case reserved && w.New.Value != value:
		w.Forbidden(name, fmt.Sprintf(why+"value of %s PriorityClass must be %d", w.New.Name, value))
	case reserved && w.New.GlobalDefault:
		w.Forbidden(name, fmt.Sprintf(why+"globalDefault of %s PriorityClass must be false", w.New.Name))
	case !reserved && strings.HasPrefix(w.New.Name, "system-"):
		w.Forbidden(name, why+w.New.Name+" is not a known system priority class")
	case !reserved && w.New.Value > highest:
		w.Forbidden(at, fmt.Sprintf("maximum allowed value of a user defined priority is %d", highest))
	}
}
