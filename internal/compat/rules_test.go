package compat

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/release"
)

// TestRulesFollowNamesAndRelease: each rule holds in the newest release under Kubernetes
// names, in no release before the one that the table names, and never under orch names.
func TestRulesFollowNamesAndRelease(t *testing.T) {
	for rule := ListsDeleted; rule <= OwnersFit; rule++ {
		first, err := release.Parse(since[rule])
		assert.NoError(t, err, rule)
		assert.True(t, RulesOf(names.Kubernetes, release.Newest).Has(rule), rule)
		assert.True(t, RulesOf(names.Kubernetes, first).Has(rule), rule)
		assert.False(t, RulesOf(names.Kubernetes, first.Previous()).Has(rule), rule)
		assert.False(t, RulesOf(names.Orch, release.Newest).Has(rule), rule)
		assert.False(t, Rules{}.Has(rule), rule)
	}
	assert.Len(t, since, int(OwnersFit))
}
