package definitions

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/objectcache"
)

// TestOutlineIsSmall: an outline is kept in memory for each served definition.
func TestOutlineIsSmall(t *testing.T) {
	o := outline(objectcache.NewEntry(meta.Key{Name: "w.example.com"}, 0, []byte(`{"metadata":{"name":"w.example.com","uid":"u",
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"all of it"},"managedFields":[{"manager":"m"}]},
		"spec":{"group":"example.com","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)))
	assert.Equal(t, map[string]any{
		"metadata": map[string]any{"name": "w.example.com", "uid": "u"},
		"spec":     map[string]any{"group": "example.com", "versions": []any{map[string]any{"name": "v1"}}},
	}, o.Tree())
}
