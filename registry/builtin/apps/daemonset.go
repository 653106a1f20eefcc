package apps

import (
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/cells"
	"orch.io/controlplane/registry/builtin/internal/replicas"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

// DaemonSet keeps one pod running on each of some nodes.
type DaemonSet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods, and on which nodes.
	Spec DaemonSetSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the controller last saw.
	Status DaemonSetStatus `json:"status,omitempty" protobuf:"3"`
}

// DaemonSetSpec says which pods shall run, and how they are replaced.
type DaemonSetSpec struct {
	// Selector of the pods; it must match the template's labels and cannot change.
	Selector *meta.Selector `json:"selector" protobuf:"1" schema:"unchecked"`

	// Template of the pods. Its node selector and affinity say on which nodes they
	// run; without them it is all.
	Template core.PodTemplateSpec `json:"template" protobuf:"2" schema:"ratcheting"`

	// UpdateStrategy is how pods are replaced when the template changes.
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty" protobuf:"3"`

	// MinReadySeconds is how long a new pod must be ready to count as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty" protobuf:"4" schema:"min=0"`

	// RevisionHistoryLimit is how many old templates are kept for a rollback; 10 by
	// default.
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty" protobuf:"6" schema:"default=10,min=0"`
}

// DaemonSetUpdateStrategy is how pods are replaced.
type DaemonSetUpdateStrategy struct {
	// Type is RollingUpdate (the default), or OnDelete: only the place of a pod that
	// somebody deleted gets a new one.
	Type string `json:"type,omitempty" protobuf:"1" schema:"default=RollingUpdate,enum=OnDelete|RollingUpdate,unchecked"`

	// RollingUpdate holds the settings of that type.
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty" protobuf:"2"`
}

// RollingUpdateDaemonSet says how fast pods are replaced. One of the two is 0.
type RollingUpdateDaemonSet struct {
	// MaxUnavailable is on how many nodes the pod may be missing meanwhile, as a
	// number (1 by default) or a part such as 25%, rounded up.
	MaxUnavailable *meta.IntOrString `json:"maxUnavailable,omitempty" protobuf:"1" schema:"format=int-or-percent"`

	// MaxSurge is on how many nodes the new pod may run beside the old one
	// meanwhile, as a number (0 by default) or a part such as 25%, rounded up.
	MaxSurge *meta.IntOrString `json:"maxSurge,omitempty" protobuf:"2" schema:"format=int-or-percent"`
}

