package replicas_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// smallNetwork serves 13 addresses, in addition to the address of the server, and 100 ports.
func smallNetwork(store storage.Backend) func(*server.Builder) {
	return func(b *server.Builder) {
		b.Storage = store
		b.Kind("", "Service").Allocator = core.ServiceNetwork{
			Addresses: netip.MustParsePrefix("10.0.0.0/28"), FirstPort: 30000, LastPort: 30099,
		}.Pool()
	}
}

// reserved returns the holder of each reserved value from the store.
func reserved(t *testing.T, store storage.Backend) map[string]string {
	t.Helper()
	_, records, err := store.Scan(t.Context(), resource.ReservationPrefix, "", 0)
	require.NoError(t, err)
	out := map[string]string{}
	for rec, err := range records {
		require.NoError(t, err)
		out[rec.Key] = string(rec.Value)
	}
	return out
}

// atOnce makes calls at the same time and returns the number of responses by status code.
func atOnce(n int, call func(i int) int) map[int]int {
	codes := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { codes[i] = call(i) })
	}
	wg.Wait()
	count := map[int]int{}
	for _, code := range codes {
		count[code]++
	}
	return count
}

// TestServersReuseReleasedValues: servers over the same store never allocate a value twice,
// allocate values again that another server released, and leave no reservation without an
// object.
func TestServersReuseReleasedValues(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, inner storage.Backend) {
		store := apitest.KeepOpen{Backend: inner}
		t.Cleanup(func() { require.NoError(t, inner.Close()) })
		servers := []*servertest.Server{servertest.New(t, smallNetwork(store)), servertest.New(t, smallNetwork(store))}
		post := func(i int, body string) int {
			code, _ := apitest.Call(t, servers[i%2], "POST", apitest.ServicesPath, body)
			return code
		}
		for round := range 3 {
			codes := atOnce(20, func(i int) int { return post(i, apitest.NewService(fmt.Sprint("s", i), `,"type":"NodePort"`)) })
			require.Equal(t, map[int]int{201: 13, 500: 7}, codes)
			addresses, ports := map[string]bool{}, map[int64]bool{}
			for _, o := range services(t, servers[1]) {
				addresses[o.String("spec", "clusterIP")] = true
				ports[meta.NewObject(o.List("spec", "ports")[0].(map[string]any)).Int("nodePort")] = true
			}
			require.Len(t, addresses, 13)
			require.Len(t, ports, 13)
			require.Len(t, reserved(t, store), 26)
			for i, o := range services(t, servers[0]) {
				apitest.Must(t, servers[(i+round)%2], 200, "DELETE", apitest.ServicesPath+"/"+o.Name(), "")
			}
			require.Empty(t, reserved(t, store))
		}
		codes := atOnce(8, func(i int) int { return post(i, apitest.NewService(fmt.Sprint("w", i), `,"clusterIP":"10.0.0.9"`)) })
		require.Equal(t, map[int]int{201: 1, 422: 7}, codes)
		for i := range 8 {
			code, _ := apitest.Call(t, servers[0], "DELETE", apitest.ServicesPath+"/"+fmt.Sprint("w", i), "")
			require.Contains(t, []int{200, 404}, code)
			require.Equal(t, 201, post(i, apitest.NewService(fmt.Sprint("w", i), "")))
		}
		codes = atOnce(8, func(i int) int {
			code, _ := apitest.Call(t, servers[i%2], "PATCH", apitest.ServicesPath+"/"+fmt.Sprint("w", i), `{"spec":{"type":"NodePort","ports":[{"port":1,"nodePort":30007}]}}`)
			return code
		})
		require.Equal(t, map[int]int{200: 1, 422: 7}, codes)
		require.Len(t, reserved(t, store), 9)
	})
}

