// Package flowcontrol says how a server's seats are shared among its callers:
// priority levels, and the schemas that sort requests into them.
package flowcontrol

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"orch.io/controlplane/auth"
)

// Config is a whole configuration. Every request must find a schema in it;
// Default always ends with one that takes what is left.
type Config struct {
	Levels  []Level
	Schemas []Schema
}

// Level is a priority level: a part of the server's seats, and what happens to
// requests for which none is free.
type Level struct {
	Name   string
	UID    string // empty: made from the name
	Exempt bool   // never waits and is never counted; the rest does not matter then

	Shares    int  // of the server's seats, in proportion to those of the other levels
	Lendable  int  // percent of its seats that other levels may use while they are free
	Borrowing *int // how many seats of other levels it may use, in percent of its own; nil: no bound of its own

	Queuing *Queuing // nil: who finds no free seat is refused
}

// Queuing is how requests wait. Each flow waits in a few of the queues, its
// hand, so that it rarely shares all of them with another.
type Queuing struct {
	Queues, HandSize, QueueLength int
}

// Distinguisher tells the flows of a schema apart.
type Distinguisher int

// The distinguishers. Without one all requests of a schema are one flow.
const (
	None Distinguisher = iota
	ByUser
	ByNamespace
)

// Schema sorts requests into a level. The schema of the least precedence that
// matches takes the request; of equals the one whose name comes first.
type Schema struct {
	Name          string
	UID           string // empty: made from the name
	Precedence    int
	Level         string
	Distinguisher Distinguisher
	Rules         []Rule // any of them
}

// Rule matches what one of the subjects does, if one of the resource or path
// rules covers it.
type Rule struct {
	Subjects  []Subject
	Resources []ResourceRule
	Paths     []PathRule
}

// All stands for everything in the lists of rules, and in names of subjects.
const All = "*"

// Subject is a user, a group or a service account: one of the three.
type Subject struct {
	User, Group               string
	Namespace, ServiceAccount string
}

// ResourceRule covers requests for resources. Resources may name sub-resources,
// as in nodes/status. Cluster covers what is in no namespace, Namespaces the rest.
type ResourceRule struct {
	Verbs, Groups, Resources []string
	Cluster                  bool
	Namespaces               []string
}

// PathRule covers requests for paths that are no resources. A path that ends in
// * covers all that begin with it.
type PathRule struct {
	Verbs, Paths []string
}

// Match reports whether the schema takes a request.
func (s *Schema) Match(a *auth.Action) bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.match(a) })
}

func (r *Rule) match(a *auth.Action) bool {
	if !slices.ContainsFunc(r.Subjects, func(s Subject) bool { return s.match(a.User) }) {
		return false
	}
	if a.Resource == "" {
		return slices.ContainsFunc(r.Paths, func(p PathRule) bool { return p.match(a) })
	}
	return slices.ContainsFunc(r.Resources, func(r ResourceRule) bool { return r.match(a) })
}

func (s *Subject) match(u *auth.User) bool {
	switch {
	case s.User != "":
		return s.User == All || s.User == u.Name
	case s.Group != "":
		return s.Group == All || u.InGroup(s.Group)
	}
	namespace, name, ok := auth.SplitServiceAccount(u.Name)
	return ok && s.Namespace == namespace && (s.ServiceAccount == All || s.ServiceAccount == name)
}

func (r *ResourceRule) match(a *auth.Action) bool {
	if !has(r.Verbs, a.Verb) || !has(r.Groups, a.Group) || !r.hasResource(a) {
		return false
	}
	if a.Namespace == "" {
		return r.Cluster
	}
	return has(r.Namespaces, a.Namespace)
}

func (r *ResourceRule) hasResource(a *auth.Action) bool {
	if a.Subresource == "" {
		return has(r.Resources, a.Resource)
	}
	return slices.ContainsFunc(r.Resources, func(s string) bool {
		resource, sub, _ := strings.Cut(s, "/")
		return s == All || resource == a.Resource && sub == a.Subresource
	})
}

func (r *PathRule) match(a *auth.Action) bool {
	return has(r.Verbs, a.Verb) && slices.ContainsFunc(r.Paths, func(p string) bool {
		prefix, open := strings.CutSuffix(p, All)
		return p == a.Path || open && strings.HasPrefix(a.Path, prefix)
	})
}

func has(list []string, word string) bool {
	return slices.Contains(list, word) || len(list) > 0 && list[0] == All
}

// Validate reports every fault of the configuration, joined.
func (c *Config) Validate() error {
	var faults []error
	levels := map[string]bool{}
	for i := range c.Levels {
		l := &c.Levels[i]
		if l.Name == "" || levels[l.Name] {
			faults = append(faults, fmt.Errorf("level %q: the name is empty or taken", l.Name))
		}
		levels[l.Name] = true
		if err := l.validate(); err != nil {
			faults = append(faults, fmt.Errorf("level %q: %w", l.Name, err))
		}
	}
	schemas := map[string]bool{}
	for _, s := range c.Schemas {
		if s.Name == "" || schemas[s.Name] {
			faults = append(faults, fmt.Errorf("schema %q: the name is empty or taken", s.Name))
		}
		schemas[s.Name] = true
		if !levels[s.Level] {
			faults = append(faults, fmt.Errorf("schema %q: there is no level %q", s.Name, s.Level))
		}
	}
	return errors.Join(faults...)
}

// Bounds of a level. A hand is dealt from a hash of maxHandBits bits.
const (
	maxShares   = 1 << 20
	maxQueues   = 10_000
	maxLength   = 10_000
	maxHandBits = 60
)

func (l *Level) validate() error {
	if l.Exempt {
		return nil
	}
	if l.Shares < 0 || l.Shares > maxShares || l.Lendable < 0 || l.Lendable > 100 {
		return fmt.Errorf("shares are 0 to %d, lendable 0 to 100 percent", maxShares)
	}
	if l.Borrowing != nil && *l.Borrowing < 0 {
		return errors.New("borrowing is less than nothing")
	}
	if q := l.Queuing; q != nil {
		return q.validate()
	}
	return nil
}

func (q *Queuing) validate() error {
	if q.Queues < 1 || q.Queues > maxQueues || q.QueueLength < 1 || q.QueueLength > maxLength {
		return fmt.Errorf("queues are 1 to %d, their length 1 to %d", maxQueues, maxLength)
	}
	if q.HandSize < 1 || q.HandSize > q.Queues || q.HandSize*bits.Len(uint(q.Queues-1)) > maxHandBits {
		return fmt.Errorf("a hand is 1 to %d of the queues, and not too large to be dealt", q.Queues)
	}
	return nil
}
