package apps

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/replicas"
)

// ReplicaSet runs a number of identical pods. A Deployment has a ReplicaSet for each of its templates.
type ReplicaSet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec ReplicaSetSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status ReplicaSetStatus `json:"status,omitempty" protobuf:"3"`
}

// ReplicaSetSpec is the desired state of a ReplicaSet.
type ReplicaSetSpec struct {
	// Replicas is the desired number of pods; default 1.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// MinReadySeconds is the number of seconds that a new pod must be ready before it counts as
	// available; default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"4" schema:"min=0"`

	// Selector of the pods. It must match the labels of the template. Immutable.
	Selector *meta.LabelSelector `json:"selector" protobuf:"2" schema:"required,unchecked"`

	// Template of the pods. A change affects new pods only.
	Template core.PodTemplateSpec `json:"template,omitempty" protobuf:"3" schema:"ratcheting"`
}

// ReplicaSetStatus is the observed state of a ReplicaSet.
type ReplicaSetStatus struct {
	// Replicas is the number of pods that are not being deleted.
	Replicas int32 `json:"replicas" protobuf:"1" schema:"min=0"`

	// FullyLabeledReplicas is the number of pods with all labels of the template.
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty" protobuf:"2" schema:"min=0"`

	// ReadyReplicas is the number of ready pods.
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"4" schema:"min=0"`

	// AvailableReplicas is the number of pods that have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas,omitempty" protobuf:"5" schema:"min=0"`

	// TerminatingReplicas is the number of pods that are being deleted. The other counters exclude
	// them.
	TerminatingReplicas *int32 `json:"terminatingReplicas,omitempty" protobuf:"7" schema:"min=0"`

	// ObservedGeneration is the latest generation that the controller has processed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"3" schema:"min=0"`

	// Conditions include ReplicaFailure.
	Conditions []core.PodSetCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

func replicaSets() *registry.Kind {
	return workload(registry.Definition[ReplicaSet]{
		ShortNames: []string{"rs"},
		Versions:   olderReplicaSets(),
		Scale:      replicas.Scale(),
		Columns: []registry.Column{
			replicas.Column("Desired", "The desired number of pods.", "spec", "replicas"),
			replicas.Column("Current", "The number of pods.", "status", "replicas"),
			replicas.Column("Ready", "The number of ready pods.", "status", "readyReplicas"),
		},
		Validate: validateReplicaSet,
		Behavior: registry.Behavior{Warn: core.WarnOfPodNames},
	}, selectorColumn())
}

// validateReplicaSet checks the spec, or for a write of the status only the status.
func validateReplicaSet(w *registry.Change[ReplicaSet]) {
	switch s := &w.New.Status; w.Subresource {
	case "":
		s := &w.New.Spec
		checkPods(w, s.Selector, &s.Template, w.Old != nil && check.SemanticEqual(s.Template, w.Old.Spec.Template))
		if w.Old != nil && !selectorMutable(w.Version) {
			w.Unchanged(check.At("spec", "selector"), s.Selector, w.Old.Spec.Selector)
		}
	case "status":
		all, ready := replicas.Part{Field: "replicas", Pods: s.Replicas}, replicas.Part{Field: "readyReplicas", Pods: s.ReadyReplicas}
		available := replicas.Part{Field: "availableReplicas", Pods: s.AvailableReplicas}
		replicas.Within(&w.Violations, all, replicas.Part{Field: "fullyLabeledReplicas", Pods: s.FullyLabeledReplicas}, ready, available)
		replicas.Within(&w.Violations, ready, available)
	}
}
