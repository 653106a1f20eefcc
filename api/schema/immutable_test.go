package schema

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

type fixture struct {
	Plain  string            `json:"plain" schema:"immutable"`
	Count  *int32            `json:"count,omitempty" schema:"immutable"`
	Args   []string          `json:"args" schema:"immutable"`
	Parent *fixedParent      `json:"parent,omitempty"`
	Data   map[string]string `json:"data,omitempty" schema:"values.immutable"`
	Parts  []fixedPart       `json:"parts,omitempty" schema:"listType=map,listMapKeys=name"`
	Whole  []fixedPart       `json:"whole,omitempty" schema:"listType=map,listMapKeys=name,items.immutable"`
}

type fixedParent struct {
	Inner struct {
		ID string `json:"id,omitempty" schema:"immutable"`
	} `json:"inner"`
	Free string `json:"free,omitempty"`
}

type fixedPart struct {
	Name string `json:"name"`
	Size int32  `json:"size,omitempty" schema:"immutable"`
}

// TestImmutableValuesCannotChange checks that an immutable value cannot change at any place, and that an unset
// value can be set.
func TestImmutableValuesCannotChange(t *testing.T) {
	s, err := Go(reflect.TypeFor[fixture](), names.Orch)
	require.NoError(t, err)
	cases := []struct {
		name, old, new string
		fields         []string
	}{
		{"the same", `{"plain":"a","parts":[{"name":"a","size":1}]}`, `{"plain":"a","parts":[{"name":"a","size":1}]}`, nil},
		{"changed", `{"plain":"a"}`, `{"plain":"b"}`, []string{"plain"}},
		{"emptied", `{"plain":"a"}`, `{"plain":""}`, []string{"plain"}},
		{"set, always written", `{"plain":""}`, `{"plain":"b"}`, nil},
		{"set, a null list", `{"args":null}`, `{"args":["a"]}`, nil},
		{"a list made null", `{"args":["a"]}`, `{"args":null}`, []string{"args"}},
		{"set, a pointer", `{}`, `{"count":1}`, nil},
		{"a pointer's zero changed", `{"count":0}`, `{"count":1}`, []string{"count"}},
		{"a pointer's zero removed", `{"count":0}`, `{}`, []string{"count"}},
		{"the parent removed", `{"parent":{"inner":{"id":"x"}}}`, `{}`, []string{"parent.inner.id"}},
		{"a parent with nothing set removed", `{"parent":{"free":"y"}}`, `{}`, nil},
		{"the parent added", `{}`, `{"parent":{"inner":{"id":"x"}}}`, nil},
		{"a value added", `{"data":{"a":"1"}}`, `{"data":{"a":"1","b":"2"}}`, nil},
		{"a value changed", `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, []string{"data.a"}},
		{"an empty value set", `{"data":{"a":""}}`, `{"data":{"a":"2"}}`, nil},
		{"a value removed", `{"data":{"a":"1","b":"2"}}`, `{"data":{"a":"1"}}`, []string{"data.b"}},
		{"all values removed", `{"data":{"a":"1","b":"2"}}`, `{}`, []string{"data.a", "data.b"}},
		{"in an item", `{"parts":[{"name":"a","size":1},{"name":"b","size":1}]}`, `{"parts":[{"name":"b","size":2},{"name":"a","size":1}]}`, []string{"parts[0].size"}},
		{"with its item", `{"parts":[{"name":"a","size":1},{"name":"b","size":1}]}`, `{"parts":[{"name":"b","size":1}]}`, nil},
		{"an item changed", `{"whole":[{"name":"a"}]}`, `{"whole":[{"name":"a","size":1}]}`, []string{"whole[0]"}},
		{"an item removed", `{"whole":[{"name":"a"},{"name":"b"}]}`, `{"whole":[{"name":"a"}]}`, []string{"whole[1]"}},
		{"all items removed", `{"whole":[{"name":"a"}]}`, `{}`, []string{"whole[0]"}},
	}
	for _, c := range cases {
		var fields []string
		old, obj := tree(t, c.old), tree(t, c.new)
		s.Normalize(old)
		s.Normalize(obj)
		for _, f := range s.Validate(obj, old) {
			assert.Equal(t, meta.CauseInvalid, f.Reason)
			assert.Contains(t, f.Message, "field is immutable")
			fields = append(fields, f.Field)
		}
		assert.Equal(t, c.fields, fields, c.name)
	}
}

// TestImmutableNeedsIdentity: immutable fields are an error in items without identity, because
// their previous values cannot be found.
func TestImmutableNeedsIdentity(t *testing.T) {
	const want = "tag schema, immutable: items of a list have no identity without listType=map or with repeats"
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct {
			L []fixedPart `json:"l"`
		}](),
		reflect.TypeFor[struct {
			L []string `json:"l" schema:"items.immutable"`
		}](),
		reflect.TypeFor[struct {
			L []string `json:"l" schema:"items.immutable,listType=set"`
		}](),
		reflect.TypeFor[struct {
			L []fixedParent `json:"l"`
		}](),
		reflect.TypeFor[struct {
			L []fixedPart `json:"l" schema:"listType=map,listMapKeys=name,repeats"`
		}](),
	} {
		field, text := faultOf(t, typ)
		assert.Equal(t, "L", field)
		assert.Equal(t, want, text)
	}
}
