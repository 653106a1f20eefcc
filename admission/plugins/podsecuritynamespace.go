package plugins

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/podstandards"
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// standards returns the standards that a configuration names, and its errors.
func (d PodSecurityDefaults) standards() (p securityPolicy, faults []string) {
	for _, mode := range []struct {
		name, level, version string
		to                   *podstandards.Standard
	}{
		{"enforce", d.Enforce, d.EnforceVersion, &p.enforce},
		{"audit", d.Audit, d.AuditVersion, &p.audit},
		{"warn", d.Warn, d.WarnVersion, &p.warn},
	} {
		var ok bool
		if mode.to.Level, ok = podstandards.ParseLevel(cmp.Or(mode.level, "privileged")); !ok {
			faults = append(faults, fmt.Sprintf("defaults.%s %q must be one of privileged, baseline, restricted", mode.name, mode.level))
		}
		if mode.to.Version, ok = podstandards.ParseVersion(cmp.Or(mode.version, "latest")); !ok {
			faults = append(faults, fmt.Sprintf(`defaults.%s-version %q must be "latest" or "v1.x"`, mode.name, mode.version))
		}
	}
	return p, faults
}

// faults returns the errors of the exemptions.
func (e PodSecurityExemptions) faults() (faults []string) {
	for _, of := range []struct {
		field string
		list  []string
		check func(string) []string
	}{
		{"usernames", e.Usernames, func(string) []string { return nil }},
		{"namespaces", e.Namespaces, meta.CheckDNSLabel},
		{"runtimeClasses", e.RuntimeClasses, meta.CheckDNSSubdomain},
	} {
		for i, name := range of.list {
			at := fmt.Sprintf("exemptions.%s[%d] %q", of.field, i, name)
			why := of.check(name)
			switch {
			case name == "":
				why = []string{"must not be empty"}
			case slices.Contains(of.list[:i], name):
				why = []string{"is a duplicate"}
			}
			if len(why) > 0 {
				faults = append(faults, at+" "+strings.Join(why, ", "))
			}
		}
	}
	return faults
}

// policyOf returns the policy of a namespace, and the errors of labels with an invalid value. An invalid level enforces
// restricted but neither audits nor warns; an invalid version is latest. If no label sets a level for warn, and a label
// sets a stricter level for enforce, warn takes the level of enforce, because for pod templates there are only
// warnings, never refusals.
func (s *securityStandards) policyOf(namespace *meta.Object) (p securityPolicy, unknown check.Violations) {
	p = s.defaults
	labels := namespace.Map("metadata", "labels")
	read := func(of standardLabels, to *podstandards.Standard, fallback podstandards.Level) (level, version bool) {
		at := check.At("metadata", "labels")
		word, level := labels[of.level].(string)
		if l, ok := podstandards.ParseLevel(word); level && ok {
			to.Level = l
		} else if level {
			to.Level = fallback
			unknown.Invalid(at.Key(of.level), word, "must be one of privileged, baseline, restricted")
		}
		word, version = labels[of.version].(string)
		if v, ok := podstandards.ParseVersion(word); version && ok {
			to.Version = v
		} else if version {
			to.Version = podstandards.Latest
			unknown.Invalid(at.Key(of.version), word, `must be "latest" or "v1.x"`)
		}
		return level, version
	}
	enforced, _ := read(s.labels[0], &p.enforce, podstandards.Restricted)
	read(s.labels[1], &p.audit, podstandards.Privileged)
	warned, version := read(s.labels[2], &p.warn, podstandards.Privileged)
	if enforced && !warned && p.enforce.Level > p.warn.Level {
		p.warn.Level = p.enforce.Level
		if !version {
			p.warn.Version = p.enforce.Version
		}
	}
	return p, unknown
}

// namespace refuses invalid labels, unless the namespace had them before, and warns if a new policy is
// violated by existing pods or has no effect.
func (s *securityStandards) namespace(ctx context.Context, r *admission.Request) error {
	now, unknown := s.policyOf(r.Object)
	before, old := s.policyOf(r.Old)
	switch {
	case len(unknown) > 0:
		if r.Old == nil || !slices.Equal(unknown, old) {
			return meta.Invalid(r.Kind.GroupKind(), r.Name, unknown)
		}
		return nil
	case r.Old != nil:
		s.warnOfViolations(ctx, r, &before, &now)
	case slices.Contains(s.exempt.Namespaces, r.Name):
		s.warnOfExemption(r, &now)
	}
	return nil
}

// warnOfExemption warns that the policy in the labels has no effect, because the namespace is exempt.
func (s *securityStandards) warnOfExemption(r *admission.Request, p *securityPolicy) {
	if modes := s.labelledModes(r.Object, p); modes != "" {
		r.Warn(fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", r.Name, modes))
	}
}

// labelledModes returns the modes that the labels of a namespace set to a level above privileged, as
// mode=standard.
func (s *securityStandards) labelledModes(namespace *meta.Object, p *securityPolicy) string {
	var modes []string
	for i, mode := range []struct {
		name string
		of   podstandards.Standard
	}{{"enforce", p.enforce}, {"audit", p.audit}, {"warn", p.warn}} {
		_, labelled := namespace.Get("metadata", "labels", s.labels[i].level)
		if labelled && mode.of.Level > podstandards.Privileged {
			modes = append(modes, mode.name+"="+mode.of.String())
		}
	}
	return strings.Join(modes, ", ")
}

// maxJudged bounds the number of pods of a namespace that are checked when its labels change.
const maxJudged = 3000

// warnOfViolations warns of the existing pods in a namespace that violate a new enforced standard. They keep
// running.
func (s *securityStandards) warnOfViolations(ctx context.Context, r *admission.Request, before, after *securityPolicy) {
	old, now := before.enforce, after.enforce
	if now == old || now.Level == podstandards.Privileged || now.Version == old.Version && now.Level < old.Level {
		return
	}
	if slices.Contains(s.exempt.Namespaces, r.Name) {
		s.warnOfExemption(r, after)
		return
	}
	pods, err := r.Server.List(ctx, "", "pods", r.Name)
	if err != nil {
		r.Warn("failed to list pods while checking new PodSecurity enforce level")
	}
	if len(pods) > maxJudged {
		r.Warn(fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods", maxJudged, len(pods)))
		pods = pods[:maxJudged]
	}
	violators := map[string][]string{} // names of pods by the reasons
	for _, pod := range pods {
		checked := &podstandards.Pod{Spec: meta.NewObject(pod.Map("spec")), Annotations: pod.Annotations(), Names: r.Server.Names}
		if slices.Contains(s.exempt.RuntimeClasses, checked.Spec.String("runtimeClassName")) {
			continue
		}
		if found := now.Check(checked); len(found) > 0 {
			violators[found.Reasons()] = append(violators[found.Reasons()], pod.Name())
		}
	}
	if len(violators) == 0 {
		return
	}
	var texts []string
	for reasons, list := range violators {
		text := slices.Min(list)
		switch len(list) {
		case 1:
		case 2:
			text += " (and 1 other pod)"
		default:
			text += fmt.Sprintf(" (and %d other pods)", len(list)-1)
		}
		texts = append(texts, text+": "+reasons)
	}
	slices.Sort(texts)
	r.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", r.Name, now))
	for _, text := range texts {
		r.Warn(text)
	}
}
