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
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/diff"
)

func validatePod(w *registry.Change[Pod]) {
	at, old, new := check.At("spec"), w.Old, w.New
	w.Faults = new.annotationFaults(w.Names, old)
	if old == nil {
		w.Faults = append(w.Faults, specFaults(w.Names, w.Found, at, &new.Spec, new)...)
		new.Spec.startOnce(&w.Faults, at)
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
		return // the server's own work
	case "status":
		w.Faults = append(w.Faults, new.statusFaults(old)...)
		return
	}
	// The spec is checked if it changed: a pod that was accepted stays so.
	if check.Same(new.Spec, old.Spec) {
		return
	}
	w.Faults = append(w.Faults, specFaults(w.Names, w.Found, at, &new.Spec, new)...)
	if w.Subresource == "resize" {
		new.resized(&w.Faults, at, old, w.Names)
		return
	}
	new.Spec.changes(&w.Faults, at, &old.Spec, w.Subresource == "ephemeralcontainers")
}

// annotationFaults checks the annotations that mean something to the server: the
// cost of a pod's deletion is a number, profiles are those of the fields, and a node's
// own pod, which this one mirrors, neither comes nor goes nor changes.
func (p *Pod) annotationFaults(profile names.Profile, old *Pod) []meta.Cause {
	var f check.Faults
	at := check.At("metadata", "annotations")
	cost, mirror := profile.Wire(names.PodDeletionCost), profile.Wire(names.MirrorPod)
	now, mirrors := p.Annotations[mirror]
	if old != nil {
		if before, did := old.Annotations[mirror]; did != mirrors || before != now {
			f.Forbidden(at.Key(mirror), "may not add, remove or update the mirror pod annotation")
		}
	}
	if mirrors && p.Spec.NodeName == "" {
		f.Invalid(at.Key(mirror), now, "must set spec.nodeName if mirror pod annotation is set")
	}
	if text, ok := p.Annotations[cost]; ok && !wholeNumber(text) {
		f.Invalid(at.Key(cost), text, "must be a 32bit integer")
	}
	p.profileFaults(&f, profile, old)
	return f
}

// wholeNumber reports whether a text is a 32-bit number as programs write it.
func wholeNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 32)
	return err == nil && strconv.FormatInt(n, 10) == text
}

// changes checks that only those fields of a pod's spec change that may: images,
// a deadline that becomes shorter, further tolerations, fewer gates, and which
// nodes may be chosen as long as there are gates.
func (s *PodSpec) changes(f *check.Faults, at *check.Path, old *PodSpec, ephemeral bool) {
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
	like := *s // s with the old values of all that may change
	like.Containers, like.InitContainers = sameImages(s.Containers, old.Containers), sameImages(s.InitContainers, old.InitContainers)
	like.ActiveDeadlineSeconds, like.Tolerations, like.SchedulingGates = old.ActiveDeadlineSeconds, old.Tolerations, old.SchedulingGates
	if ephemeral {
		like.EphemeralContainers = old.EphemeralContainers
	}
	if g := old.TerminationGracePeriodSeconds; g != nil && *g < 0 && s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds == 1 {
		like.TerminationGracePeriodSeconds = g
	}
	if len(old.SchedulingGates) > 0 {
		like.gatedChanges(f, at, old)
	}
	if !check.Same(like, *old) {
		f.Forbidden(at, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"+
			"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"+diff.Lines(*old, like))
	}
}

// sameContainers checks that there are as many containers as before, with
// images that a pod may have.
func sameContainers(f *check.Faults, at *check.Path, list, old []Container) bool {
	if len(list) != len(old) {
		f.Forbidden(at, "pod updates may not add or remove containers")
		return false
	}
	for i, c := range list {
		f.Needs(at.Index(i), "image", c.Image)
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

// deadlineChange reports whether it is worth to look further.
func (s *PodSpec) deadlineChange(f *check.Faults, at *check.Path, old *PodSpec) bool {
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

func (s *PodSpec) tolerationChange(f *check.Faults, at *check.Path, old *PodSpec) {
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
	r := podRules{} // what clients are told of tolerations they are told twice
	for i, t := range s.Tolerations {
		if t.Key != "" {
			r.Format(at.Index(i).Field("key"), t.Key, meta.CheckQualifiedName(t.Key))
		}
	}
	r.Faults = append(r.Faults, CheckTolerations(at, s.Tolerations)...)
	*f = append(*f, r.Faults...)
}

// gatedChanges checks that the choice of nodes, which may change while nobody
// schedules the pod, only becomes narrower, and takes the changes back.
func (s *PodSpec) gatedChanges(f *check.Faults, at *check.Path, old *PodSpec) {
	for k, v := range old.NodeSelector {
		if now, ok := s.NodeSelector[k]; !ok || now != v {
			f.Invalid(at.Field("nodeSelector"), s.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
			break
		}
	}
	s.NodeSelector = old.NodeSelector
	before, now := old.Affinity.nodes(), s.Affinity.nodes()
	if check.Same(before, now) {
		return
	}
	nodeAffinityChange(f, at.Field("affinity").Field("nodeAffinity"), now, before)
	like := Affinity{NodeAffinity: before}
	if s.Affinity != nil {
		like.PodAffinity, like.PodAntiAffinity = s.Affinity.PodAffinity, s.Affinity.PodAntiAffinity
	}
	s.Affinity = &like
	if old.Affinity == nil && check.Same(like, Affinity{}) {
		s.Affinity = nil
	}
}

func (a *Affinity) nodes() *NodeAffinity {
	if a == nil {
		return nil
	}
	return a.NodeAffinity
}

// nodeAffinityChange checks that the terms of a required node affinity stay, and
// that each only gets further requirements.
func nodeAffinityChange(f *check.Faults, at *check.Path, now, before *NodeAffinity) {
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
		if !begins(t.MatchExpressions, old[i].MatchExpressions) || !begins(t.MatchFields, old[i].MatchFields) ||
			empty(old[i]) && !empty(t) {
			f.Invalid(at.Field("nodeSelectorTerms").Index(i), t, "only additions are allowed (no mutations or deletions)")
		}
	}
}

func empty(t NodeSelectorTerm) bool { return len(t.MatchExpressions)+len(t.MatchFields) == 0 }

// begins reports whether a list begins with another one.
func begins(list, start []NodeSelectorRequirement) bool {
	return len(list) >= len(start) && check.Same(list[:len(start)], start)
}

// validateEphemeral lets ephemeral containers come, but neither change nor go.
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
