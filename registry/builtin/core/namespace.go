package core

import (
	"context"
	"slices"
	"strings"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// The phases of a namespace.
const (
	NamespaceActive      = "Active"
	NamespaceTerminating = "Terminating"
)

// Namespace is a scope for the names of other objects. Its deletion removes
// everything in it first.
type Namespace struct {
	meta.TypeMeta `json:",inline"`

	// Standard object metadata.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what the namespace is meant to be.
	Spec NamespaceSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the namespace is.
	Status NamespaceStatus `json:"status,omitempty" protobuf:"3"`
}

// NamespaceSpec says what must happen before a namespace goes.
type NamespaceSpec struct {
	// Finalizers keep a deleted namespace until its content is gone. They are
	// set on create and removed through the sub-resource finalize.
	Finalizers []string `json:"finalizers,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// NamespaceStatus is the state of a namespace.
type NamespaceStatus struct {
	// Phase is Active, or Terminating once deletion began.
	Phase string `json:"phase,omitempty" protobuf:"1"`

	// Conditions tell what holds up the deletion.
	Conditions []NamespaceCondition `json:"conditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// NamespaceCondition is one aspect of a namespace's deletion.
type NamespaceCondition struct {
	// Type names the aspect.
	Type string `json:"type" protobuf:"1" schema:"expected"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2" schema:"expected"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a word for programs.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

func namespaces(p names.Profile) *registry.Kind {
	return registry.Of(registry.Definition[Namespace]{
		Version:    version,
		Source:     source,
		Kind:       "Namespace",
		ShortNames: []string{"ns"},
		Scope:      registry.Cluster,
		Status:     true,
		Columns: []registry.Column{
			registry.Text("Status", "Active or Terminating.", "status", "phase"),
			registry.Age(),
		},
		Default:  func(n *Namespace) { settleNamespace(p, n) },
		Validate: validateNamespace(p),
		Behavior: registry.Behavior{
			NoGeneration: true,
			SelfChecked:  true,
			StatusTakes:  registry.CallersMetadata(),
			Passes:       []meta.MetadataPass{meta.PassKind, meta.PassUpdate},
			NoCollection: true,

			Name:   meta.NameChecker(meta.CheckDNSLabel),
			Fields: []registry.SelectableField{{Name: "status.phase", Path: []string{"status", "phase"}}},
			Prepare: func(_ context.Context, obj, old *meta.Object) {
				prepareNamespace(p, obj, old)
			},
			Terminate: func(obj *meta.Object) {
				obj.Set(NamespaceTerminating, "status", "phase")
				obj.Delete("metadata", "deletionGracePeriodSeconds")
			},
			Held:         func(obj *meta.Object) bool { return len(obj.List("spec", "finalizers")) > 0 },
			Subresources: []registry.Subresource{{Name: "finalize", Merge: mergeFinalize, WriteOnly: true}},
		},
	})
}

// settleNamespace gives a namespace its phase, and the label that selects it by
// name.
func settleNamespace(p names.Profile, n *Namespace) {
	if n.Status.Phase == "" {
		n.Status.Phase = NamespaceActive
	}
	if n.Name == "" {
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[p.Wire(names.NamespaceNameLabel)] = n.Name
}

// prepareNamespace makes a new namespace Active and held by the product's
// finalizer; afterwards only the sub-resource finalize changes the spec.
func prepareNamespace(p names.Profile, obj, old *meta.Object) {
	if old != nil {
		mergeFinalizers(obj, old)
		return
	}
	obj.Set(map[string]any{"phase": NamespaceActive}, "status")
	mine := p.Wire(names.NamespaceFinalizer)
	if held := obj.List("spec", "finalizers"); !slices.Contains(held, any(mine)) {
		obj.Set(append(held, mine), "spec", "finalizers")
	}
}

// mergeFinalize takes the metadata and the finalizers of in.
func mergeFinalize(obj, in *meta.Object) {
	obj.Set(meta.Clone(in.Metadata()), "metadata")
	mergeFinalizers(obj, in)
}

// mergeFinalizers takes the finalizers of in.
func mergeFinalizers(obj, in *meta.Object) {
	obj.Delete("spec", "finalizers")
	if list := in.List("spec", "finalizers"); len(list) > 0 {
		obj.Set(meta.Clone(list), "spec", "finalizers")
	}
}

func validateNamespace(p names.Profile) func(context.Context, *Namespace, *Namespace) []meta.Cause {
	return func(ctx context.Context, old, new *Namespace) []meta.Cause {
		if registry.Endpoint(ctx) == "status" {
			return phaseFaults(new)
		}
		var f check.Faults
		for i, name := range new.Spec.Finalizers {
			at := check.At("spec", "finalizers")
			if old != nil {
				at = at.Index(i)
			}
			f.Format(at, name, meta.CheckQualifiedName(name))
			if name != p.Wire(names.NamespaceFinalizer) && !strings.Contains(name, "/") {
				f.Invalid(at, name, "name is neither a standard finalizer nor fully qualified")
			}
		}
		return f
	}
}

// phaseFaults: the phase follows the deletion, not the caller.
func phaseFaults(n *Namespace) []meta.Cause {
	want := NamespaceActive
	if n.DeletionTimestamp != nil {
		want = NamespaceTerminating
	}
	if n.Status.Phase == want {
		return nil
	}
	var f check.Faults
	f.Invalid(check.At("status", "Phase"), n.Status.Phase, "may only be "+want)
	return f
}
