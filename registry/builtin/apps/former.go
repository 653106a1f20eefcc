package apps

import (
	"maps"
	"math"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// DeploymentV1beta1 is a Deployment as versions v1beta1 of both groups show it.
type DeploymentV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods there shall be, and how they are replaced.
	Spec DeploymentSpecV1beta1 `json:"spec,omitempty" protobuf:"2"`

	// Status is what there is.
	Status DeploymentStatus `json:"status,omitempty" protobuf:"3"`
}

// DeploymentSpecV1beta1 is which pods there shall be, and how they are replaced.
type DeploymentSpecV1beta1 struct {
	// Replicas is how many pods there shall be; 1 by default.
	Replicas *int32 `json:"replicas,omitempty" protobuf:"1" schema:"default=1,min=0"`

	// Selector selects the pods; by default by the labels of the template.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"2" schema:"unchecked"`

	// Template is what the pods are made from.
	Template core.PodTemplateSpec `json:"template" protobuf:"3" schema:"ratcheting"`

	// Strategy is how old pods are replaced.
	Strategy DeploymentStrategy `json:"strategy,omitempty" protobuf:"4" patchStrategy:"retainKeys"`

	// MinReadySeconds is how long a new pod has to be ready before it counts as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"5" schema:"min=0"`

	// RevisionHistoryLimit is how many old replica sets are kept; by default 2, in the
	// group extensions all.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"6" schema:"min=0"`

	// Paused keeps changes from being rolled out.
	Paused bool `json:"paused,omitempty" protobuf:"7"`

	// RollbackTo is the revision that the controller is to go back to.
	RollbackTo *RollbackConfig `json:"rollbackTo,omitempty" protobuf:"8"`

	// ProgressDeadlineSeconds is after how long without progress the deployment counts as
	// failed; by default 600, in the group extensions never.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty" protobuf:"9" schema:"min=0"`
}

// RollbackConfig is the revision that a deployment goes back to.
type RollbackConfig struct {
	// Revision is its number; 0 is the last one.
	Revision int64 `json:"revision,omitempty" protobuf:"1" schema:"min=0"`
}

func formerDeployments() []registry.VersionOf[Deployment] {
	// part is how many pods may be more or missing meanwhile; nil: as in v1.
	of := func(group, introduced string, history, deadline int32, part *meta.IntOrString) registry.VersionOf[Deployment] {
		return registry.Spoke[DeploymentV1beta1, Deployment]{
			Group: group, Version: "v1beta1", ToHub: (*DeploymentV1beta1).hub, FromHub: (*Deployment).v1beta1,
			HubAnnotations: []string{names.RollbackTo},
			Lifetime:       registry.Lifetime{Introduced: introduced, Deprecated: "1.8", Removed: "1.16"},
			Replacement:    older.Use[Deployment](names.GroupApps + "/v1"),
			Default: func(w *registry.Change[DeploymentV1beta1]) {
				s := &w.New.Spec
				ownLabels(&w.New.ObjectMeta, &s.Selector, s.Template.Labels)
				orElse(&s.RevisionHistoryLimit, history)
				orElse(&s.ProgressDeadlineSeconds, deadline)
				if s.Strategy.Type != rollingUpdate || part == nil {
					return
				}
				orElse(&s.Strategy.RollingUpdate, RollingUpdateDeployment{})
				orElse(&s.Strategy.RollingUpdate.MaxSurge, *part)
				orElse(&s.Strategy.RollingUpdate.MaxUnavailable, *part)
			},
		}
	}
	one, usualDeadline := meta.FromInt(1), int32(600)
	second := older.Same[Deployment]("v1beta2", "1.8", "1.9", "1.16", names.GroupApps+"/v1")
	second.Lacks = []string{rollback}
	return []registry.VersionOf[Deployment]{
		second,
		of("", "1.6", 2, usualDeadline, nil),
		of(names.GroupFormer, "1.1", math.MaxInt32, math.MaxInt32, &one),
	}
}

func (in *DeploymentV1beta1) hub(out *Deployment) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, DeploymentSpec{
		Replicas: s.Replicas, Selector: s.Selector, Template: s.Template, Strategy: s.Strategy, MinReadySeconds: s.MinReadySeconds,
		RevisionHistoryLimit: s.RevisionHistoryLimit, Paused: s.Paused, ProgressDeadlineSeconds: s.ProgressDeadlineSeconds,
	}
	out.Annotations = noRevision(in.Annotations)
	if s.RollbackTo != nil {
		out.Annotations = map[string]string{names.RollbackTo: strconv.FormatInt(s.RollbackTo.Revision, 10)}
	}
	return nil
}

func (in *Deployment) v1beta1(out *DeploymentV1beta1) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, DeploymentSpecV1beta1{
		Replicas: s.Replicas, Selector: s.Selector, Template: s.Template, Strategy: s.Strategy, MinReadySeconds: s.MinReadySeconds,
		RevisionHistoryLimit: s.RevisionHistoryLimit, Paused: s.Paused, ProgressDeadlineSeconds: s.ProgressDeadlineSeconds,
	}
	out.Annotations = noRevision(in.Annotations)
	if revision, err := strconv.ParseInt(in.Annotations[names.RollbackTo], 10, 64); err == nil {
		out.Spec.RollbackTo = &RollbackConfig{revision}
	}
	return nil
}

