package podstandards

import (
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
)

func escalation(p *Pod) *Violation {
	offenders := p.containersWhere(func(c *meta.Object) bool {
		allowed, set := c.Get("securityContext", "allowPrivilegeEscalation")
		return !set || allowed != false
	})
	if len(offenders) == 0 {
		return nil
	}
	return &Violation{"allowPrivilegeEscalation != false", containers(offenders) + " must set securityContext.allowPrivilegeEscalation=false"}
}

func droppedCapabilities(p *Pod) *Violation {
	var faults []string
	notDropping := p.containersWhere(func(c *meta.Object) bool {
		return !slices.Contains(c.Strings("securityContext", "capabilities", "drop"), "ALL")
	})
	if len(notDropping) > 0 {
		faults = append(faults, containers(notDropping)+` must set securityContext.capabilities.drop=["ALL"]`)
	}
	if offenders, added := p.addedCapabilities([]string{"NET_BIND_SERVICE"}); len(offenders) > 0 {
		faults = append(faults, containers(offenders)+" must not include "+quoted(added)+" in securityContext.capabilities.add")
	}
	if len(faults) == 0 {
		return nil
	}
	return &Violation{"unrestricted capabilities", strings.Join(faults, "; ")}
}

func volumeTypes(p *Pod) *Violation {
	var offenders []string
	bad := map[string]bool{}
	for _, v := range p.Spec.Objects("volumes") {
		forbidden := false
		for source, value := range v.Tree() {
			if source != "name" && value != nil && !slices.Contains(allowedVolumes, source) {
				bad[source], forbidden = true, true
			}
		}
		if forbidden {
			offenders = append(offenders, v.String("name"))
		}
	}
	if len(offenders) == 0 {
		return nil
	}
	use := " use "
	if len(offenders) == 1 {
		use = " uses "
	}
	return &Violation{"restricted volume types", plural("volume", len(offenders)) + " " + quoted(offenders) + use +
		plural("restricted volume type", len(bad)) + " " + quoted(slices.Sorted(maps.Keys(bad)))}
}

func nonRoot(p *Pod) *Violation {
	isSet := func(of *meta.Object, want bool) bool {
		v, set := of.Get("securityContext", "runAsNonRoot")
		return set && v == want
	}
	if offenders := p.subjectsWhere(func(of *meta.Object) bool { return isSet(of, false) }); offenders != "" {
		return &Violation{"runAsNonRoot != true", offenders + " must not set securityContext.runAsNonRoot=false"}
	}
	offenders := p.containersWhere(func(c *meta.Object) bool { return !isSet(c, true) })
	if isSet(p.Spec, true) || len(offenders) == 0 {
		return nil
	}
	return &Violation{"runAsNonRoot != true", "pod or " + containers(offenders) + " must set securityContext.runAsNonRoot=true"}
}

func rootUser(p *Pod) *Violation {
	offenders := p.subjectsWhere(func(of *meta.Object) bool {
		return has(of, "securityContext", "runAsUser") && of.Int("securityContext", "runAsUser") == 0
	})
	if offenders == "" {
		return nil
	}
	return &Violation{"runAsUser=0", offenders + " must not set runAsUser=0"}
}

// seccompRequired requires a profile for each container, by itself or by its pod.
func seccompRequired(p *Pod) *Violation {
	if v := seccomp(p); v != nil {
		return v
	}
	set := func(of *meta.Object) bool { return of.Map("securityContext", "seccompProfile") != nil }
	offenders := p.containersWhere(func(c *meta.Object) bool { return !set(c) })
	if set(p.Spec) || len(offenders) == 0 {
		return nil
	}
	return &Violation{"seccompProfile", "pod or " + containers(offenders) + ` must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`}
}
