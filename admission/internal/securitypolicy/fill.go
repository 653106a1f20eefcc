// Package securitypolicy holds pods to a PodSecurityPolicy: Fill gives them what it has for
// those that say nothing, Check tells what it does not allow.
package securitypolicy

import (
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// Fill gives a spec of a pod, and the containers of all its lists, what a policy's spec has
// for those that say nothing.
func Fill(policy, pod *meta.Object) {
	if id, ok := first(policy, "supplementalGroups"); ok {
		fill(pod, []any{id}, "securityContext", "supplementalGroups")
	}
	if id, ok := first(policy, "fsGroup"); ok {
		fill(pod, id, "securityContext", "fsGroup")
	}
	if labels := policy.Map("seLinux", "seLinuxOptions"); policy.String("seLinux", "rule") == mustRunAs && labels != nil {
		fill(pod, meta.NewObject(labels).Clone().Tree(), "securityContext", "seLinuxOptions")
	}
	if class := policy.String("runtimeClass", "defaultRuntimeClassName"); class != "" {
		fill(pod, class, "runtimeClassName")
	}
	FillContainers(policy, pod, podspec.Of(pod))
}

// FillContainers does that with some containers of a pod alone.
func FillContainers(policy, pod *meta.Object, containers []*meta.Object) {
	for _, c := range containers {
		fillContainer(policy, pod, c)
	}
}

func fillContainer(policy, pod, c *meta.Object) {
	for _, field := range []string{"runAsUser", "runAsGroup"} {
		if id, ok := first(policy, field); ok && effective(pod, c, field) == nil {
			c.Set(id, "securityContext", field)
		}
	}
	if policy.String("runAsUser", "rule") == mustRunAsNonRoot && effective(pod, c, "runAsNonRoot") == nil && effective(pod, c, "runAsUser") == nil {
		c.Set(true, "securityContext", "runAsNonRoot")
	}
	if policy.Bool("readOnlyRootFilesystem") {
		fill(c, true, "securityContext", "readOnlyRootFilesystem")
	}
	if may, set := policy.Get("defaultAllowPrivilegeEscalation"); set {
		fill(c, may, "securityContext", "allowPrivilegeEscalation")
	}
	if !mayEscalate(policy) {
		fill(c, false, "securityContext", "allowPrivilegeEscalation")
	}
	add, drop := c.Strings("securityContext", "capabilities", "add"), c.Strings("securityContext", "capabilities", "drop")
	more := slices.DeleteFunc(policy.Strings("defaultAddCapabilities"), func(name string) bool {
		return slices.Contains(add, name) || slices.Contains(drop, name)
	})
	less := slices.DeleteFunc(policy.Strings("requiredDropCapabilities"), func(name string) bool { return slices.Contains(drop, name) })
	if len(more) > 0 {
		c.Set(meta.StringList(append(add, more...)), "securityContext", "capabilities", "add")
	}
	if len(less) > 0 {
		c.Set(meta.StringList(append(drop, less...)), "securityContext", "capabilities", "drop")
	}
}

// The rules of a policy that ask for something.
const (
	mustRunAs        = "MustRunAs"
	mayRunAs         = "MayRunAs"
	mustRunAsNonRoot = "MustRunAsNonRoot"
)

// first returns the first id that a policy allows, if one must be chosen.
func first(policy *meta.Object, field string) (id int64, ok bool) {
	ranges := policy.Objects(field, "ranges")
	if policy.String(field, "rule") != mustRunAs || len(ranges) == 0 {
		return 0, false
	}
	return ranges[0].Int("min"), true
}

func fill(of *meta.Object, value any, path ...string) {
	if _, set := of.Get(path...); !set {
		of.Set(value, path...)
	}
}

// effective returns what holds for a container, by itself or since its pod says so; nil: nothing.
func effective(pod, c *meta.Object, field string) any {
	if v, set := c.Get("securityContext", field); set {
		return v
	}
	v, _ := pod.Get("securityContext", field)
	return v
}

// mayEscalate reports whether containers may let processes gain rights: unless a policy says no.
func mayEscalate(policy *meta.Object) bool {
	may, set := policy.Get("allowPrivilegeEscalation")
	return !set || may != false
}
