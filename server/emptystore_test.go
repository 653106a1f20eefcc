package server_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage/memstore"
)

// TestListOfEmptyStoreHasVersionOne checks that a list of an empty store has a version other than
// "0". "0" would mean any state, and a watch from there could miss objects that were created and
// deleted since the list.
func TestListOfEmptyStoreHasVersionOne(t *testing.T) {
	t.Parallel()
	type thing struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
	}
	kind := registry.Of(registry.Definition[thing]{Group: "example.com", Version: "v1", Kind: "Thing", Scope: registry.Cluster})
	store := memstore.New(memstore.Options{})
	var versions []string
	for range 2 {
		b := &server.Builder{Authorizer: auth.AllowAll, Storage: store}
		b.Register(kind)
		s, err := b.Build(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
		things := client.Of[thing](s.Conn(auth.User{Name: "jane"}), kind)
		page, err := things.List(t.Context(), client.ListOptions{})
		require.NoError(t, err)
		versions = append(versions, page.Version)
		if len(versions) == 1 {
			continue
		}
		require.Equal(t, []string{"1", "1"}, versions, "the second server finds the revision that the first server wrote")
		_, err = things.Create(t.Context(), &thing{ObjectMeta: meta.ObjectMeta{Name: "x"}})
		require.NoError(t, err)
		require.NoError(t, things.Delete(t.Context(), "x", registry.DeleteOptions{}))
		for e, err := range things.Watch(t.Context(), page.Version) {
			require.NoError(t, err)
			require.Equal(t, "x", e.Object.Name)
			break
		}
	}
}
