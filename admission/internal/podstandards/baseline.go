package podstandards

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

func appArmor(p *Pod) *Violation {
	var offenders []string
	bad := map[string]bool{}
	forbidden := func(of *meta.Object) bool {
		return forbiddenProfile(of, "appArmorProfile", bad)
	}
	if forbidden(p.Spec) {
		offenders = append(offenders, "pod")
	}
	if list := p.containersWhere(forbidden); len(list) > 0 {
		offenders = append(offenders, containers(list))
	}
	var annotations []string
	for key, value := range p.Annotations {
		if strings.HasPrefix(key, p.Names.Wire(wellknown.AppArmorProfile)) && value != "" && value != "runtime/default" && !strings.HasPrefix(value, "localhost/") {
			annotations = append(annotations, fmt.Sprintf("%s=%q", key, value))
		}
	}
	slices.Sort(annotations)
	if len(annotations) > 0 {
		offenders = append(offenders, plural("annotation", len(annotations)))
	}
	if len(offenders) == 0 {
		return nil
	}
	values := slices.Concat(slices.Sorted(maps.Keys(bad)), annotations)
	return &Violation{plural("forbidden AppArmor profile", len(values)),
		strings.Join(offenders, " and ") + " must not set AppArmor profile type to " + quoted(values)}
}

func capabilities(p *Pod) *Violation {
	offenders, added := p.addedCapabilities(defaultCapabilities)
	if len(offenders) == 0 {
		return nil
	}
	return &Violation{"non-default capabilities", fmt.Sprintf("%s must not include %s in securityContext.capabilities.add", containers(offenders), quoted(added))}
}

// addedCapabilities returns the containers that add capabilities other than allowed, and these
// capabilities.
func (p *Pod) addedCapabilities(allowed []string) (offenders, added []string) {
	set := map[string]bool{}
	offenders = p.containersWhere(func(c *meta.Object) (bad bool) {
		for _, name := range c.Strings("securityContext", "capabilities", "add") {
			if !slices.Contains(allowed, name) {
				set[name], bad = true, true
			}
		}
		return bad
	})
	return offenders, slices.Sorted(maps.Keys(set))
}

func hostNamespaces(p *Pod) *Violation {
	var shared []string
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if p.Spec.Bool(field) {
			shared = append(shared, field+"=true")
		}
	}
	if len(shared) == 0 {
		return nil
	}
	return &Violation{"host namespaces", strings.Join(shared, ", ")}
}

func hostPaths(p *Pod) *Violation {
	var volumes []string
	for _, v := range p.Spec.Objects("volumes") {
		if has(v, "hostPath") {
			volumes = append(volumes, v.String("name"))
		}
	}
	if len(volumes) == 0 {
		return nil
	}
	return &Violation{"hostPath volumes", plural("volume", len(volumes)) + " " + quoted(volumes)}
}

func hostPorts(p *Pod) *Violation {
	ports := map[string]bool{}
	offenders := p.containersWhere(func(c *meta.Object) (bad bool) {
		for _, port := range c.Objects("ports") {
			if n := port.Int("hostPort"); n != 0 {
				ports[fmt.Sprint(n)], bad = true, true
			}
		}
		return bad
	})
	if len(offenders) == 0 {
		return nil
	}
	return &Violation{"hostPort", containersUse(offenders) + plural("hostPort", len(ports)) + " " + listed(slices.Sorted(maps.Keys(ports)))}
}

func probedHosts(p *Pod) *Violation {
	hosts := map[string]bool{}
	offenders := p.containersWhere(func(c *meta.Object) (bad bool) {
		for _, at := range [][]string{{"livenessProbe"}, {"readinessProbe"}, {"startupProbe"}, {"lifecycle", "postStart"}, {"lifecycle", "preStop"}} {
			for _, how := range []string{"httpGet", "tcpSocket"} {
				if host := meta.NewObject(c.Map(at...)).String(how, "host"); host != "" {
					hosts[host], bad = true, true
				}
			}
		}
		return bad
	})
	if len(offenders) == 0 {
		return nil
	}
	return &Violation{"probe or lifecycle host", containersUse(offenders) + plural("probe or lifecycle host", len(hosts)) + " " + quoted(slices.Sorted(maps.Keys(hosts)))}
}

