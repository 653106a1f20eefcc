package core

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/diff"
)

// validatePod checks a pod. The subresources binding and eviction are not checked, because the server
// itself makes these writes.
func validatePod(w *registry.Change[Pod]) {
	at, old, new := check.At("spec"), w.Old, w.New
	w.Violations = new.annotationFaults(w.Names, old)
	if old == nil {
		w.Violations = append(w.Violations, specFaults(w.Names, w.SchemaViolations, at, &new.Spec, new)...)
		new.Spec.checkInitRestarts(&w.Violations, at)
		if len(new.Spec.EphemeralContainers) > 0 {
			w.Forbidden(at.Field("ephemeralContainers"), "cannot be set on create")
		}
		if new.Spec.NodeName != "" && len(new.Spec.SchedulingGates) > 0 {
			w.Forbidden(at.Field("nodeName"), "cannot be set until all schedulingGates have been cleared")
		}
		return
	}
	switch w.Subresource {
	case "binding", "eviction":
		return // written by the server
	case "status":
		w.Violations = append(w.Violations, new.statusFaults(old)...)
		return
	}
	// an unchanged spec is not checked: it may be from before a rule existed
	if check.SemanticEqual(new.Spec, old.Spec) {
		return
	}
	w.Violations = append(w.Violations, specFaults(w.Names, w.SchemaViolations, at, &new.Spec, new)...)
	if w.Subresource == "resize" {
		new.checkResize(&w.Violations, at, old, w.Names)
		return
	}
	new.Spec.checkUpdate(&w.Violations, at, &old.Spec, w.Subresource == "ephemeralcontainers")
}

// annotationFaults checks the annotations that the server interprets: the deletion cost is an integer,
// profiles agree with the fields, and the annotation of mirror pods is immutable.
func (p *Pod) annotationFaults(profile names.Profile, old *Pod) []meta.StatusCause {
	var f check.Violations
	at := check.At("metadata", "annotations")
	cost, mirror := profile.Wire(wellknown.PodDeletionCost), profile.Wire(wellknown.MirrorPod)
	mirrorText, mirrors := p.Annotations[mirror]
	if old != nil {
		if oldText, wasMirror := old.Annotations[mirror]; wasMirror != mirrors || oldText != mirrorText {
			f.Forbidden(at.Key(mirror), "may not add, remove or update the mirror pod annotation")
		}
	}
	if mirrors && p.Spec.NodeName == "" {
		f.Invalid(at.Key(mirror), mirrorText, "must set spec.nodeName if mirror pod annotation is set")
	}
	if text, ok := p.Annotations[cost]; ok && !isInt32(text) {
		f.Invalid(at.Key(cost), text, "must be a 32bit integer")
	}
	p.profileFaults(&f, profile, old)
	return f
}

// isInt32 reports whether a text is a 32-bit integer in canonical form.
func isInt32(text string) bool {
	n, err := strconv.ParseInt(text, 10, 32)
	return err == nil && strconv.FormatInt(n, 10) == text
}

// checkUpdate checks that only mutable fields of the spec change: images, a deadline that is reduced,
// additional tolerations, removed scheduling gates, and the node selection while there are gates. It
// resets the permitted changes in a copy and compares it with the old spec.
func (s *PodSpec) checkUpdate(f *check.Violations, at *check.Path, old *PodSpec, ephemeral bool) {
	if !sameContainers(f, at.Field("containers"), s.Containers, old.Containers) ||
		!sameContainers(f, at.Field("initContainers"), s.InitContainers, old.InitContainers) ||
		!s.deadlineChange(f, at.Field("activeDeadlineSeconds"), old) {
		return
	}
	s.tolerationChange(f, at.Field("tolerations"), old)
	gates := map[PodSchedulingGate]bool{}
	for _, g := range old.SchedulingGates {
		gates[g] = true
	}
	for i, g := range s.SchedulingGates {
		if !gates[g] {
			f.Forbidden(at.Field("schedulingGates").Index(i).Field("name"), "only deletion is allowed")
		}
	}
	permitted := *s // s with the old values of all mutable fields
	permitted.Containers, permitted.InitContainers = sameImages(s.Containers, old.Containers), sameImages(s.InitContainers, old.InitContainers)
	permitted.ActiveDeadlineSeconds, permitted.Tolerations, permitted.SchedulingGates = old.ActiveDeadlineSeconds, old.Tolerations, old.SchedulingGates
	if ephemeral {
		permitted.EphemeralContainers = old.EphemeralContainers
	}
	if g := old.TerminationGracePeriodSeconds; g != nil && *g < 0 && s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds == 1 {
		permitted.TerminationGracePeriodSeconds = g
	}
	if len(old.SchedulingGates) > 0 {
		permitted.gatedChanges(f, at, old)
	}
	if !check.SemanticEqual(permitted, *old) {
		f.Forbidden(at, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"+
			"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"+diff.Lines(*old, permitted))
	}
}

