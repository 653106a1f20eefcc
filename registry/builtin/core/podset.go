package core

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// PodSetCondition is one aspect of the state of a set of pods.
type PodSetCondition struct {
	// Type names the aspect that the condition is about.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

// TemplateColumns returns the columns that tell of the containers of the pod's spec at
// a path.
func TemplateColumns(priority int, path ...string) []registry.Column {
	return []registry.Column{
		{Name: "Containers", Type: "string", Doc: "The names of the containers.", Priority: priority, Cell: func(o *meta.Object) any {
			names, _ := ContainerNames(o.Map(path...))
			return names
		}},
		{Name: "Images", Type: "string", Doc: "The images of the containers.", Priority: priority, Cell: func(o *meta.Object) any {
			_, images := ContainerNames(o.Map(path...))
			return images
		}},
	}
}

// CheckLastingTemplate returns the faults of the template of pods that run for good,
// beyond those that the schema found. selected tells whether the selector of their kind
// finds them, kept what CheckPodTemplate wants to know.
func CheckLastingTemplate(p names.Profile, found check.Faults, at *check.Path, selected bool, t *PodTemplateSpec, kept bool) []meta.Cause {
	var f check.Faults
	if !selected {
		f.Invalid(at.Field("metadata").Field("labels"), t.Labels, "`selector` does not match template `labels`")
	}
	f = append(f, CheckPodTemplate(p, found, at, t, kept)...)
	spec := at.Field("spec")
	if policy := t.Spec.RestartPolicy; policy != "Always" {
		f.NotSupported(spec.Field("restartPolicy"), policy, "Always")
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		f.Forbidden(spec.Field("activeDeadlineSeconds"), "activeDeadlineSeconds in a template is not supported")
	}
	return f
}

// WarnOfPodNames returns a warning if a new object, whose name prefixes the names of its pods,
// has a name that is not a DNS label.
func WarnOfPodNames(w *registry.Change[meta.Object]) []string {
	return warnOfHostname(w, "Pod names and hostnames")
}

// warnOfHostname returns a warning if a new object has a name that is not a DNS label, although
// the name is used in hostnames.
func warnOfHostname(w *registry.Change[meta.Object], use string) []string {
	if w.Old != nil || w.New.Name() == "" {
		return nil
	}
	faults := meta.CheckDNSLabel(w.New.Name())
	if len(faults) == 0 {
		return nil
	}
	return []string{"metadata.name: this is used in " + use + ", which can result in surprising behavior; a DNS label is recommended: [" + strings.Join(faults, " ") + "]"}
}
