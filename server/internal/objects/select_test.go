package objects_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objects"
)

// failingConverter is a converter that always fails.
type failingConverter struct{}

func (failingConverter) Convert(context.Context, []*meta.Object, *resource.Version) ([]*meta.Object, error) {
	return nil, fmt.Errorf("failingConverter is there")
}

// TestSelectorUsesCacheOnlyForStoredFields: the cache decides a selection alone if the selected labels and fields are
// shown as they are stored. If their names can be mapped to the hub, a watch is woken by value even if some records
// are converted.
func TestSelectorUsesCacheOnlyForStoredFields(t *testing.T) {
	defined := func(conversion string) *resource.Type {
		typ, err := resource.Compile(registry.FromCRD(fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
			"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"}%s,"versions":[
			{"name":"v1","served":true,"storage":true,"selectableFields":[{"jsonPath":".a"},{"jsonPath":".b"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"}}}}},
			{"name":"v2","served":true,"storage":false,"selectableFields":[{"jsonPath":".a"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}]}}`,
			conversion)), names.Kubernetes)
		require.NoError(t, err)
		return typ
	}
	plain, asking := defined(""), defined(`,"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://example.com"}}}`)
	asking.Converter = failingConverter{}
	for _, c := range []struct {
		typ                     *resource.Type
		version, labels, fields string
		indexed, alone          bool
	}{
		{plain, "v1", "", "", true, true},
		{plain, "v1", "l=1", "a=1", true, true},
		{plain, "v2", "l=1", "a=1,metadata.name=n", true, true},
		{plain, "v1", "", "a=1,b=1", false, false},
		{asking, "v1", "", "", true, true},
		{asking, "v1", "", "metadata.name=n", true, true},
		{asking, "v1", "l=1", "a=1", true, false},
		{asking, "v2", "", "metadata.namespace=n", true, true},
		{asking, "v2", "l=1", "", true, false},
		{asking, "v2", "", "a=1", false, false},
	} {
		var sel objects.Selection
		var err error
		sel.Labels, err = meta.ParseLabelSelector(c.labels)
		require.NoError(t, err)
		sel.Fields, err = meta.ParseFieldSelector(c.fields)
		require.NoError(t, err)
		q := objects.NewSelector(c.typ.Version(c.version), &sel).Query
		assert.Equal(t, []bool{c.indexed, c.alone}, []bool{q.Field == nil, q.Unsure == nil}, "%v %s %q %q", c.typ.Webhook != nil, c.version, c.labels, c.fields)
	}
	all := &objects.Selection{}
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { objects.NewSelector(plain.Storage, all) }), 1.0)
}
