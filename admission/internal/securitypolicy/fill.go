// Package securitypolicy applies a PodSecurityPolicy to pods: Fill sets its defaults, Check returns
// violations of it.
package securitypolicy

import (
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// Fill sets the defaults of a policy's spec in a pod spec and in all its containers. Fields that are
// set stay.
func Fill(policy, pod *meta.Object) {
	if id, ok := requiredID(policy, "supplementalGroups"); ok {
		setDefault(pod, []any{id}, "securityContext", "supplementalGroups")
	}
	if id, ok := requiredID(policy, "fsGroup"); ok {
		setDefault(pod, id, "securityContext", "fsGroup")
	}
	if labels := policy.Map("seLinux", "seLinuxOptions"); policy.String("seLinux", "rule") == mustRunAs && labels != nil {
		setDefault(pod, meta.NewObject(labels).Clone().Tree(), "securityContext", "seLinuxOptions")
	}
	if class := policy.String("runtimeClass", "defaultRuntimeClassName"); class != "" {
		setDefault(pod, class, "runtimeClassName")
	}
	FillContainers(policy, pod, podspec.Of(pod))
}

// FillContainers sets the defaults in the given containers of pod only.
func FillContainers(policy, pod *meta.Object, containers []*meta.Object) {
	for _, c := range containers {
		fillContainer(policy, pod, c)
	}
}

func fillContainer(policy, pod, c *meta.Object) {
	for _, field := range []string{"runAsUser", "runAsGroup"} {
		if id, ok := requiredID(policy, field); ok && effective(pod, c, field) == nil {
			c.Set(id, "securityContext", field)
		}
	}
	if policy.String("runAsUser", "rule") == mustRunAsNonRoot && effective(pod, c, "runAsNonRoot") == nil && effective(pod, c, "runAsUser") == nil {
		c.Set(true, "securityContext", "runAsNonRoot")
	}
	if policy.Bool("readOnlyRootFilesystem") {
		setDefault(c, true, "securityContext", "readOnlyRootFilesystem")
	}
	if allowed, set := policy.Get("defaultAllowPrivilegeEscalation"); set {
		setDefault(c, allowed, "securityContext", "allowPrivilegeEscalation")
	}
	if !allowsEscalation(policy) {
		setDefault(c, false, "securityContext", "allowPrivilegeEscalation")
	}
	add, drop := c.Strings("securityContext", "capabilities", "add"), c.Strings("securityContext", "capabilities", "drop")
	added := slices.DeleteFunc(policy.Strings("defaultAddCapabilities"), func(name string) bool {
		return slices.Contains(add, name) || slices.Contains(drop, name)
	})
	dropped := slices.DeleteFunc(policy.Strings("requiredDropCapabilities"), func(name string) bool { return slices.Contains(drop, name) })
	if len(added) > 0 {
		c.Set(meta.StringList(append(add, added...)), "securityContext", "capabilities", "add")
	}
	if len(dropped) > 0 {
		c.Set(meta.StringList(append(drop, dropped...)), "securityContext", "capabilities", "drop")
	}
}

// Strategies of a policy that restrict IDs.
const (
	mustRunAs        = "MustRunAs"
	mayRunAs         = "MayRunAs"
	mustRunAsNonRoot = "MustRunAsNonRoot"
)

// requiredID returns the default ID if the policy requires an ID from its ranges: the lowest of the
// first range.
func requiredID(policy *meta.Object, field string) (id int64, ok bool) {
	ranges := policy.Objects(field, "ranges")
	if policy.String(field, "rule") != mustRunAs || len(ranges) == 0 {
		return 0, false
	}
	return ranges[0].Int("min"), true
}

// setDefault sets the field at path if it is unset.
func setDefault(of *meta.Object, value any, path ...string) {
	if _, set := of.Get(path...); !set {
		of.Set(value, path...)
	}
}

// effective returns the value that applies to a container: its own value, else the pod's, else nil.
func effective(pod, c *meta.Object, field string) any {
	if v, set := c.Get("securityContext", field); set {
		return v
	}
	v, _ := pod.Get("securityContext", field)
	return v
}

// allowsEscalation reports whether the policy allows processes to gain privileges; the default is true.
func allowsEscalation(policy *meta.Object) bool {
	allowed, set := policy.Get("allowPrivilegeEscalation")
	return !set || allowed != false
}
