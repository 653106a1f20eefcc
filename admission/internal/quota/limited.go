package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
)

// Limited configures a resource whose objects cannot be created without a quota. A quota must bound each of the object's
// names that contains an entry of MatchContains, and a quota must have each scope of MatchScopes that selects the object.
type Limited struct {
	APIGroup      string     `json:"apiGroup,omitempty"`
	Resource      string     `json:"resource"`
	MatchContains []string   `json:"matchContains,omitempty"` // parts of the names in quotas
	MatchScopes   []Selector `json:"matchScopes,omitempty"`
}

// missingQuota returns the refusal of an object if Limited requires a quota for a name or scope that no quota of its
// namespace has.
func (l *Ledger) missingQuota(c *charge, quotas []*snapshot) error {
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
			if s.selects(c.resource, c.object) {
				scopes = append(scopes, s)
			}
		}
	}
	for _, q := range quotas {
		if q.matches(c.resource, c.object) {
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(q.names[c.resource], name) })
		}
		for _, s := range q.selectors {
			if s.selects(c.resource, c.object) {
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

// isLimited reports whether Limited has an entry for a resource.
func (l *Ledger) isLimited(r meta.GroupResource) bool {
	return slices.ContainsFunc(l.limited, func(of Limited) bool { return of.APIGroup == r.Group && of.Resource == r.Resource })
}
