package objects_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/storage/storagetest"
)

type thing struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
}

// TestRecordsAreABackend: Records keeps the contract of storage.Backend if it converts records.
func TestRecordsAreABackend(t *testing.T) {
	typ, err := resource.Compile(registry.Of(registry.Definition[thing]{
		Group: "example.com", Version: "v2", Kind: "Thing", Storage: "v1",
		Versions: []registry.VersionOf[thing]{registry.Spoke[thing, thing]{
			Version: "v1", ToHub: func(_, _ *thing) error { return nil }, FromHub: func(_, _ *thing) error { return nil },
		}},
	}), names.Orch)
	require.NoError(t, err)
	storagetest.Run(t, func(testing.TB) storage.Backend {
		return records(t, memstore.New(memstore.Options{}), typ)
	})
}

func records(t testing.TB, b storage.Backend, types ...*resource.Type) storage.Backend {
	r, err := objects.OpenRecords(t.Context(), b, types, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return r.Store()
}
