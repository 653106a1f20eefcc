package apps

import (
	"maps"
	"math"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// DeploymentV1beta1 is a Deployment in version v1beta1 of the groups apps and extensions.
type DeploymentV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec DeploymentSpecV1beta1 `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status DeploymentStatus `json:"status,omitempty" protobuf:"3"`
}

// DeploymentSpecV1beta1 is the desired state of a Deployment.
type DeploymentSpecV1beta1 struct {
	// Replicas is the desired number of pods; default 1.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// Selector of the pods; default the labels of the template.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"2" schema:"unchecked"`

	// Template of the pods.
	Template core.PodTemplateSpec `json:"template" protobuf:"3" schema:"ratcheting"`

	// Strategy describes the replacement of pods after a change of the template.
	Strategy DeploymentStrategy `json:"strategy,omitempty" protobuf:"4" patchStrategy:"retainKeys"`

	// MinReadySeconds is the number of seconds that a new pod must be ready before it counts as
	// available; default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"5" schema:"min=0"`

	// RevisionHistoryLimit is the number of old ReplicaSets that are kept for rollbacks; default 2, or
	// all in the group extensions.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"6" schema:"min=0"`

	// Paused suspends rollouts.
	Paused bool `json:"paused,omitempty" protobuf:"7"`

	// RollbackTo is the revision that the controller is to return to.
	RollbackTo *RollbackConfig `json:"rollbackTo,omitempty" protobuf:"8"`

	// ProgressDeadlineSeconds is the number of seconds without progress after which a rollout counts as
	// failed; default 600, or never in the group extensions.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty" protobuf:"9" schema:"min=0"`
}

// RollbackConfig is the target of a rollback.
type RollbackConfig struct {
	// Revision is the number of the target; 0 means the previous revision.
	Revision int64 `json:"revision,omitempty" protobuf:"1" schema:"min=0"`
}

// olderDeployments returns the beta versions of Deployment, which differ in their defaults.
func olderDeployments() []registry.VersionOf[Deployment] {
	// limit is the default of maxSurge and maxUnavailable; nil means the default of v1.
	of := func(group, introduced string, history, deadline int32, limit *meta.IntOrString) registry.VersionOf[Deployment] {
		return registry.Spoke[DeploymentV1beta1, Deployment]{
			Group: group, Version: "v1beta1", ToHub: (*DeploymentV1beta1).hub, FromHub: (*Deployment).v1beta1,
			HubAnnotations: []string{wellknown.RollbackTo},
			Lifetime:       registry.Lifetime{Introduced: introduced, Deprecated: "1.8", Removed: "1.16"},
			Replacement:    older.Use[Deployment](wellknown.GroupApps + "/v1"),
			Default: func(w *registry.Change[DeploymentV1beta1]) {
				s := &w.New.Spec
				defaultFromPods(&w.New.ObjectMeta, &s.Selector, s.Template.Labels)
				setDefault(&s.RevisionHistoryLimit, history)
				setDefault(&s.ProgressDeadlineSeconds, deadline)
				if s.Strategy.Type != rollingUpdate || limit == nil {
					return
				}
				setDefault(&s.Strategy.RollingUpdate, RollingUpdateDeployment{})
				setDefault(&s.Strategy.RollingUpdate.MaxSurge, *limit)
				setDefault(&s.Strategy.RollingUpdate.MaxUnavailable, *limit)
			},
		}
	}
	one, deadlineSeconds := meta.FromInt(1), int32(600)
	second := older.Same[Deployment]("v1beta2", "1.8", "1.9", "1.16", wellknown.GroupApps+"/v1")
	second.MissingSubresources = []string{rollback}
	return []registry.VersionOf[Deployment]{
		second,
		of("", "1.6", 2, deadlineSeconds, nil),
		of(wellknown.GroupFormer, "1.1", math.MaxInt32, math.MaxInt32, &one),
	}
}

