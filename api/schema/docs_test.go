package schema_test

import (
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

type documented struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Size  int    `json:"size"`
	Color string `json:"color" doc:"From the tag."`
}

func TestDocsComeFromCommentsAndTags(t *testing.T) {
	src := `package x

// documented is a thing.
//
// With a second paragraph.
type documented struct {
	// Size says how large
	// it is.
	Size int

	Color string // not read: the tag wins
}
`
	path := reflect.TypeFor[documented]().PkgPath()
	docs := schema.NewDocs(path, fstest.MapFS{
		"a.go": {Data: []byte(src)}, "broken.go": {Data: []byte("package x\ntype ( {")},
	})
	s, err := schema.Go(reflect.TypeFor[documented](), names.Orch)
	require.NoError(t, err)
	field := func(name string) string { return docs.Field(s.Struct, s.Struct.Field(name)) }
	assert.Equal(t, "documented is a thing.\nWith a second paragraph.", docs.Struct(s.Struct))
	assert.Equal(t, "Size says how large it is.", field("size"))
	assert.Equal(t, "From the tag.", field("color"))
	assert.Contains(t, field("kind"), "Kind is the kind of the object", "of an inline struct in another package")
	m := s.Struct.Field("metadata").Schema.Struct
	assert.Contains(t, docs.Field(m, m.Field("uid")), "UID distinguishes the object")

	var none *schema.Docs
	assert.Empty(t, none.Struct(s.Struct))
	assert.Empty(t, none.Field(s.Struct, s.Struct.Field("size")))
}
