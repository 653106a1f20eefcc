package flowcontrol

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// all is the wildcard of policy rules.
const all = "*"

// validateSchema checks the rules, the uniqueness of condition types, and that the mandatory schemas
// keep their spec. Precedence 1 is reserved for the schema exempt, so that no other schema can capture
// requests of administrators.
func validateSchema(w *registry.Change[FlowSchema]) {
	s, at, types := &w.New.Spec, check.At("spec"), []string{}
	if s.MatchingPrecedence == 1 && w.New.Name != "exempt" {
		w.Invalid(at.Field("matchingPrecedence"), s.MatchingPrecedence, "only the schema named 'exempt' may have matchingPrecedence 1")
	}
	for _, c := range w.New.Status.Conditions {
		types = append(types, c.Type)
	}
	checkUniqueTypes(&w.Violations, types)
	for i := range s.Rules {
		s.Rules[i].validate(&w.Violations, at.Field("rules").Index(i))
	}
	if fixed, ok := mandatorySchemas()[w.New.Name]; ok && !check.SemanticEqual(*s, fixed) {
		w.Invalid(at, s, "spec of '"+w.New.Name+"' must equal the fixed value")
	}
}

// validate checks the subjects before the rules, as kube-apiserver does.
func (r *PolicyRulesWithSubjects) validate(f *check.Violations, at *check.Path) {
	for i := range r.Subjects {
		r.Subjects[i].validate(f, at.Field("subjects").Index(i))
	}
	if len(r.ResourceRules)+len(r.NonResourceRules) == 0 {
		f.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty")
	}
	for i := range r.ResourceRules {
		r.ResourceRules[i].validate(f, at.Field("resourceRules").Index(i))
	}
	for i := range r.NonResourceRules {
		r.NonResourceRules[i].validate(f, at.Field("nonResourceRules").Index(i))
	}
}

// validate checks that exactly the field that Kind names is set. The schema reports an unknown kind.
func (s *Subject) validate(f *check.Violations, at *check.Path) {
	fields := []struct {
		kind, field string
		set         bool
	}{{"ServiceAccount", "serviceAccount", s.ServiceAccount != nil}, {"User", "user", s.User != nil}, {"Group", "group", s.Group != nil}}
	if s.Kind != "ServiceAccount" && s.Kind != "User" && s.Kind != "Group" {
		return
	}
	for _, k := range fields {
		if s.Kind == k.kind && !k.set {
			f.Required(at.Field(k.field), k.field+" is required when subject kind is '"+k.kind+"'")
		}
	}
	for _, k := range fields {
		if s.Kind != k.kind && k.set {
			f.Forbidden(at.Field(k.field), k.field+" is forbidden when subject kind is not '"+k.kind+"'")
		}
	}
	if a := s.ServiceAccount; a != nil && s.Kind == "ServiceAccount" && a.Name != "" && a.Name != all {
		f.Format(at.Field("serviceAccount").Field("name"), a.Name, meta.CheckDNSSubdomain(a.Name))
	}
}

func (r *ResourcePolicyRule) validate(f *check.Violations, at *check.Path) {
	checkVerbs(f, at.Field("verbs"), r.Verbs)
	checkWildcard(f, at.Field("apiGroups"), r.APIGroups, "api groups")
	checkWildcard(f, at.Field("resources"), r.Resources, "resources")
	at = at.Field("namespaces")
	if len(r.Namespaces) == 0 && !r.ClusterScope {
		f.Required(at, "resource rules that are not cluster scoped must supply at least one namespace")
	}
	if slices.Contains(r.Namespaces, all) {
		checkWildcard(f, at, r.Namespaces, "namespaces")
		return
	}
	for i, name := range r.Namespaces {
		for _, why := range meta.CheckDNSLabel(name) {
			f.Invalid(at.Index(i), name, "each member of this list must be '*' or a DNS-1123 label; "+why)
		}
	}
}

func (r *NonResourcePolicyRule) validate(f *check.Violations, at *check.Path) {
	checkVerbs(f, at.Field("verbs"), r.Verbs)
	at = at.Field("nonResourceURLs")
	if slices.Contains(r.NonResourceURLs, all) {
		checkWildcard(f, at, r.NonResourceURLs, "non-resource URLs")
		return
	}
	for i, path := range r.NonResourceURLs {
		if why := pathViolation(path); why != "" {
			f.Invalid(at.Index(i), path, why)
		}
	}
}

// pathViolation describes the violation in a non-resource path, or "".
func pathViolation(path string) string {
	switch {
	case path == "":
		return "must not be empty"
	case strings.Contains(path, " "):
		return "must not contain white-space"
	case path[0] != '/':
		return "must start with slash"
	case strings.Contains(path, "//"):
		return "must not contain double slash"
	case strings.Contains(strings.TrimSuffix(path, "/*"), all):
		return "wildcard can only do suffix matching"
	}
	return ""
}

// checkVerbs checks that each verb is known, or that the only verb is the wildcard.
func checkVerbs(f *check.Violations, at *check.Path, verbs []string) {
	known := []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
	switch {
	case slices.Contains(verbs, all):
		checkWildcard(f, at, verbs, "verbs")
	case slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains(known, v) }):
		f.NotSupported(at, verbs, known...)
	}
}

// checkWildcard checks that the wildcard, if present, is the only entry of the list. noun names the
// entries in the message.
func checkWildcard(f *check.Violations, at *check.Path, list []string, noun string) {
	if len(list) > 1 && slices.Contains(list, all) {
		f.Invalid(at, list, "if '*' is present, must not specify other "+noun)
	}
}

// checkUniqueTypes checks that no condition type is repeated.
func checkUniqueTypes(f *check.Violations, types []string) {
	seen := map[string]bool{}
	for i, t := range types {
		if seen[t] {
			f.Duplicate(check.At("status", "conditions").Index(i).Field("type"), t)
		}
		seen[t] = true
	}
}
