package core

import (
	"context"
	"math"
	"slices"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

func validatePod(ctx context.Context, p names.Profile, old, new *Pod) []meta.Cause {
	var f check.Faults
	at := check.At("spec")
	if old == nil {
		if len(new.Spec.EphemeralContainers) > 0 {
			f.Forbidden(at.Field("ephemeralContainers"), "cannot be set on create")
		}
		return append(CheckPodSpec(p, at, &new.Spec), f...)
	}
	if registry.Endpoint(ctx) == "status" {
		return podStatusFaults(new)
	}
	// The spec is checked as far as it changed: a pod that was accepted stays so.
	if !check.Same(new.Spec, old.Spec) {
		f = CheckPodSpec(p, at, &new.Spec)
		if len(f) == 0 {
			new.Spec.changes(&f, at, &old.Spec, registry.Endpoint(ctx) == "ephemeralcontainers")
		}
	}
	return f
}

func podStatusFaults(pod *Pod) []meta.Cause {
	var f check.Faults
	at := check.At("status")
	for i, ip := range pod.Status.PodIPs {
		if err := parseIP(ip.IP); err != nil {
			f.Invalid(at.Field("podIPs").Index(i), ip.IP, "must be a valid IP address")
		}
	}
	for i, c := range pod.Status.Conditions {
		if c.Type == "" {
			f.Required(at.Field("conditions").Index(i).Field("type"), "")
		}
	}
	return f
}

// changes checks that only those fields of a pod's spec change that may: images,
// a deadline that becomes shorter, further tolerations, fewer gates.
func (s *PodSpec) changes(f *check.Faults, at *check.Path, old *PodSpec, ephemeral bool) {
	if len(s.Containers) != len(old.Containers) {
		f.Forbidden(at.Field("containers"), "pod updates may not add or remove containers")
		return
	}
	if len(s.InitContainers) != len(old.InitContainers) {
		f.Forbidden(at.Field("initContainers"), "pod updates may not add or remove containers")
		return
	}
	s.deadlineChange(f, at.Field("activeDeadlineSeconds"), old)
	s.tolerationChange(f, at.Field("tolerations"), old)
	for i, g := range s.SchedulingGates {
		if !slices.Contains(old.SchedulingGates, g) {
			f.Forbidden(at.Field("schedulingGates").Index(i), "only deletion is allowed")
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
	if len(old.SchedulingGates) > 0 && wider(s.NodeSelector, old.NodeSelector) {
		like.NodeSelector = old.NodeSelector
	}
	if !check.Same(like, *old) {
		f.Forbidden(at, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"+
			"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")
	}
}

func sameImages(list, old []Container) []Container {
	out := slices.Clone(list)
	for i := range out {
		out[i].Image = old[i].Image
	}
	return out
}

// wider reports whether labels hold all of the old ones.
func wider(labels, old map[string]string) bool {
	for k, v := range old {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func (s *PodSpec) deadlineChange(f *check.Faults, at *check.Path, old *PodSpec) {
	now, before := s.ActiveDeadlineSeconds, old.ActiveDeadlineSeconds
	switch {
	case now == nil && before != nil:
		f.Invalid(at, nil, "must not update from a positive integer to nil value")
	case now == nil:
	case *now < 0 || *now > math.MaxInt32:
		f.Invalid(at, *now, "must be between 0 and 2147483647, inclusive")
	case before != nil && *before < *now:
		f.Invalid(at, *now, "must be less than or equal to previous value")
	}
}

func (s *PodSpec) tolerationChange(f *check.Faults, at *check.Path, old *PodSpec) {
	for _, before := range old.Tolerations {
		kept := slices.ContainsFunc(s.Tolerations, func(t Toleration) bool {
			t.TolerationSeconds, before.TolerationSeconds = nil, nil
			return t == before
		})
		if !kept {
			f.Forbidden(at, "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
}

// validateEphemeral lets ephemeral containers come, but neither change nor go.
func validateEphemeral(_ context.Context, obj, old *meta.Object) []meta.Cause {
	var f check.Faults
	now := map[string]any{}
	for _, c := range containersOf(obj.Map("spec"), "ephemeralContainers") {
		name, _ := c["name"].(string)
		now[name] = c
	}
	for _, c := range containersOf(old.Map("spec"), "ephemeralContainers") {
		name, _ := c["name"].(string)
		if !meta.Equal(now[name], c) {
			f.Forbidden(check.At("spec", "ephemeralContainers"), "existing ephemeral containers \""+name+"\" may not be removed or changed")
		}
	}
	return f
}
