package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

// Before fields existed, pods selected the AppArmor and seccomp profiles of their containers by
// annotations. AppArmor annotations are still effective.

// Values of the annotations.
const (
	unconfinedWord = "unconfined"
	runtimeWord    = "runtime/default"
	dockerWord     = "docker/default" // an alias of runtimeWord
	localPrefix    = "localhost/"
)

// adoptProfiles sets the AppArmor profiles of the containers of a new pod from the annotations, unless
// fields are set.
func adoptProfiles(p names.Profile, pod *meta.Object) {
	if pod.String("spec", "os", "name") == "windows" {
		return
	}
	podProfile := pod.Map("spec", "securityContext", "appArmorProfile")
	for _, fields := range containersOf(pod.Map("spec"), "initContainers", "containers") {
		c := meta.NewObject(fields)
		text, annotated := pod.Annotations()[p.Wire(wellknown.AppArmorProfile)+c.String("name")]
		if !annotated || c.Map("securityContext", "appArmorProfile") != nil {
			continue
		}
		if profile := appArmorProfile(text); profile != nil && !meta.Equal(profile, podProfile) {
			c.Set(profile, "securityContext", "appArmorProfile")
		}
	}
}

// appArmorProfile returns the profile that an annotation selects, or nil if the text is malformed.
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

// profileFaults checks on create that the annotations refer to containers of the pod and agree with the
// fields, and on update that AppArmor annotations are unchanged.
func (p *Pod) profileFaults(f *check.Violations, profile names.Profile, old *Pod) {
	at, prefix := check.At("metadata", "annotations"), profile.Wire(wellknown.AppArmorProfile)
	if old != nil {
		appArmor := func(key, _ string) bool { return !strings.HasPrefix(key, prefix) }
		before, now := maps.Clone(old.Annotations), maps.Clone(p.Annotations)
		maps.DeleteFunc(before, appArmor)
		maps.DeleteFunc(now, appArmor)
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if text, ok := now[key]; !ok || text != before[key] {
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
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		if !containers[name] {
			f.Invalid(at.Key(key), name, "container not found")
		}
		if text := p.Annotations[key]; text != "" && text != runtimeWord && text != unconfinedWord && !strings.HasPrefix(text, localPrefix) {
			f.Invalid(at.Key(key), text, fmt.Sprintf("invalid AppArmor profile name: %q", text))
		}
	}
	p.checkProfilesAgree(f, profile)
}

// checkProfilesAgree checks the annotations against the fields.
func (p *Pod) checkProfilesAgree(f *check.Violations, profile names.Profile) {
	at := check.At("spec")
	if s := p.Spec.SecurityContext; s != nil && s.SeccompProfile != nil {
		if text, annotated := p.Annotations[profile.Wire(wellknown.SeccompPod)]; annotated {
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
				if text, annotated := p.Annotations[profile.Wire(wellknown.SeccompContainer)+c.Name]; annotated {
					sameProfile(f, at.Field("seccompProfile"), "seccomp", text, s.Type, s.LocalhostProfile)
				}
			}
			if a := c.SecurityContext.AppArmorProfile; a != nil {
				if text, annotated := p.Annotations[profile.Wire(wellknown.AppArmorProfile)+c.Name]; annotated {
					sameProfile(f, at.Field("appArmorProfile"), "apparmor", text, a.Type, a.LocalhostProfile)
				}
			}
		}
	}
}

// sameProfile checks that an annotation selects the profile of a field.
func sameProfile(f *check.Violations, at *check.Path, kind, text, profile string, local *string) {
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
