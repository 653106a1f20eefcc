package core

import (
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/cells"
	"orch.io/controlplane/registry/builtin/internal/older"
	"orch.io/controlplane/registry/builtin/internal/replicas"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

// ReplicationController keeps a number of equal pods running. ReplicaSet, and
// Deployment above it, came after it and do more.
type ReplicationController struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods, and how many.
	Spec ReplicationControllerSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the controller last saw.
	Status ReplicationControllerStatus `json:"status,omitempty" protobuf:"3"`
}

// ReplicationControllerSpec says which pods shall run.
type ReplicationControllerSpec struct {
	// Replicas is how many pods there shall be; 1 by default.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// MinReadySeconds is how long a new pod must be ready to count as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"4" schema:"min=0"`

	// Selector is what labels a pod must have to be one of these; by default those of
	// the template, which it must match.
	Selector map[string]string `json:"selector,omitempty" protobuf:"2" schema:"required,optional,mapType=atomic"`

	// Template of the pods.
	Template *PodTemplateSpec `json:"template,omitempty" protobuf:"3" schema:"required,optional,ratcheting"`
}

// ReplicationControllerStatus is the state of the pods.
type ReplicationControllerStatus struct {
	// Replicas is how many pods there are.
	Replicas int32 `json:"replicas" protobuf:"1" schema:"min=0"`

	// FullyLabeledReplicas is how many have all labels of the template.
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty" protobuf:"2" schema:"min=0"`

	// ReadyReplicas is how many are ready.
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"4" schema:"min=0"`

	// AvailableReplicas is how many have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas,omitempty" protobuf:"5" schema:"min=0"`

	// ObservedGeneration is the generation that the controller has seen.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"3" schema:"min=0"`

	// Conditions are aspects of the state: ReplicaFailure.
	Conditions []PodSetCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

func replicationControllers() *registry.Kind {
	former := older.Same[ReplicationController]("v1beta1", "1.1", "1.2", "1.16", version)
	former.Group, former.Lacks = names.GroupFormer, []string{"status"}
	return registry.Of(registry.Definition[ReplicationController]{
		Version:    version,
		Versions:   []registry.VersionOf[ReplicationController]{former},
		ShortNames: []string{"rc"},
		Categories: []string{"all"},
		Status:     true,
		Scale:      replicas.Scale(),
		Columns: slices.Concat([]registry.Column{
			replicas.Column("Desired", "How many pods there shall be.", "spec", "replicas"),
			replicas.Column("Current", "How many pods there are.", "status", "replicas"),
			replicas.Column("Ready", "How many pods are ready.", "status", "readyReplicas"),
			registry.Age(),
		}, TemplateColumns(1, "spec", "template", "spec"), []registry.Column{
			{Name: "Selector", Type: "string", Doc: "The labels of the pods.", Priority: 1, Cell: func(o *meta.Object) any { return cells.Labels(o.Map("spec", "selector")) }},
		}),
		Fields:   []registry.SelectableField{{Name: "status.replicas", Absent: "0"}},
		Validate: validateReplicationController,
		Behavior: registry.Behavior{
			Default: defaultReplicationController,
			Warn: func(w *registry.Change[meta.Object]) []string {
				return append(WarnOfPodNames(w), WarnOfPod(w, "spec", "template", "spec")...)
			},
		},
		Reference: &compat.Reference{
			ScaleIsObject:       true,
			StatusMetadata:      compat.CallersMetadata(),
			DeleteAnswersStatus: true,
			OrphansDependents:   true,
			OnlySubresources:    map[string]string{former.Group + "/" + former.Version: "ReplicationControllerDummy"},
		},
	})
}

// defaultReplicationController fills in what the schema's defaults cannot say: who
// names no labels means those of the template.
func defaultReplicationController(w *registry.Change[meta.Object]) {
	obj := w.New
	DefaultPodSpec(obj.Map("spec", "template", "spec"))
	labels := obj.Map("spec", "template", "metadata", "labels")
	if len(labels) == 0 {
		return
	}
	for _, path := range [][]string{{"spec", "selector"}, {"metadata", "labels"}} {
		if len(obj.Map(path...)) == 0 {
			obj.Set(meta.Clone(labels), path...)
		}
	}
}

func validateReplicationController(w *registry.Change[ReplicationController]) {
	spec, status := &w.New.Spec, &w.New.Status
	switch {
	case w.Subresource == "status":
		all, ready := replicas.Part{Field: "replicas", Pods: status.Replicas}, replicas.Part{Field: "readyReplicas", Pods: status.ReadyReplicas}
		available := replicas.Part{Field: "availableReplicas", Pods: status.AvailableReplicas}
		replicas.Within(&w.Faults, all, replicas.Part{Field: "fullyLabeledReplicas", Pods: status.FullyLabeledReplicas}, ready, available)
		replicas.Within(&w.Faults, ready, available)
	case w.Subresource == "" && spec.Template != nil:
		selected := len(spec.Selector) == 0 || selector.Matches(&meta.Selector{MatchLabels: spec.Selector}, spec.Template.Labels)
		kept := w.Old != nil && check.Same(spec.Template, w.Old.Spec.Template)
		w.Faults = CheckLastingTemplate(w.Names, w.Found, check.At("spec", "template"), selected, spec.Template, kept)
	}
}