func (in *DeploymentV1beta1) hub(out *Deployment) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, DeploymentSpec{
		Replicas: s.Replicas, Selector: s.Selector, Template: s.Template, Strategy: s.Strategy, MinReadySeconds: s.MinReadySeconds,
		RevisionHistoryLimit: s.RevisionHistoryLimit, Paused: s.Paused, ProgressDeadlineSeconds: s.ProgressDeadlineSeconds,
	}
	out.Annotations = unparsableRollback(in.Annotations)
	if s.RollbackTo != nil {
		out.Annotations = map[string]string{wellknown.RollbackTo: strconv.FormatInt(s.RollbackTo.Revision, 10)}
	}
	return nil
}

func (in *Deployment) v1beta1(out *DeploymentV1beta1) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, DeploymentSpecV1beta1{
		Replicas: s.Replicas, Selector: s.Selector, Template: s.Template, Strategy: s.Strategy, MinReadySeconds: s.MinReadySeconds,
		RevisionHistoryLimit: s.RevisionHistoryLimit, Paused: s.Paused, ProgressDeadlineSeconds: s.ProgressDeadlineSeconds,
	}
	out.Annotations = unparsableRollback(in.Annotations)
	if revision, err := strconv.ParseInt(in.Annotations[wellknown.RollbackTo], 10, 64); err == nil {
		out.Spec.RollbackTo = &RollbackConfig{revision}
	}
	return nil
}

// unparsableRollback returns the rollback annotation if it is not a number: the field of v1beta1 cannot
// show it, so that the conversion keeps the annotation.
func unparsableRollback(annotations map[string]string) map[string]string {
	text, ok := annotations[wellknown.RollbackTo]
	if _, err := strconv.ParseInt(text, 10, 64); !ok || err == nil {
		return nil
	}
	return map[string]string{wellknown.RollbackTo: text}
}

// DaemonSetV1beta1 is a DaemonSet in version v1beta1 of the group extensions.
type DaemonSetV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec DaemonSetSpecV1beta1 `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status DaemonSetStatus `json:"status,omitempty" protobuf:"3"`
}

// DaemonSetSpecV1beta1 is the desired state of a DaemonSet.
type DaemonSetSpecV1beta1 struct {
	// Selector of the pods; default the labels of the template.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"1" schema:"unchecked"`

	// Template of the pods. Its node selector and affinity select the nodes; by default all nodes.
	Template core.PodTemplateSpec `json:"template" protobuf:"2" schema:"ratcheting"`

	// UpdateStrategy describes the replacement of pods after a change of the template.
	UpdateStrategy DaemonSetUpdateStrategyV1beta1 `json:"updateStrategy,omitempty" protobuf:"3"`

	// MinReadySeconds is the number of seconds that a new pod must be ready before it counts as
	// available; default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"4" schema:"min=0"`

	// TemplateGeneration is the number of the template. The server increments it with each change of
	// the template.
	TemplateGeneration int64 `json:"templateGeneration,omitempty" protobuf:"5"`

	// RevisionHistoryLimit is the number of old revisions that are kept for rollbacks; default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"6" schema:"default=10,min=0"`
}

// DaemonSetUpdateStrategyV1beta1 describes the replacement of pods.
type DaemonSetUpdateStrategyV1beta1 struct {
	// Type is OnDelete (default), which replaces pods only after they are deleted, or RollingUpdate.
	Type string `json:"type,omitempty" protobuf:"1" schema:"default=OnDelete,enum=OnDelete|RollingUpdate,unchecked"`

	// RollingUpdate configures the type RollingUpdate.
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty" protobuf:"2"`
}

