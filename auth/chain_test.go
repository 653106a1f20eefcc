package auth_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/auth"
)

// answer returns an Authorizer that always returns the same decision.
func answer(d auth.Decision, reason string, err error) auth.Authorizer {
	return auth.AuthorizerFunc(func(context.Context, auth.Attributes) (auth.Decision, string, error) { return d, reason, err })
}

func TestChainReturnsTheFirstDecision(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		chain  auth.Authorizer
		want   auth.Decision
		reason string
		err    error
	}{
		"deny before allow":            {auth.Chain(answer(auth.Deny, "no", nil), auth.AllowAll), auth.Deny, "no", nil},
		"deny with an error":           {auth.Chain(answer(auth.Deny, "no", boom), auth.AllowAll), auth.Deny, "no", boom},
		"allow before deny":            {auth.Chain(answer(auth.Allow, "yes", nil), auth.DenyAll), auth.Allow, "yes", nil},
		"deny after no opinion":        {auth.Chain(answer(auth.NoOpinion, "", nil), auth.DenyAll, auth.AllowAll), auth.Deny, "everything is denied", nil},
		"an error does not stop":       {auth.Chain(answer(auth.NoOpinion, "down", boom), auth.AllowAll), auth.Allow, "", nil},
		"deny after an error":          {auth.Chain(answer(auth.NoOpinion, "", boom), auth.DenyAll), auth.Deny, "everything is denied", nil},
		"deny in a nested chain":       {auth.Chain(auth.Chain(auth.DenyAll), auth.AllowAll), auth.Deny, "everything is denied", nil},
		"no opinion joins the reasons": {auth.Chain(answer(auth.NoOpinion, "a", boom), answer(auth.NoOpinion, "", nil), answer(auth.NoOpinion, "b", nil)), auth.NoOpinion, "a; b", boom},
		"empty":                        {auth.Chain(), auth.NoOpinion, "", nil},
	} {
		d, reason, err := c.chain.Authorize(t.Context(), auth.Attributes{})
		assert.Equal(t, c.want, d, name)
		assert.Equal(t, c.reason, reason, name)
		assert.ErrorIs(t, err, c.err, name)
	}
}

// TestRulesOfAChainAreIncompleteIfThoseOfAMemberAre checks a member that says so and one that
// cannot list its rules, in front of one whose rules are complete.
func TestRulesOfAChainAreIncompleteIfThoseOfAMemberAre(t *testing.T) {
	complete := lister{auth.DenyAll, auth.Rules{}}
	for _, first := range []auth.Authorizer{auth.DenyAll, lister{auth.DenyAll, auth.Rules{Incomplete: true}}} {
		rules := auth.Chain(first, complete).(auth.RuleLister).RulesFor(t.Context(), nil, "")
		assert.True(t, rules.Incomplete)
	}
	assert.False(t, auth.Chain(complete).(auth.RuleLister).RulesFor(t.Context(), nil, "").Incomplete)
}

func TestSuperuserIsAMemberOfTheGroup(t *testing.T) {
	admins := auth.Superuser("admins")
	for _, c := range []struct {
		user *auth.User
		want auth.Decision
	}{
		{&auth.User{Name: "ann", Groups: []string{"devs", "admins"}}, auth.Allow},
		{&auth.User{Name: "admins", Groups: []string{"devs"}}, auth.NoOpinion},
		{&auth.User{Name: "bob"}, auth.NoOpinion},
		{nil, auth.NoOpinion},
	} {
		d, _, err := admins.Authorize(t.Context(), auth.Attributes{User: c.user, Verb: "delete", Resource: "pods"})
		assert.NoError(t, err)
		assert.Equal(t, c.want, d, c.user)
		assert.Equal(t, c.want == auth.Allow, len(admins.(auth.RuleLister).RulesFor(t.Context(), c.user, "").Resource) > 0, c.user)
	}
}

func TestSplitServiceAccount(t *testing.T) {
	namespace, name, ok := auth.SplitServiceAccount(auth.ServiceAccountUser("ns", "robot"))
	assert.Equal(t, []any{"ns", "robot", true}, []any{namespace, name, ok})
	for _, user := range []string{
		"ns:robot", "system:serviceaccount:", "system:serviceaccount:ns", "system:serviceaccount:ns:", "system:serviceaccount::robot",
		"system:serviceaccount:ns:robot:x", "system:serviceaccounts:ns:robot", "Xsystem:serviceaccount:ns:robot",
	} {
		_, _, ok := auth.SplitServiceAccount(user)
		assert.False(t, ok, user)
	}
}

// lister is an authorizer with rules.
type lister struct {
	auth.Authorizer
	rules auth.Rules
}

func (l lister) RulesFor(context.Context, *auth.User, string) auth.Rules { return l.rules }

// TestRulesOfManyAuthorizers adds up lists that would take hours to compare in
// pairs.
func TestRulesOfManyAuthorizers(t *testing.T) {
	var many auth.Rules
	const n = 60_000
	for i := range n {
		many.Resource = append(many.Resource, auth.ResourceRule{Verbs: []string{"get"}, Groups: []string{""}, Resources: []string{fmt.Sprint(i)}})
	}
	many.NonResource = []auth.NonResourceRule{{Verbs: []string{"get"}, Paths: []string{"/a", "/b"}}, {Verbs: []string{"get", "/a"}, Paths: []string{"/b"}}}
	both := auth.Chain(lister{auth.DenyAll, many}, lister{auth.DenyAll, many}).(auth.RuleLister).RulesFor(t.Context(), nil, "")
	assert.Equal(t, many, both)
}
