package apps

import (
	"maps"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/replicas"
)

// Deployment runs a number of identical pods, and replaces them gradually when the template changes.
type Deployment struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec DeploymentSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status DeploymentStatus `json:"status,omitempty" protobuf:"3"`
}

// DeploymentSpec is the desired state of a Deployment.
type DeploymentSpec struct {
	// Replicas is the desired number of pods; default 1.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// Selector of the pods. It must match the labels of the template. Immutable.
	Selector *meta.LabelSelector `json:"selector" protobuf:"2" schema:"required,unchecked"`

	// Template of the pods.
	Template core.PodTemplateSpec `json:"template" protobuf:"3" schema:"ratcheting"`

	// Strategy describes the replacement of pods after a change of the template.
	Strategy DeploymentStrategy `json:"strategy,omitempty" protobuf:"4" patchStrategy:"retainKeys"`

	// MinReadySeconds is the number of seconds that a new pod must be ready before it counts as
	// available; default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"5" schema:"min=0"`

	// RevisionHistoryLimit is the number of old ReplicaSets that are kept for rollbacks; default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"6" schema:"default=10,min=0"`

	// Paused suspends rollouts.
	Paused bool `json:"paused,omitempty" protobuf:"7"`

	// ProgressDeadlineSeconds is the number of seconds without progress after which a rollout counts as
	// failed; default 600. It must be greater than minReadySeconds.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty" protobuf:"9" schema:"default=600,min=0"`
}

// DeploymentStrategy describes the replacement of pods.
type DeploymentStrategy struct {
	// Type is RollingUpdate (default), or Recreate, which deletes all old pods before it creates new
	// pods.
	Type string `json:"type,omitempty" protobuf:"1" schema:"default=RollingUpdate,enum=Recreate|RollingUpdate,unchecked"`

	// RollingUpdate configures the type RollingUpdate. It must be unset for Recreate.
	RollingUpdate *RollingUpdateDeployment `json:"rollingUpdate,omitempty" protobuf:"2"`
}

// RollingUpdateDeployment limits the rate of a rolling update. The limits cannot both be 0.
type RollingUpdateDeployment struct {
	// MaxUnavailable is the largest number of unavailable pods during the update, as a number or a
	// percentage of replicas (default 25%), rounded down.
	MaxUnavailable *meta.IntOrString `json:"maxUnavailable,omitempty" protobuf:"1" schema:"format=int-or-percent"`

	// MaxSurge is the largest number of pods above replicas during the update, as a number or a
	// percentage of replicas (default 25%), rounded up.
	MaxSurge *meta.IntOrString `json:"maxSurge,omitempty" protobuf:"2" schema:"format=int-or-percent"`
}

// DeploymentStatus is the observed state of a Deployment.
type DeploymentStatus struct {
	// ObservedGeneration is the latest generation that the controller has processed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"1" schema:"min=0"`

	// Replicas is the number of pods that are not being deleted.
	Replicas int32 `json:"replicas,omitempty" protobuf:"2" schema:"min=0"`

	// UpdatedReplicas is the number of pods of the current template.
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty" protobuf:"3" schema:"min=0"`

	// ReadyReplicas is the number of ready pods.
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"7" schema:"min=0"`

	// AvailableReplicas is the number of pods that have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas,omitempty" protobuf:"4" schema:"min=0"`

	// UnavailableReplicas is the number of pods that are missing or not available.
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty" protobuf:"5" schema:"min=0"`

	// TerminatingReplicas is the number of pods that are being deleted.
	TerminatingReplicas *int32 `json:"terminatingReplicas,omitempty" protobuf:"9" schema:"min=0"`

	// Conditions include Available, Progressing and ReplicaFailure.
	Conditions []DeploymentCondition `json:"conditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`

	// CollisionCount is part of the hash in the names of ReplicaSets. The controller increments it to
	// avoid collisions.
	CollisionCount *int32 `json:"collisionCount,omitempty" protobuf:"8" schema:"min=0"`
}

// DeploymentCondition is an aspect of the state of a Deployment.
type DeploymentCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastUpdateTime is the time of the last write of the condition.
	LastUpdateTime meta.Time `json:"lastUpdateTime,omitempty" protobuf:"6"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"7"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

func deployments() *registry.Kind {
	k := workload(registry.Definition[Deployment]{
		ShortNames: []string{"deploy"},
		Versions:   olderDeployments(),
		Scale:      replicas.Scale(), Subresources: []registry.Subresource{rollbackSubresource()},
		Columns: []registry.Column{
			readyColumn(),
			{Name: "Up-to-date", Type: "string", Doc: "The number of pods of the current template.", Cell: func(o *meta.Object) any {
				return o.Int("status", "updatedReplicas")
			}},
			{Name: "Available", Type: "string", Doc: "The number of available pods.", Cell: func(o *meta.Object) any {
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
	k.Versions[0].MissingSubresources = []string{rollback}
	return k
}

// defaultDeployment sets the defaults that schema tags cannot express.
func defaultDeployment(w *registry.Change[meta.Object]) {
	if w.New.String("spec", "strategy", "type") == rollingUpdate {
		setMissing(w.New, map[string]any{"maxUnavailable": "25%", "maxSurge": "25%"}, "spec", "strategy", "rollingUpdate")
	}
}
