package auth

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
)

// Chain returns an Authorizer that calls authorizers in order and returns the first
// decision that is Allow or Deny. If all return NoOpinion, the result is NoOpinion with
// all reasons and errors. An error that comes with NoOpinion does not stop the chain.
func Chain(authorizers ...Authorizer) Authorizer { return chain(authorizers) }

type chain []Authorizer

func (c chain) Authorize(ctx context.Context, a Attributes) (Decision, string, error) {
	var reasons []string
	var errs []error
	for _, next := range c {
		d, reason, err := next.Authorize(ctx, a)
		if d == Allow || d == Deny {
			return d, reason, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return NoOpinion, strings.Join(reasons, "; "), errors.Join(errs...)
}

// RulesFor returns the rules of all members without duplicates. The result is incomplete
// if a member does not implement RuleLister.
func (c chain) RulesFor(ctx context.Context, u *User, namespace string) Rules {
	var all Rules
	var faults []string
	for _, next := range c {
		l, ok := next.(RuleLister)
		if !ok {
			all.Incomplete = true
			continue
		}
		r := l.RulesFor(ctx, u, namespace)
		all.Resource = append(all.Resource, r.Resource...)
		all.NonResource = append(all.NonResource, r.NonResource...)
		all.Incomplete = all.Incomplete || r.Incomplete
		if r.Fault != "" {
			faults = append(faults, r.Fault)
		}
	}
	all.Resource = unique(all.Resource, func(r ResourceRule) []byte { return text(r.Verbs, r.Groups, r.Resources, r.Names) })
	all.NonResource = unique(all.NonResource, func(r NonResourceRule) []byte { return text(r.Verbs, r.Paths) })
	all.Fault = strings.Join(faults, "; ")
	return all
}

// unique returns rules without duplicates: rules with equal texts are equal.
func unique[T any](rules []T, text func(T) []byte) (once []T) {
	seen := map[[sha256.Size]byte]bool{}
	for _, r := range rules {
		if sum := sha256.Sum256(text(r)); !seen[sum] {
			seen[sum] = true
			once = append(once, r)
		}
	}
	return once
}

// text returns an injective encoding of lists: different lists have different texts.
func text(lists ...[]string) (out []byte) {
	for _, list := range lists {
		out = binary.AppendUvarint(out, uint64(len(list)))
		for _, word := range list {
			out = append(binary.AppendUvarint(out, uint64(len(word))), word...)
		}
	}
	return out
}

// Superuser returns an Authorizer that allows every request of the members of group and
// has no opinion about other users.
func Superuser(group string) Authorizer { return superuser(group) }

type superuser string

func (s superuser) Authorize(_ context.Context, a Attributes) (Decision, string, error) {
	if a.User != nil && a.User.InGroup(string(s)) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

func (s superuser) RulesFor(_ context.Context, u *User, _ string) Rules {
	if u == nil || !u.InGroup(string(s)) {
		return Rules{}
	}
	return Rules{
		Resource:    []ResourceRule{{Verbs: []string{"*"}, Groups: []string{"*"}, Resources: []string{"*"}}},
		NonResource: []NonResourceRule{{Verbs: []string{"*"}, Paths: []string{"*"}}},
	}
}

// Rules lists the permissions of a user in a namespace that an Authorizer knows.
type Rules struct {
	Resource    []ResourceRule
	NonResource []NonResourceRule
	Incomplete  bool   // the user can have further permissions
	Fault       string // why the rules are incomplete, for people
}

// ResourceRule allows verbs on resources; "*" means all. Empty Names mean all names.
type ResourceRule struct{ Verbs, Groups, Resources, Names []string }

// NonResourceRule allows verbs on paths. "*" means all; at the end of a path it matches
// any rest.
type NonResourceRule struct{ Verbs, Paths []string }

// RuleLister is implemented by an Authorizer that can list the permissions of a user in
// a namespace.
type RuleLister interface {
	RulesFor(ctx context.Context, u *User, namespace string) Rules
}

// allowAll is AllowAll.
type allowAll struct{}

func (allowAll) Authorize(context.Context, Attributes) (Decision, string, error) {
	return Allow, "", nil
}

func (allowAll) RulesFor(context.Context, *User, string) Rules {
	return Rules{
		Resource:    []ResourceRule{{Verbs: []string{"*"}, Groups: []string{"*"}, Resources: []string{"*"}}},
		NonResource: []NonResourceRule{{Verbs: []string{"*"}, Paths: []string{"*"}}},
	}
}