// DaemonSetStatus is the state of the pods.
type DaemonSetStatus struct {
	// CurrentNumberScheduled is on how many nodes the pod runs and shall run.
	CurrentNumberScheduled int32 `json:"currentNumberScheduled" protobuf:"1" schema:"min=0"`

	// NumberMisscheduled is on how many nodes it runs and shall not.
	NumberMisscheduled int32 `json:"numberMisscheduled" protobuf:"2" schema:"min=0"`

	// DesiredNumberScheduled is on how many nodes it shall run.
	DesiredNumberScheduled int32 `json:"desiredNumberScheduled" protobuf:"3" schema:"min=0"`

	// NumberReady is on how many of these it is ready.
	NumberReady int32 `json:"numberReady" protobuf:"4" schema:"min=0"`

	// ObservedGeneration is the generation that the controller has seen.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"5" schema:"min=0"`

	// UpdatedNumberScheduled is on how many nodes the pod has the newest template.
	UpdatedNumberScheduled int32 `json:"updatedNumberScheduled,omitempty" protobuf:"6" schema:"min=0"`

	// NumberAvailable is on how many nodes it has been ready for minReadySeconds.
	NumberAvailable int32 `json:"numberAvailable,omitempty" protobuf:"7" schema:"min=0"`

	// NumberUnavailable is on how many nodes it shall be available and is not.
	NumberUnavailable int32 `json:"numberUnavailable,omitempty" protobuf:"8" schema:"min=0"`

	// CollisionCount is part of the names of the old templates, so that they do not
	// clash.
	CollisionCount *int32 `json:"collisionCount,omitempty" protobuf:"9" schema:"min=0"`

	// Conditions are aspects of the state.
	Conditions []core.PodSetCondition `json:"conditions,omitempty" protobuf:"10" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

func daemonSets() *registry.Kind {
	k := podsOf(registry.Definition[DaemonSet]{
		ShortNames: []string{"ds"},
		Versions:   formerDaemonSets(),
		Columns: []registry.Column{
			replicas.Column("Desired", "On how many nodes the pod shall run.", "status", "desiredNumberScheduled"),
			replicas.Column("Current", "On how many of them it runs.", "status", "currentNumberScheduled"),
			replicas.Column("Ready", "On how many it is ready.", "status", "numberReady"),
			replicas.Column("Up-to-date", "On how many it has the newest template.", "status", "updatedNumberScheduled"),
			replicas.Column("Available", "On how many it is available.", "status", "numberAvailable"),
			{Name: "Node Selector", Type: "string", Doc: "The labels of the nodes.", Cell: func(o *meta.Object) any {
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

// defaultDaemonSet sets the defaults that schema tags cannot express.
func defaultDaemonSet(w *registry.Change[meta.Object]) {
	switch {
	case w.Subresource != "":
		setTemplateNumber(w.New, templateNumber(w.Old))
	case w.New.Annotation(names.TemplateGeneration) == "":
		setTemplateNumber(w.New, 0)
	}
	if w.New.String("spec", "updateStrategy", "type") == rollingUpdate {
		fill(w.New, map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)}, "spec", "updateStrategy", "rollingUpdate")
	}
}

// countTemplates sets the template's number in the annotation that clients read if they
// predate metadata.generation. Callers cannot change the number. It is counted after field
// ownership is recorded, so that the writer of a new template does not own the annotation.
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
	o.Set(strconv.FormatInt(number, 10), "metadata", "annotations", names.TemplateGeneration)
}

func templateNumber(o *meta.Object) int64 {
	n, _ := strconv.ParseInt(o.Annotation(names.TemplateGeneration), 10, 64)
	return n
}

func validateDaemonSet(w *registry.Change[DaemonSet]) {
	s, at := &w.New.Spec, check.At("spec")
	if w.Subresource == "status" {
		checkCollisions(&w.Faults, w.New.Status.CollisionCount, w.Old.Status.CollisionCount)
		return
	}
	selected := !checkSelector(&w.Faults, s.Selector) || selector.Matches(s.Selector, s.Template.Labels)
	kept := w.Old != nil && check.Same(s.Template, w.Old.Spec.Template)
	w.Faults = append(w.Faults, core.CheckLastingTemplate(w.Names, w.Found, at.Field("template"), selected, &s.Template, kept)...)
	s.UpdateStrategy.validate(&w.Faults, at.Field("updateStrategy"))
	if w.Old != nil && !movableSelector(w.Version) {
		w.Unchanged(at.Field("selector"), s.Selector, w.Old.Spec.Selector)
	}
}

func (s *DaemonSetUpdateStrategy) validate(f *check.Faults, at *check.Path) {
	switch {
	case s.Type != rollingUpdate:
		if s.Type != onDelete {
			f.NotSupported(at, s, schema.EnumOf[DaemonSetUpdateStrategy]("Type")...)
		}
	case s.RollingUpdate != nil:
		s.RollingUpdate.validate(f, at.Field("rollingUpdate"))
	}
}

func (r *RollingUpdateDaemonSet) validate(f *check.Faults, at *check.Path) {
	unavailable, surge := at.Field("maxUnavailable"), at.Field("maxSurge")
	switch missing, more := !zero(r.MaxUnavailable), !zero(r.MaxSurge); {
	case missing && more:
		f.Invalid(surge, r.MaxSurge, "may not be set when maxUnavailable is non-zero")
	case missing:
		checkPart(f, unavailable, r.MaxUnavailable)
	case more:
		checkPart(f, surge, r.MaxSurge)
	default:
		f.Required(unavailable, "cannot be 0 when maxSurge is 0")
	}
}
