package apps

import (
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/cells"
	"orch.io/controlplane/registry/builtin/internal/replicas"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

// DaemonSet runs a copy of a pod on each selected node.
type DaemonSet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec DaemonSetSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state.
	Status DaemonSetStatus `json:"status,omitempty" protobuf:"3"`
}

// DaemonSetSpec is the desired state of a DaemonSet.
type DaemonSetSpec struct {
	// Selector of the pods. It must match the labels of the template. Immutable.
	Selector *meta.LabelSelector `json:"selector" protobuf:"1" schema:"unchecked"`

	// Template of the pods. Its node selector and affinity select the nodes; by default all nodes.
	Template core.PodTemplateSpec `json:"template" protobuf:"2" schema:"ratcheting"`

	// UpdateStrategy describes the replacement of pods after a change of the template.
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"3"`

	// MinReadySeconds is the number of seconds that a new pod must be ready before it counts as
	// available; default 0.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"4" schema:"min=0"`

	// RevisionHistoryLimit is the number of old revisions that are kept for rollbacks; default 10.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"6" schema:"default=10,min=0"`
}

// DaemonSetUpdateStrategy describes the replacement of pods.
type DaemonSetUpdateStrategy struct {
	// Type is RollingUpdate (default), or OnDelete, which replaces pods only after they are deleted.
	Type string `json:"type,omitempty" protobuf:"1" schema:"default=RollingUpdate,enum=OnDelete|RollingUpdate,unchecked"`

	// RollingUpdate configures the type RollingUpdate.
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty" protobuf:"2"`
}

// RollingUpdateDaemonSet limits the rate of a rolling update. Exactly 1 of the limits must be 0.
type RollingUpdateDaemonSet struct {
	// MaxUnavailable is the largest number of nodes without an available pod during the update, as a
	// number (default 1) or a percentage of the nodes such as 25%, rounded up.
	MaxUnavailable *meta.IntOrString `json:"maxUnavailable,omitempty" protobuf:"1" schema:"format=int-or-percent"`

	// MaxSurge is the largest number of nodes with an old and a new pod during the update, as a number
	// (default 0) or a percentage of the nodes such as 25%, rounded up.
	MaxSurge *meta.IntOrString `json:"maxSurge,omitempty" protobuf:"2" schema:"format=int-or-percent"`
}

