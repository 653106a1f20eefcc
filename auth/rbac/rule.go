package rbac

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
)

// rule is a rule of a role. "*" in Verbs, Groups and Resources matches all;
// "*/sub" in Resources matches the subresource of every resource; a "*" at the end
// of a URL matches every path with that prefix. Empty Names match any name.
type rule struct {
	Verbs, Groups, Resources, Names []string
	URLs                            []string
}

const all = "*"

// allows reports whether the rule permits the action.
func (r *rule) allows(a *auth.Attributes) bool {
	if !has(r.Verbs, a.Verb) {
		return false
	}
	if a.Resource == "" {
		return slices.ContainsFunc(r.URLs, func(u string) bool { return urlMatches(u, a.Path) })
	}
	return has(r.Groups, a.Group) && r.resource(a.Resource, a.Subresource) &&
		(len(r.Names) == 0 || slices.Contains(r.Names, a.Name))
}

func has(list []string, word string) bool {
	for _, w := range list {
		if w == all || w == word {
			return true
		}
	}
	return false
}

// resource reports whether Resources match a resource and its subresource. It does
// not join them, which would allocate for each request.
func (r *rule) resource(resource, sub string) bool {
	for _, w := range r.Resources {
		if w == all {
			return true
		}
		if sub == "" {
			if w == resource {
				return true
			}
			continue
		}
		head, tail, ok := strings.Cut(w, "/")
		if ok && tail == sub && (head == all || head == resource) {
			return true
		}
	}
	return false
}

// urlMatches reports whether the URL of a rule matches a path, or covers the URL of
// another rule. Several stars at its end have the same meaning as a single star.
func urlMatches(rule, path string) bool {
	if rule == all || rule == path {
		return true
	}
	return strings.HasSuffix(rule, all) && strings.HasPrefix(path, strings.TrimRight(rule, all))
}

// rulesOf parses the rules of a role. Malformed rules permit nothing.
func rulesOf(role *meta.Object) []rule {
	list := role.List("rules")
	rules := make([]rule, 0, len(list))
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		rules = append(rules, ruleOf(meta.NewObject(m)))
	}
	return rules
}

func ruleOf(o *meta.Object) rule {
	return rule{
		Verbs:     o.Strings("verbs"),
		Groups:    o.Strings("apiGroups"),
		Resources: o.Strings("resources"),
		Names:     o.Strings("resourceNames"),
		URLs:      o.Strings("nonResourceURLs"),
	}
}

func (r *rule) tree() map[string]any {
	t := map[string]any{"verbs": anyList(r.Verbs)}
	for field, list := range map[string][]string{
		"apiGroups": r.Groups, "resources": r.Resources, "resourceNames": r.Names, "nonResourceURLs": r.URLs,
	} {
		if len(list) > 0 {
			t[field] = anyList(list)
		}
	}
	return t
}

func rulesTree(rules []rule) []any {
	out := make([]any, len(rules))
	for i := range rules {
		out[i] = rules[i].tree()
	}
	return out
}

func anyList(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
