package core

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// PodSetCondition is an aspect of the state of a workload.
type PodSetCondition struct {
	// Type identifies the condition.
	Type string `json:"type" protobuf:"1"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"2"`

	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`

	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

// TemplateColumns returns printer columns for the containers of the pod spec at path.
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

// CheckLastingTemplate returns the violations of the template of pods that run indefinitely that the
// schema has not reported in found. selected is whether the selector of the workload matches the template. See
// CheckPodTemplate for unchanged.
func CheckLastingTemplate(p names.Profile, found check.Violations, at *check.Path, selected bool, t *PodTemplateSpec, kept bool) []meta.StatusCause {
	var f check.Violations
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

// WarnOfPodNames returns a warning if the name of a new object, which is a prefix of the names of its
// pods, is not a DNS label.
func WarnOfPodNames(w *registry.Change[meta.Object]) []string {
	return warnOfHostname(w, "Pod names and hostnames")
}

// warnOfHostname returns a warning if the name of a new object is not a DNS label. use describes the
// use of the name in host names.
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
