package resource

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/schema"
)

// TestKeepUnshownFields checks that written values are stored as written, and that unshown values
// stay with the object or item that they belong to.
func TestKeepUnshownFields(t *testing.T) {
	object := func(s *schema.Struct) *schema.Schema { return &schema.Schema{Type: schema.Object, Struct: s} }
	list := func(items *schema.Schema) *schema.Schema { return &schema.Schema{Type: schema.Array, Items: items} }
	text := &schema.Schema{Type: schema.String}
	item := &schema.Struct{}
	item.Add(&schema.Field{Name: "n", Schema: text}, &schema.Field{Name: "a", Schema: text})
	keyed := list(object(item))
	keyed.ListType, keyed.ListKeys = "map", []string{"n"}
	root := &schema.Struct{}
	root.Add(&schema.Field{Name: "keyed", Schema: keyed}, &schema.Field{Name: "plain", Schema: list(object(item))},
		&schema.Field{Name: "one", Schema: object(item)}, &schema.Field{Name: "zero", Schema: object(item), OmitZero: true}, &schema.Field{Name: "map", Schema: &schema.Schema{Type: schema.Object, Values: object(item)}})
	for name, c := range map[string]struct{ fitted, now, stored, want string }{
		"item removed":        {`{"keyed":[{"n":"1"},{"n":"2"}]}`, `{"keyed":[{"n":"2"}]}`, `{"keyed":[{"n":"1","x":1},{"n":"2","x":2}]}`, `{"keyed":[{"n":"2","x":2}]}`},
		"items moved":         {`{"keyed":[{"n":"1"},{"n":"2"}]}`, `{"keyed":[{"n":"2"},{"n":"3"},{"n":"1","a":"b"}]}`, `{"keyed":[{"n":"1","x":1},{"n":"2","x":2}]}`, `{"keyed":[{"n":"2","x":2},{"n":"3"},{"n":"1","a":"b","x":1}]}`},
		"key of another type": {`{"keyed":[{"a":"b"}]}`, `{"keyed":[{"a":"b"},{"n":"3"}]}`, `{"keyed":[{"n":1,"a":"b"}]}`, `{"keyed":[{"n":1,"a":"b"},{"n":"3"}]}`},
		"list items of another type, list written":     {`{}`, `{"keyed":[{"n":"1"}]}`, `{"keyed":["1"]}`, `{"keyed":[{"n":"1"}]}`},
		"list items of another type, list not written": {`{}`, `{"one":{}}`, `{"keyed":["1"]}`, `{"keyed":["1"],"one":{}}`},
		"items with defaults, one removed":             {`{"plain":[{"n":"1","a":"d"},{"n":"2","a":"d"}]}`, `{"plain":[{"n":"2","a":"d"}]}`, `{"plain":[{"n":"1","x":1},{"n":"2","x":2}]}`, `{"plain":[{"n":"2","x":2}]}`},
		"struct removed":                               {`{"one":{"n":"1"}}`, `{}`, `{"one":{"n":"1","x":1}}`, `{}`},
		"value in place of a struct":                   {`{}`, `{"plain":[]}`, `{"one":5}`, `{"one":5,"plain":[]}`},
		"map removed":                                  {`{"map":{"a":{"n":"1"}}}`, `{}`, `{"map":{"a":{"n":"1","x":1},"b":"?"}}`, `{"map":{"b":"?"}}`},
		"map with values of another type":              {`{}`, `{"map":{"a":{"n":"1"}}}`, `{"map":{"b":"?"}}`, `{"map":{"a":{"n":"1"},"b":"?"}}`},
		"empty struct written":                         {`{}`, `{"zero":{"n":"1"}}`, `{"zero":{"x":1}}`, `{"zero":{"n":"1","x":1}}`},
		"struct emptied":                               {`{"zero":{"n":"1"}}`, `{}`, `{"zero":{"n":"1","x":1}}`, `{"zero":{"x":1}}`},
		"value of another type":                        {`{"one":{}}`, `{"one":{"n":"1"}}`, `{"one":{"n":5,"x":1}}`, `{"one":{"n":"1","x":1}}`},
		"struct in place of a list":                    {`{}`, `{"plain":[{"n":"1"}]}`, `{"plain":{"n":"1"}}`, `{"plain":[{"n":"1"}]}`},
		"null":                                         {`{}`, `{"one":{"n":"1"}}`, `{"one":null,"map":null}`, `{"one":{"n":"1"},"map":null}`},
	} {
		tree := func(s string) (m map[string]any) {
			require.NoError(t, json.Unmarshal([]byte(s), &m))
			return m
		}
		got := keepFields(object(root), tree(c.fitted), tree(c.now), tree(c.stored))
		assert.Equal(t, tree(c.want), got, name)
	}
}

// deep returns an object that nests end in so many levels of the field "below".
func deep(depth int, end map[string]any) map[string]any {
	for range depth {
		end = map[string]any{"below": end}
	}
	return end
}

// TestDeepObjectsTakeLinearWork checks that the cost of keeping and defaulting fields grows
// linearly with the depth of an object, because each level is visited once.
func TestDeepObjectsTakeLinearWork(t *testing.T) {
	branch := &schema.Struct{}
	s := &schema.Schema{Type: schema.Object, Struct: branch}
	branch.Add(&schema.Field{Name: "below", Schema: s}, &schema.Field{Name: "a", Schema: &schema.Schema{Type: schema.Integer}})
	type m = map[string]any
	for name, work := range map[string]func(depth int){
		"kept": func(depth int) {
			got := keepFields(s, deep(depth, m{"a": 1}), deep(depth, m{"a": 2}), deep(depth, m{"a": 1, "x": 3}))
			assert.Equal(t, deep(depth, m{"a": 2, "x": 3}), got)
		},
		"filled in": func(depth int) {
			got := mergeBaseFields(s, deep(depth, m{}), deep(depth, m{"a": 1}), deep(depth, m{"b": 2}))
			assert.Equal(t, deep(depth, m{"a": 1}), got)
		},
	} {
		few := testing.AllocsPerRun(1, func() { work(8) })
		assert.Less(t, testing.AllocsPerRun(1, func() { work(16) }), 8*few, name)
	}
}
