package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
)

// Limited is a resource whose objects need a quota for the names that contain one of MatchContains, and for each of
// MatchScopes that they are in.
type Limited struct {
	APIGroup      string     `json:"apiGroup,omitempty"`
	Resource      string     `json:"resource"`
	MatchContains []string   `json:"matchContains,omitempty"` // parts of the names in quotas
	MatchScopes   []Selector `json:"matchScopes,omitempty"`
}

// uncovered returns the refusal of an object that needs a quota for a name or scope, and no quota of its namespace
// has it.
func (l *Ledger) uncovered(c *charge, quotas []*snapshot) error {
	var names []string
	var scopes []Selector
	for _, of := range l.limited {
		if of.APIGroup != c.resource.Group || of.Resource != c.resource.Resource {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(l.naming.usage(c.resource, c.object, time.Now()))) {
			if slices.ContainsFunc(of.MatchContains, func(part string) bool { return strings.Contains(name, part) }) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, s := range of.MatchScopes {
			if s.holds(c.resource, c.object) {
				scopes = append(scopes, s)
			}
		}
	}
	for _, q := range quotas {
		if q.matches(c.resource, c.object) {
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(q.names[c.resource], name) })
		}
		for _, s := range q.selectors {
			if s.holds(c.resource, c.object) {
				scopes = slices.DeleteFunc(scopes, func(of Selector) bool { return of.ScopeName == s.ScopeName })
			}
		}
	}
	switch {
	case len(names) > 0:
		slices.Sort(names)
		return fmt.Errorf("insufficient quota to consume: %s", strings.Join(names, ","))
	case len(scopes) > 0:
		return fmt.Errorf("insufficient quota to match these scopes: %v", scopes)
	}
	return nil
}

// limits reports whether objects of a resource need a quota.
func (l *Ledger) limits(r meta.GroupResource) bool {
	return slices.ContainsFunc(l.limited, func(of Limited) bool { return of.APIGroup == r.Group && of.Resource == r.Resource })
}
