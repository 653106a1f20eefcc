package podstandards

import (
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
)

func escalation(p *Pod) *Violation {
	who := p.those(func(c *meta.Object) bool {
		may, set := c.Get("securityContext", "allowPrivilegeEscalation")
		return !set || may != false
	})
	if len(who) == 0 {
		return nil
	}
	return &Violation{"allowPrivilegeEscalation != false", containers(who) + " must set securityContext.allowPrivilegeEscalation=false"}
}

func droppedCapabilities(p *Pod) *Violation {
	var faults []string
	keeping := p.those(func(c *meta.Object) bool {
		return !slices.Contains(c.Strings("securityContext", "capabilities", "drop"), "ALL")
	})
	if len(keeping) > 0 {
		faults = append(faults, containers(keeping)+` must set securityContext.capabilities.drop=["ALL"]`)
	}
	if who, added := p.adding([]string{"NET_BIND_SERVICE"}); len(who) > 0 {
		faults = append(faults, containers(who)+" must not include "+quoted(added)+" in securityContext.capabilities.add")
	}
	if len(faults) == 0 {
		return nil
	}
	return &Violation{"unrestricted capabilities", strings.Join(faults, "; ")}
}

func volumeTypes(p *Pod) *Violation {
	var who []string
	bad := map[string]bool{}
	for _, v := range p.Spec.Objects("volumes") {
		forbidden := false
		for source, value := range v.Tree() {
			if source != "name" && value != nil && !slices.Contains(ownVolumes, source) {
				bad[source], forbidden = true, true
			}
		}
		if forbidden {
			who = append(who, v.String("name"))
		}
	}
	if len(who) == 0 {
		return nil
	}
	use := " use "
	if len(who) == 1 {
		use = " uses "
	}
	return &Violation{"restricted volume types", plural("volume", len(who)) + " " + quoted(who) + use +
		plural("restricted volume type", len(bad)) + " " + quoted(slices.Sorted(maps.Keys(bad)))}
}

func nonRoot(p *Pod) *Violation {
	says := func(of *meta.Object, want bool) bool {
		v, set := of.Get("securityContext", "runAsNonRoot")
		return set && v == want
	}
	if who := p.setters(func(of *meta.Object) bool { return says(of, false) }); who != "" {
		return &Violation{"runAsNonRoot != true", who + " must not set securityContext.runAsNonRoot=false"}
	}
	who := p.those(func(c *meta.Object) bool { return !says(c, true) })
	if says(p.Spec, true) || len(who) == 0 {
		return nil
	}
	return &Violation{"runAsNonRoot != true", "pod or " + containers(who) + " must set securityContext.runAsNonRoot=true"}
}

func rootUser(p *Pod) *Violation {
	who := p.setters(func(of *meta.Object) bool {
		return has(of, "securityContext", "runAsUser") && of.Int("securityContext", "runAsUser") == 0
	})
	if who == "" {
		return nil
	}
	return &Violation{"runAsUser=0", who + " must not set runAsUser=0"}
}

// seccompRequired wants a profile of each container, its own or that of the pod.
func seccompRequired(p *Pod) *Violation {
	if v := seccomp(p); v != nil {
		return v
	}
	set := func(of *meta.Object) bool { return of.Map("securityContext", "seccompProfile") != nil }
	who := p.those(func(c *meta.Object) bool { return !set(c) })
	if set(p.Spec) || len(who) == 0 {
		return nil
	}
	return &Violation{"seccompProfile", "pod or " + containers(who) + ` must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`}
}
