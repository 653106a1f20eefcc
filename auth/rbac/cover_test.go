package rbac

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCoverageComparisonIsBounded checks that uncovered gives up on large rule lists
// instead of computing for minutes.
func TestCoverageComparisonIsBounded(t *testing.T) {
	words := make([]string, 60_000)
	rules := make([]rule, len(words))
	for i := range words {
		words[i] = fmt.Sprint("w", i)
		rules[i] = rule{Verbs: []string{"get"}, Groups: []string{""}, Resources: words[i : i+1]}
	}
	reversed := make([]rule, len(rules))
	for i := range rules {
		reversed[len(rules)-1-i] = rules[i]
	}
	_, ok := uncovered(rules, reversed)
	assert.False(t, ok, "many rules")
	_, ok = uncovered([]rule{{Verbs: words}}, []rule{{Verbs: words}})
	assert.False(t, ok, "many words")
	missing, ok := uncovered([]rule{{Verbs: []string{all}, Groups: []string{all}, Resources: []string{all}}}, rules)
	assert.True(t, ok, "a star covers any number of resources")
	assert.Empty(t, missing)
}

// TestRulesThatGrantNothingCoverNothing checks that a rule without a group, which grants no
// resource, covers none.
func TestRulesThatGrantNothingCoverNothing(t *testing.T) {
	want := []rule{{Verbs: []string{"get"}, Groups: []string{""}, Resources: []string{"pods"}}}
	for _, own := range []rule{
		{Verbs: []string{"get"}, Resources: []string{"pods"}},
		{Groups: []string{""}, Resources: []string{"pods"}},
		{Verbs: []string{"get"}, Groups: []string{""}},
	} {
		missing, ok := uncovered([]rule{own}, want)
		assert.True(t, ok)
		assert.Equal(t, want, missing, own)
	}
	missing, ok := uncovered(want, want)
	assert.True(t, ok)
	assert.Empty(t, missing)
}
