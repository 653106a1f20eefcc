package core

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Phases of a namespace.
const (
	NamespaceActive      = "Active"
	NamespaceTerminating = "Terminating"
)

// Namespace is a scope for the names of other objects. Its deletion deletes all objects in it first.
type Namespace struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec NamespaceSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status NamespaceStatus `json:"status,omitempty" protobuf:"3"`
}

// NamespaceSpec is the desired state of a namespace.
type NamespaceSpec struct {
	// Finalizers keep a deleted namespace until its contents are deleted. The server sets them on
	// create; they are removed through the subresource finalize.
	Finalizers []string `json:"finalizers,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// NamespaceStatus is the observed state of a namespace.
type NamespaceStatus struct {
	// Phase is Active, or Terminating once the deletion began.
	Phase string `json:"phase,omitempty" protobuf:"1"`

	// Conditions describe why the deletion does not progress.
	Conditions []NamespaceCondition `json:"conditions,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// NamespaceCondition is an aspect of the deletion of a namespace.
type NamespaceCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"4"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"5"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"6"`
}

func namespaces() *registry.Kind {
	return registry.Of(registry.Definition[Namespace]{
		Version:    version,
		ShortNames: []string{"ns"},
		Scope:      registry.Cluster,
		Status:     true,
		Columns: []registry.Column{
			registry.TextColumn("Status", "Active or Terminating.", "status", "phase"),
			registry.AgeColumn(),
		},
		Default:      defaultNamespace,
		Validate:     validateNamespace,
		ValidateName: meta.NameChecker(meta.CheckDNSLabel),
		Fields:       []registry.SelectableField{{Name: "status.phase", Path: []string{"status", "phase"}}},
		Subresources: []registry.Subresource{{Name: "finalize", Merge: mergeFinalizers, Metadata: compat.CallersMetadata(), WriteOnly: true}},
		Behavior: registry.Behavior{
			Prepare: prepareNamespace,
			BeginDelete: func(w *registry.Change[meta.Object]) {
				w.New.Set(NamespaceTerminating, "status", "phase")
				w.New.Delete("metadata", "deletionGracePeriodSeconds")
			},
			RetainOnDelete: func(obj *meta.Object) bool { return len(obj.List("spec", "finalizers")) > 0 },
			Initial:        initialNamespaces,
		},
		Reference: &compat.Reference{
			NoGeneration:       true,
			StatusMetadata:     compat.CallersMetadata(),
			NoDeleteCollection: true,
		},
	})
}

// initialNamespaces returns the default namespace and the system namespaces, which the server creates
// at its start.
func initialNamespaces(p names.Profile) (list []*meta.Object) {
	for _, name := range []string{"default", p.SystemNamespace("system"), p.SystemNamespace("public"), p.SystemNamespace("node-lease")} {
		ns := meta.NewObject(nil)
		ns.SetName(name)
		list = append(list, ns)
	}
	return list
}

// defaultNamespace sets the phase, and the label with the name of the namespace.
func defaultNamespace(w *registry.Change[Namespace]) {
	n := w.New
	if n.Status.Phase == "" {
		n.Status.Phase = NamespaceActive
	}
	if n.Name == "" {
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[w.Names.Wire(wellknown.NamespaceNameLabel)] = n.Name
}

// prepareNamespace sets the phase and the finalizer of a new namespace. Updates keep the spec: only the
// subresource finalize changes it.
func prepareNamespace(w *registry.Change[meta.Object]) {
	obj := w.New
	if w.Old != nil {
		mergeFinalizers(obj, w.Old)
		return
	}
	obj.Set(map[string]any{"phase": NamespaceActive}, "status")
	finalizer := w.Names.Wire(wellknown.NamespaceFinalizer)
	if held := obj.List("spec", "finalizers"); !slices.Contains(held, any(finalizer)) {
		obj.Set(append(held, finalizer), "spec", "finalizers")
	}
}

// mergeFinalizers copies the finalizers of in to obj.
func mergeFinalizers(obj, in *meta.Object) {
	obj.Delete("spec", "finalizers")
	if list := in.List("spec", "finalizers"); len(list) > 0 {
		obj.Set(meta.Clone(list), "spec", "finalizers")
	}
}

func validateNamespace(w *registry.Change[Namespace]) {
	if w.Subresource == "status" {
		validatePhase(w)
		return
	}
	for i, name := range w.New.Spec.Finalizers {
		at := check.At("spec", "finalizers")
		if w.Old != nil {
			at = at.Index(i)
		}
		w.Format(at, name, meta.CheckQualifiedName(name))
		if name != w.Names.Wire(wellknown.NamespaceFinalizer) && !strings.Contains(name, "/") {
			w.Invalid(at, name, "name is neither a standard finalizer nor fully qualified")
		}
	}
}

// validatePhase checks that the phase agrees with the deletion timestamp.
func validatePhase(w *registry.Change[Namespace]) {
	want := NamespaceActive
	if w.New.DeletionTimestamp != nil {
		want = NamespaceTerminating
	}
	if got := w.New.Status.Phase; got != want {
		w.Invalid(check.At("status", "Phase"), got, "may only be "+want)
	}
}
