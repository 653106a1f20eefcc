package resource_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

const boxes = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boxes.example.com"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"boxes","kind":"Box"},"versions":[
	{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"old":{"type":"string"}}}}},
	{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"new":{"type":"TYPE"}}}}}]}}`

// TestDefineReadsSchemasOnFirstUse checks that the definition is read once, and that each version
// gets its own schema.
func TestDefineReadsSchemasOnFirstUse(t *testing.T) {
	whole := definitionOf(t, "string")
	outline := definitionOf(t, "string")
	for _, v := range outline.List("spec", "versions") {
		delete(v.(map[string]any), "schema")
	}
	reads := 0
	typ, err := resource.Define(registry.FromDefinition(outline, nil), names.Kubernetes, compat.Rules{}, func() *registry.Kind {
		reads++
		return registry.FromDefinition(whole, nil)
	}, func(err error) { t.Error(err) })
	require.NoError(t, err)
	require.Zero(t, reads)
	assert.NotNil(t, typ.Version("v1").Schema().Struct.Field("new"))
	assert.NotNil(t, typ.Version("v1beta1").Schema().Struct.Field("old"))
	assert.Equal(t, 1, reads)
}

// TestInvalidDefinitionRejectsWrites checks that no object can be written if the schema is invalid,
// and that the error is reported.
func TestInvalidDefinitionRejectsWrites(t *testing.T) {
	broken := definitionOf(t, "sting")
	var failure error
	typ, err := resource.Define(registry.FromDefinition(broken, nil), names.Kubernetes, compat.Rules{},
		func() *registry.Kind { return registry.FromDefinition(broken, nil) }, func(err error) { failure = err })
	require.NoError(t, err)
	box := meta.NewObject(map[string]any{"new": "thing"})
	unknown, faults := typ.Storage.Normalize(box)
	assert.Empty(t, unknown, "stored objects are not pruned")
	assert.Empty(t, faults)
	causes, _ := typ.Storage.CheckRules(typ.Storage.NewChange(t.Context(), box, nil, ""), nil)
	require.Len(t, causes, 1)
	assert.Contains(t, causes[0].Message, "the definition of this kind is invalid")
	assert.ErrorContains(t, failure, "sting")
}

// TestChangedDefinitionRejectsWrites checks that a definition is invalid if the schemas that are
// read on first use do not belong to the versions that were compiled.
func TestChangedDefinitionRejectsWrites(t *testing.T) {
	for why, edit := range map[string]func(crd *meta.Object){
		"not a CustomResourceDefinition of version v1": func(crd *meta.Object) { crd.Delete("kind") },
		"the versions of the definition have changed": func(crd *meta.Object) {
			crd.Set(crd.List("spec", "versions")[:1], "spec", "versions")
		},
	} {
		other := definitionOf(t, "string")
		edit(other)
		var failure error
		typ, err := resource.Define(registry.FromDefinition(definitionOf(t, "string"), nil), names.Kubernetes, compat.Rules{},
			func() *registry.Kind { return registry.FromDefinition(other, nil) }, func(err error) { failure = err })
		require.NoError(t, err)
		for _, v := range typ.Versions {
			assert.NotEmpty(t, v.Schema().Rules, "%s: %s can be written", why, v.Name)
		}
		assert.ErrorContains(t, failure, why)
	}
}

func definitionOf(t *testing.T, typ string) *meta.Object {
	t.Helper()
	docs, err := registry.CRDFiles(fstest.MapFS{"boxes.json": {Data: []byte(strings.ReplaceAll(boxes, "TYPE", typ))}})
	require.NoError(t, err)
	require.Len(t, docs, 1)
	return docs[0]
}