// olderDaemonSets returns the beta versions of DaemonSet.
func olderDaemonSets() []registry.VersionOf[DaemonSet] {
	return []registry.VersionOf[DaemonSet]{
		older.Same[DaemonSet]("v1beta2", "1.8", "1.9", "1.16", wellknown.GroupApps+"/v1"),
		registry.Spoke[DaemonSetV1beta1, DaemonSet]{
			Group: wellknown.GroupFormer, Version: "v1beta1", ToHub: (*DaemonSetV1beta1).hub, FromHub: (*DaemonSet).v1beta1,
			HubAnnotations: []string{wellknown.TemplateGeneration},
			Lifetime:       registry.Lifetime{Introduced: "1.1", Deprecated: "1.8", Removed: "1.16"},
			Replacement:    older.Use[DaemonSet](wellknown.GroupApps + "/v1"),
			Default: func(w *registry.Change[DaemonSetV1beta1]) {
				defaultFromPods(&w.New.ObjectMeta, &w.New.Spec.Selector, w.New.Spec.Template.Labels)
			},
		},
	}
}

func (in *DaemonSetV1beta1) hub(out *DaemonSet) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, DaemonSetSpec{
		Selector: s.Selector, Template: s.Template, UpdateStrategy: DaemonSetUpdateStrategy(s.UpdateStrategy),
		MinReadySeconds: s.MinReadySeconds, RevisionHistoryLimit: s.RevisionHistoryLimit,
	}
	if s.TemplateGeneration != 0 {
		out.Annotations = map[string]string{wellknown.TemplateGeneration: strconv.FormatInt(s.TemplateGeneration, 10)}
	}
	return nil
}

func (in *DaemonSet) v1beta1(out *DaemonSetV1beta1) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, DaemonSetSpecV1beta1{
		Selector: s.Selector, Template: s.Template, UpdateStrategy: DaemonSetUpdateStrategyV1beta1(s.UpdateStrategy),
		MinReadySeconds: s.MinReadySeconds, RevisionHistoryLimit: s.RevisionHistoryLimit,
	}
	out.Spec.TemplateGeneration, _ = strconv.ParseInt(in.Annotations[wellknown.TemplateGeneration], 10, 64)
	return nil
}

// olderReplicaSets returns the beta versions of ReplicaSet.
func olderReplicaSets() []registry.VersionOf[ReplicaSet] {
	first := older.Same[ReplicaSet]("v1beta1", "1.2", "1.8", "1.16", wellknown.GroupApps+"/v1")
	first.Group, first.Default = wellknown.GroupFormer, func(w *registry.Change[ReplicaSet]) {
		defaultFromPods(&w.New.ObjectMeta, &w.New.Spec.Selector, w.New.Spec.Template.Labels)
	}
	return []registry.VersionOf[ReplicaSet]{older.Same[ReplicaSet]("v1beta2", "1.8", "1.9", "1.16", wellknown.GroupApps+"/v1"), first}
}

// olderStatefulSets returns the beta versions of StatefulSet.
func olderStatefulSets() []registry.VersionOf[StatefulSet] {
	first := older.Same[StatefulSet]("v1beta1", "1.5", "1.8", "1.16", wellknown.GroupApps+"/v1")
	first.Default = func(w *registry.Change[StatefulSet]) {
		defaultFromPods(&w.New.ObjectMeta, &w.New.Spec.Selector, w.New.Spec.Template.Labels)
		if strategy := &w.New.Spec.UpdateStrategy; strategy.Type == "" {
			strategy.Type = onDelete
		}
	}
	return []registry.VersionOf[StatefulSet]{older.Same[StatefulSet]("v1beta2", "1.8", "1.9", "1.16", wellknown.GroupApps+"/v1"), first}
}

// defaultFromPods sets the selector and the labels of a workload that has none to the labels of its pod
// template.
func defaultFromPods(m *meta.ObjectMeta, s **meta.LabelSelector, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	if *s == nil {
		*s = &meta.LabelSelector{MatchLabels: maps.Clone(labels)}
	}
	if len(m.Labels) == 0 {
		m.Labels = maps.Clone(labels)
	}
}

// setDefault sets a field that is nil.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// selectorMutable reports whether the selector can change in a version.
func selectorMutable(v meta.GroupVersion) bool { return v.Version == "v1beta1" }
