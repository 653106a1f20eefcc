package securitypolicy

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// Check returns the violations of a pod spec against the spec of a policy, in the order of
// kube-apiserver. rootCA is the name of the ConfigMap with the root certificates, which every service
// account volume contains.
func Check(policy, pod *meta.Object, rootCA string) (f check.Violations) {
	at := check.At("spec", "securityContext")
	checkGroups(&f, at.Field("supplementalGroups"), policy, "supplementalGroups", ids(pod, "securityContext", "supplementalGroups"))
	checkGroups(&f, at.Field("fsGroup"), policy, "fsGroup", ids(pod, "securityContext", "fsGroup"))
	checkLabels(&f, at.Field("seLinuxOptions"), policy, pod.Map("securityContext", "seLinuxOptions"))
	for _, namespace := range []struct{ field, word string }{{"hostNetwork", "Host network"}, {"hostPID", "Host PID"}, {"hostIPC", "Host IPC"}} {
		if pod.Bool(namespace.field) && !policy.Bool(namespace.field) {
			f.Invalid(at.Field(namespace.field), true, namespace.word+" is not allowed to be used")
		}
	}
	checkSysctls(&f, policy, pod)
	checkVolumes(&f, policy, pod, rootCA)
	if policy.Map("runtimeClass") != nil {
		class, allowed := pod.String("runtimeClassName"), policy.Strings("runtimeClass", "allowedRuntimeClassNames")
		if class != "" && !slices.Contains(allowed, class) && !slices.Contains(allowed, "*") {
			f.NotSupported(check.At("spec", "runtimeClassName"), class, allowed...)
		}
	}
	for _, list := range []string{podspec.Init, podspec.Containers, podspec.Ephemeral} {
		for i, c := range pod.Objects(list) {
			checkContainer(&f, check.At("spec", list).Index(i), policy, pod, c)
		}
	}
	return f
}

func checkContainer(f *check.Violations, of *check.Path, policy, pod, c *meta.Object) {
	at := of.Field("securityContext")
	checkUser(f, at, policy, pod, c)
	group := effective(pod, c, "runAsGroup")
	switch rule := policy.String("runAsGroup", "rule"); {
	case group == nil && rule == mustRunAs:
		f.Required(at.Field("runAsGroup"), "")
	case group != nil && (rule == mustRunAs || rule == mayRunAs):
		checkID(f, at.Field("runAsGroup"), policy, "runAsGroup", group)
	}
	labels, _ := effective(pod, c, "seLinuxOptions").(map[string]any)
	checkLabels(f, at.Field("seLinuxOptions"), policy, labels)
	if c.Bool("securityContext", "privileged") && !policy.Bool("privileged") {
		f.Invalid(at.Field("privileged"), true, "Privileged containers are not allowed")
	}
	procMount, allowed := c.String("securityContext", "procMount"), policy.Strings("allowedProcMountTypes")
	if procMount != "" && procMount != "Default" && !slices.Contains(allowed, procMount) {
		f.Invalid(at.Field("procMount"), procMount, "ProcMountType is not allowed")
	}
	checkCapabilities(f, at.Field("capabilities"), policy, c)
	checkPorts(f, of.Field("hostPort"), policy, c)
	if writable, _ := c.Get("securityContext", "readOnlyRootFilesystem"); policy.Bool("readOnlyRootFilesystem") && writable != true {
		f.Invalid(at.Field("readOnlyRootFilesystem"), writable, "ReadOnlyRootFilesystem must be set to true")
	}
	if allowed, _ := c.Get("securityContext", "allowPrivilegeEscalation"); !allowsEscalation(policy) && allowed != false {
		f.Invalid(at.Field("allowPrivilegeEscalation"), allowed, "Allowing privilege escalation for containers is not allowed")
	}
}

func checkUser(f *check.Violations, at *check.Path, policy, pod, c *meta.Object) {
	user, nonRoot := effective(pod, c, "runAsUser"), effective(pod, c, "runAsNonRoot")
	switch policy.String("runAsUser", "rule") {
	case mustRunAs:
		if user == nil {
			f.Required(at.Field("runAsUser"), "")
			return
		}
		checkID(f, at.Field("runAsUser"), policy, "runAsUser", user)
	case mustRunAsNonRoot:
		switch {
		case user == nil && nonRoot == nil:
			f.Required(at.Field("runAsNonRoot"), "must be true")
		case nonRoot == false:
			f.Invalid(at.Field("runAsNonRoot"), false, "must be true")
		case user != nil && number(user) == 0:
			f.Invalid(at.Field("runAsUser"), user, "running with the root UID is forbidden")
		}
	}
}

func checkID(f *check.Violations, at *check.Path, policy *meta.Object, field string, id any) {
	if !within(policy, field, number(id)) {
		f.Invalid(at, id, "must be in the ranges: "+ranges(policy, field))
	}
}

