package selector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

func TestMatches(t *testing.T) {
	labels := map[string]string{"a": "1", "b": "2"}
	for _, c := range []struct {
		s    *meta.LabelSelector
		want bool
	}{
		{nil, false},
		{&meta.LabelSelector{}, true},
		{&meta.LabelSelector{MatchLabels: map[string]string{"a": "1"}}, true},
		{&meta.LabelSelector{MatchLabels: map[string]string{"a": "2"}}, false},
		{&meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"1", "3"}}}}, true},
		{&meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: "a", Operator: "NotIn", Values: []string{"1"}}}}, false},
		{&meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: "c", Operator: "NotIn", Values: []string{"1"}}}}, true},
		{&meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: "c", Operator: "Exists"}}}, false},
		{&meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: "c", Operator: "DoesNotExist"}}}, true},
	} {
		require.Equal(t, c.want, selector.Matches(c.s, labels), "%+v", c.s)
	}
	require.True(t, selector.Empty(nil))
	require.True(t, selector.Empty(&meta.LabelSelector{}))
	require.False(t, selector.Empty(&meta.LabelSelector{MatchLabels: labels}))
}