// noRevision returns the annotation with the revision to go back to if it holds no number,
// which no field can show.
func noRevision(annotations map[string]string) map[string]string {
	text, ok := annotations[names.RollbackTo]
	if _, err := strconv.ParseInt(text, 10, 64); !ok || err == nil {
		return nil
	}
	return map[string]string{names.RollbackTo: text}
}

// DaemonSetV1beta1 is a DaemonSet as the group extensions shows it.
type DaemonSetV1beta1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pod runs on which nodes.
	Spec DaemonSetSpecV1beta1 `json:"spec,omitempty" protobuf:"2"`

	// Status is what there is.
	Status DaemonSetStatus `json:"status,omitempty" protobuf:"3"`
}

// DaemonSetSpecV1beta1 is which pod runs on which nodes.
type DaemonSetSpecV1beta1 struct {
	// Selector selects the pods; by default by the labels of the template.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"1" schema:"unchecked"`

	// Template is what the pods are made from.
	Template core.PodTemplateSpec `json:"template" protobuf:"2" schema:"ratcheting"`

	// UpdateStrategy is how old pods are replaced.
	UpdateStrategy DaemonSetUpdateStrategyV1beta1 `json:"updateStrategy,omitempty" protobuf:"3"`

	// MinReadySeconds is how long a new pod has to be ready before it counts as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"4" schema:"min=0"`

	// TemplateGeneration counts the templates. The server does.
	TemplateGeneration int64 `json:"templateGeneration,omitempty" protobuf:"5"`

	// RevisionHistoryLimit is how many old states are kept; 10 by default.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"6" schema:"default=10,min=0"`
}

// DaemonSetUpdateStrategyV1beta1 is how old pods are replaced.
type DaemonSetUpdateStrategyV1beta1 struct {
	// Type is OnDelete, the default, or RollingUpdate.
	Type string `json:"type,omitempty" protobuf:"1" schema:"default=OnDelete,enum=OnDelete|RollingUpdate,unchecked"`

	// RollingUpdate is how, for RollingUpdate.
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty" protobuf:"2"`
}

func formerDaemonSets() []registry.VersionOf[DaemonSet] {
	return []registry.VersionOf[DaemonSet]{
		older.Same[DaemonSet]("v1beta2", "1.8", "1.9", "1.16", names.GroupApps+"/v1"),
		registry.Spoke[DaemonSetV1beta1, DaemonSet]{
			Group: names.GroupFormer, Version: "v1beta1", ToHub: (*DaemonSetV1beta1).hub, FromHub: (*DaemonSet).v1beta1,
			HubAnnotations: []string{names.TemplateGeneration},
			Lifetime:       registry.Lifetime{Introduced: "1.1", Deprecated: "1.8", Removed: "1.16"},
			Replacement:    older.Use[DaemonSet](names.GroupApps + "/v1"),
			Default: func(w *registry.Change[DaemonSetV1beta1]) {
				ownLabels(&w.New.ObjectMeta, &w.New.Spec.Selector, w.New.Spec.Template.Labels)
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
		out.Annotations = map[string]string{names.TemplateGeneration: strconv.FormatInt(s.TemplateGeneration, 10)}
	}
	return nil
}

func (in *DaemonSet) v1beta1(out *DaemonSetV1beta1) error {
	s := &in.Spec
	out.Status, out.Spec = in.Status, DaemonSetSpecV1beta1{
		Selector: s.Selector, Template: s.Template, UpdateStrategy: DaemonSetUpdateStrategyV1beta1(s.UpdateStrategy),
		MinReadySeconds: s.MinReadySeconds, RevisionHistoryLimit: s.RevisionHistoryLimit,
	}
	out.Spec.TemplateGeneration, _ = strconv.ParseInt(in.Annotations[names.TemplateGeneration], 10, 64)
	return nil
}

func formerReplicaSets() []registry.VersionOf[ReplicaSet] {
	first := older.Same[ReplicaSet]("v1beta1", "1.2", "1.8", "1.16", names.GroupApps+"/v1")
	first.Group, first.Default = names.GroupFormer, func(w *registry.Change[ReplicaSet]) {
		ownLabels(&w.New.ObjectMeta, &w.New.Spec.Selector, w.New.Spec.Template.Labels)
	}
	return []registry.VersionOf[ReplicaSet]{older.Same[ReplicaSet]("v1beta2", "1.8", "1.9", "1.16", names.GroupApps+"/v1"), first}
}

func formerStatefulSets() []registry.VersionOf[StatefulSet] {
	first := older.Same[StatefulSet]("v1beta1", "1.5", "1.8", "1.16", names.GroupApps+"/v1")
	first.Default = func(w *registry.Change[StatefulSet]) {
		ownLabels(&w.New.ObjectMeta, &w.New.Spec.Selector, w.New.Spec.Template.Labels)
		if strategy := &w.New.Spec.UpdateStrategy; strategy.Type == "" {
			strategy.Type = onDelete
		}
	}
	return []registry.VersionOf[StatefulSet]{older.Same[StatefulSet]("v1beta2", "1.8", "1.9", "1.16", names.GroupApps+"/v1"), first}
}

// ownLabels gives an object that has neither selector nor labels those of its pods.
func ownLabels(m *meta.ObjectMeta, s **meta.Selector, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	if *s == nil {
		*s = &meta.Selector{MatchLabels: maps.Clone(labels)}
	}
	if len(m.Labels) == 0 {
		m.Labels = maps.Clone(labels)
	}
}

func orElse[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// movableSelector reports whether a selector can change in a version.
func movableSelector(v meta.GroupVersion) bool { return v.Version == "v1beta1" }