// TestChangedObjectReleasesReservations: a change of the type, and the removal of the last
// finalizer, release the values of the object.
func TestChangedObjectReleasesReservations(t *testing.T) {
	t.Parallel()
	store := apitest.KeepOpen{Backend: memstore.New(memstore.Options{})}
	s := servertest.New(t, smallNetwork(store))
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("a", `,"type":"NodePort"`))
	require.Len(t, reserved(t, store), 2)
	apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/a", `{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/x"]}}`)
	apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/a", `{"spec":{"type":"ClusterIP"}}`)
	require.Len(t, reserved(t, store), 1)
	apitest.Must(t, s, 200, "DELETE", apitest.ServicesPath+"/a", "")
	require.Len(t, reserved(t, store), 1)
	apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/a", `{"metadata":{"finalizers":null}}`)
	apitest.Must(t, s, 404, "GET", apitest.ServicesPath+"/a", "")
	require.Empty(t, reserved(t, store))
}

// TestReservationsOfOlderStores: a server reserves the values of all stored objects when it starts. A
// reservation that is unreadable, or whose object was deleted, does not block its value.
func TestReservationsOfOlderStores(t *testing.T) {
	t.Parallel()
	inner := memstore.New(memstore.Options{})
	store := faultinject.Wrap(apitest.KeepOpen{Backend: inner}, nil)
	first := servertest.New(t, smallNetwork(apitest.KeepOpen{Backend: store}))
	for i := range 5 {
		apitest.Must(t, first, 201, "POST", apitest.ServicesPath, apitest.NewService(fmt.Sprint("s", i), ""))
	}
	want := reserved(t, store)
	require.Len(t, want, 5)
	for key := range want {
		_, err := inner.Commit(t.Context(), storage.Write{Key: key, Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	apitest.Must(t, first, 200, "DELETE", apitest.ServicesPath+"/s4", "")
	second := servertest.New(t, smallNetwork(apitest.KeepOpen{Backend: store}))
	got := reserved(t, store)
	require.Len(t, got, 4)
	for key, holder := range got {
		require.Equal(t, want[key], holder)
	}

	left := resource.ReservationKey(meta.GroupResource{Resource: "services"}, resource.PoolClaim("10.0.0.12"))
	free := func() {
		t.Helper()
		apitest.Must(t, second, 201, "POST", apitest.ServicesPath, apitest.NewService("new", `,"clusterIP":"10.0.0.12"`))
		apitest.Must(t, second, 422, "POST", apitest.ServicesPath, apitest.NewService("other", `,"clusterIP":"10.0.0.12"`))
		apitest.Must(t, second, 200, "DELETE", apitest.ServicesPath+"/new", "")
		require.NotContains(t, reserved(t, store), left)
	}
	for _, holder := range []string{"services./default/gone 1", "services./default/s1 1", "?", ""} {
		if reserved(t, store)[left] == "" {
			_, err := inner.Commit(context.Background(), storage.Write{Key: left, Value: []byte(holder)})
			require.NoError(t, err)
		}
		free()
	}
	revision, err := inner.Commit(t.Context(), storage.Write{Key: left, Value: []byte("x")})
	require.NoError(t, err)
	store.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpGet && c.Key == left {
			if rec, err := inner.Get(context.Background(), left, 0); err == nil && rec.Revision == revision {
				return faultinject.Fault{Err: &storage.DamagedError{Key: left, Revision: revision, Err: storage.ErrClosed}}
			}
		}
		return faultinject.Fault{}
	})
	free()
}

// TestReservationsPerCommitAreBounded: a write that reserves more values than a commit may hold is
// refused with an explanation, and an object may reach that number by several writes.
func TestReservationsPerCommitAreBounded(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		s := servertest.New(t, apitest.WithStorage(store))
		nodePorts := func(n int) string {
			var ports []string
			for i := range n {
				ports = append(ports, fmt.Sprintf(`{"name":"p%d","port":%d}`, i, i+1))
			}
			return fmt.Sprintf(`{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[%s]}}`, strings.Join(ports, ","))
		}
		for _, query := range []string{"", "?dryRun=All"} {
			got := apitest.Must(t, s, 413, "POST", apitest.ServicesPath+query, nodePorts(1000))
			require.Equal(t, "RequestEntityTooLarge", got.String("reason"))
			require.Regexp(t, `Service "s" cannot be stored: one write would reserve 1001 values in \d+ bytes: limit is 114 values in 32256 bytes`, got.String("message"))
		}
		require.Empty(t, reserved(t, store))
		apitest.Must(t, s, 201, "POST", apitest.ServicesPath, nodePorts(113))
		require.Len(t, reserved(t, store), 114)
		apitest.Must(t, s, 413, "PUT", apitest.ServicesPath+"/s", nodePorts(1000))
		apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/s", nodePorts(226))
		apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/s", nodePorts(340))
		require.Len(t, reserved(t, store), 341)
		apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/s", `{"spec":{"type":"ClusterIP"}}`)
		require.Len(t, reserved(t, store), 341-340)
		apitest.Must(t, s, 200, "DELETE", apitest.ServicesPath+"/s", "")
		require.Empty(t, reserved(t, store))
	})
}

// TestObjectTooLargeForStoreReturns413: the server answers 413 if the store refuses an object
// because of its size.
func TestObjectTooLargeForStoreReturns413(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, apitest.WithStorage(faultinject.Wrap(memstore.New(memstore.Options{}), func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit && strings.HasSuffix(c.Key, "/large") {
			return faultinject.Fault{Err: fmt.Errorf("commit: %w", storage.ErrTooLarge)}
		}
		return faultinject.Fault{}
	})))
	apitest.Must(t, s, 413, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"large"}}`)
	apitest.Must(t, s, 201, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"small"}}`)
}
