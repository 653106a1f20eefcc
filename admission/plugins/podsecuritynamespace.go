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

// standards returns the standards that a configuration names, and what is wrong in it.
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

// faults returns what is wrong in exemptions.
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
				why = []string{"is there twice"}
			}
			if len(why) > 0 {
				faults = append(faults, at+" "+strings.Join(why, ", "))
			}
		}
	}
	return faults
}

// of returns the policy of a namespace, and which of its labels say nothing. Enforced is the
// strictest standard then, audited and told of is none. What is enforced is told of, too, for
// the templates of pods, unless a label says of what to warn.
func (s *securityStandards) of(namespace *meta.Object) (p securityPolicy, unknown check.Faults) {
	p = s.defaults
	labels := namespace.Map("metadata", "labels")
	read := func(of standardLabels, to *podstandards.Standard, otherwise podstandards.Level) (level, version bool) {
		at := check.At("metadata", "labels")
		word, level := labels[of.level].(string)
		if l, ok := podstandards.ParseLevel(word); level && ok {
			to.Level = l
		} else if level {
			to.Level = otherwise
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
	told, version := read(s.labels[2], &p.warn, podstandards.Privileged)
	if enforced && !told && p.enforce.Level > p.warn.Level {
		p.warn.Level = p.enforce.Level
		if !version {
			p.warn.Version = p.enforce.Version
		}
	}
	return p, unknown
}

// namespace refuses labels that say nothing, unless they stood there before, and warns of
// what new ones mean.
func (s *securityStandards) namespace(ctx context.Context, r *admission.Request) error {
	now, unknown := s.of(r.Object)
	before, old := s.of(r.Old)
	switch {
	case len(unknown) > 0:
		if r.Old == nil || !slices.Equal(unknown, old) {
			return meta.Invalid(r.Kind.GroupKind(), r.Name, unknown)
		}
		return nil
	case r.Old != nil:
		s.stricter(ctx, r, &before, &now)
	case slices.Contains(s.exempt.Namespaces, r.Name):
		s.warnOfExemption(r, &now)
	}
	return nil
}

// warnOfExemption warns that what the labels of a namespace ask of pods holds for none.
func (s *securityStandards) warnOfExemption(r *admission.Request, p *securityPolicy) {
	if asked := s.asked(r.Object, p); asked != "" {
		r.Warn(fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", r.Name, asked))
	}
}

// asked returns what the labels of a namespace ask of pods.
func (s *securityStandards) asked(namespace *meta.Object, p *securityPolicy) string {
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

// maxJudged bounds how many pods of a namespace are judged when its labels change.
const maxJudged = 3000

// stricter warns of the pods in a namespace that a new standard would refuse. They stay.
func (s *securityStandards) stricter(ctx context.Context, r *admission.Request, before, after *securityPolicy) {
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
	those := map[string][]string{} // by what they violate
	for _, pod := range pods {
		judged := &podstandards.Pod{Spec: meta.NewObject(pod.Map("spec")), Annotations: pod.Annotations(), Names: r.Server.Names}
		if slices.Contains(s.exempt.RuntimeClasses, judged.Spec.String("runtimeClassName")) {
			continue
		}
		if found := now.Check(judged); len(found) > 0 {
			those[found.Reasons()] = append(those[found.Reasons()], pod.Name())
		}
	}
	if len(those) == 0 {
		return
	}
	var texts []string
	for reasons, list := range those {
		who := slices.Min(list)
		switch len(list) {
		case 1:
		case 2:
			who += " (and 1 other pod)"
		default:
			who += fmt.Sprintf(" (and %d other pods)", len(list)-1)
		}
		texts = append(texts, who+": "+reasons)
	}
	slices.Sort(texts)
	r.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", r.Name, now))
	for _, text := range texts {
		r.Warn(text)
	}
}
