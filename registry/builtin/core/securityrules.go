package core

import (
	"strings"

	"orch.io/controlplane/api/check"
)

func (r *podRules) podSecurity(at *check.Path) {
	s := r.spec.SecurityContext
	if s == nil {
		return
	}
	if isTrue(r.spec.ShareProcessNamespace) && r.spec.HostPID {
		r.Invalid(at.Field("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
	r.sysctls(at.Field("sysctls"), s.Sysctls)
	r.seccomp(at.Field("seccompProfile"), s.SeccompProfile)
	r.windows(at.Field("windowsOptions"), s.WindowsOptions)
	r.appArmor(at.Field("appArmorProfile"), s.AppArmorProfile)
}

func (r *podRules) security(at *check.Path, s *SecurityContext) {
	if s == nil {
		return
	}
	if p := s.ProcMount; p != nil && *p == "Unmasked" && !isFalse(r.spec.HostUsers) {
		r.Invalid(at.Field("procMount"), *p, "`hostUsers` must be false to use `Unmasked`")
	}
	r.seccomp(at.Field("seccompProfile"), s.SeccompProfile)
	if isFalse(s.AllowPrivilegeEscalation) {
		if isTrue(s.Privileged) {
			r.Invalid(at, s, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
		}
		if s.Capabilities != nil {
			for _, c := range s.Capabilities.Add {
				if c == "CAP_SYS_ADMIN" {
					r.Invalid(at, s, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
				}
			}
		}
	}
	r.windows(at.Field("windowsOptions"), s.WindowsOptions)
	r.appArmor(at.Field("appArmorProfile"), s.AppArmorProfile)
}

// isTrue and isFalse report the value of an optional flag.
func isTrue(flag *bool) bool  { return flag != nil && *flag }
func isFalse(flag *bool) bool { return flag != nil && !*flag }

// sysctls checks kernel parameters. A pod that shares a namespace with the node cannot set its
// parameters.
func (r *podRules) sysctls(at *check.Path, list []Sysctl) {
	seen := map[string]bool{}
	for i, c := range list {
		p := at.Index(i).Field("name")
		if c.Name != "" && seen[c.Name] {
			r.Duplicate(p, c.Name)
		}
		seen[c.Name] = true
		name := strings.ReplaceAll(c.Name, "/", ".")
		switch {
		case r.spec.HostNetwork && strings.HasPrefix(name, "net."):
			r.Invalid(p, c.Name, "may not be specified when 'hostNetwork' is true")
		case r.spec.HostIPC && ipcSysctl(name):
			r.Invalid(p, c.Name, "may not be specified when 'hostIPC' is true")
		}
	}
}

func ipcSysctl(name string) bool {
	for _, prefix := range []string{"kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Types of seccomp and AppArmor profiles.
const (
	localProfile   = "Localhost"
	runtimeProfile = "RuntimeDefault"
	noProfile      = "Unconfined"
)

func (r *podRules) seccomp(at *check.Path, s *SeccompProfile) {
	if s == nil {
		return
	}
	local := at.Field("localhostProfile")
	switch {
	case s.Type == localProfile && s.LocalhostProfile == nil:
		r.Required(local, "must be set when seccomp type is Localhost")
	case s.Type == localProfile:
		r.relative(local, *s.LocalhostProfile)
	case s.LocalhostProfile != nil:
		r.Invalid(local, s, "can only be set when seccomp type is Localhost")
	}
}

func (r *podRules) appArmor(at *check.Path, a *AppArmorProfile) {
	if a == nil {
		return
	}
	const maxPath = 4095
	local, name := at.Field("localhostProfile"), a.LocalhostProfile
	switch {
	case a.Type == localProfile && (name == nil || *name == ""):
		r.Required(local, "must be set when AppArmor type is Localhost")
	case a.Type == localProfile:
		if strings.TrimSpace(*name) != *name {
			r.Invalid(local, *name, "must not be padded with whitespace")
		}
		if len(*name) > maxPath {
			r.TooLong(local, maxPath)
		}
	case (a.Type == runtimeProfile || a.Type == noProfile) && name != nil:
		r.Invalid(local, *name, "can only be set when AppArmor type is Localhost")
	}
}

func (r *podRules) windows(at *check.Path, w *WindowsSecurityContextOptions) {
	if w == nil {
		return
	}
	const maxSpec = 64 << 10
	if s := w.GMSACredentialSpec; s != nil && (*s == "" || len(*s) > maxSpec) {
		r.Invalid(at.Field("gmsaCredentialSpec"), "", "must not be empty, nor have more than 64 KiB")
	}
	if n := w.RunAsUserName; n != nil {
		r.windowsUser(at.Field("runAsUserName"), *n)
	}
}

// windowsUser checks a user name with an optional domain.
func (r *podRules) windowsUser(at *check.Path, name string) {
	const maxDomain, maxUser = 256, 104
	domain, user, ok := strings.Cut(name, `\`)
	if !ok {
		domain, user = "", name
	}
	switch {
	case name == "":
		r.Invalid(at, name, "runAsUserName cannot be an empty string")
	case strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		r.Invalid(at, name, "runAsUserName cannot contain control characters")
	case strings.Contains(user, `\`):
		r.Invalid(at, name, "runAsUserName cannot contain more than one backslash")
	case ok && (domain == "" || len(domain) > maxDomain):
		r.Invalid(at, name, "runAsUserName's Domain length must be under 256 characters and not empty")
	case user == "" || len(user) > maxUser || strings.ContainsAny(user, `"/[]:;|=,+*?<>@`) || strings.Trim(user, ". ") == "":
		r.Invalid(at, name, "runAsUserName's User must have at most 104 characters, not only dots and spaces, and none of \"/\\:;|=,+*?<>@[]")
	}
}

// hostProcesses checks that either all containers of a pod are host processes or none.
func (r *podRules) hostProcesses(at *check.Path) {
	var podValue *bool
	if s := r.spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		podValue = s.WindowsOptions.HostProcess
	}
	all, host := 0, 0
	r.eachContainer(at, func(p *check.Path, c *Container) {
		all++
		value := podValue
		if s := c.SecurityContext; s != nil && s.WindowsOptions != nil && s.WindowsOptions.HostProcess != nil {
			value = s.WindowsOptions.HostProcess
			if podValue != nil && *podValue != *value {
				r.Invalid(p.Field("securityContext").Field("windowsOptions").Field("hostProcess"), *value, "must equal the pod's")
			}
		}
		if isTrue(value) {
			host++
		}
	})
	if host == 0 {
		return
	}
	if host != all {
		r.Invalid(at, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if !r.spec.HostNetwork {
		r.Invalid(at.Field("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers")
	}
}

// hostUsers checks that a pod with a user namespace shares no other namespace with the node. The
// capitals in field names are kube-apiserver's.
func (r *podRules) hostUsers(at *check.Path) {
	if isFalse(r.spec.HostUsers) {
		r.forbid(at, "when `hostUsers` is false", []setField{
			{"hostNetwork", r.spec.HostNetwork}, {"HostPID", r.spec.HostPID}, {"HostIPC", r.spec.HostIPC},
		})
		r.eachContainer(at, func(p *check.Path, c *Container) {
			r.forbid(p, "when `hostUsers` is false", []setField{{"volumeDevices", len(c.VolumeDevices) > 0}})
		})
	}
}

// system checks that a pod uses only features of its operating system.
func (r *podRules) system(at *check.Path) {
	if r.spec.OS == nil {
		return
	}
	s := r.spec.SecurityContext
	switch name := r.spec.OS.Name; name {
	case "linux":
		const never = "windows options cannot be set for a linux pod"
		r.forbid(at.Field("securityContext"), never, []setField{{"windowsOptions", s != nil && s.WindowsOptions != nil}})
		r.eachContainer(at, func(p *check.Path, c *Container) {
			s := c.SecurityContext
			r.forbid(p.Field("securityContext"), never, []setField{{"windowsOptions", s != nil && s.WindowsOptions != nil}})
		})
	case "windows":
		r.windowsPod(at, s)
	default:
		if p := at.Field("os"); name == "" {
			r.Required(p.Field("name"), "")
		} else {
			r.NotSupported(p, name, "linux", "windows") // the field of kube-apiserver
		}
	}
}

func (r *podRules) windowsPod(at *check.Path, s *PodSecurityContext) {
	const never = "cannot be set for a windows pod"
	if s == nil {
		s = &PodSecurityContext{}
	}
	security := at.Field("securityContext")
	r.forbid(security, never, []setField{{"appArmorProfile", s.AppArmorProfile != nil}, {"seLinuxOptions", s.SELinuxOptions != nil}})
	r.forbid(at, never, []setField{{"hostUsers", r.spec.HostUsers != nil}, {"hostPID", r.spec.HostPID}, {"hostIPC", r.spec.HostIPC}})
	r.forbid(security, never, []setField{
		{"seccompProfile", s.SeccompProfile != nil}, {"fsGroup", s.FSGroup != nil},
		{"fsGroupChangePolicy", s.FSGroupChangePolicy != nil}, {"sysctls", len(s.Sysctls) > 0},
	})
	r.forbid(at, never, []setField{{"shareProcessNamespace", r.spec.ShareProcessNamespace != nil}})
	r.forbid(security, never, []setField{
		{"runAsUser", s.RunAsUser != nil}, {"runAsGroup", s.RunAsGroup != nil}, {"supplementalGroups", s.SupplementalGroups != nil},
		{"supplementalGroupsPolicy", s.SupplementalGroupsPolicy != nil}, {"seLinuxChangePolicy", s.SELinuxChangePolicy != nil},
	})
	r.eachContainer(at, func(p *check.Path, c *Container) {
		if s := c.SecurityContext; s != nil {
			r.forbid(p.Field("securityContext"), never, []setField{
				{"appArmorProfile", s.AppArmorProfile != nil}, {"seLinuxOptions", s.SELinuxOptions != nil},
				{"seccompProfile", s.SeccompProfile != nil}, {"capabilities", s.Capabilities != nil},
				{"readOnlyRootFilesystem", s.ReadOnlyRootFilesystem != nil}, {"privileged", s.Privileged != nil},
				{"allowPrivilegeEscalation", s.AllowPrivilegeEscalation != nil}, {"procMount", s.ProcMount != nil},
				{"runAsUser", s.RunAsUser != nil}, {"runAsGroup", s.RunAsGroup != nil},
			})
		}
	})
}