func checkGroups(f *check.Violations, at *check.Path, policy *meta.Object, field string, groups []int64) {
	rule := policy.String(field, "rule")
	if rule != mustRunAs && rule != mayRunAs {
		return
	}
	if rule == mustRunAs && len(groups) == 0 && len(policy.List(field, "ranges")) > 0 {
		f.Invalid(at, groups, "unable to validate empty groups against required ranges")
	}
	for _, id := range groups {
		if !within(policy, field, id) {
			f.Invalid(at, groups, fmt.Sprintf("group %d must be in the ranges: %s", id, ranges(policy, field)))
		}
	}
}

// ids returns the ID, or the list of IDs, at path.
func ids(of *meta.Object, path ...string) (list []int64) {
	v, _ := of.Get(path...)
	switch v := v.(type) {
	case nil:
	case []any:
		for _, id := range v {
			list = append(list, number(id))
		}
	default:
		list = append(list, number(v))
	}
	return list
}

func number(v any) int64 { return meta.NewObject(map[string]any{"n": v}).Int("n") }

func within(policy *meta.Object, field string, id int64) bool {
	return slices.ContainsFunc(policy.Objects(field, "ranges"), func(r *meta.Object) bool { return r.Int("min") <= id && id <= r.Int("max") })
}

func ranges(policy *meta.Object, field string) string {
	var texts []string
	for _, r := range policy.Objects(field, "ranges") {
		texts = append(texts, fmt.Sprintf("{%d %d}", r.Int("min"), r.Int("max")))
	}
	return "[" + strings.Join(texts, " ") + "]"
}

func checkLabels(f *check.Violations, at *check.Path, policy *meta.Object, labels map[string]any) {
	if policy.String("seLinux", "rule") != mustRunAs {
		return
	}
	if labels == nil {
		f.Required(at, "")
		return
	}
	have := meta.NewObject(labels)
	if level, want := have.String("level"), policy.String("seLinux", "seLinuxOptions", "level"); !sameLevel(level, want) {
		f.Invalid(at.Field("level"), level, "must be "+want)
	}
	for _, field := range []string{"role", "type", "user"} {
		if got, want := have.String(field), policy.String("seLinux", "seLinuxOptions", field); got != want {
			f.Invalid(at.Field(field), got, "must be "+want)
		}
	}
}

// sameLevel compares SELinux levels; the order of categories does not matter.
func sameLevel(a, b string) bool {
	sorted := func(level string) (string, string) {
		sensitivity, categories, _ := strings.Cut(level, ":")
		list := strings.Split(categories, ",")
		slices.Sort(list)
		return sensitivity, strings.Join(list, ",")
	}
	as, ac := sorted(a)
	bs, bc := sorted(b)
	return as == bs && ac == bc
}

func checkCapabilities(f *check.Violations, at *check.Path, policy, c *meta.Object) {
	allowed := slices.Concat(policy.Strings("allowedCapabilities"), policy.Strings("defaultAddCapabilities"))
	for _, name := range c.Strings("securityContext", "capabilities", "add") {
		if !slices.Contains(allowed, name) && !slices.Contains(allowed, "*") {
			f.Invalid(at.Field("add"), name, "capability may not be added")
		}
	}
	dropped := c.Strings("securityContext", "capabilities", "drop")
	for _, name := range policy.Strings("requiredDropCapabilities") {
		if !slices.Contains(dropped, name) {
			f.Invalid(at.Field("drop"), dropped, name+" is required to be dropped but was not found")
		}
	}
}

func checkPorts(f *check.Violations, at *check.Path, policy, c *meta.Object) {
	var texts []string
	for _, r := range policy.Objects("hostPorts") {
		texts = append(texts, fmt.Sprintf("%d-%d", r.Int("min"), r.Int("max")))
	}
	for _, port := range c.Objects("ports") {
		n := port.Int("hostPort")
		if n > 0 && !slices.ContainsFunc(policy.Objects("hostPorts"), func(r *meta.Object) bool { return r.Int("min") <= n && n <= r.Int("max") }) {
			f.Invalid(at, n, fmt.Sprintf("Host port %d is not allowed to be used. Allowed ports: [%s]", n, strings.Join(texts, ",")))
		}
	}
}

// safeSysctls are the kernel parameters that a policy need not allow explicitly.
var safeSysctls = []string{
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_syncookies",
}

func checkSysctls(f *check.Violations, policy, pod *meta.Object) {
	matches := func(name string, patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			prefix, wildcard := strings.CutSuffix(p, "*")
			return p == name || wildcard && strings.HasPrefix(name, prefix)
		})
	}
	for i, s := range pod.Objects("securityContext", "sysctls") {
		name, at := s.String("name"), check.At("pod", "spec", "securityContext", "sysctls").Index(i)
		switch {
		case matches(name, policy.Strings("forbiddenSysctls")):
			f.Forbidden(at, fmt.Sprintf("sysctl %q is not allowed", name))
		case !slices.Contains(safeSysctls, name) && !matches(name, policy.Strings("allowedUnsafeSysctls")):
			f.Forbidden(at, fmt.Sprintf("unsafe sysctl %q is not allowed", name))
		}
	}
}
