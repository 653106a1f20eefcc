package apps

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/replicas"
)

// ReplicaSet keeps a number of equal pods running. A Deployment has one for each
// of its templates.
type ReplicaSet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods, and how many.
	Spec ReplicaSetSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the controller last saw.
	Status ReplicaSetStatus `json:"status,omitempty" protobuf:"3"`
}

// ReplicaSetSpec says which pods shall run.
type ReplicaSetSpec struct {
	// Replicas is how many pods there shall be; 1 by default.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// MinReadySeconds is how long a new pod must be ready to count as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"4" schema:"min=0"`

	// Selector of the pods; it must match the template's labels and cannot change.
	Selector *meta.Selector `json:"selector" protobuf:"2" schema:"required,unchecked"`

	// Template of the pods. A change is for pods that are made from then on.
	Template core.PodTemplateSpec `json:"template,omitempty" protobuf:"3" schema:"ratcheting"`
}

// ReplicaSetStatus is the state of the pods.
type ReplicaSetStatus struct {
	// Replicas is how many pods there are.
	Replicas int32 `json:"replicas" protobuf:"1" schema:"min=0"`

	// FullyLabeledReplicas is how many have all labels of the template.
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty" protobuf:"2" schema:"min=0"`

	// ReadyReplicas is how many are ready.
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"4" schema:"min=0"`

	// AvailableReplicas is how many have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas,omitempty" protobuf:"5" schema:"min=0"`

	// TerminatingReplicas is how many are being deleted; the others count without
	// them.
	TerminatingReplicas *int32 `json:"terminatingReplicas,omitempty" protobuf:"7" schema:"min=0"`

	// ObservedGeneration is the generation that the controller has seen.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"3" schema:"min=0"`

	// Conditions are aspects of the state: ReplicaFailure.
	Conditions []core.PodSetCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

func replicaSets() *registry.Kind {
	return podsOf(registry.Definition[ReplicaSet]{
		ShortNames: []string{"rs"},
		Versions:   formerReplicaSets(),
		Scale:      replicas.Scale(),
		Columns: []registry.Column{
			replicas.Column("Desired", "How many pods there shall be.", "spec", "replicas"),
			replicas.Column("Current", "How many pods there are.", "status", "replicas"),
			replicas.Column("Ready", "How many pods are ready.", "status", "readyReplicas"),
		},
		Validate: validateReplicaSet,
		Behavior: registry.Behavior{Warn: core.WarnOfPodNames},
	}, selectorColumn())
}

func validateReplicaSet(w *registry.Change[ReplicaSet]) {
	switch s := &w.New.Status; w.Subresource {
	case "":
		s := &w.New.Spec
		checkPods(w, s.Selector, &s.Template, w.Old != nil && check.Same(s.Template, w.Old.Spec.Template))
		if w.Old != nil && !movableSelector(w.Version) {
			w.Unchanged(check.At("spec", "selector"), s.Selector, w.Old.Spec.Selector)
		}
	case "status":
		all, ready := replicas.Part{Field: "replicas", Pods: s.Replicas}, replicas.Part{Field: "readyReplicas", Pods: s.ReadyReplicas}
		available := replicas.Part{Field: "availableReplicas", Pods: s.AvailableReplicas}
		replicas.Within(&w.Faults, all, replicas.Part{Field: "fullyLabeledReplicas", Pods: s.FullyLabeledReplicas}, ready, available)
		replicas.Within(&w.Faults, ready, available)
	}
}
