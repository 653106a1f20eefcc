package plugins

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/podstandards"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// PodSecurityConfig is the configuration of the plugin PodSecurity.
type PodSecurityConfig struct {
	// Defaults are the standards of namespaces without labels.
	Defaults PodSecurityDefaults `json:"defaults"`
	// Exemptions are the users, namespaces and runtime classes to which no standard applies.
	Exemptions PodSecurityExemptions `json:"exemptions"`
}

// PodSecurityDefaults name standards. A level is privileged, baseline or restricted; empty means privileged.
// A version is latest or a release such as v1.24; empty means latest.
type PodSecurityDefaults struct {
	Enforce        string `json:"enforce,omitempty"` // pods that violate it are refused
	EnforceVersion string `json:"enforce-version,omitempty"`
	Audit          string `json:"audit,omitempty"` // violations are annotated in audit events
	AuditVersion   string `json:"audit-version,omitempty"`
	Warn           string `json:"warn,omitempty"` // violations are returned as warnings
	WarnVersion    string `json:"warn-version,omitempty"`
}

// PodSecurityExemptions are the names of exempt users, namespaces and runtime classes.
type PodSecurityExemptions struct {
	Usernames      []string `json:"usernames,omitempty"`
	Namespaces     []string `json:"namespaces,omitempty"`
	RuntimeClasses []string `json:"runtimeClasses,omitempty"`
}

// template is a resource with objects that are pods or contain a pod template at path.
type template struct {
	group, plural string
	path          []string
}

var templates = []template{
	{"", "pods", nil},
	{"", "podtemplates", []string{"template"}},
	{"", "replicationcontrollers", []string{"spec", "template"}},
	{wellknown.GroupApps, "daemonsets", []string{"spec", "template"}},
	{wellknown.GroupApps, "deployments", []string{"spec", "template"}},
	{wellknown.GroupApps, "replicasets", []string{"spec", "template"}},
	{wellknown.GroupApps, "statefulsets", []string{"spec", "template"}},
	{wellknown.GroupBatch, "jobs", []string{"spec", "template"}},
	{wellknown.GroupBatch, "cronjobs", []string{"spec", "jobTemplate", "spec", "template"}},
}

// podSecurity applies the Pod Security Standards that the labels of a namespace name: enforce refuses pods;
// audit and warn also apply to objects with pod templates.
func podSecurity() admission.Plugin {
	rules := slices.Concat(
		on("", []string{"namespaces"}, admission.Create, admission.Update),
		on("", []string{"pods/ephemeralcontainers", "pods/resize"}, admission.Update))
	for _, t := range templates {
		rules = append(rules, on(t.group, []string{t.plural}, admission.Create, admission.Update)...)
	}
	return admission.Plugin{
		Name: "PodSecurity", Rules: rules, Config: PodSecurityConfig{},
		ConfigKinds: []meta.GroupVersionKind{
			{Group: wellknown.GroupPodSecurity, Version: "v1", Kind: "PodSecurityConfiguration"},
			{Group: wellknown.GroupPodSecurity, Version: "v1beta1", Kind: "PodSecurityConfiguration"},
			{Group: wellknown.GroupPodSecurity, Version: "v1alpha1", Kind: "PodSecurityConfiguration"},
		},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			config := env.Config.(PodSecurityConfig)
			s := &securityStandards{exempt: config.Exemptions, prefix: env.Wire(wellknown.PodSecurity)}
			for i, mode := range []string{"enforce", "audit", "warn"} {
				s.labels[i] = standardLabels{s.prefix + mode, s.prefix + mode + "-version"}
			}
			var faults []string
			s.defaults, faults = config.Defaults.standards()
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				if r.Resource.Resource == "namespaces" {
					return s.namespace(ctx, r)
				}
				return s.pod(ctx, r)
			}
			return refusal(append(faults, config.Exemptions.faults()...))
		},
	}
}

// securityPolicy is the standards of a namespace.
type securityPolicy struct {
	enforce, audit, warn podstandards.Standard
}

// allPrivileged reports whether a policy allows every pod.
func (p *securityPolicy) allPrivileged() bool {
	return max(p.enforce.Level, p.audit.Level, p.warn.Level) == podstandards.Privileged
}

