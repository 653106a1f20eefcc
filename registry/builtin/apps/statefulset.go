package apps

import (
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/replicas"
)

// StatefulSet runs pods with identity: each has a number, a stable name and volumes of its own.
type StatefulSet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec StatefulSetSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status StatefulSetStatus `json:"status,omitempty" protobuf:"3"`
}

// StatefulSetSpec is the desired state of a StatefulSet.
type StatefulSetSpec struct {
	// PodManagementPolicy is OrderedReady (default), which starts each pod after its predecessor is
	// ready and deletes in reverse order, or Parallel, which does not wait. Immutable.
	PodManagementPolicy string `json:"podManagementPolicy,omitempty" protobuf:"6" schema:"default=OrderedReady,enum=OrderedReady|Parallel,unchecked"`

	// UpdateStrategy describes the replacement of pods after a change of the template.
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"7"`

	// PersistentVolumeClaimRetentionPolicy decides about the claims of pods that are no longer needed.
	PersistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty" protobuf:"10"`

	// Replicas is the desired number of pods; default 1.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// MinReadySeconds is the number of seconds that a new pod must be ready before it counts as
	// available; default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"9" schema:"min=0"`

	// Ordinals configures the numbers of the pods; default from 0.
	Ordinals *StatefulSetOrdinals `json:"ordinals,omitempty" protobuf:"11"`

	// VolumeClaimTemplates describe claims that each pod gets and keeps when it is replaced. The pod
	// has a volume of the same name for each, which takes precedence over a volume of the template.
	// Immutable.
	VolumeClaimTemplates []core.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty" protobuf:"4" schema:"listType=atomic,ratcheting"`

	// ServiceName is the headless service that gives the pods their DNS names. It must exist before the
	// set. Immutable.
	ServiceName string `json:"serviceName" protobuf:"5" schema:"optional"`

	// Selector of the pods. It must match the labels of the template. Immutable.
	Selector *meta.LabelSelector `json:"selector" protobuf:"2" schema:"required,unchecked"`

	// Template of the pods. The name of a pod is the name of the set followed by a dash and its number.
	Template core.PodTemplateSpec `json:"template" protobuf:"3" schema:"ratcheting"`

	// RevisionHistoryLimit is the number of old revisions that are kept for rollbacks; default 10.
	// Negative means all.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"8" schema:"default=10"`
}

// StatefulSetOrdinals configures the numbers of pods.
type StatefulSetOrdinals struct {
	// Start is the number of the first pod; not negative.
	Start int32 `json:"start" protobuf:"1" schema:"optional,min=0"`
}

// StatefulSetUpdateStrategy describes the replacement of pods.
type StatefulSetUpdateStrategy struct {
	// Type is RollingUpdate (default), or OnDelete, which replaces pods only after they are deleted.
	Type string `json:"type,omitempty" protobuf:"1" schema:"enum=OnDelete|RollingUpdate,unchecked"`

	// RollingUpdate configures the type RollingUpdate. It must be unset for OnDelete.
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty" protobuf:"2"`
}

// RollingUpdateStatefulSetStrategy configures a rolling update, which replaces pods from the highest
// number to the lowest.
type RollingUpdateStatefulSetStrategy struct {
	// Partition is the lowest number of the pods to replace; default 0.
	Partition *int32 `json:"partition,omitempty" protobuf:"1" schema:"default=0,min=0"`

	// MaxUnavailable is the largest number of unavailable pods during the update, as a number (default
	// 1) or a percentage of replicas such as 25%, rounded up. It must not be 0.
	MaxUnavailable *meta.IntOrString `json:"maxUnavailable,omitempty" protobuf:"2" schema:"format=int-or-percent,gate=MaxUnavailableStatefulSet"`
}

// StatefulSetPersistentVolumeClaimRetentionPolicy decides about claims of volumeClaimTemplates.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// WhenDeleted is the fate of the claims when the set is deleted: Retain (default) or Delete.
	WhenDeleted string `json:"whenDeleted,omitempty" protobuf:"1" schema:"default=Retain,enum=Retain|Delete"`

	// WhenScaled is the fate of the claims of pods that are removed by scaling down: Retain (default)
	// or Delete.
	WhenScaled string `json:"whenScaled,omitempty" protobuf:"2" schema:"default=Retain,enum=Retain|Delete"`
}

// StatefulSetStatus is the observed state of a StatefulSet.
type StatefulSetStatus struct {
	// Replicas is the number of pods.
	Replicas int32 `json:"replicas" protobuf:"2" schema:"min=0"`

	// ReadyReplicas is the number of ready pods.
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"3" schema:"min=0"`

	// CurrentReplicas is the number of pods of currentRevision.
	CurrentReplicas int32 `json:"currentReplicas,omitempty" protobuf:"4" schema:"min=0"`

	// UpdatedReplicas is the number of pods of updateRevision.
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty" protobuf:"5" schema:"min=0"`

	// AvailableReplicas is the number of pods that have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas" protobuf:"11" schema:"min=0"`

	// ObservedGeneration is the latest generation that the controller has processed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"1" schema:"min=0"`

	// CollisionCount is part of the hash in the names of revisions. The controller increments it to
	// avoid collisions.
	CollisionCount *int32 `json:"collisionCount,omitempty" protobuf:"9" schema:"min=0"`

	// CurrentRevision is the revision of pods that the update has not replaced yet.
	CurrentRevision string `json:"currentRevision,omitempty" protobuf:"6"`

	// UpdateRevision is the revision of pods that the update has replaced.
	UpdateRevision string `json:"updateRevision,omitempty" protobuf:"7"`

	// Conditions of the StatefulSet.
	Conditions []core.PodSetCondition `json:"conditions,omitempty" protobuf:"10" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

func statefulSets() *registry.Kind {
	return workload(registry.Definition[StatefulSet]{
		ShortNames:   []string{"sts"},
		Versions:     olderStatefulSets(),
		Scale:        replicas.Scale(),
		Columns:      []registry.Column{readyColumn()},
		ValidateName: meta.NameChecker(meta.CheckDNSLabel),
		Validate:     validateStatefulSet,
		Behavior:     registry.Behavior{Default: defaultStatefulSet},
		Warn:         warnOfStatefulSet,
	})
}

// defaultStatefulSet sets the defaults that schema tags cannot express. The partition is only set if
// the type of the strategy is unset, as at kube-apiserver.
func defaultStatefulSet(w *registry.Change[meta.Object]) {
	if w.New.Map("spec") == nil {
		return
	}
	if strategy := []string{"spec", "updateStrategy"}; w.New.String("spec", "updateStrategy", "type") == "" {
		w.New.Set(rollingUpdate, append(strategy, "type")...)
		setMissing(w.New, map[string]any{"partition": int64(0)}, append(strategy, "rollingUpdate")...)
	}
	strategy := w.New.Map("spec", "updateStrategy")
	if _, set := strategy["rollingUpdate"].(map[string]any); set && strategy["type"] == rollingUpdate && w.Features.Enabled(features.MaxUnavailableStatefulSet) {
		setMissing(w.New, map[string]any{"maxUnavailable": int64(1)}, "spec", "updateStrategy", "rollingUpdate")
	}
	setMissing(w.New, map[string]any{"whenDeleted": retain, "whenScaled": retain}, "spec", "persistentVolumeClaimRetentionPolicy")
	for _, claim := range w.New.Objects("spec", "volumeClaimTemplates") {
		core.DefaultClaimTemplate(claim)
	}
}
