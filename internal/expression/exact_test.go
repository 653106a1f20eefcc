package expression_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/expression"
)

// TestLargeNumbersAreComparedExactly: numbers that are one float64 are told apart by rules and
// policies, whichever of the two ways JSON has for integers they are written in.
func TestLargeNumbersAreComparedExactly(t *testing.T) {
	const immutable = `x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]`
	env, err := expression.NewRequestEnv(names.Kubernetes, expression.Sees{})
	require.NoError(t, err)
	policy, err := env.Compile("object.spec.v == oldObject.spec.v", expression.Boolean)
	require.NoError(t, err)
	big, next := float64(1<<53), int64(1<<53+1) // next rounds to big
	for _, pair := range [][2]any{
		{int64(1 << 53), next}, {next, big}, {big, next}, {int64(math.MaxInt64), int64(math.MaxInt64 - 1)}, {-next, -big},
		{big, big}, {int64(1 << 53), big}, {next, next}, {int64(1), 1.0}, {1.0, int64(1)}, {0.5, 0.5}, {1e21, 1e21}, {1e21, 2e21},
	} {
		same := meta.Equal(pair[0], pair[1])
		want := "immutable"
		if same {
			want = ""
		}
		obj := func(v any) map[string]any { return map[string]any{"spec": map[string]any{"v": v}} }
		for _, c := range []struct {
			schema string
			wrap   func(v any) any
		}{
			{`{type: number, ` + immutable + `}`, func(v any) any { return v }},
			{`{type: integer, ` + immutable + `}`, func(v any) any { return v }},
			{`{type: array, maxItems: 5, items: {type: number}, ` + immutable + `}`, func(v any) any { return []any{v, 1.5} }},
			{`{type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: number}, ` + immutable + `}`, func(v any) any { return []any{v, 1.5} }},
			{`{type: object, maxProperties: 5, additionalProperties: {type: number}, ` + immutable + `}`, func(v any) any { return map[string]any{"a": v} }},
			{`{type: object, x-kubernetes-preserve-unknown-fields: true, ` + immutable + `}`, func(v any) any { return map[string]any{"a": v} }},
		} {
			rules, faults := compile(t, spec("properties: {v: "+c.schema+"}"))
			require.Empty(t, faults)
			got, _ := rules.Check(t.Context(), obj(c.wrap(pair[1])), obj(c.wrap(pair[0])))
			text := ""
			for _, f := range got {
				text += f.Message
			}
			assert.Contains(t, text, want, "%s: %v to %v", c.schema, pair[0], pair[1])
			assert.Equal(t, same, text == "", "%s: %v to %v: %s", c.schema, pair[0], pair[1], text)
		}
		left := int64(expression.ConditionsCost)
		ok, err := policy.True(t.Context(), env.Vars(t.Context(), &expression.Request{Object: meta.NewObject(obj(pair[1])), Old: meta.NewObject(obj(pair[0]))}, &left), &left)
		require.NoError(t, err)
		assert.Equal(t, same, ok, "%v and %v", pair[0], pair[1])
	}
}

// TestLargeNumbersAreOrdered: a field of type number may hold integers that no double holds.
func TestLargeNumbersAreOrdered(t *testing.T) {
	rules, faults := compile(t, spec(`properties: {v: {type: number, x-kubernetes-validations: [{rule: "self >= 0.5 && self < 1e19 && 1e19 > self && self > 9007199254740992"}]}}`))
	require.Empty(t, faults)
	got, _ := rules.Check(t.Context(), map[string]any{"spec": map[string]any{"v": int64(1<<53 + 1)}}, nil)
	assert.Empty(t, got)
}
