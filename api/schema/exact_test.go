package schema

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func TestNumbersAreValidatedExactly(t *testing.T) {
	number := func(f func(*Schema)) *Schema { return with(&Schema{Type: Number}, f) }
	one := func(s *Schema) *Schema { return kind(t, nil, object(nil, "v", s)) }
	const at = "spec.v"
	list := func(f func(*Schema)) *Schema {
		return with(&Schema{Type: Array, Items: &Schema{Type: Number}}, f)
	}
	keyed := &Schema{Type: Array, ListType: "map", ListKeys: []string{"k"}, Items: object([]string{"k"}, "k", &Schema{Type: Number})}
	key := func(v any) map[string]any { return map[string]any{"k": v} }
	big, next := float64(1<<53), int64(1<<53+1) // next rounds to big
	for name, c := range map[string]struct {
		schema   *Schema
		old, new any
		want     []cause
	}{
		"enum holds the value":         {number(func(s *Schema) { s.Enum = []any{next} }), nil, next, nil},
		"enum holds a near value":      {number(func(s *Schema) { s.Enum = []any{next} }), nil, big, []cause{{meta.CauseNotSupported, at}}},
		"enum holds a near float":      {number(func(s *Schema) { s.Enum = []any{big} }), nil, next, []cause{{meta.CauseNotSupported, at}}},
		"immutable, near float":        {number(func(s *Schema) { s.Immutable = true }), next, big, []cause{{meta.CauseInvalid, at}}},
		"immutable, near integer":      {number(func(s *Schema) { s.Immutable = true }), big, next, []cause{{meta.CauseInvalid, at}}},
		"immutable, the same number":   {number(func(s *Schema) { s.Immutable = true }), int64(1 << 53), big, nil},
		"immutable, out of int64":      {number(func(s *Schema) { s.Immutable = true }), int64(math.MaxInt64), float64(1 << 63), []cause{{meta.CauseInvalid, at}}},
		"a broken rule may stay":       {number(func(s *Schema) { s.Maximum = ref(1.0) }), int64(1 << 53), big, nil},
		"a broken rule is broken anew": {number(func(s *Schema) { s.Maximum = ref(1.0) }), next, big, []cause{{meta.CauseInvalid, at}}},
		"maximum":                      {number(func(s *Schema) { s.Maximum = &big }), nil, next, []cause{{meta.CauseInvalid, at}}},
		"maximum of an integer":        {with(integer(), func(s *Schema) { s.Maximum = &big }), nil, next, []cause{{meta.CauseInvalid, at}}},
		"exclusive maximum":            {with(integer(), func(s *Schema) { s.Maximum, s.ExclusiveMax = ref(-big), true }), nil, -next, nil},
		"minimum":                      {with(integer(), func(s *Schema) { s.Minimum = ref(-big) }), nil, -next, []cause{{meta.CauseInvalid, at}}},
		"exclusive minimum":            {with(integer(), func(s *Schema) { s.Minimum, s.ExclusiveMin = &big, true }), nil, next, nil},
		"minimum out of int64":         {with(integer(), func(s *Schema) { s.Minimum = ref(float64(1 << 63)) }), nil, int64(math.MaxInt64), []cause{{meta.CauseInvalid, at}}},
		"maximum at the end of int64":  {with(integer(), func(s *Schema) { s.Minimum = ref(-float64(1 << 63)) }), nil, int64(math.MinInt64), nil},
		"maximum with a fraction":      {with(integer(), func(s *Schema) { s.Maximum = ref(2.5) }), nil, int64(3), []cause{{meta.CauseInvalid, at}}},
		"below a fraction":             {with(integer(), func(s *Schema) { s.Maximum = ref(2.5) }), nil, int64(2), nil},
		"set of near values":           {list(func(s *Schema) { s.ListType = "set" }), nil, []any{next, big}, nil},
		"set of one value":             {list(func(s *Schema) { s.ListType = "set" }), nil, []any{int64(1 << 53), big}, []cause{{meta.CauseDuplicate, at + "[1]"}}},
		"set at the end of int64":      {list(func(s *Schema) { s.ListType = "set" }), nil, []any{int64(math.MaxInt64), float64(1 << 63)}, nil},
		"set of 1 and 1.0":             {list(func(s *Schema) { s.ListType = "set" }), nil, []any{int64(1), 1.0}, []cause{{meta.CauseDuplicate, at + "[1]"}}},
		"uniqueItems of near values":   {list(func(s *Schema) { s.UniqueItems = true }), nil, []any{next, big}, nil},
		"uniqueItems of one value":     {list(func(s *Schema) { s.UniqueItems = true }), nil, []any{int64(1 << 53), big}, []cause{{meta.CauseDuplicate, at + "[1]"}}},
		"near keys":                    {keyed, nil, []any{key(next), key(big)}, nil},
		"one key":                      {keyed, nil, []any{key(int64(1 << 53)), key(big)}, []cause{{meta.CauseDuplicate, at + "[1]"}}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := func(v any) map[string]any { return map[string]any{"spec": map[string]any{"v": v}} }
			var old map[string]any
			if c.old != nil {
				old = obj(c.old)
			}
			s := one(c.schema)
			require.Equal(t, c.want, causesOf(s, obj(c.new), old))
		})
	}
	assert.NotEqual(t, uniqueText(next), uniqueText(big))
	assert.Equal(t, uniqueText(int64(1<<53)), uniqueText(big))
}
