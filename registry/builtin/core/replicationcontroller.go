package core

import (
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/cells"
	"orch.io/controlplane/registry/builtin/internal/older"
	"orch.io/controlplane/registry/builtin/internal/replicas"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

// ReplicationController runs a number of identical pods. Superseded by ReplicaSet and Deployment.
type ReplicationController struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec ReplicationControllerSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status ReplicationControllerStatus `json:"status,omitempty" protobuf:"3"`
}

// ReplicationControllerSpec is the desired state of a ReplicationController.
type ReplicationControllerSpec struct {
	// Replicas is the desired number of pods; default 1.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// MinReadySeconds is the number of seconds that a new pod must be ready before it counts as
	// available; default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"4" schema:"min=0"`

	// Selector lists labels that the pods must have; default the labels of the template. It must match
	// the template.
	Selector map[string]string `json:"selector,omitempty" protobuf:"2" schema:"required,optional,mapType=atomic"`

	// Template of the pods.
	Template *PodTemplateSpec `json:"template,omitempty" protobuf:"3" schema:"required,optional,ratcheting"`
}

// ReplicationControllerStatus is the observed state of a ReplicationController.
type ReplicationControllerStatus struct {
	// Replicas is the number of pods.
	Replicas int32 `json:"replicas" protobuf:"1" schema:"min=0"`

	// FullyLabeledReplicas is the number of pods with all labels of the template.
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty" protobuf:"2" schema:"min=0"`

	// ReadyReplicas is the number of ready pods.
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"4" schema:"min=0"`

	// AvailableReplicas is the number of pods that have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas,omitempty" protobuf:"5" schema:"min=0"`

	// ObservedGeneration is the latest generation that the controller has processed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"3" schema:"min=0"`

	// Conditions include ReplicaFailure.
	Conditions []PodSetCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

func replicationControllers() *registry.Kind {
	extensions := older.Same[ReplicationController]("v1beta1", "1.1", "1.2", "1.16", version)
	extensions.Group, extensions.MissingSubresources = wellknown.GroupFormer, []string{"status"}
	return registry.Of(registry.Definition[ReplicationController]{
		Version:    version,
		Versions:   []registry.VersionOf[ReplicationController]{extensions},
		ShortNames: []string{"rc"},
		Categories: []string{"all"},
		Status:     true,
		Scale:      replicas.Scale(),
		Columns: slices.Concat([]registry.Column{
			replicas.Column("Desired", "The desired number of pods.", "spec", "replicas"),
			replicas.Column("Current", "The number of pods.", "status", "replicas"),
			replicas.Column("Ready", "The number of ready pods.", "status", "readyReplicas"),
			registry.AgeColumn(),
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
			OnlySubresources:    map[string]string{extensions.Group + "/" + extensions.Version: "ReplicationControllerDummy"},
		},
	})
}

// defaultReplicationController sets the selector and the labels to the labels of the template if they
// are empty.
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

// validateReplicationController checks the template, or for a write of the status only the status.
func validateReplicationController(w *registry.Change[ReplicationController]) {
	spec, status := &w.New.Spec, &w.New.Status
	switch {
	case w.Subresource == "status":
		all, ready := replicas.Part{Field: "replicas", Pods: status.Replicas}, replicas.Part{Field: "readyReplicas", Pods: status.ReadyReplicas}
		available := replicas.Part{Field: "availableReplicas", Pods: status.AvailableReplicas}
		replicas.Within(&w.Violations, all, replicas.Part{Field: "fullyLabeledReplicas", Pods: status.FullyLabeledReplicas}, ready, available)
		replicas.Within(&w.Violations, ready, available)
	case w.Subresource == "" && spec.Template != nil:
		selected := len(spec.Selector) == 0 || selector.Matches(&meta.LabelSelector{MatchLabels: spec.Selector}, spec.Template.Labels)
		unchanged := w.Old != nil && check.SemanticEqual(spec.Template, w.Old.Spec.Template)
		w.Violations = CheckLastingTemplate(w.Names, w.SchemaViolations, check.At("spec", "template"), selected, spec.Template, unchanged)
	}
}
