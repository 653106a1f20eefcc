package core

import (
	"cmp"
	"maps"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
)

// mergeResize takes what the containers and the pod may use from in, and nothing else.
// Lists of other containers it takes as they are, for the rules to refuse.
func mergeResize(obj, in *meta.Object) {
	for _, list := range []string{"containers", "initContainers"} {
		now, asked := obj.Objects("spec", list), in.Objects("spec", list)
		if !slices.EqualFunc(now, asked, func(a, b *meta.Object) bool { return a.String("name") == b.String("name") }) {
			obj.CopyField(in, "spec", list)
			continue
		}
		for i, c := range now {
			c.CopyField(asked[i], "resources")
			c.CopyField(asked[i], "resizePolicy")
		}
	}
	obj.CopyField(in, "spec", "resources")
}

// resized checks that what a pod may use is all that changes, and that it can change.
func (p *Pod) resized(f *check.Faults, at *check.Path, old *Pod, profile names.Profile) {
	whole := check.At("[]") // as clients know the pod itself
	if _, mirrors := old.Annotations[profile.Wire(names.MirrorPod)]; mirrors {
		f.Forbidden(whole, "static pods cannot be resized")
		return
	}
	if old.Spec.OS != nil && old.Spec.OS.Name == "windows" {
		f.Forbidden(whole, "windows pods cannot be resized")
		return
	}
	class := cmp.Or(old.Status.QOSClass, podspec.QoS(old.Spec.shares()))
	if podspec.QoS(p.Spec.shares()) != class {
		f.Invalid(at, class, "Pod QOS Class may not change as a result of resizing")
	}
	running := slices.IndexFunc(old.Status.ContainerStatuses, func(s ContainerStatus) bool { return s.State.Running != nil })
	if running >= 0 && old.Status.ContainerStatuses[running].Resources == nil {
		f.Forbidden(at, "the pod runs on a node that cannot resize it")
	}
	if len(old.Status.NodeAllocatableResourceClaimStatuses) > 0 {
		f.Forbidden(at, "a pod with claims that count against its node's resources cannot be resized")
	}
	now, was := &p.Spec, &old.Spec
	var stored check.Faults
	if was.startOnce(&stored, at); len(stored) == 0 {
		now.startOnce(f, at)
	}
	before := len(*f)
	sameNames(f, at.Field("containers"), now.Containers, was.Containers)
	sameNames(f, at.Field("initContainers"), now.InitContainers, was.InitContainers)
	if len(*f) > before {
		return
	}
	pods := [][2][]Container{{now.Containers, was.Containers}, {now.InitContainers, was.InitContainers}}
	for n, list := range []string{"containers", "initContainers"} {
		for i, c := range pods[n][0] {
			c.Resources.kept(f, at.Field(list).Index(i).Field("resources"), &pods[n][1][i].Resources)
		}
	}
	now.wholeKept(f, at.Field("resources"), was)
	for i, c := range now.Containers {
		c.resized(f, at, &was.Containers[i])
	}
	for i, c := range now.InitContainers {
		at := at.Field("initContainers").Index(i)
		c.resized(f, at, &was.InitContainers[i])
		if check.Same(c, was.InitContainers[i]) {
			continue
		}
		for range c.restartsToResize() {
			f.Forbidden(at, "an init container that ends cannot be resized by a restart")
		}
	}
	if q, other := now.Resources, was.Resources; q != nil && !check.Same(q.computingOf(other), *cmp.Or(other, &ResourceRequirements{})) {
		f.Forbidden(at, onlyComputing+" at pod-level")
	}
}

// sameNames checks that the containers are those that there were.
func sameNames(f *check.Faults, at *check.Path, now, old []Container) {
	if len(now) != len(old) {
		f.Forbidden(at, "containers may not be added or removed on resize")
		return
	}
	for i := range now {
		if now[i].Name != old[i].Name {
			f.Forbidden(at.Index(i).Field("name"), "containers may not be renamed or reordered on resize")
		}
	}
}

const onlyComputing = "only cpu and memory resources are mutable"

// resized checks that nothing of a container changes but its cpu and memory. One that
// uses claims cannot change at all, as clients know it.
func (c *Container) resized(f *check.Faults, at *check.Path, old *Container) {
	like := *c
	like.Resources = c.Resources.computingOf(&old.Resources)
	like.Resources.Claims = nil
	if !check.Same(like, *old) {
		f.Forbidden(at, onlyComputing)
	}
}

const restartContainer = "RestartContainer"

// restartsToResize returns which of its resize policies restart an init container that
// ends, and so runs but once.
func (c *Container) restartsToResize() (which []int) {
	if c.RestartPolicy != nil && *c.RestartPolicy == "Always" {
		return nil
	}
	for i, p := range c.ResizePolicy {
		if p.RestartPolicy == restartContainer {
			which = append(which, i)
		}
	}
	return which
}

// startOnce checks that no init container that ends is to be restarted.
func (s *PodSpec) startOnce(f *check.Faults, at *check.Path) {
	for i, c := range s.InitContainers {
		for _, j := range c.restartsToResize() {
			f.Invalid(at.Field("initContainers").Index(i).Field("resizePolicy").Index(j).Field("restartPolicy"), restartContainer,
				"must not be set to 'RestartContainer' for init containers without restartPolicy=Always")
		}
	}
}

// wholeKept checks that what the pod as a whole asked for or limited still is.
func (s *PodSpec) wholeKept(f *check.Faults, at *check.Path, old *PodSpec) {
	switch {
	case old.Resources == nil:
	case s.Resources == nil:
		f.Forbidden(at, "pod-level resources cannot be removed")
	default:
		s.Resources.kept(f, at, old.Resources)
	}
}

// kept checks that what was asked for or limited still is.
func (q *ResourceRequirements) kept(f *check.Faults, at *check.Path, old *ResourceRequirements) {
	for _, list := range []struct {
		field    string
		now, was amounts
	}{{"requests", q.Requests, old.Requests}, {"limits", q.Limits, old.Limits}} {
		for name := range list.was {
			if _, ok := list.now[name]; !ok {
				f.Forbidden(at.Field(list.field), "resource "+list.field+" cannot be removed")
				break
			}
		}
	}
}

// computingOf returns requirements with the cpu and memory of others, if there are some.
func (q *ResourceRequirements) computingOf(other *ResourceRequirements) ResourceRequirements {
	take := func(now, from amounts) amounts {
		out := maps.Clone(now)
		for _, name := range podspec.Computing() {
			delete(out, name)
			if amount, ok := from[name]; ok {
				if out == nil {
					out = amounts{}
				}
				out[name] = amount
			}
		}
		return out
	}
	other = cmp.Or(other, &ResourceRequirements{})
	return ResourceRequirements{Limits: take(q.Limits, other.Limits), Requests: take(q.Requests, other.Requests), Claims: q.Claims}
}
