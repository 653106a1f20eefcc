// Package flowcontrol configures how a server divides its concurrency (its seats) among callers: priority
// levels, and the flow schemas that assign requests to them.
package flowcontrol

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"orch.io/controlplane/auth"
)

// Config is a complete configuration. Every request must match a schema; the last schema of Default matches
// all requests.
type Config struct {
	Levels  []PriorityLevel
	Schemas []FlowSchema
}

// PriorityLevel is a priority level: a share of the server's seats, and how requests wait for a free seat.
type PriorityLevel struct {
	Name   string
	UID    string // empty: derived from Name
	Exempt bool   // requests take no seats and never wait; the other fields are ignored

	Shares    int  // share of the server's seats, relative to the other levels
	Lendable  int  // percentage of its seats that other levels may borrow
	Borrowing *int // limit of seats borrowed from other levels, as a percentage of its own; nil: no limit

	Queuing *Queuing // nil: requests without a free seat are refused
}

// Queuing configures how requests wait, by shuffle sharding: each flow uses HandSize of the Queues, so that
// it rarely shares all of them with another flow.
type Queuing struct {
	Queues, HandSize, QueueLength int
}

// Distinguisher is the attribute that separates the flows of a schema.
type Distinguisher int

// The distinguishers. With None, all requests of a schema belong to the same flow.
const (
	None Distinguisher = iota
	ByUser
	ByNamespace
)

// FlowSchema assigns requests to a level. Of the schemas that match a request, the schema with the least Precedence
// applies; of schemas with equal Precedence, the first by name.
type FlowSchema struct {
	Name          string
	UID           string // empty: derived from Name
	Precedence    int
	Level         string
	Distinguisher Distinguisher
	Rules         []Rule // the schema matches if any rule does
}

// Rule matches a request if any of its subjects, and any of its resource or path rules, matches the request.
type Rule struct {
	Subjects  []Subject
	Resources []ResourceRule
	Paths     []PathRule
}

// All matches everything in the lists of rules and in the names of subjects.
const All = "*"

// Subject is a user, a group or a service account. Set only the fields of a single kind of subject.
type Subject struct {
	User, Group               string
	Namespace, ServiceAccount string
}

// ResourceRule matches requests for resources. Resources may name subresources, such as nodes/status.
// Cluster matches requests without a namespace, Namespaces the others.
type ResourceRule struct {
	Verbs, Groups, Resources []string
	Cluster                  bool
	Namespaces               []string
}

// PathRule matches requests for paths that are not resources. A path that ends in * matches all paths with
// that prefix.
type PathRule struct {
	Verbs, Paths []string
}

// Match reports whether the schema matches a request.
func (s *FlowSchema) Match(a *auth.Attributes) bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.match(a) })
}

func (r *Rule) match(a *auth.Attributes) bool {
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

func (r *ResourceRule) match(a *auth.Attributes) bool {
	if !has(r.Verbs, a.Verb) || !has(r.Groups, a.Group) || !r.hasResource(a) {
		return false
	}
	if a.Namespace == "" {
		return r.Cluster
	}
	return has(r.Namespaces, a.Namespace)
}

func (r *ResourceRule) hasResource(a *auth.Attributes) bool {
	if a.Subresource == "" {
		return has(r.Resources, a.Resource)
	}
	return slices.ContainsFunc(r.Resources, func(s string) bool {
		resource, sub, _ := strings.Cut(s, "/")
		return s == All || resource == a.Resource && sub == a.Subresource
	})
}

func (r *PathRule) match(a *auth.Attributes) bool {
	return has(r.Verbs, a.Verb) && slices.ContainsFunc(r.Paths, func(p string) bool {
		prefix, open := strings.CutSuffix(p, All)
		return p == a.Path || open && strings.HasPrefix(a.Path, prefix)
	})
}

func has(list []string, word string) bool {
	return slices.Contains(list, word) || len(list) > 0 && list[0] == All
}

// Validate returns all errors of the configuration, joined.
func (c *Config) Validate() error {
	var faults []error
	levels := map[string]bool{}
	for i := range c.Levels {
		l := &c.Levels[i]
		if l.Name == "" || levels[l.Name] {
			faults = append(faults, fmt.Errorf("level %q: empty or duplicate name", l.Name))
		}
		levels[l.Name] = true
		if err := l.validate(); err != nil {
			faults = append(faults, fmt.Errorf("level %q: %w", l.Name, err))
		}
	}
	schemas := map[string]bool{}
	for _, s := range c.Schemas {
		if s.Name == "" || schemas[s.Name] {
			faults = append(faults, fmt.Errorf("schema %q: empty or duplicate name", s.Name))
		}
		schemas[s.Name] = true
		if !levels[s.Level] {
			faults = append(faults, fmt.Errorf("schema %q: unknown level %q", s.Name, s.Level))
		}
	}
	return errors.Join(faults...)
}

// The limits of a level. maxHandBits is the number of hash bits from which a hand is dealt.
const (
	maxShares   = 1 << 20
	maxQueues   = 10_000
	maxLength   = 10_000
	maxHandBits = 60
)

func (l *PriorityLevel) validate() error {
	if l.Exempt {
		return nil
	}
	if l.Shares < 0 || l.Shares > maxShares || l.Lendable < 0 || l.Lendable > 100 {
		return fmt.Errorf("shares must be between 0 and %d, and lendable between 0 and 100 percent", maxShares)
	}
	if l.Borrowing != nil && *l.Borrowing < 0 {
		return errors.New("borrowing must not be negative")
	}
	if q := l.Queuing; q != nil {
		return q.validate()
	}
	return nil
}

func (q *Queuing) validate() error {
	if q.Queues < 1 || q.Queues > maxQueues || q.QueueLength < 1 || q.QueueLength > maxLength {
		return fmt.Errorf("queues must be between 1 and %d, and queueLength between 1 and %d", maxQueues, maxLength)
	}
	if q.HandSize < 1 || q.HandSize > q.Queues || q.HandSize*bits.Len(uint(q.Queues-1)) > maxHandBits {
		return fmt.Errorf("handSize must be between 1 and queues (%d), and small enough for shuffle sharding", q.Queues)
	}
	return nil
}