// DaemonSetStatus is the observed state of a DaemonSet.
type DaemonSetStatus struct {
	// CurrentNumberScheduled is the number of selected nodes that run the pod.
	CurrentNumberScheduled int32 `json:"currentNumberScheduled" protobuf:"1" schema:"min=0"`

	// NumberMisscheduled is the number of nodes that run the pod although they are not selected.
	NumberMisscheduled int32 `json:"numberMisscheduled" protobuf:"2" schema:"min=0"`

	// DesiredNumberScheduled is the number of selected nodes.
	DesiredNumberScheduled int32 `json:"desiredNumberScheduled" protobuf:"3" schema:"min=0"`

	// NumberReady is the number of selected nodes with a ready pod.
	NumberReady int32 `json:"numberReady" protobuf:"4" schema:"min=0"`

	// ObservedGeneration is the latest generation that the controller has processed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"5" schema:"min=0"`

	// UpdatedNumberScheduled is the number of selected nodes with a pod of the current template.
	UpdatedNumberScheduled int32 `json:"updatedNumberScheduled,omitempty" protobuf:"6" schema:"min=0"`

	// NumberAvailable is the number of selected nodes with a pod that has been ready for
	// minReadySeconds.
	NumberAvailable int32 `json:"numberAvailable,omitempty" protobuf:"7" schema:"min=0"`

	// NumberUnavailable is the number of selected nodes without an available pod.
	NumberUnavailable int32 `json:"numberUnavailable,omitempty" protobuf:"8" schema:"min=0"`

	// CollisionCount is part of the hash in the names of revisions. The controller increments it to
	// avoid collisions.
	CollisionCount *int32 `json:"collisionCount,omitempty" protobuf:"9" schema:"min=0"`

	// Conditions of the DaemonSet.
	Conditions []core.PodSetCondition `json:"conditions,omitempty" protobuf:"10" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

func daemonSets() *registry.Kind {
	k := workload(registry.Definition[DaemonSet]{
		ShortNames: []string{"ds"},
		Versions:   olderDaemonSets(),
		Columns: []registry.Column{
			replicas.Column("Desired", "The number of selected nodes.", "status", "desiredNumberScheduled"),
			replicas.Column("Current", "The number of selected nodes that run the pod.", "status", "currentNumberScheduled"),
			replicas.Column("Ready", "The number of nodes with a ready pod.", "status", "numberReady"),
			replicas.Column("Up-to-date", "The number of nodes with a pod of the current template.", "status", "updatedNumberScheduled"),
			replicas.Column("Available", "The number of nodes with an available pod.", "status", "numberAvailable"),
			{Name: "Node Selector", Type: "string", Doc: "The labels that select the nodes.", Cell: func(o *meta.Object) any {
				return cells.Labels(o.Map("spec", "template", "spec", "nodeSelector"))
			}},
		},
		Validate: validateDaemonSet,
		Behavior: registry.Behavior{
			Default: defaultDaemonSet,
			Prepare: countTemplates,
		},
	}, selectorColumn())
	warn := k.Warn
	k.Warn = func(w *registry.Change[meta.Object]) []string {
		if w.Old != nil && !templateChanged(w) {
			return nil
		}
		return warn(w)
	}
	return k
}

// defaultDaemonSet sets the defaults that schema tags cannot express. It also restores the template
// number, which callers cannot change.
func defaultDaemonSet(w *registry.Change[meta.Object]) {
	switch {
	case w.Subresource != "":
		setTemplateNumber(w.New, templateNumber(w.Old))
	case w.New.Annotation(wellknown.TemplateGeneration) == "":
		setTemplateNumber(w.New, 0)
	}
	if w.New.String("spec", "updateStrategy", "type") == rollingUpdate {
		setMissing(w.New, map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)}, "spec", "updateStrategy", "rollingUpdate")
	}
}

// countTemplates maintains the number of the template in an annotation, which clients from before
// metadata.generation read. It runs after field ownership is recorded, so that the writer of a new
// template does not own the annotation.
func countTemplates(w *registry.Change[meta.Object]) {
	number := max(1, templateNumber(w.New))
	if w.Old != nil {
		number = templateNumber(w.Old)
		if templateChanged(w) {
			number++
		}
	}
	setTemplateNumber(w.New, number)
}

// templateChanged reports whether an update changes the pod template.
func templateChanged(w *registry.Change[meta.Object]) bool {
	return !meta.Equal(w.New.Map("spec", "template"), w.Old.Map("spec", "template"))
}

func setTemplateNumber(o *meta.Object, number int64) {
	o.Set(strconv.FormatInt(number, 10), "metadata", "annotations", wellknown.TemplateGeneration)
}

func templateNumber(o *meta.Object) int64 {
	n, _ := strconv.ParseInt(o.Annotation(wellknown.TemplateGeneration), 10, 64)
	return n
}

func validateDaemonSet(w *registry.Change[DaemonSet]) {
	s, at := &w.New.Spec, check.At("spec")
	if w.Subresource == "status" {
		checkCollisionCount(&w.Violations, w.New.Status.CollisionCount, w.Old.Status.CollisionCount)
		return
	}
	selected := !checkSelector(&w.Violations, s.Selector) || selector.Matches(s.Selector, s.Template.Labels)
	unchanged := w.Old != nil && check.SemanticEqual(s.Template, w.Old.Spec.Template)
	w.Violations = append(w.Violations, core.CheckLastingTemplate(w.Names, w.SchemaViolations, at.Field("template"), selected, &s.Template, unchanged)...)
	s.UpdateStrategy.validate(&w.Violations, at.Field("updateStrategy"))
	if w.Old != nil && !selectorMutable(w.Version) {
		w.Unchanged(at.Field("selector"), s.Selector, w.Old.Spec.Selector)
	}
}

func (s *DaemonSetUpdateStrategy) validate(f *check.Violations, at *check.Path) {
	switch {
	case s.Type != rollingUpdate:
		if s.Type != onDelete {
			f.NotSupported(at, s, schema.EnumOf[DaemonSetUpdateStrategy]("Type")...)
		}
	case s.RollingUpdate != nil:
		s.RollingUpdate.validate(f, at.Field("rollingUpdate"))
	}
}

func (r *RollingUpdateDaemonSet) validate(f *check.Violations, at *check.Path) {
	unavailable, surge := at.Field("maxUnavailable"), at.Field("maxSurge")
	switch hasUnavailable, hasSurge := !isZero(r.MaxUnavailable), !isZero(r.MaxSurge); {
	case hasUnavailable && hasSurge:
		f.Invalid(surge, r.MaxSurge, "may not be set when maxUnavailable is non-zero")
	case hasUnavailable:
		checkPercent(f, unavailable, r.MaxUnavailable)
	case hasSurge:
		checkPercent(f, surge, r.MaxSurge)
	default:
		f.Required(unavailable, "cannot be 0 when maxSurge is 0")
	}
}
