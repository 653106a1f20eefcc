package securitypolicy

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// Profiles are the seccomp and AppArmor profiles that the annotations of a policy set as default and
// allow. Pods select profiles by annotations or by fields of the spec.
type Profiles struct {
	names             names.Profile
	seccomp, appArmor profiles
}

// profiles are the settings for either seccomp or AppArmor.
type profiles struct {
	defaultProfile string   // for pods that select none; "" means no default
	allowed        []string // if empty, see Check
	anyAllowed     bool     // every profile is allowed
}

// Names of profiles; localhost/ is followed by the name of a file on the node.
const (
	runtimeProfile = "runtime/default"
	dockerProfile  = "docker/default" // an alias of runtimeProfile
	noProfile      = "unconfined"
	fileProfile    = "localhost/"
)

// ProfilesOf parses the annotations of a policy.
func ProfilesOf(p names.Profile, policy *meta.Object) Profiles {
	read := func(defaultProfile, allowed string) (of profiles) {
		of.defaultProfile = canonical(policy.Annotation(p.Wire(defaultProfile)))
		if list := policy.Annotation(p.Wire(allowed)); list != "" {
			for name := range strings.SplitSeq(list, ",") {
				of.allowed = append(of.allowed, canonical(strings.TrimSpace(name)))
			}
		}
		of.anyAllowed = slices.Contains(of.allowed, "*")
		return of
	}
	return Profiles{
		names: p, seccomp: read(wellknown.SeccompDefault, wellknown.SeccompAllowed), appArmor: read(wellknown.AppArmorDefault, wellknown.AppArmorAllowed),
	}
}

// canonical resolves the alias of the runtime's default profile.
func canonical(name string) string {
	if name == dockerProfile {
		return runtimeProfile
	}
	return name
}

// Fill sets the default profiles in the spec of a new pod; FillContainers does so for containers that
// are added later. An AppArmor annotation of the pod takes precedence over the default; seccomp
// annotations do not, because nodes ignore them.
func (p *Profiles) Fill(annotations map[string]string, spec *meta.Object) {
	fillProfile(spec, p.seccomp.defaultProfile, "seccompProfile")
	p.FillContainers(annotations, spec, podspec.Of(spec))
}

// FillContainers sets the default AppArmor profile of containers.
func (p *Profiles) FillContainers(annotations map[string]string, spec *meta.Object, containers []*meta.Object) {
	for _, c := range containers {
		_, annotation := annotations[p.names.Wire(wellknown.AppArmorProfile)+c.String("name")]
		if !annotation && effective(spec, c, "appArmorProfile") == nil {
			fillProfile(c, p.appArmor.defaultProfile, "appArmorProfile")
		}
	}
}

func fillProfile(of *meta.Object, name, field string) {
	file, isFile := strings.CutPrefix(name, fileProfile)
	switch {
	case name == runtimeProfile:
		setDefault(of, map[string]any{"type": "RuntimeDefault"}, "securityContext", field)
	case name == noProfile:
		setDefault(of, map[string]any{"type": "Unconfined"}, "securityContext", field)
	case isFile:
		setDefault(of, map[string]any{"type": "Localhost", "localhostProfile": file}, "securityContext", field)
	}
}

// profileName returns the name of the profile in a security context, or "".
func profileName(v any) string {
	tree, _ := v.(map[string]any)
	switch o := meta.NewObject(tree); o.String("type") {
	case "RuntimeDefault":
		return runtimeProfile
	case "Unconfined":
		return noProfile
	case "Localhost":
		return fileProfile + o.String("localhostProfile")
	}
	return ""
}

// Check returns the violations of a pod. If the policy does not list allowed profiles, every AppArmor
// profile is allowed, but only the default seccomp profile. If it does, each container must select one:
// seccomp by a field, AppArmor by a field or an annotation.
func (p *Profiles) Check(annotations map[string]string, spec *meta.Object) (f check.Violations) {
	pod := p.names.Wire(wellknown.SeccompPod)
	field, _ := spec.Get("securityContext", "seccompProfile")
	p.checkSeccomp(&f, pod, annotations[pod], profileName(field))
	for _, c := range podspec.Of(spec) {
		key := p.names.Wire(wellknown.SeccompContainer) + c.String("name")
		annotation := annotations[key]
		if annotation == "" {
			annotation = annotations[pod]
		}
		p.checkSeccomp(&f, key, annotation, profileName(effective(spec, c, "seccompProfile")))
		key = p.names.Wire(wellknown.AppArmorProfile) + c.String("name")
		p.checkAppArmor(&f, key, annotations[key], profileName(effective(spec, c, "appArmorProfile")))
	}
	return f
}

// checkSeccomp checks the profiles selected by annotation and by field; both may be "". Containers run
// under the profile of the field only, so that an annotation can only cause a rejection.
func (p *Profiles) checkSeccomp(f *check.Violations, key, annotation, field string) {
	of, at := &p.seccomp, check.At("pod", "metadata", "annotations").Field(key)
	if of.anyAllowed {
		return
	}
	if field == "" && len(of.allowed) > 0 {
		f.Forbidden(at, of.notAllowed("", "seccomp "))
	}
	for _, name := range selected(annotation, field) {
		switch {
		case name == of.defaultProfile || slices.Contains(of.allowed, name):
		case len(of.allowed) == 0:
			f.Forbidden(at, "seccomp may not be set")
		default:
			f.Forbidden(at, of.notAllowed(name, "seccomp "))
		}
	}
}

func (p *Profiles) checkAppArmor(f *check.Violations, key, annotation, field string) {
	of, at := &p.appArmor, check.At("metadata", "annotations").Field(key)
	if of.anyAllowed || len(of.allowed) == 0 {
		return
	}
	if annotation == "" && field == "" {
		f.Forbidden(at, "AppArmor profile must be set")
	}
	for _, name := range selected(annotation, field) {
		if !slices.Contains(of.allowed, name) {
			f.Invalid(at, name, of.notAllowed(name, ""))
		}
	}
}

// selected returns the distinct profiles selected by annotation and by field.
func selected(annotation, field string) (list []string) {
	for _, name := range []string{canonical(annotation), field} {
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func (of *profiles) notAllowed(name, prefix string) string {
	return fmt.Sprintf("%s is not an allowed %sprofile. Valid values are %s", name, prefix, strings.Join(of.allowed, ","))
}
