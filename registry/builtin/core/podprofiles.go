package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// Pods said in annotations, one for each container, which profiles of AppArmor and
// seccomp they run under before there were fields for that. Those of AppArmor count to
// this day.

// The words of the annotations.
const (
	unconfinedWord = "unconfined"
	runtimeWord    = "runtime/default"
	dockerWord     = "docker/default" // the same, as it was called once
	localPrefix    = "localhost/"
)

// adoptProfiles fills in the AppArmor profiles of the containers of a new pod that its
// annotations name and its fields do not.
func adoptProfiles(p names.Profile, pod *meta.Object) {
	if pod.String("spec", "os", "name") == "windows" {
		return
	}
	whole := pod.Map("spec", "securityContext", "appArmorProfile")
	for _, fields := range containersOf(pod.Map("spec"), "initContainers", "containers") {
		c := meta.NewObject(fields)
		text, said := pod.Annotations()[p.Wire(names.AppArmorProfile)+c.String("name")]
		if !said || c.Map("securityContext", "appArmorProfile") != nil {
			continue
		}
		if profile := appArmorProfile(text); profile != nil && !meta.Equal(profile, whole) {
			c.Set(profile, "securityContext", "appArmorProfile")
		}
	}
}

// appArmorProfile returns the profile that an annotation names, nil if it names none.
func appArmorProfile(text string) map[string]any {
	name, local := strings.CutPrefix(text, localPrefix)
	switch {
	case text == unconfinedWord:
		return map[string]any{"type": noProfile}
	case text == runtimeWord:
		return map[string]any{"type": runtimeProfile}
	case local && name != "" && strings.TrimSpace(name) == name:
		return map[string]any{"type": localProfile, "localhostProfile": name}
	}
	return nil
}

// profileFaults checks that the annotations with profiles are about containers of the pod,
// that they agree with its fields, and that those of AppArmor stay as they are.
func (p *Pod) profileFaults(f *check.Faults, profile names.Profile, old *Pod) {
	at, prefix := check.At("metadata", "annotations"), profile.Wire(names.AppArmorProfile)
	if old != nil {
		appArmor := func(key, _ string) bool { return !strings.HasPrefix(key, prefix) }
		before, now := maps.Clone(old.Annotations), maps.Clone(p.Annotations)
		maps.DeleteFunc(before, appArmor)
		maps.DeleteFunc(now, appArmor)
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if text, kept := now[key]; !kept || text != before[key] {
				f.Forbidden(at.Key(key), "may not remove or update AppArmor annotations")
			}
		}
		for _, key := range slices.Sorted(maps.Keys(now)) {
			if _, had := before[key]; !had {
				f.Forbidden(at.Key(key), "may not add AppArmor annotations")
			}
		}
		return
	}
	containers := map[string]bool{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		containers[c.Name] = true
	}
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		name, is := strings.CutPrefix(key, prefix)
		if !is {
			continue
		}
		if !containers[name] {
			f.Invalid(at.Key(key), name, "container not found")
		}
		if text := p.Annotations[key]; text != "" && text != runtimeWord && text != unconfinedWord && !strings.HasPrefix(text, localPrefix) {
			f.Invalid(at.Key(key), text, fmt.Sprintf("invalid AppArmor profile name: %q", text))
		}
	}
	p.agree(f, profile)
}

// agree checks the annotations with profiles against the fields.
func (p *Pod) agree(f *check.Faults, profile names.Profile) {
	at := check.At("spec")
	if s := p.Spec.SecurityContext; s != nil && s.SeccompProfile != nil {
		if text, said := p.Annotations[profile.Wire(names.SeccompPod)]; said {
			sameProfile(f, at.Field("securityContext").Field("seccompProfile"), "seccomp", text, s.SeccompProfile.Type, s.SeccompProfile.LocalhostProfile)
		}
	}
	for _, list := range []struct {
		field string
		of    []Container
	}{{"initContainers", p.Spec.InitContainers}, {"containers", p.Spec.Containers}} {
		for i, c := range list.of {
			if c.SecurityContext == nil {
				continue
			}
			at := at.Field(list.field).Index(i).Field("securityContext")
			if s := c.SecurityContext.SeccompProfile; s != nil {
				if text, said := p.Annotations[profile.Wire(names.SeccompContainer)+c.Name]; said {
					sameProfile(f, at.Field("seccompProfile"), "seccomp", text, s.Type, s.LocalhostProfile)
				}
			}
			if a := c.SecurityContext.AppArmorProfile; a != nil {
				if text, said := p.Annotations[profile.Wire(names.AppArmorProfile)+c.Name]; said {
					sameProfile(f, at.Field("appArmorProfile"), "apparmor", text, a.Type, a.LocalhostProfile)
				}
			}
		}
	}
}

// sameProfile checks that an annotation names the profile that a field does.
func sameProfile(f *check.Faults, at *check.Path, kind, text, profile string, local *string) {
	name, isLocal := strings.CutPrefix(text, localPrefix)
	var same bool
	switch profile {
	case noProfile:
		same = text == unconfinedWord
	case runtimeProfile:
		same = text == runtimeWord || kind == "seccomp" && text == dockerWord
	case localProfile:
		same = isLocal
	}
	switch {
	case !same:
		f.Forbidden(at.Field("type"), kind+" type in annotation and field must match")
	case profile == localProfile && (local == nil || *local != name):
		f.Forbidden(at.Field("localhostProfile"), kind+" profile in annotation and field must match")
	}
}
