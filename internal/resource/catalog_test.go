package resource_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// TestCatalogStatesAreImmutable checks that Put and Remove publish a new state and leave the
// previous ones unchanged.
func TestCatalogStatesAreImmutable(t *testing.T) {
	var served resource.Catalog
	typ, err := resource.Compile(registry.Of(widgets()), names.Orch)
	require.NoError(t, err)
	before := served.Now()
	served.Put(typ)
	with := served.Now()
	assert.Empty(t, before.Types())
	assert.Equal(t, []*resource.Type{typ}, with.Types())
	assert.Equal(t, []*registry.Type{&typ.Type}, with.Public())
	assert.Same(t, typ, with.Kind(typ.GroupKind()))
	v := with.Version(meta.GroupVersionResource{Group: "example.com", Version: "v1", Resource: typ.Plural})
	require.NotNil(t, v)
	assert.Equal(t, []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}, v.Verbs())
	assert.Nil(t, with.Version(meta.GroupVersionResource{Group: "example.com", Version: "v9", Resource: typ.Plural}))
	served.Remove(typ.GroupResource())
	assert.Empty(t, served.Now().Types())
	assert.Nil(t, served.Now().Kind(typ.GroupKind()))
	assert.Greater(t, served.Now().Serial, with.Serial)
}
