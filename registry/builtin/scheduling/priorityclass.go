// Package scheduling defines the kind PriorityClass.
package scheduling

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// PriorityClass names a priority for pods.
type PriorityClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Value is the priority of the pods: higher is more important. At most 1,000,000,000 except for the
	// system classes. Immutable.
	Value int32 `json:"value" protobuf:"2" schema:"optional"`
	// GlobalDefault makes the class the default of pods without a class. At most a single class should
	// have it.
	GlobalDefault bool `json:"globalDefault,omitempty" protobuf:"3"`
	// Description explains the use of the class to people.
	Description string `json:"description,omitempty" protobuf:"4"`
	// PreemptionPolicy is PreemptLowerPriority (default), which allows the pods to evict pods of lower
	// priority, or Never. Immutable.
	PreemptionPolicy *string `json:"preemptionPolicy,omitempty" protobuf:"5" schema:"default=PreemptLowerPriority,enum=PreemptLowerPriority|Never,immutable"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[PriorityClass]{
		Group: wellknown.GroupScheduling, Version: "v1", Scope: registry.Cluster, Plural: "priorityclasses", ShortNames: []string{"pc"},
		Versions: []registry.VersionOf[PriorityClass]{
			older.Same[PriorityClass]("v1beta1", "1.11", "1.14", "1.22", wellknown.GroupScheduling+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Value", Type: "integer", Doc: "The priority of pods of the class.", JSONPath: ".value"},
			{Name: "Global-Default", Type: "boolean", Doc: "True if the class is the default.", Cell: func(o *meta.Object) any { return o.Bool("globalDefault") }},
			registry.AgeColumn(),
			{Name: "PreemptionPolicy", Type: "string", Doc: "PreemptLowerPriority or Never.", JSONPath: ".preemptionPolicy"},
		},
		Validate:  validate,
		Behavior:  registry.Behavior{Initial: initial},
		Reference: &compat.Reference{AnyNamespace: true, FirstGeneration: true, DeleteAnswersStatus: true},
	})}
}

// highest is the highest value of a class that is not a system class.
const highest = 1_000_000_000

const (
	clusterCritical = "system-cluster-critical"
	nodeCritical    = "system-node-critical"
)

// systemValue returns the value of a system class, and whether name is a system class.
func systemValue(name string) (value int32, ok bool) {
	switch name {
	case clusterCritical:
		return 2 * highest, true
	case nodeCritical:
		return 2*highest + 1000, true
	}
	return 0, false
}

// initial returns the system classes, which the server creates at its start.
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

// validate reserves the prefix system- and values above highest for the system classes, and makes the
// value immutable.
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
