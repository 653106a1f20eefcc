package apps

import (
	"maps"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/replicas"
)

// Deployment keeps a number of equal pods running and replaces them step by step
// when their template changes.
type Deployment struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods, and how many.
	Spec DeploymentSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the controller last saw.
	Status DeploymentStatus `json:"status,omitempty" protobuf:"3"`
}

// DeploymentSpec says which pods shall run, and how they are replaced.
type DeploymentSpec struct {
	// Replicas is how many pods there shall be; 1 by default.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// Selector of the pods; it must match the template's labels and cannot
	// change.
	Selector *meta.Selector `json:"selector" protobuf:"2" schema:"required,unchecked"`

	// Template of the pods.
	Template core.PodTemplateSpec `json:"template" protobuf:"3" schema:"ratcheting"`

	// Strategy is how pods are replaced.
	Strategy DeploymentStrategy `json:"strategy,omitempty" protobuf:"4" patchStrategy:"retainKeys"`

	// MinReadySeconds is how long a new pod must be ready to count as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"5" schema:"min=0"`

	// RevisionHistoryLimit is how many old sets are kept for a rollback; 10 by
	// default.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"6" schema:"default=10,min=0"`

	// Paused stops replacing pods.
	Paused bool `json:"paused,omitempty" protobuf:"7"`

	// ProgressDeadlineSeconds is how long a deployment may go without progress;
	// 600 by default.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty" protobuf:"9" schema:"default=600,min=0"`
}

// DeploymentStrategy is how pods are replaced.
type DeploymentStrategy struct {
	// Type is RollingUpdate (the default) or Recreate.
	Type string `json:"type,omitempty" protobuf:"1" schema:"default=RollingUpdate,enum=Recreate|RollingUpdate,unchecked"`

	// RollingUpdate holds the settings of that type.
	RollingUpdate *RollingUpdateDeployment `json:"rollingUpdate,omitempty" protobuf:"2"`
}

// RollingUpdateDeployment says how fast pods are replaced.
type RollingUpdateDeployment struct {
	// MaxUnavailable is how many may be missing meanwhile, as a number or a part
	// such as 25% (the default), rounded down.
	MaxUnavailable *meta.IntOrString `json:"maxUnavailable,omitempty" protobuf:"1" schema:"format=int-or-percent"`

	// MaxSurge is how many may be there beyond replicas meanwhile, as a number
	// or a part such as 25% (the default), rounded up.
	MaxSurge *meta.IntOrString `json:"maxSurge,omitempty" protobuf:"2" schema:"format=int-or-percent"`
}

// DeploymentStatus is the state of a deployment.
type DeploymentStatus struct {
	// ObservedGeneration is the generation that the controller has seen.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"1" schema:"min=0"`

	// Replicas is how many pods there are.
	Replicas int32 `json:"replicas,omitempty" protobuf:"2" schema:"min=0"`

	// UpdatedReplicas is how many have the newest template.
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty" protobuf:"3" schema:"min=0"`

	// ReadyReplicas is how many are ready.
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"7" schema:"min=0"`

	// AvailableReplicas is how many have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas,omitempty" protobuf:"4" schema:"min=0"`

	// UnavailableReplicas is how many are missing.
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty" protobuf:"5" schema:"min=0"`

	// TerminatingReplicas is how many are being deleted.
	TerminatingReplicas *int32 `json:"terminatingReplicas,omitempty" protobuf:"9" schema:"min=0"`

	// Conditions are aspects of the state: Available, Progressing,
	// ReplicaFailure.
	Conditions []DeploymentCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// CollisionCount is part of the names of the sets, so that they do not
	// clash.
	CollisionCount *int32 `json:"collisionCount,omitempty" protobuf:"8" schema:"min=0"`
}

// DeploymentCondition is one aspect of a deployment's state.
type DeploymentCondition struct {
	// Type names the aspect that the condition is about.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastUpdateTime is when the condition was last written.
	LastUpdateTime meta.Time `json:"lastUpdateTime,omitempty" protobuf:"6"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"7"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

func deployments() *registry.Kind {
	k := podsOf(registry.Definition[Deployment]{
		ShortNames: []string{"deploy"},
		Versions:   formerDeployments(),
		Scale:      replicas.Scale(), Subresources: []registry.Subresource{rollbacks()},
		Columns: []registry.Column{
			ready(),
			{Name: "Up-to-date", Type: "string", Doc: "How many pods have the newest template.", Cell: func(o *meta.Object) any {
				return o.Int("status", "updatedReplicas")
			}},
			{Name: "Available", Type: "string", Doc: "How many pods are available.", Cell: func(o *meta.Object) any {
				return o.Int("status", "availableReplicas")
			}},
		},
		Validate: validateDeployment,
		Behavior: registry.Behavior{
			Default: defaultDeployment,
			Warn:    core.WarnOfPodNames,
			Changed: func(w *registry.Change[meta.Object]) bool {
				return !meta.Equal(w.New.Map("spec"), w.Old.Map("spec")) || !maps.Equal(w.New.Annotations(), w.Old.Annotations())
			},
		},
		Reference: &compat.Reference{ScaleIsObject: true, StatusMetadata: []string{"annotations", "finalizers", "ownerReferences"}},
	}, selectorColumn())
	k.Versions[0].Lacks = []string{rollback}
	return k
}

// defaultDeployment fills in what the schema's defaults cannot say.
func defaultDeployment(w *registry.Change[meta.Object]) {
	if w.New.String("spec", "strategy", "type") == rollingUpdate {
		fill(w.New, map[string]any{"maxUnavailable": "25%", "maxSurge": "25%"}, "spec", "strategy", "rollingUpdate")
	}
}
