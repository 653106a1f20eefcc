package rbac

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/api/meta"
)

// TestAggregationSelectors checks that a selector that cannot be read selects no role, whose rules would be granted.
func TestAggregationSelectors(t *testing.T) {
	labels := map[string]string{"a": "b"}
	for text, want := range map[string]bool{
		"{}":                             true,
		"{matchLabels: {a: b}}":          true,
		"{matchLabels: {a: c}}":          false,
		"{matchLabels: {a: b, c: d}}":    false,
		"{matchLabels: {a: 1}}":          false,
		"{matchExpressions: [x]}":        false,
		"{matchExpressions: [{key: a}]}": false,
		"{matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}, null]}": false,
		"{matchExpressions: [{key: a, operator: In, values: [b]}]}":                   true,
		"{matchExpressions: [{key: a, operator: In, values: [c]}]}":                   false,
		"{matchExpressions: [{key: a, operator: NotIn, values: [b]}]}":                false,
		"{matchExpressions: [{key: c, operator: NotIn, values: [b]}]}":                true,
		"{matchExpressions: [{key: a, operator: Exists}]}":                            true,
		"{matchExpressions: [{key: a, operator: DoesNotExist}]}":                      false,
		"{matchExpressions: [{key: a, operator: Gt, values: [b]}]}":                   false,
	} {
		var tree map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
		assert.Equal(t, want, selects(meta.NewObject(tree), labels), text)
	}
}
