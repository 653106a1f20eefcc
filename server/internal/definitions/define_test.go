package definitions

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server/internal/conversion"
	"orch.io/controlplane/server/internal/objectcache"
)

// TestDefinedTypesHaveTheFeaturesOfTheServer: types of definitions have the server's feature gates,
// not the defaults of the newest release.
func TestDefinedTypesHaveTheFeaturesOfTheServer(t *testing.T) {
	set, err := features.New("1.24", map[string]bool{features.AnyVolumeDataSource: false})
	require.NoError(t, err)
	c := New(Options{Names: names.Orch, Log: slog.New(slog.DiscardHandler), Features: set, Webhooks: &conversion.Webhooks{}})
	e := objectcache.NewEntry(meta.Key{Name: "ws.example.com"}, 1, []byte(`{"apiVersion":"apiextensions.orch.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"ws.example.com","uid":"u"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"ws","kind":"W"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
		"status":{"acceptedNames":{"plural":"ws","kind":"W","listKind":"WList","singular":"w"},"conditions":[{"type":"Established","status":"True"}]}}`))
	typ, err := c.define(e, outline(e), definition{})
	require.NoError(t, err)
	assert.False(t, typ.Hub.NewChange(t.Context(), meta.NewObject(map[string]any{}), nil, "").Features.Enabled(features.AnyVolumeDataSource))
}
