package auth

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
)

// Chain asks authorizers in order: the first that allows or denies decides. If
// none has an opinion the result has none either, with the reasons and errors
// of all. An error of one does not keep the others from deciding.
func Chain(authorizers ...Authorizer) Authorizer { return chain(authorizers) }

type chain []Authorizer

func (c chain) Authorize(ctx context.Context, a Action) (Decision, string, error) {
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

// RulesFor adds up the rules of the members; one that cannot list its rules
// leaves the result incomplete.
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

// unique leaves out the rules that are there before, as their text tells.
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

// text returns lists of words so that no two are the same unless their words
// are.
func text(lists ...[]string) (out []byte) {
	for _, list := range lists {
		out = binary.AppendUvarint(out, uint64(len(list)))
		for _, word := range list {
			out = append(binary.AppendUvarint(out, uint64(len(word))), word...)
		}
	}
	return out
}

// Superuser allows everything to the members of a group and has no opinion on
// anybody else.
func Superuser(group string) Authorizer { return superuser(group) }

type superuser string

func (s superuser) Authorize(_ context.Context, a Action) (Decision, string, error) {
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

// Rules is what a user may do in a namespace, as far as an authorizer can tell.
type Rules struct {
	Resource    []ResourceRule
	NonResource []NonResourceRule
	Incomplete  bool   // more may be allowed than the rules say
	Fault       string // why they are incomplete, for people
}

// ResourceRule allows verbs on resources; "*" stands for all. No Names: any.
type ResourceRule struct{ Verbs, Groups, Resources, Names []string }

// NonResourceRule allows verbs on paths; "*" stands for all, at the end of a
// path for everything below.
type NonResourceRule struct{ Verbs, Paths []string }

// RuleLister is an Authorizer that can also list what a user may do in a
// namespace.
type RuleLister interface {
	RulesFor(ctx context.Context, u *User, namespace string) Rules
}

// allowAll is AllowAll.
type allowAll struct{}

func (allowAll) Authorize(context.Context, Action) (Decision, string, error) { return Allow, "", nil }

func (allowAll) RulesFor(context.Context, *User, string) Rules {
	return Rules{
		Resource:    []ResourceRule{{Verbs: []string{"*"}, Groups: []string{"*"}, Resources: []string{"*"}}},
		NonResource: []NonResourceRule{{Verbs: []string{"*"}, Paths: []string{"*"}}},
	}
}
