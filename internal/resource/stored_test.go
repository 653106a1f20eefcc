package resource

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/schema"
)

// TestKeep: what is written is as it was written, and what was not shown stays with what
// it belongs to.
func TestKeep(t *testing.T) {
	object := func(s *schema.Struct) *schema.Schema { return &schema.Schema{Type: schema.Object, Struct: s} }
	list := func(items *schema.Schema) *schema.Schema { return &schema.Schema{Type: schema.Array, Items: items} }
	text := &schema.Schema{Type: schema.String}
	item := &schema.Struct{}
	item.Add(&schema.Field{Name: "n", Schema: text}, &schema.Field{Name: "a", Schema: text})
	keyed := list(object(item))
	keyed.ListType, keyed.ListKeys = "map", []string{"n"}
	root := &schema.Struct{}
	root.Add(&schema.Field{Name: "keyed", Schema: keyed}, &schema.Field{Name: "plain", Schema: list(object(item))},
		&schema.Field{Name: "one", Schema: object(item)}, &schema.Field{Name: "map", Schema: &schema.Schema{Type: schema.Object, Values: object(item)}})
	for name, c := range map[string]struct{ fitted, now, stored, want string }{
		"an item is gone":            {`{"keyed":[{"n":"1"},{"n":"2"}]}`, `{"keyed":[{"n":"2"}]}`, `{"keyed":[{"n":"1","x":1},{"n":"2","x":2}]}`, `{"keyed":[{"n":"2","x":2}]}`},
		"items move":                 {`{"keyed":[{"n":"1"},{"n":"2"}]}`, `{"keyed":[{"n":"2"},{"n":"3"},{"n":"1","a":"b"}]}`, `{"keyed":[{"n":"1","x":1},{"n":"2","x":2}]}`, `{"keyed":[{"n":"2","x":2},{"n":"3"},{"n":"1","a":"b","x":1}]}`},
		"keys do not fit":            {`{"keyed":[{"a":"b"}]}`, `{"keyed":[{"a":"b"},{"n":"3"}]}`, `{"keyed":[{"n":1,"a":"b"}]}`, `{"keyed":[{"n":1,"a":"b"},{"n":"3"}]}`},
		"a list does not fit":        {`{}`, `{"keyed":[{"n":"1"}]}`, `{"keyed":["1"]}`, `{"keyed":[{"n":"1"}]}`},
		"and stays":                  {`{}`, `{"one":{}}`, `{"keyed":["1"]}`, `{"keyed":["1"],"one":{}}`},
		"items with defaults":        {`{"plain":[{"n":"1","a":"d"},{"n":"2","a":"d"}]}`, `{"plain":[{"n":"2","a":"d"}]}`, `{"plain":[{"n":"1","x":1},{"n":"2","x":2}]}`, `{"plain":[{"n":"2","x":2}]}`},
		"a struct is gone":           {`{"one":{"n":"1"}}`, `{}`, `{"one":{"n":"1","x":1}}`, `{}`},
		"a struct was never there":   {`{}`, `{"plain":[]}`, `{"one":5}`, `{"one":5,"plain":[]}`},
		"a map is gone":              {`{"map":{"a":{"n":"1"}}}`, `{}`, `{"map":{"a":{"n":"1","x":1},"b":"?"}}`, `{"map":{"b":"?"}}`},
		"a value of another type":    {`{"one":{}}`, `{"one":{"n":"1"}}`, `{"one":{"n":5,"x":1}}`, `{"one":{"n":"1","x":1}}`},
		"a list in a struct's place": {`{}`, `{"plain":[{"n":"1"}]}`, `{"plain":{"n":"1"}}`, `{"plain":[{"n":"1"}]}`},
		"null":                       {`{}`, `{"one":{"n":"1"}}`, `{"one":null,"map":null}`, `{"one":{"n":"1"},"map":null}`},
	} {
		tree := func(s string) (m map[string]any) {
			require.NoError(t, json.Unmarshal([]byte(s), &m))
			return m
		}
		got := keepFields(object(root), tree(c.fitted), tree(c.now), tree(c.stored))
		assert.Equal(t, tree(c.want), got, name)
	}
}
