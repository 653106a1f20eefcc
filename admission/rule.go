package admission

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// Rule selects requests, with the words and wildcards of webhook rules. A request matches if every field
// does; an empty field matches all requests.
type Rule struct {
	Operations []Operation // * matches all
	Groups     []string    // "" is the core group, * matches all

	// Versions are versions of the resource; * matches all. If the list has any version of the resource, the rule
	// matches requests in all its versions, so that a caller cannot bypass a plugin by another version of the object.
	Versions []string

	// Resources are plurals such as pods, subresources such as pods/status, or patterns: * matches every resource
	// without its subresources, pods/* matches pods and all its subresources, */scale matches a subresource of every
	// resource, and */* matches all.
	Resources []string

	Scope Scope
}

// Scope is whether the objects of a resource are namespaced. The empty scope is AllScopes.
type Scope string

// The scopes.
const (
	AllScopes  Scope = "*"
	Cluster    Scope = "Cluster"
	Namespaced Scope = "Namespaced"
)

const every = "*"

// Matches reports whether the rule selects a request. The groups of the rule must be wire names; New converts the
// groups of a plugin's rules.
func (m *Rule) Matches(r *Request) bool {
	return (len(m.Operations) == 0 || slices.Contains(m.Operations, r.Operation) || slices.Contains(m.Operations, every)) &&
		m.matchesVersion(r) &&
		m.Scope.matches(r.Namespace) && m.matchesResource(r.Resource.Resource, r.Subresource)
}

func matchesWord(list []string, word string) bool {
	return len(list) == 0 || slices.Contains(list, word) || slices.Contains(list, every)
}

// matchesVersion reports whether the rule matches a version of the resource.
func (m *Rule) matchesVersion(r *Request) bool {
	all := []meta.GroupVersion{{Group: r.Resource.Group, Version: r.Resource.Version}}
	if r.Type != nil {
		all = r.Type.AllVersions
	}
	return slices.ContainsFunc(all, func(gv meta.GroupVersion) bool {
		return matchesWord(m.Groups, gv.Group) && matchesWord(m.Versions, gv.Version)
	})
}

func (s Scope) matches(namespace string) bool {
	switch s {
	case Cluster:
		return namespace == ""
	case Namespaced:
		return namespace != ""
	}
	return s == AllScopes || s == ""
}

func (m *Rule) matchesResource(resource, sub string) bool {
	for _, word := range m.Resources {
		base, ofSub, isSub := strings.Cut(word, "/")
		if (base == every || base == resource) && (ofSub == sub || isSub && ofSub == every) {
			return true
		}
	}
	return len(m.Resources) == 0
}

// faults returns the words that no request can match.
func (m *Rule) faults() (faults []error) {
	for _, op := range m.Operations {
		if !slices.Contains([]Operation{Create, Update, Delete, Connect, every}, op) {
			faults = append(faults, fmt.Errorf("unknown operation %q: use %s, %s, %s, %s or %s", op, Create, Update, Delete, Connect, every))
		}
	}
	if !slices.Contains([]Scope{"", AllScopes, Cluster, Namespaced}, m.Scope) {
		faults = append(faults, fmt.Errorf("unknown scope %q: use %s, %s or %s", m.Scope, Cluster, Namespaced, AllScopes))
	}
	word := func(field, whole, part string, check func(string) []string) {
		if part == every {
			return
		}
		for _, why := range check(part) {
			faults = append(faults, fmt.Errorf("%s %q %s", field, whole, why))
		}
	}
	for _, group := range m.Groups {
		if group != "" {
			word("group", group, group, meta.CheckDNSSubdomain)
		}
	}
	for _, version := range m.Versions {
		word("version", version, version, meta.CheckDNS1035Label)
	}
	for _, resource := range m.Resources {
		base, sub, isSub := strings.Cut(resource, "/")
		word("resource", resource, base, meta.CheckDNS1035Label)
		if isSub {
			word("resource", resource, sub, meta.CheckDNSLabel)
		}
	}
	return faults
}

// plurals returns the resources that the rule names; others reports whether it can match any other resource.
func (m *Rule) plurals() (list []string, others bool) {
	for _, word := range m.Resources {
		base, _, _ := strings.Cut(word, "/")
		if base == every {
			return nil, true
		}
		list = append(list, base)
	}
	return list, len(m.Resources) == 0
}

// wire returns a copy of the rule with the wire names of the groups.
func (m Rule) wire(p names.Profile) Rule {
	groups := make([]string, len(m.Groups))
	for i, g := range m.Groups {
		groups[i] = p.Group(g)
	}
	m.Groups = groups
	return m
}