// sameContainers checks that the number of containers is unchanged and that images are valid.
func sameContainers(f *check.Violations, at *check.Path, list, old []Container) bool {
	if len(list) != len(old) {
		f.Forbidden(at, "pod updates may not add or remove containers")
		return false
	}
	for i, c := range list {
		f.RequiredField(at.Index(i), "image", c.Image)
		if strings.TrimSpace(c.Image) != c.Image {
			f.Invalid(at.Index(i).Field("image"), c.Image, "must not have leading or trailing whitespace")
		}
	}
	return true
}

func sameImages(list, old []Container) []Container {
	out := slices.Clone(list)
	for i := range out {
		out[i].Image = old[i].Image
	}
	return out
}

// deadlineChange checks the deadline. It returns false if kube-apiserver does not check further.
func (s *PodSpec) deadlineChange(f *check.Violations, at *check.Path, old *PodSpec) bool {
	now, before := s.ActiveDeadlineSeconds, old.ActiveDeadlineSeconds
	switch {
	case now == nil && before != nil:
		f.Invalid(at, nil, "must not update from a positive integer to nil value")
	case now == nil:
	case *now < 0 || *now > math.MaxInt32:
		f.Range(at, *now, 0, math.MaxInt32)
		return false
	case before != nil && *before < *now:
		f.Invalid(at, *now, "must be less than or equal to previous value")
		return false
	}
	return true
}

func (s *PodSpec) tolerationChange(f *check.Violations, at *check.Path, old *PodSpec) {
	kept := map[Toleration]bool{}
	for _, t := range s.Tolerations {
		t.TolerationSeconds = nil
		kept[t] = true
	}
	for _, t := range old.Tolerations {
		if t.TolerationSeconds = nil; !kept[t] {
			f.Forbidden(at, "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
	r := podRules{} // repeated, as at kube-apiserver
	for i, t := range s.Tolerations {
		if t.Key != "" {
			r.Format(at.Index(i).Field("key"), t.Key, meta.CheckQualifiedName(t.Key))
		}
	}
	r.Violations = append(r.Violations, CheckTolerations(at, s.Tolerations)...)
	*f = append(*f, r.Violations...)
}

// gatedChanges checks that the node selection of a pod with scheduling gates only becomes narrower, and
// resets the permitted changes.
func (s *PodSpec) gatedChanges(f *check.Violations, at *check.Path, old *PodSpec) {
	for k, v := range old.NodeSelector {
		if now, ok := s.NodeSelector[k]; !ok || now != v {
			f.Invalid(at.Field("nodeSelector"), s.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
			break
		}
	}
	s.NodeSelector = old.NodeSelector
	before, now := old.Affinity.nodes(), s.Affinity.nodes()
	if check.SemanticEqual(before, now) {
		return
	}
	nodeAffinityChange(f, at.Field("affinity").Field("nodeAffinity"), now, before)
	permitted := Affinity{NodeAffinity: before}
	if s.Affinity != nil {
		permitted.PodAffinity, permitted.PodAntiAffinity = s.Affinity.PodAffinity, s.Affinity.PodAntiAffinity
	}
	s.Affinity = &permitted
	if old.Affinity == nil && check.SemanticEqual(permitted, Affinity{}) {
		s.Affinity = nil
	}
}

func (a *Affinity) nodes() *NodeAffinity {
	if a == nil {
		return nil
	}
	return a.NodeAffinity
}

// nodeAffinityChange checks that the terms of the required node affinity stay, and that requirements
// are only added to them.
func nodeAffinityChange(f *check.Violations, at *check.Path, now, before *NodeAffinity) {
	if before == nil || before.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	at = at.Field(required)
	old := before.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	var terms []NodeSelectorTerm
	if now != nil && now.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = now.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	if len(terms) != len(old) {
		f.Invalid(at.Field("nodeSelectorTerms"), terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	for i, t := range terms {
		if !hasPrefix(t.MatchExpressions, old[i].MatchExpressions) || !hasPrefix(t.MatchFields, old[i].MatchFields) ||
			empty(old[i]) && !empty(t) {
			f.Invalid(at.Field("nodeSelectorTerms").Index(i), t, "only additions are allowed (no mutations or deletions)")
		}
	}
}

func empty(t NodeSelectorTerm) bool { return len(t.MatchExpressions)+len(t.MatchFields) == 0 }

// hasPrefix reports whether list begins with start.
func hasPrefix(list, start []NodeSelectorRequirement) bool {
	return len(list) >= len(start) && check.SemanticEqual(list[:len(start)], start)
}

// validateEphemeral checks that ephemeral containers are only added.
func validateEphemeral(w *registry.Change[meta.Object]) {
	now := map[string]any{}
	for _, c := range containersOf(w.New.Map("spec"), "ephemeralContainers") {
		name, _ := c["name"].(string)
		now[name] = c
	}
	for _, c := range containersOf(w.Old.Map("spec"), "ephemeralContainers") {
		name, _ := c["name"].(string)
		if !meta.Equal(now[name], c) {
			w.Forbidden(check.At("spec", "ephemeralContainers"), fmt.Sprintf("existing ephemeral containers %q may not be removed or changed", name))
		}
	}
}
