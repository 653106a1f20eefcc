package cel_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/cel"
)

// TestLargeNumbersAreComparedExactly: rules and policies distinguish integers that round to the
// same float64, with or without an exponent or fraction in JSON. Values of type number are an
// exception; see TestNumbersAreDoubles.
func TestLargeNumbersAreComparedExactly(t *testing.T) {
	const immutable = `x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]`
	env, err := cel.NewRequestEnv(names.Kubernetes, cel.Sees{})
	require.NoError(t, err)
	policy, err := env.Compile("object.spec.v == oldObject.spec.v", cel.Boolean)
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
			{`{type: integer, ` + immutable + `}`, func(v any) any { return v }},
			{`{type: array, maxItems: 5, items: {type: integer}, ` + immutable + `}`, func(v any) any { return []any{v, int64(1)} }},
			{`{type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: integer}, ` + immutable + `}`, func(v any) any { return []any{v, int64(1)} }},
			{`{type: object, maxProperties: 5, additionalProperties: {type: integer}, ` + immutable + `}`, func(v any) any { return map[string]any{"a": v} }},
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
		left := int64(cel.ConditionsCost)
		ok, err := policy.True(t.Context(), env.Vars(t.Context(), &cel.Request{Object: meta.NewObject(obj(pair[1])), Old: meta.NewObject(obj(pair[0]))}, &left), &left)
		require.NoError(t, err)
		assert.Equal(t, same, ok, "%v and %v", pair[0], pair[1])
	}
}

// TestNumbersAreDoubles: as in kube-apiserver, a value of type number is a double in rules, even if
// it is written as an integer without an exact double.
func TestNumbersAreDoubles(t *testing.T) {
	for _, where := range []struct {
		schema, self string
		wrap         func(v any) any
	}{
		{"type: number", "self", func(v any) any { return v }},
		{"type: array, maxItems: 3, items: {type: number}", "self[0]", func(v any) any { return []any{v} }},
		{"type: object, maxProperties: 3, additionalProperties: {type: number}", "self.a", func(v any) any { return map[string]any{"a": v} }},
		{"type: object, maxProperties: 3, additionalProperties: {type: array, maxItems: 3, items: {type: object, properties: {num: {type: number}}}}", "self.a[0].num",
			func(v any) any { return map[string]any{"a": []any{map[string]any{"num": v}}} }},
	} {
		for _, v := range []any{int64(1<<53 + 1), int64(-1 << 60), float64(1 << 53), 1e30, int64(5), 1.5} {
			rules, faults := compile(t, spec("properties: {v: {"+where.schema+", x-kubernetes-validations: [{rule: '"+strings.ReplaceAll(
				"type(SELF) == double && SELF * 2.0 != 1.0 && 1.0 + SELF != SELF - 2.0e30 && SELF > -1e19 && 1e31 > SELF && SELF != 9007199254740994.0", "SELF", where.self)+"'}]}}"))
			require.Empty(t, faults)
			got, _ := rules.Check(t.Context(), map[string]any{"spec": map[string]any{"v": where.wrap(v)}}, nil)
			assert.Empty(t, got, "%s: %v", where.schema, v)
		}
		rules, faults := compile(t, spec("properties: {v: {"+where.schema+", x-kubernetes-validations: [{rule: '"+where.self+" == 9007199254740992.0'}]}}"))
		require.Empty(t, faults)
		got, _ := rules.Check(t.Context(), map[string]any{"spec": map[string]any{"v": where.wrap(int64(1<<53 + 1))}}, nil)
		assert.Empty(t, got, where.schema)
	}
}

// TestIntOrStringNumbersStayIntegers: an integer of any size in an int-or-string field is an int in
// rules.
func TestIntOrStringNumbersStayIntegers(t *testing.T) {
	rules, faults := compile(t, spec(`properties: {v: {x-kubernetes-int-or-string: true, x-kubernetes-validations: [{rule: "type(self) == int && self == 9007199254740993"}]}}`))
	require.Empty(t, faults)
	got, _ := rules.Check(t.Context(), map[string]any{"spec": map[string]any{"v": int64(1<<53 + 1)}}, nil)
	assert.Empty(t, got)
}
