package quota

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// Selector selects objects by a scope.
type Selector struct {
	ScopeName string   `json:"scopeName"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
}

// String returns the selector in the format of refusals.
func (s Selector) String() string {
	return "{" + s.ScopeName + " " + s.Operator + " [" + strings.Join(s.Values, " ") + "]}"
}

// selects reports whether the selector selects an object of a resource.
func (s Selector) selects(r meta.GroupResource, o *meta.Object) bool {
	if r == claims && s.ScopeName == "VolumeAttributesClass" {
		return s.matchesValues(attributes(o))
	}
	if r != pods {
		return false
	}
	switch spec := meta.NewObject(o.Map("spec")); s.ScopeName {
	case "Terminating":
		return hasDeadline(spec)
	case "NotTerminating":
		return !hasDeadline(spec)
	case "BestEffort":
		return bestEffort(spec)
	case "NotBestEffort":
		return !bestEffort(spec)
	case "CrossNamespacePodAffinity":
		return crossNamespaceAffinity(spec)
	case "PriorityClass":
		var have []string
		if class := spec.String("priorityClassName"); class != "" {
			have = []string{class}
		}
		return s.matchesValues(have)
	}
	return false
}

// matchesValues reports whether the operator matches a value of an object, or the absence of values.
func (s Selector) matchesValues(have []string) bool {
	among := func(value string) bool { return slices.Contains(s.Values, value) }
	switch s.Operator {
	case "Exists":
		return len(have) > 0
	case "DoesNotExist":
		return len(have) == 0
	case "In":
		return slices.ContainsFunc(have, among)
	case "NotIn":
		return len(have) == 0 || slices.ContainsFunc(have, func(value string) bool { return !among(value) })
	}
	return false
}

// attributes returns the current and desired VolumeAttributesClasses of a claim.
func attributes(claim *meta.Object) (classes []string) {
	for _, path := range [][]string{
		{"spec", "volumeAttributesClassName"}, {"status", "currentVolumeAttributesClassName"}, {"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"},
	} {
		if class := claim.String(path...); class != "" {
			classes = append(classes, class)
		}
	}
	return classes
}

// hasDeadline reports whether a pod has an activeDeadlineSeconds.
func hasDeadline(spec *meta.Object) bool {
	_, limited := spec.Get("activeDeadlineSeconds")
	return limited && spec.Int("activeDeadlineSeconds") >= 0
}

// bestEffort reports whether a pod has neither requests nor limits for cpu and memory.
func bestEffort(spec *meta.Object) bool {
	parts := podspec.Of(spec, podspec.Containers, podspec.Init)
	if len(spec.Map("resources")) > 0 {
		parts = []*meta.Object{spec}
	}
	for _, part := range parts {
		for _, field := range []string{"requests", "limits"} {
			has := podspec.Resources(part, field)
			if !has["cpu"].IsZero() || !has["memory"].IsZero() {
				return false
			}
		}
	}
	return true
}

// crossNamespaceAffinity reports whether the pod affinity of a pod refers to other namespaces.
func crossNamespaceAffinity(spec *meta.Object) bool {
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		terms := spec.Objects("affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution")
		for _, weighted := range spec.Objects("affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution") {
			terms = append(terms, meta.NewObject(weighted.Map("podAffinityTerm")))
		}
		for _, term := range terms {
			if _, selects := term.Get("namespaceSelector"); selects || len(term.List("namespaces")) > 0 {
				return true
			}
		}
	}
	return false
}
