package upgrades_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// scanned counts the scans of a store, except scans of records that are not objects, which a controller makes.
type scanned struct {
	storage.Backend
	scans *atomic.Int64
}

func (s scanned) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	if !slices.Contains([]string{resource.ReservationPrefix, resource.FencePrefix, resource.SequencePrefix}, prefix) {
		s.scans.Add(1)
	}
	return s.Backend.Scan(ctx, prefix, start, at)
}

// TestRecordsOfOtherReleases: a record of another release is converted once. If it cannot be converted,
// only this object is unreadable, until a readable record replaces it, and no other record is read again.
func TestRecordsOfOtherReleases(t *testing.T) {
	t.Parallel()
	type old struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Host            string `json:"host,omitempty"`
	}
	var scans, converted atomic.Int64
	store := memstore.New(memstore.Options{})
	a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(scanned{store, &scans}), func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[apitest.Site]{
			Group: "example.com", Version: "v1", Storage: "v1beta1",
			Versions: []registry.VersionOf[apitest.Site]{registry.Spoke[old, apitest.Site]{
				Version: "v1beta1",
				ToHub: func(in *old, out *apitest.Site) error {
					converted.Add(1)
					out.Spec.Host = in.Host
					return nil
				},
				FromHub: func(in *apitest.Site, out *old) error { out.Host = in.Spec.Host; return nil },
			}},
		}))
	}))
	write := func(name, version, host string) {
		_, err := store.Commit(t.Context(), storage.Write{Key: "sites.example.com/default/" + name, Expect: storage.AnyRevision,
			Value: fmt.Appendf(nil, `{"apiVersion":"example.com/%s","kind":"Site","metadata":{"name":%q,"namespace":"default","uid":"u"},"host":%q}`, version, name, host)})
		require.NoError(t, err)
	}
	seen := func(name string) { a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(name)) } // the answer shows that all before was seen
	seen("first")
	scans.Store(0)
	for i := range 10 {
		write("a", "v1beta1", fmt.Sprint("h", i))
	}
	seen("second")
	assert.EqualValues(t, 10, converted.Load())
	for i := range 20 {
		write(fmt.Sprint("b", i%3), "v2", "h")
	}
	write("a", "v1beta1", "still here")
	seen("third")
	assert.Equal(t, "still here", apitest.Nested(a.Must(200, "GET", apitest.SitesPath+"/a", nil).Body, "spec", "host"))
	a.Must(500, "GET", apitest.SitesPath+"/b1", nil)
	assert.Contains(t, string(a.Must(500, "GET", apitest.SitesPath, nil).Raw), `default/b0`)

	write("a", "v2", "h")
	write("b0", "v1beta1", "readable")
	seen("fourth")
	a.Must(500, "GET", apitest.SitesPath+"/a", nil)
	assert.Equal(t, "readable", apitest.Nested(a.Must(200, "GET", apitest.SitesPath+"/b0", nil).Body, "spec", "host"))
	for _, name := range []string{"a", "b1", "b2"} {
		write(name, "v1beta1", name)
	}
	seen("fifth")
	assert.Equal(t, []string{"a", "b0", "b1", "b2"}, a.Must(200, "GET", apitest.SitesPath, nil).Names())
	assert.Zero(t, scans.Load())
}

// TestHiddenMetricsAreThoseOfTheRelease: Builder.Release selects the hidden metrics, not Serving.Version.
func TestHiddenMetricsAreThoseOfTheRelease(t *testing.T) {
	t.Parallel()
	b := &server.Builder{Authorizer: auth.AllowAll, Release: "1.30", Serving: server.Serving{Version: "v7.3.1", ShowHiddenMetricsFor: "1.29"}}
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Shutdown(t.Context()))
	b = &server.Builder{Authorizer: auth.AllowAll, Release: "1.30", Serving: server.Serving{Version: "v1.22.0", ShowHiddenMetricsFor: "1.21"}}
	_, err = b.Build(t.Context())
	assert.ErrorContains(t, err, "Serving.ShowHiddenMetricsFor: hidden metrics can be shown only for version 1.29")
}
