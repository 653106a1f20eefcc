package apps

import (
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/replicas"
)

// StatefulSet keeps pods running that are not equal: each has a number, a name that
// stays, and volumes of its own.
type StatefulSet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods, and how many.
	Spec StatefulSetSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the controller last saw.
	Status StatefulSetStatus `json:"status,omitempty" protobuf:"3"`
}

// StatefulSetSpec says which pods shall run, and how they come and go.
type StatefulSetSpec struct {
	// PodManagementPolicy is OrderedReady (the default): pods start one after the
	// other, each when the one before is ready, and end in the opposite order; or
	// Parallel: all at once. It cannot change.
	PodManagementPolicy string `json:"podManagementPolicy,omitempty" protobuf:"6" schema:"default=OrderedReady,enum=OrderedReady|Parallel,unchecked"`

	// UpdateStrategy is how pods are replaced when the template changes.
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"7"`

	// PersistentVolumeClaimRetentionPolicy is what becomes of the claims of pods that
	// are gone for good.
	PersistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty" protobuf:"10"`

	// Replicas is how many pods there shall be; 1 by default.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// MinReadySeconds is how long a new pod must be ready to count as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"9" schema:"min=0"`

	// Ordinals say how the pods are numbered; from 0 without it.
	Ordinals *StatefulSetOrdinals `json:"ordinals,omitempty" protobuf:"11"`

	// VolumeClaimTemplates are claims of which every pod gets its own, and finds it
	// again when it is replaced. The pod has a volume of the same name for each; it
	// takes the place of one in the template. They cannot change.
	VolumeClaimTemplates []core.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty" protobuf:"4" schema:"listType=atomic,ratcheting"`

	// ServiceName is the service under whose name the pods are found in the DNS. It
	// must be there before the pods, and cannot change.
	ServiceName string `json:"serviceName" protobuf:"5" schema:"optional"`

	// Selector of the pods; it must match the template's labels and cannot change.
	Selector *meta.Selector `json:"selector" protobuf:"2" schema:"required,unchecked"`

	// Template of the pods. Each is named after the set, with its number behind.
	Template core.PodTemplateSpec `json:"template" protobuf:"3" schema:"ratcheting"`

	// RevisionHistoryLimit is how many old templates are kept for a rollback; 10 by
	// default, and all if it is negative.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"8" schema:"default=10"`
}

// StatefulSetOrdinals say how pods are numbered.
type StatefulSetOrdinals struct {
	// Start is the number of the first pod.
	Start int32 `json:"start" protobuf:"1" schema:"optional,min=0"`
}

// StatefulSetUpdateStrategy is how pods are replaced.
type StatefulSetUpdateStrategy struct {
	// Type is RollingUpdate (the default), or OnDelete: only the place of a pod that
	// somebody deleted gets a new one.
	Type string `json:"type,omitempty" protobuf:"1" schema:"enum=OnDelete|RollingUpdate,unchecked"`

	// RollingUpdate holds the settings of that type.
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty" protobuf:"2"`
}

// RollingUpdateStatefulSetStrategy says which pods are replaced, from the highest
// number down.
type RollingUpdateStatefulSetStrategy struct {
	// Partition is the lowest number of a pod that gets the new template; 0, which
	// is the default, is all of them.
	Partition *int32 `json:"partition,omitempty" protobuf:"1" schema:"default=0,min=0"`

	// MaxUnavailable is how many pods may be missing meanwhile, as a number (1 if it
	// is left out) or a part of the replicas such as 25%, rounded up. It is not 0.
	MaxUnavailable *meta.IntOrString `json:"maxUnavailable,omitempty" protobuf:"2" schema:"format=int-or-percent,gate=MaxUnavailableStatefulSet"`
}

// StatefulSetPersistentVolumeClaimRetentionPolicy is what becomes of claims.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// WhenDeleted is what is done with the claims when the set is deleted: Retain
	// (the default) or Delete.
	WhenDeleted string `json:"whenDeleted,omitempty" protobuf:"1" schema:"default=Retain,enum=Retain|Delete"`

	// WhenScaled is what is done with those of a pod when there are to be fewer:
	// Retain (the default) or Delete.
	WhenScaled string `json:"whenScaled,omitempty" protobuf:"2" schema:"default=Retain,enum=Retain|Delete"`
}

// StatefulSetStatus is the state of the pods.
type StatefulSetStatus struct {
	// Replicas is how many pods there are.
	Replicas int32 `json:"replicas" protobuf:"2" schema:"min=0"`

	// ReadyReplicas is how many are ready.
	ReadyReplicas int32 `json:"readyReplicas,omitempty" protobuf:"3" schema:"min=0"`

	// CurrentReplicas is how many have the template of currentRevision.
	CurrentReplicas int32 `json:"currentReplicas,omitempty" protobuf:"4" schema:"min=0"`

	// UpdatedReplicas is how many have the template of updateRevision.
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty" protobuf:"5" schema:"min=0"`

	// AvailableReplicas is how many have been ready for minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas" protobuf:"11" schema:"min=0"`

	// ObservedGeneration is the generation that the controller has seen.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"1" schema:"min=0"`

	// CollisionCount is part of the names of the old templates, so that they do not
	// clash.
	CollisionCount *int32 `json:"collisionCount,omitempty" protobuf:"9" schema:"min=0"`

	// CurrentRevision names the template of the pods that are not yet replaced.
	CurrentRevision string `json:"currentRevision,omitempty" protobuf:"6"`

	// UpdateRevision names the template of those that are.
	UpdateRevision string `json:"updateRevision,omitempty" protobuf:"7"`

	// Conditions are aspects of the state.
	Conditions []core.PodSetCondition `json:"conditions,omitempty" protobuf:"10" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

func statefulSets() *registry.Kind {
	return podsOf(registry.Definition[StatefulSet]{
		ShortNames:   []string{"sts"},
		Versions:     formerStatefulSets(),
		Scale:        replicas.Scale(),
		Columns:      []registry.Column{ready()},
		ValidateName: meta.NameChecker(meta.CheckDNSLabel),
		Validate:     validateStatefulSet,
		Behavior:     registry.Behavior{Default: defaultStatefulSet},
		Warn:         warnOfStatefulSet,
	})
}

// defaultStatefulSet fills in what the schema's defaults cannot say. Only who leaves
// out the way of updates gets its settings, too.
func defaultStatefulSet(w *registry.Change[meta.Object]) {
	if w.New.Map("spec") == nil {
		return
	}
	if strategy := []string{"spec", "updateStrategy"}; w.New.String("spec", "updateStrategy", "type") == "" {
		w.New.Set(rollingUpdate, append(strategy, "type")...)
		fill(w.New, map[string]any{"partition": int64(0)}, append(strategy, "rollingUpdate")...)
	}
	strategy := w.New.Map("spec", "updateStrategy")
	if _, set := strategy["rollingUpdate"].(map[string]any); set && strategy["type"] == rollingUpdate && w.Features.Enabled(features.MaxUnavailableStatefulSet) {
		fill(w.New, map[string]any{"maxUnavailable": int64(1)}, "spec", "updateStrategy", "rollingUpdate")
	}
	fill(w.New, map[string]any{"whenDeleted": retain, "whenScaled": retain}, "spec", "persistentVolumeClaimRetentionPolicy")
	for _, claim := range w.New.Objects("spec", "volumeClaimTemplates") {
		core.DefaultClaimTemplate(claim)
	}
}
