// Package node defines the kind RuntimeClass.
package node

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// RuntimeClass names a configuration of the container runtime, which pods select by name.
type RuntimeClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Handler is the name of the configuration at the container runtime of the nodes, a DNS label.
	// Immutable.
	Handler string `json:"handler" protobuf:"2" schema:"required,format=dns-label"`
	// Overhead is the amount of resources that a pod needs in addition to its containers.
	Overhead *Overhead `json:"overhead,omitempty" protobuf:"3"`
	// Scheduling selects the nodes that support the class. Unset means all nodes.
	Scheduling *Scheduling `json:"scheduling,omitempty" protobuf:"4"`
}

// Overhead is the amount of resources that a pod needs in addition to its containers.
type Overhead struct {
	// PodFixed is the amount for each pod, independent of its containers.
	PodFixed map[string]meta.Quantity `json:"podFixed,omitempty" protobuf:"1"`
}

// Scheduling selects the nodes that support a class.
type Scheduling struct {
	// NodeSelector lists labels that the nodes must have. It is added to the pods of the class.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" protobuf:"1" schema:"mapType=atomic,format=labels"`
	// Tolerations are added to the pods of the class.
	Tolerations []core.Toleration `json:"tolerations,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[RuntimeClass]{
		Group: wellknown.GroupNode, Version: "v1", Scope: registry.Cluster, Plural: "runtimeclasses",
		Lifetime: registry.Lifetime{Introduced: "1.20"},
		Versions: []registry.VersionOf[RuntimeClass]{
			older.Same[RuntimeClass]("v1beta1", "1.14", "1.22", "1.25", ""),
		},
		Columns: []registry.Column{
			registry.TextColumn("Handler", "", "handler"),
			registry.AgeColumn(),
		},
		Validate:  validate,
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true, CreateOnPut: true, PutWithVersion: true, AnyNamespace: true, FreeFinalizers: true},
	})}
}

// validate checks overhead and tolerations, reports duplicate tolerations, and makes the handler
// immutable.
func validate(w *registry.Change[RuntimeClass]) {
	if w.New.Overhead != nil {
		w.Violations = append(w.Violations, core.CheckOverhead(w.Names, check.At("overhead"), w.New.Overhead.PodFixed)...)
	}
	if s := w.New.Scheduling; s != nil {
		at := check.At("scheduling", "tolerations")
		w.Violations = append(w.Violations, core.CheckTolerations(at, s.Tolerations)...)
		type tolerationKey struct {
			core.Toleration
			bounded bool
			seconds int64
		}
		seen := map[tolerationKey]bool{}
		for i, t := range s.Tolerations {
			key := tolerationKey{Toleration: t}
			if n := t.TolerationSeconds; n != nil {
				key.TolerationSeconds, key.bounded, key.seconds = nil, true, *n
			}
			if seen[key] {
				w.Duplicate(at.Index(i), t)
			}
			seen[key] = true
		}
	}
	if w.Old != nil {
		w.Unchanged(check.At("handler"), w.New.Handler, w.Old.Handler)
	}
}
