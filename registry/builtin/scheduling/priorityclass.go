// Package scheduling holds the kinds of the scheduling group: PriorityClass.
package scheduling

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// PriorityClass gives a name to a priority of pods.
type PriorityClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Value is the priority of pods of the class, the higher the more important. It cannot change.
	Value int32 `json:"value" protobuf:"2" schema:"optional"`
	// GlobalDefault gives the class to pods that name none. At most one class should have it.
	GlobalDefault bool `json:"globalDefault,omitempty" protobuf:"3"`
	// Description says when the class is to be used.
	Description string `json:"description,omitempty" protobuf:"4"`
	// PreemptionPolicy says whether pods of the class may take the place of less important ones. It
	// cannot change.
	PreemptionPolicy *string `json:"preemptionPolicy,omitempty" protobuf:"5" schema:"default=PreemptLowerPriority,enum=PreemptLowerPriority|Never,immutable"`
}

// Kinds returns the kinds of the scheduling group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[PriorityClass]{
		Group: names.GroupScheduling, Version: "v1", Scope: registry.Cluster, Plural: "priorityclasses", ShortNames: []string{"pc"},
		Versions: []registry.VersionOf[PriorityClass]{
			older.Same[PriorityClass]("v1beta1", "1.11", "1.14", "1.22", names.GroupScheduling+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Value", Type: "integer", Doc: "The priority of pods of the class.", JSONPath: ".value"},
			{Name: "Global-Default", Type: "boolean", Doc: "Whether pods that name no class get it.", Cell: func(o *meta.Object) any { return o.Bool("globalDefault") }},
			registry.Age(),
			{Name: "PreemptionPolicy", Type: "string", Doc: "Whether less important pods make way.", JSONPath: ".preemptionPolicy"},
		},
		Validate:  validate,
		Behavior:  registry.Behavior{Initial: initial},
		Reference: &compat.Reference{AnyNamespace: true, FirstGeneration: true, DeleteAnswersStatus: true},
	})}
}

// highest is the highest value that a class may have that is not the system's.
const highest = 1_000_000_000

const (
	clusterCritical = "system-cluster-critical"
	nodeCritical    = "system-node-critical"
)

// systemValue returns the value of a class of the system.
func systemValue(name string) (value int32, ok bool) {
	switch name {
	case clusterCritical:
		return 2 * highest, true
	case nodeCritical:
		return 2*highest + 1000, true
	}
	return 0, false
}

// initial are the two classes of the system.
func initial(names.Profile) (list []*meta.Object) {
	for _, c := range [][2]string{
		{clusterCritical, "For pods that the cluster cannot do without, on whichever node."},
		{nodeCritical, "For pods that their node cannot do without."},
	} {
		value, _ := systemValue(c[0])
		list = append(list, meta.NewObject(map[string]any{
			"metadata": map[string]any{"name": c[0]}, "value": int64(value), "description": c[1],
		}))
	}
	return list
}

// validate keeps the highest values, and names like theirs, for the two classes of the system.
func validate(w *registry.Change[PriorityClass]) {
	const why = "priority class names with 'system-' prefix are reserved for system use only. error: "
	c, name, at := w.New, check.At("metadata", "name"), check.At("value")
	value, reserved := systemValue(c.Name)
	switch {
	case w.Old != nil && c.Value != w.Old.Value:
		w.Forbidden(at, "may not be changed in an update.")
	case w.Old != nil:
	case reserved && c.Value != value:
		w.Forbidden(name, fmt.Sprintf(why+"value of %s PriorityClass must be %d", c.Name, value))
	case reserved && c.GlobalDefault:
		w.Forbidden(name, fmt.Sprintf(why+"globalDefault of %s PriorityClass must be false", c.Name))
	case !reserved && strings.HasPrefix(c.Name, "system-"):
		w.Forbidden(name, why+c.Name+" is not a known system priority class")
	case !reserved && c.Value > highest:
		w.Forbidden(at, fmt.Sprintf("maximum allowed value of a user defined priority is %d", highest))
	}
}
