package core

import (
	"math"

	"orch.io/controlplane/registry/check"
)

func (r *podRules) podSecurity(at *check.Path) {
	s := r.spec.SecurityContext
	at = at.Field("securityContext")
	if s == nil {
		return
	}
	r.id(at.Field("fsGroup"), s.FSGroup)
	r.id(at.Field("runAsUser"), s.RunAsUser)
	r.id(at.Field("runAsGroup"), s.RunAsGroup)
	for i, g := range s.SupplementalGroups {
		r.id(at.Field("supplementalGroups").Index(i), &g)
	}
	r.optional(at.Field("supplementalGroupsPolicy"), s.SupplementalGroupsPolicy, "Merge", "Strict")
	seen := map[string]bool{}
	for i, c := range s.Sysctls {
		p := at.Field("sysctls").Index(i)
		switch {
		case c.Name == "":
			r.Required(p.Field("name"), "")
		case len(c.Name) > 253:
			r.Invalid(p.Field("name"), c.Name, "must have at most 253 characters")
		case seen[c.Name]:
			r.Duplicate(p.Field("name"), c.Name)
		}
		seen[c.Name] = true
	}
	r.optional(at.Field("fsGroupChangePolicy"), s.FSGroupChangePolicy, "Always", "OnRootMismatch")
	r.optional(at.Field("seLinuxChangePolicy"), s.SELinuxChangePolicy, "MountOption", "Recursive")
	r.profiles(at, s.SeccompProfile, s.AppArmorProfile)
	r.windows(at.Field("windowsOptions"), s.WindowsOptions)
}

func (r *podRules) security(at *check.Path, s *SecurityContext) {
	if s == nil {
		return
	}
	r.id(at.Field("runAsUser"), s.RunAsUser)
	r.id(at.Field("runAsGroup"), s.RunAsGroup)
	r.optional(at.Field("procMount"), s.ProcMount, "Default", "Unmasked")
	r.profiles(at, s.SeccompProfile, s.AppArmorProfile)
	if a := s.AllowPrivilegeEscalation; a != nil && !*a {
		if s.Privileged != nil && *s.Privileged {
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
}

// id checks a user or group number.
func (r *podRules) id(at *check.Path, id *int64) {
	if id != nil {
		r.Range(at, *id, 0, math.MaxInt32)
	}
}

func (r *podRules) profiles(at *check.Path, seccomp *SeccompProfile, armor *AppArmorProfile) {
	if seccomp != nil {
		r.profile(at.Field("seccompProfile"), seccomp.Type, seccomp.LocalhostProfile)
		if l := seccomp.LocalhostProfile; l != nil {
			r.relative(at.Field("seccompProfile").Field("localhostProfile"), *l)
		}
	}
	if armor != nil {
		r.profile(at.Field("appArmorProfile"), armor.Type, armor.LocalhostProfile)
	}
}

// profile checks a type and the name of a local profile, which belong together.
func (r *podRules) profile(at *check.Path, kind string, local *string) {
	r.RequiredOneOf(at.Field("type"), kind, "Localhost", "RuntimeDefault", "Unconfined")
	switch {
	case kind == "Localhost" && (local == nil || *local == ""):
		r.Required(at.Field("localhostProfile"), "must be set when the type is Localhost")
	case kind != "Localhost" && local != nil:
		r.Invalid(at.Field("localhostProfile"), *local, "can only be set when the type is Localhost")
	}
}

func (r *podRules) windows(at *check.Path, w *WindowsSecurityContextOptions) {
	if w == nil {
		return
	}
	if w.RunAsUserName != nil && *w.RunAsUserName == "" {
		r.Invalid(at.Field("runAsUserName"), "", "runAsUserName cannot be an empty string")
	}
	if w.HostProcess != nil && *w.HostProcess && !r.spec.HostNetwork {
		r.Invalid(at.Field("hostProcess"), true, "hostNetwork must be true if pod contains any hostProcess containers")
	}
}
