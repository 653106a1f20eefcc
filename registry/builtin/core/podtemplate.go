package core

import (
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/cells"
)

// PodTemplate is a pod template as an object of its own.
type PodTemplate struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Template of the pods.
	Template PodTemplateSpec `json:"template,omitempty" protobuf:"2" schema:"ratcheting"`
}

// PodTemplateSpec describes the pods that a workload creates.
type PodTemplateSpec struct {
	// Labels and annotations of the pods.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec of the pods.
	Spec PodSpec `json:"spec,omitempty" protobuf:"2"`
}

func podTemplates() *registry.Kind {
	return registry.Of(registry.Definition[PodTemplate]{
		Version: version,
		Columns: append(TemplateColumns(0, "template", "spec"), registry.Column{
			Name: "Pod Labels", Type: "string", Doc: "The labels of the pods.", Cell: func(o *meta.Object) any {
				return cells.Labels(o.Map("template", "metadata", "labels"))
			},
		}),
		Validate: func(w *registry.Change[PodTemplate]) {
			unchanged := w.Old != nil && check.SemanticEqual(w.New.Template, w.Old.Template)
			w.Violations = CheckPodTemplate(w.Names, w.SchemaViolations, check.At("template"), &w.New.Template, unchanged)
		},
		Behavior: registry.Behavior{
			Warn:    func(w *registry.Change[meta.Object]) []string { return WarnOfPod(w, "template", "spec") },
			Default: func(w *registry.Change[meta.Object]) { DefaultPodSpec(w.New.Map("template", "spec")) },
		},
	})
}

// CheckPodTemplate returns the violations of a pod template that the schema has not reported in found. If an update leaves the
// template unchanged it returns nil, so that an object with a template from before a rule existed can
// still be scaled and labeled.
func CheckPodTemplate(p names.Profile, found check.Violations, at *check.Path, t *PodTemplateSpec, unchanged bool) []meta.StatusCause {
	if unchanged {
		return nil
	}
	var f check.Violations
	f.Labels(at.Field("labels"), t.Labels)
	checkAnnotations(&f, at.Field("annotations"), t.Annotations)
	f = append(f, specFaults(p, found, at.Field("spec"), &t.Spec, nil)...)
	t.Spec.checkInitRestarts(&f, at.Field("spec"))
	if len(t.Spec.EphemeralContainers) > 0 {
		f.Forbidden(at.Field("spec").Field("ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
	return f
}

// checkAnnotations checks the keys and the total size of annotations. All violations have the path of
// the map.
func checkAnnotations(f *check.Violations, at *check.Path, annotations map[string]string) {
	size := 0
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		f.Format(at, k, meta.CheckQualifiedName(strings.ToLower(k)))
		size += len(k) + len(annotations[k])
	}
	if size > meta.MaxAnnotations {
		f.TooLong(at, meta.MaxAnnotations)
	}
}
