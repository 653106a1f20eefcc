package jsonpath_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/jsonpath"
)

type shelf struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Size   int            `json:"size,omitempty"`
		Books  []book         `json:"books,omitempty"`
		Words  []string       `json:"words,omitempty"`
		Notes  map[string]int `json:"notes,omitempty"`
		Signed *book          `json:"signed,omitempty"`
		Free   map[string]any `json:"free,omitempty"`
		Raw    meta.RawExtension
	} `json:"spec"`
}

type book struct {
	Title string `json:"title"`
}

// TestLeadsInto: LeadsInto returns false for paths that no value of the schema can have.
func TestLeadsInto(t *testing.T) {
	s, err := schema.Go(reflect.TypeFor[shelf](), names.Orch)
	require.NoError(t, err)
	for path, want := range map[string]bool{
		".":                                    true,
		".kind":                                true,
		".metadata.name":                       true,
		".metadata.labels['a.b']":              true,
		".metadata.nam":                        false,
		".metadata.ownerReferences[0].name":    true,
		".spec.size":                           true,
		".spec.Size":                           false,
		".spec.size.more":                      false,
		".spec.size[0]":                        false,
		".spec.books[0].title":                 true,
		".spec.books[-1].title":                true,
		".spec.books[*].title":                 true,
		".spec.books.title":                    false,
		".spec.books[0].name":                  false,
		".spec.books[*].name":                  false,
		`.spec.books[?(@.title=="a")].title`:   true,
		`.spec.books[?(@.name=="a")].title`:    false,
		`.spec.signed[?(@.title=="a")].title`:  false,
		".spec.words[0]":                       true,
		".spec.words[0].x":                     false,
		".spec.notes.any":                      true,
		".spec.notes.*":                        true,
		".spec.notes.any.x":                    false,
		".spec.signed.*":                       true,
		".spec.*.title":                        true,
		".spec.*.nothing.of.this":              true, // of free
		".metadata.labels.*.x":                 false,
		".spec.free.any.thing[0]":              true,
		".spec.Raw.any.thing":                  true,
		".status":                              false,
		".spec.books[0].title[?(@.x)].nothing": false,
	} {
		p, err := jsonpath.Parse(path)
		require.NoError(t, err, path)
		assert.Equal(t, want, p.LeadsInto(s), path)
	}
	p, err := jsonpath.Parse(".anything")
	require.NoError(t, err)
	assert.True(t, p.LeadsInto(nil))
}