func privileged(p *Pod) *Violation {
	offenders := p.containersWhere(func(c *meta.Object) bool { return c.Bool("securityContext", "privileged") })
	if len(offenders) == 0 {
		return nil
	}
	return &Violation{"privileged", containers(offenders) + " must not set securityContext.privileged=true"}
}

func procMount(p *Pod) *Violation {
	bad := map[string]bool{}
	offenders := p.containersWhere(func(c *meta.Object) bool {
		how := cmp.Or(c.String("securityContext", "procMount"), "Default")
		if how != "Default" {
			bad[how] = true
		}
		return how != "Default"
	})
	if len(offenders) == 0 {
		return nil
	}
	return &Violation{"procMount", containers(offenders) + " must not set securityContext.procMount to " + quoted(slices.Sorted(maps.Keys(bad)))}
}

func seLinux(types ...string) func(*Pod) *Violation {
	return func(p *Pod) *Violation {
		bad := map[string]bool{}
		user, role := false, false
		forbidden := func(of *meta.Object) bool {
			o := meta.NewObject(of.Map("securityContext", "seLinuxOptions"))
			kind := o.String("type")
			badType := kind != "" && !slices.Contains(types, kind)
			if badType {
				bad[kind] = true
			}
			user, role = user || o.String("user") != "", role || o.String("role") != ""
			return badType || o.String("user") != "" || o.String("role") != ""
		}
		offenders := p.subjectsWhere(forbidden)
		if offenders == "" {
			return nil
		}
		var faults []string
		if len(bad) > 0 {
			faults = append(faults, plural("type", len(bad))+" "+quoted(slices.Sorted(maps.Keys(bad))))
		}
		if user {
			faults = append(faults, "user may not be set")
		}
		if role {
			faults = append(faults, "role may not be set")
		}
		return &Violation{"seLinuxOptions", offenders + " set forbidden securityContext.seLinuxOptions: " + strings.Join(faults, "; ")}
	}
}

// seccompAnnotations checks the annotations that selected seccomp profiles before the field existed.
func seccompAnnotations(p *Pod) *Violation {
	keys := []string{p.Names.Wire(wellknown.SeccompPod)}
	for _, c := range p.containers {
		keys = append(keys, p.Names.Wire(wellknown.SeccompContainer)+c.String("name"))
	}
	var bad []string
	for _, key := range keys {
		value, set := p.Annotations[key]
		if set && value != "runtime/default" && value != "docker/default" && !strings.HasPrefix(value, "localhost/") {
			bad = append(bad, fmt.Sprintf("%s=%q", key, value))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return &Violation{"seccompProfile", "forbidden " + plural("annotation", len(bad)) + " " + listed(bad)}
}

func seccomp(p *Pod) *Violation {
	bad := map[string]bool{}
	offenders := p.subjectsWhere(func(of *meta.Object) bool { return forbiddenProfile(of, "seccompProfile", bad) })
	if offenders == "" {
		return nil
	}
	return &Violation{"seccompProfile", offenders + " must not set securityContext.seccompProfile.type to " + quoted(slices.Sorted(maps.Keys(bad)))}
}

func sysctls(safe ...[]string) func(*Pod) *Violation {
	all := slices.Concat(safe...)
	return func(p *Pod) *Violation {
		var bad []string
		for _, s := range p.Spec.Objects("securityContext", "sysctls") {
			if name := s.String("name"); !slices.Contains(all, name) {
				bad = append(bad, name)
			}
		}
		if len(bad) == 0 {
			return nil
		}
		return &Violation{"forbidden sysctls", listed(bad)}
	}
}

func hostProcess(p *Pod) *Violation {
	offenders := p.subjectsWhere(func(of *meta.Object) bool { return of.Bool("securityContext", "windowsOptions", "hostProcess") })
	if offenders == "" {
		return nil
	}
	return &Violation{"hostProcess", offenders + " must not set securityContext.windowsOptions.hostProcess=true"}
}
