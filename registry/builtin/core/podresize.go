package core

import (
	"cmp"
	"maps"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// mergeResize copies the resources and the resize policies of in to obj. If the containers differ, it
// copies the lists, so that validation rejects them.
func mergeResize(obj, in *meta.Object) {
	for _, list := range []string{"containers", "initContainers"} {
		containers, requested := obj.Objects("spec", list), in.Objects("spec", list)
		if !slices.EqualFunc(containers, requested, func(a, b *meta.Object) bool { return a.String("name") == b.String("name") }) {
			obj.CopyField(in, "spec", list)
			continue
		}
		for i, c := range containers {
			c.CopyField(requested[i], "resources")
			c.CopyField(requested[i], "resizePolicy")
		}
	}
	obj.CopyField(in, "spec", "resources")
}

// checkResize checks that only cpu and memory change, that the QoS class stays, and that the node
// supports the change.
func (p *Pod) checkResize(f *check.Violations, at *check.Path, old *Pod, profile names.Profile) {
	podPath := check.At("[]") // the path of the pod itself at kube-apiserver
	if _, mirrors := old.Annotations[profile.Wire(wellknown.MirrorPod)]; mirrors {
		f.Forbidden(podPath, "static pods cannot be resized")
		return
	}
	if old.Spec.OS != nil && old.Spec.OS.Name == "windows" {
		f.Forbidden(podPath, "windows pods cannot be resized")
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
	var stored check.Violations
	if was.checkInitRestarts(&stored, at); len(stored) == 0 {
		now.checkInitRestarts(f, at)
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
			c.Resources.checkNotRemoved(f, at.Field(list).Index(i).Field("resources"), &pods[n][1][i].Resources)
		}
	}
	now.checkPodResourcesPresent(f, at.Field("resources"), was)
	for i, c := range now.Containers {
		c.checkResize(f, at, &was.Containers[i])
	}
	for i, c := range now.InitContainers {
		at := at.Field("initContainers").Index(i)
		c.checkResize(f, at, &was.InitContainers[i])
		if check.SemanticEqual(c, was.InitContainers[i]) {
			continue
		}
		for range c.restartsToResize() {
			f.Forbidden(at, "an init container that ends cannot be resized by a restart")
		}
	}
	if q, other := now.Resources, was.Resources; q != nil && !check.SemanticEqual(q.computingOf(other), *cmp.Or(other, &ResourceRequirements{})) {
		f.Forbidden(at, onlyComputing+" at pod-level")
	}
}

// sameNames checks that no container was added, removed, renamed or moved.
func sameNames(f *check.Violations, at *check.Path, now, old []Container) {
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

// checkResize checks that nothing but the cpu and memory of a container changes. A container with
// resource claims cannot be resized, as at kube-apiserver.
func (c *Container) checkResize(f *check.Violations, at *check.Path, old *Container) {
	permitted := *c
	permitted.Resources = c.Resources.computingOf(&old.Resources)
	permitted.Resources.Claims = nil
	if !check.SemanticEqual(permitted, *old) {
		f.Forbidden(at, onlyComputing)
	}
}

const restartContainer = "RestartContainer"

// restartsToResize returns the indexes of the resize policies that restart an init container. It
// returns nil for sidecars, which may be restarted.
func (c *Container) restartsToResize() (indexes []int) {
	if c.RestartPolicy != nil && *c.RestartPolicy == "Always" {
		return nil
	}
	for i, p := range c.ResizePolicy {
		if p.RestartPolicy == restartContainer {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// checkInitRestarts checks that no resize policy restarts an init container that runs once.
func (s *PodSpec) checkInitRestarts(f *check.Violations, at *check.Path) {
	for i, c := range s.InitContainers {
		for _, j := range c.restartsToResize() {
			f.Invalid(at.Field("initContainers").Index(i).Field("resizePolicy").Index(j).Field("restartPolicy"), restartContainer,
				"must not be set to 'RestartContainer' for init containers without restartPolicy=Always")
		}
	}
}

// checkPodResourcesPresent checks that no pod-level request or limit is removed.
func (s *PodSpec) checkPodResourcesPresent(f *check.Violations, at *check.Path, old *PodSpec) {
	switch {
	case old.Resources == nil:
	case s.Resources == nil:
		f.Forbidden(at, "pod-level resources cannot be removed")
	default:
		s.Resources.checkNotRemoved(f, at, old.Resources)
	}
}

// checkNotRemoved checks that no request or limit is removed.
func (q *ResourceRequirements) checkNotRemoved(f *check.Violations, at *check.Path, old *ResourceRequirements) {
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

// computingOf returns the requirements with cpu and memory replaced by the values of other, which may be
// nil.
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
