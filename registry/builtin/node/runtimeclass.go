// Package node holds the kinds of the node group: RuntimeClass.
package node

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// RuntimeClass is a way to run containers, which pods choose by its name.
type RuntimeClass struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Handler is the configuration of the container runtime that nodes use for the class, a DNS
	// label.
	Handler string `json:"handler" protobuf:"2" schema:"required,format=dns-label"`
	// Overhead is what running a pod of the class costs beside its containers.
	Overhead *Overhead `json:"overhead,omitempty" protobuf:"3"`
	// Scheduling says which nodes can run the class; unset: all.
	Scheduling *Scheduling `json:"scheduling,omitempty" protobuf:"4"`
}

// Overhead is what running a pod costs beside its containers.
type Overhead struct {
	// PodFixed is what each pod costs, however many containers it has.
	PodFixed map[string]meta.Quantity `json:"podFixed,omitempty" protobuf:"1"`
}

// Scheduling says which nodes can run a class.
type Scheduling struct {
	// NodeSelector is labels that the nodes have. Pods of the class get it, too.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" protobuf:"1" schema:"mapType=atomic,format=labels"`
	// Tolerations are of the taints that the nodes have. Pods of the class get them, too.
	Tolerations []core.Toleration `json:"tolerations,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// Kinds returns the kinds of the node group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{registry.Of(registry.Definition[RuntimeClass]{
		Group: names.GroupNode, Version: "v1", Scope: registry.Cluster, Plural: "runtimeclasses",
		Lifetime: registry.Lifetime{Introduced: "1.20"},
		Versions: []registry.VersionOf[RuntimeClass]{
			older.Same[RuntimeClass]("v1beta1", "1.14", "1.22", "1.25", ""),
		},
		Columns: []registry.Column{
			registry.Text("Handler", "", "handler"),
			registry.Age(),
		},
		Validate:  validate,
		Reference: &compat.Reference{NoGeneration: true, DeleteAnswersStatus: true, CreateOnPut: true, PutWithVersion: true, AnyNamespace: true, FreeFinalizers: true},
	})}
}

func validate(w *registry.Change[RuntimeClass]) {
	if w.New.Overhead != nil {
		w.Faults = append(w.Faults, core.CheckOverhead(w.Names, check.At("overhead"), w.New.Overhead.PodFixed)...)
	}
	if s := w.New.Scheduling; s != nil {
		at := check.At("scheduling", "tolerations")
		w.Faults = append(w.Faults, core.CheckTolerations(at, s.Tolerations)...)
		type once struct {
			core.Toleration
			bounded bool
			seconds int64
		}
		seen := map[once]bool{}
		for i, t := range s.Tolerations {
			key := once{Toleration: t}
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
