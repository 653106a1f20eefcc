package securitypolicy

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
)

// Profiles are what the annotations of a policy say of profiles of seccomp and AppArmor,
// which the annotations of a pod name, or fields of its spec.
type Profiles struct {
	names             names.Profile
	seccomp, appArmor profiles
}

// profiles are those of one sort.
type profiles struct {
	standard string   // of who says nothing; empty: none
	allowed  []string // none: see Check
	any      bool     // all are allowed
}

// The names of profiles; what follows localhost/ is a file's.
const (
	runtimeProfile = "runtime/default"
	dockerProfile  = "docker/default" // the same
	noProfile      = "unconfined"
	fileProfile    = "localhost/"
)

// ProfilesOf reads the annotations of a policy.
func ProfilesOf(p names.Profile, policy *meta.Object) Profiles {
	read := func(standard, allowed string) (of profiles) {
		of.standard = known(policy.Annotation(p.Wire(standard)))
		if list := policy.Annotation(p.Wire(allowed)); list != "" {
			for name := range strings.SplitSeq(list, ",") {
				of.allowed = append(of.allowed, known(strings.TrimSpace(name)))
			}
		}
		of.any = slices.Contains(of.allowed, "*")
		return of
	}
	return Profiles{
		names: p, seccomp: read(names.SeccompDefault, names.SeccompAllowed), appArmor: read(names.AppArmorDefault, names.AppArmorAllowed),
	}
}

func known(name string) string {
	if name == dockerProfile {
		return runtimeProfile
	}
	return name
}

// Fill gives the spec of a new pod the profiles that the policy has for pods that say
// nothing; FillContainers does some of its containers. Annotations of a pod choose profiles
// of AppArmor only: nodes do not heed those about seccomp.
func (p *Profiles) Fill(annotations map[string]string, spec *meta.Object) {
	fillProfile(spec, p.seccomp.standard, "seccompProfile")
	p.FillContainers(annotations, spec, podspec.Of(spec))
}

// FillContainers gives containers the profile of AppArmor.
func (p *Profiles) FillContainers(annotations map[string]string, spec *meta.Object, containers []*meta.Object) {
	for _, c := range containers {
		_, said := annotations[p.names.Wire(names.AppArmorProfile)+c.String("name")]
		if !said && effective(spec, c, "appArmorProfile") == nil {
			fillProfile(c, p.appArmor.standard, "appArmorProfile")
		}
	}
}

func fillProfile(of *meta.Object, name, field string) {
	file, isFile := strings.CutPrefix(name, fileProfile)
	switch {
	case name == runtimeProfile:
		fill(of, map[string]any{"type": "RuntimeDefault"}, "securityContext", field)
	case name == noProfile:
		fill(of, map[string]any{"type": "Unconfined"}, "securityContext", field)
	case isFile:
		fill(of, map[string]any{"type": "Localhost", "localhostProfile": file}, "securityContext", field)
	}
}

// profileName returns the name of a profile that a security context has; empty: it has none.
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

// Check returns what the policy does not allow. If it says nothing of what is allowed, that
// is every profile of AppArmor, but of seccomp only the one that it has for those who say
// nothing. Where it does, somebody has to choose one, of seccomp in a field.
func (p *Profiles) Check(annotations map[string]string, spec *meta.Object) (f check.Faults) {
	pod := p.names.Wire(names.SeccompPod)
	field, _ := spec.Get("securityContext", "seccompProfile")
	p.checkSeccomp(&f, pod, annotations[pod], profileName(field))
	for _, c := range podspec.Of(spec) {
		key := p.names.Wire(names.SeccompContainer) + c.String("name")
		said := annotations[key]
		if said == "" {
			said = annotations[pod]
		}
		p.checkSeccomp(&f, key, said, profileName(effective(spec, c, "seccompProfile")))
		key = p.names.Wire(names.AppArmorProfile) + c.String("name")
		p.checkAppArmor(&f, key, annotations[key], profileName(effective(spec, c, "appArmorProfile")))
	}
	return f
}

// checkSeccomp checks the profile of an annotation and that of a field, which may be empty.
// Containers run under that of the field alone: an annotation can only be refused.
func (p *Profiles) checkSeccomp(f *check.Faults, key, said, field string) {
	of, at := &p.seccomp, check.At("pod", "metadata", "annotations").Field(key)
	if of.any {
		return
	}
	if field == "" && len(of.allowed) > 0 {
		f.Forbidden(at, of.refused("", "seccomp "))
	}
	for _, name := range chosen(said, field) {
		switch {
		case name == of.standard || slices.Contains(of.allowed, name):
		case len(of.allowed) == 0:
			f.Forbidden(at, "seccomp may not be set")
		default:
			f.Forbidden(at, of.refused(name, "seccomp "))
		}
	}
}

func (p *Profiles) checkAppArmor(f *check.Faults, key, said, field string) {
	of, at := &p.appArmor, check.At("metadata", "annotations").Field(key)
	if of.any || len(of.allowed) == 0 {
		return
	}
	if said == "" && field == "" {
		f.Forbidden(at, "AppArmor profile must be set")
	}
	for _, name := range chosen(said, field) {
		if !slices.Contains(of.allowed, name) {
			f.Invalid(at, name, of.refused(name, ""))
		}
	}
}

// chosen returns the profiles of an annotation and of a field, as far as they name any.
func chosen(said, field string) (list []string) {
	for _, name := range []string{known(said), field} {
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func (of *profiles) refused(name, sort string) string {
	return fmt.Sprintf("%s is not an allowed %sprofile. Valid values are %s", name, sort, strings.Join(of.allowed, ","))
}
