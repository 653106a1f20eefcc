package auth_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/auth"
)

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
