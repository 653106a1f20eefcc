package schema_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

// TestPlainFieldsShareASchema: fields without tags share one Schema per type, and a tag never
// changes the schema of another field.
func TestPlainFieldsShareASchema(t *testing.T) {
	type inner struct {
		Word  string   `json:"word"`
		Words []string `json:"words,omitempty"`
	}
	type held struct {
		Word  *string  `json:"word,omitempty"`
		Words []string `json:"words"`
		Long  string   `json:"long" schema:"minLength=3"`
		Inner inner    `json:"inner"`
		Twice []inner  `json:"twice,omitempty"`
	}
	type strict struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata,omitempty"`
		inner           `json:",inline" schema:"word.required,words.items.enum=a|b"`
		Held            held `json:"held"`
	}
	type other struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata,omitempty"`
		Held            held     `json:"held"`
		Words           []string `json:"words"`
	}
	one, err := schema.Go(reflect.TypeFor[strict](), names.Orch)
	require.NoError(t, err)
	two, err := schema.Go(reflect.TypeFor[other](), names.Orch)
	require.NoError(t, err)
	at := func(s *schema.Schema, path ...string) *schema.Schema {
		found, ok := s.At(path...)
		require.True(t, ok)
		return found
	}
	require.Same(t, at(one, "held", "words"), at(one, "held", "inner", "words"))
	require.Same(t, at(one, "held", "words"), at(two, "words"), "of another kind")
	require.False(t, at(one, "held", "word").Nullable, "a null is an unset field")
	require.NotSame(t, at(one, "held", "long"), at(one, "held", "inner", "word"))

	require.Equal(t, []any{"a", "b"}, at(one, "words").Items.Enum)
	require.Empty(t, at(one, "held", "words").Items.Enum, "the tag of an inline struct")
	require.Empty(t, at(two, "words").Items.Enum)
}

// TestInlineTagsOfListsAreChecked: list rules in the tag of an inline struct are checked against
// the items of the list.
func TestInlineTagsOfListsAreChecked(t *testing.T) {
	type item struct {
		Name string `json:"name"`
	}
	type Inner struct {
		Items []item   `json:"items,omitempty"`
		Words []string `json:"words,omitempty"`
	}
	type noKey struct {
		Inner `json:",inline" schema:"items.listType=map,items.listMapKeys=nane"`
	}
	type fixed struct {
		Inner `json:",inline" schema:"words.items.immutable"`
	}
	_, err := schema.Go(reflect.TypeFor[noKey](), names.Orch)
	require.ErrorContains(t, err, `listMapKeys: the items have no field "nane"`)
	_, err = schema.Go(reflect.TypeFor[fixed](), names.Orch)
	require.ErrorContains(t, err, "items of a list have no identity")
}