type securityStandards struct {
	defaults securityPolicy
	exempt   PodSecurityExemptions
	prefix   string            // of labels and annotations, on the wire
	labels   [3]standardLabels // of namespaces, for enforce, audit and warn
}

// standardLabels are the keys of the labels that name a standard.
type standardLabels struct{ level, version string }

// pod checks a pod or a pod template.
func (s *securityStandards) pod(ctx context.Context, r *admission.Request) error {
	now := podIn(r, r.Object)
	isPod := r.Resource.Resource == "pods"
	if now == nil || isPod && r.Old != nil && sameToStandards(now, podIn(r, r.Old)) {
		return nil
	}
	note := func(key, text string) { r.Annotate(s.prefix+key, text) }
	if reason := s.exempts(r, now.Spec); reason != "" {
		note("exempt", reason)
		return nil
	}
	namespace, err := r.Server.Find(ctx, "", "namespaces", meta.Key{Name: r.Namespace})
	if err != nil {
		return err
	}
	policy, unknown := s.policyOf(namespace)
	if err := unknown.Err(); err != nil {
		note("error", "failed to parse policy: "+err.Error())
	}
	if found := policy.audit.Check(now); len(found) > 0 {
		note("audit-violations", fmt.Sprintf("would violate PodSecurity %q: %s", policy.audit, found.Details()))
	}
	if isPod {
		if policy.allPrivileged() {
			policy.enforce.Version = podstandards.Latest
		}
		note("enforce-policy", policy.enforce.String())
		if found := policy.enforce.Check(now); len(found) > 0 {
			return fmt.Errorf("violates PodSecurity %q: %s", policy.enforce, found.Details())
		}
	}
	if found := policy.warn.Check(now); len(found) > 0 {
		r.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", policy.warn, found.Details()))
	}
	return nil
}

// exempts returns the kind of exemption that applies to a pod: namespace, user or runtimeClass. It is empty if the pod
// is not exempt.
func (s *securityStandards) exempts(r *admission.Request, spec *meta.Object) string {
	switch {
	case slices.Contains(s.exempt.Namespaces, r.Namespace):
		return "namespace"
	case r.User != nil && slices.Contains(s.exempt.Usernames, r.User.Name):
		return "user"
	case slices.Contains(s.exempt.RuntimeClasses, spec.String("runtimeClassName")):
		return "runtimeClass"
	}
	return ""
}

// podIn returns the pod or the pod template in an object, or nil.
func podIn(r *admission.Request, obj *meta.Object) *podstandards.Pod {
	for _, t := range templates {
		if t.plural != r.Resource.Resource || r.Server.Names.Group(t.group) != r.Resource.Group {
			continue
		}
		if of := obj.Map(t.path...); of != nil {
			pod := meta.NewObject(of)
			return &podstandards.Pod{Spec: meta.NewObject(pod.Map("spec")), Annotations: pod.Annotations(), Names: r.Server.Names}
		}
	}
	return nil
}

// sameToStandards reports whether a pod differs only in fields that no standard checks, now or in a later
// release. Such an update is not checked again, so that a pod admitted under an older policy can still be
// updated.
func sameToStandards(now, old *podstandards.Pod) bool {
	unchecked := []string{"tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates", "nodeName", "nodeSelector", "affinity", "resources"}
	checkedSpec := func(p *podstandards.Pod) map[string]any {
		spec := maps.Clone(p.Spec.Tree())
		for _, field := range unchecked {
			delete(spec, field)
		}
		for _, list := range []string{podspec.Init, podspec.Containers, podspec.Ephemeral} {
			var containers []any
			for _, c := range p.Spec.Objects(list) {
				container := maps.Clone(c.Tree())
				delete(container, "resources")
				containers = append(containers, container)
			}
			spec[list] = containers
		}
		return spec
	}
	profiles := func(p *podstandards.Pod) map[string]string {
		annotations := maps.Clone(p.Annotations)
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			return key != p.Names.Wire(wellknown.SeccompPod) &&
				!strings.HasPrefix(key, p.Names.Wire(wellknown.SeccompContainer)) && !strings.HasPrefix(key, p.Names.Wire(wellknown.AppArmorProfile))
		})
		return annotations
	}
	return meta.Equal(checkedSpec(now), checkedSpec(old)) && maps.Equal(profiles(now), profiles(old))
}
