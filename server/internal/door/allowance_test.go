package door_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

var usedBytes = regexp.MustCompile(`used: (?:bytes=)?(\d+)`)

// used returns the bytes in use that the refusal of a write names.
func used(t *testing.T, got apitest.Response) string {
	m := usedBytes.FindStringSubmatch(fmt.Sprint(got.Body["message"]))
	require.NotNil(t, m, "%s", got.Raw)
	return m[1]
}

// TestStoredBytesAreBounded checks that a write which would exceed the size limit of the namespace
// or the store is refused, that deletions and writes that shrink objects succeed, and that a
// restarted server counts the same.
func TestStoredBytesAreBounded(t *testing.T) {
	t.Parallel()
	const bound = 64 << 10
	for name, c := range map[string]struct {
		limits func(*server.Limits)
		code   int
		text   string
	}{
		"namespace": {func(l *server.Limits) { l.NamespaceBytes = bound }, 403, `is forbidden: exceeded quota: bytes of the namespace, requested: bytes=`},
		"store":     {func(l *server.Limits) { l.StoreBytes = bound + bound/2 }, 507, `the storage of the server has no room: requested: `},
	} {
		t.Run(name, func(t *testing.T) {
			apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
				build := func(b *server.Builder) { b.Storage = store; c.limits(&b.Limits) }
				a := apitest.InProcess(t, servertest.New(t, build))
				large := strings.Repeat("x", 8<<10)
				n := 0
				for got := a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c0", "v", large)); got.Code == 201; n++ {
					got = a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", n+1), "v", large))
				}
				require.Greater(t, n, 3)
				require.Less(t, n, 8)
				refused := a.Must(c.code, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("more", "v", large))
				assert.Contains(t, refused.Body["message"], c.text)
				a.Must(c.code, "POST", apitest.ConfigMapsPath+"?dryRun=All", apitest.NewConfigMap("more", "v", large))
				a.Must(c.code, "PUT", apitest.ConfigMapsPath+"/c0", apitest.NewConfigMap("c0", "v", large+large))
				a.Must(200, "PUT", apitest.ConfigMapsPath+"/c0", apitest.NewConfigMap("c0", "v", "small"))
				a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("fits", "v", large[:7<<10]))
				before := used(t, a.Must(c.code, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("more", "v", large)))

				again := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { build(b); b.Storage = apitest.KeepOpen{Backend: store} }))
				assert.Equal(t, before, used(t, again.Must(c.code, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("more", "v", large))))

				// A deletion that has to wait makes the object larger and passes.
				held := apitest.NewConfigMap("held", "v", "x")
				apitest.Nested(held, "metadata").(map[string]any)["finalizers"] = []any{"example.com/wait"}
				a.Must(201, "POST", apitest.ConfigMapsPath, held)
				a.Must(200, "DELETE", apitest.ConfigMapsPath+"/held", nil)
				a.Must(200, "DELETE", apitest.ConfigMapsPath+"/c1", nil)
				a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("more", "v", large))
				if c.code == 403 {
					a.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "other"}})
					a.Must(201, "POST", "/api/v1/namespaces/other/configmaps", apitest.NewConfigMap("more", "v", large))
				}
			})
		})
	}
}

// TestObjectBytesAreBounded checks that an object above the limit is refused by every kind of
// write, with etcd's error under Kubernetes names. An object from before the limit can be made
// smaller and deleted.
func TestObjectBytesAreBounded(t *testing.T) {
	t.Parallel()
	for _, profile := range []names.Profile{names.Orch, names.Kubernetes} {
		t.Run(profile.String(), func(t *testing.T) {
			store := memstore.New(memstore.Options{})
			build := func(bound int64) *apitest.Client {
				return apitest.InProcess(t, servertest.New(t, func(b *server.Builder) {
					b.Storage, b.Names, b.Limits.ObjectBytes = apitest.KeepOpen{Backend: store}, profile, bound
				}))
			}
			large := strings.Repeat("x", 16<<10)
			held := func(size int) map[string]any {
				cm := apitest.NewConfigMap("held", "v", large[:size])
				apitest.Nested(cm, "metadata").(map[string]any)["finalizers"] = []any{"example.com/wait"}
				return cm
			}
			unbounded := build(0)
			unbounded.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("old", "v", large))
			unbounded.Must(201, "POST", apitest.ConfigMapsPath, held(16<<10))

			a := build(8 << 10)
			code := map[names.Profile]int{names.Orch: 413, names.Kubernetes: 500}[profile]
			refused := func(got apitest.Response) {
				t.Helper()
				require.Equal(t, code, got.Code, "%s", got.Raw)
				if profile == names.Kubernetes {
					assert.Equal(t, map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
						"message": "etcdserver: request is too large", "code": got.Body["code"]}, got.Body)
					return
				}
				assert.Equal(t, "RequestEntityTooLarge", got.Body["reason"])
				assert.Contains(t, got.Body["message"], "the limit is 8192")
			}
			refused(a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("new", "v", large)))
			a.Must(404, "GET", apitest.ConfigMapsPath+"/new", nil)
			if dry := a.Do("POST", apitest.ConfigMapsPath+"?dryRun=All", apitest.NewConfigMap("new", "v", large)); profile == names.Kubernetes {
				assert.Equal(t, 201, dry.Code, "etcd is not asked")
			} else {
				refused(dry)
			}
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("new", "v", large[:7<<10]))
			refused(a.Do("PUT", apitest.ConfigMapsPath+"/new", apitest.NewConfigMap("new", "v", large)))
			for kind, path := range map[string]string{
				"application/merge-patch+json": "/new", "application/apply-patch+yaml": "/new?fieldManager=m&force=true",
			} {
				refused(a.Do("PATCH", apitest.ConfigMapsPath+path, apitest.NewConfigMap("new", "v", large), "Content-Type", kind))
			}
			refused(a.Do("PATCH", apitest.ConfigMapsPath+"/other?fieldManager=m", apitest.NewConfigMap("other", "v", large), "Content-Type", "application/apply-patch+yaml"))

			refused(a.Do("PUT", apitest.ConfigMapsPath+"/old", apitest.NewConfigMap("old", "v", large+"x")))
			a.Must(200, "PUT", apitest.ConfigMapsPath+"/old", apitest.NewConfigMap("old", "v", large[:12<<10]))
			a.Must(200, "DELETE", apitest.ConfigMapsPath+"/old", nil)
			a.Must(200, "DELETE", apitest.ConfigMapsPath+"/held", nil)
			a.Must(200, "PATCH", apitest.ConfigMapsPath+"/held", map[string]any{"metadata": map[string]any{"finalizers": nil}}, "Content-Type", "application/merge-patch+json")
			a.Must(404, "GET", apitest.ConfigMapsPath+"/held", nil)
		})
	}
}

// TestBytesAreBoundedUnderConcurrentWrites checks that concurrent writes do not exceed the limit.
func TestBytesAreBoundedUnderConcurrentWrites(t *testing.T) {
	t.Parallel()
	const bound = 128 << 10
	store := memstore.New(memstore.Options{})
	a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), func(b *server.Builder) { b.Limits.NamespaceBytes = bound }))
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 20 {
				got := a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", w, "-", i), "v", strings.Repeat("x", 1<<10)))
				assert.Contains(t, []int{201, 403}, got.Code)
			}
		})
	}
	wg.Wait()
	total := 0
	_, records, err := store.Scan(t.Context(), "configmaps/default/", "", 0)
	require.NoError(t, err)
	for rec, err := range records {
		require.NoError(t, err)
		object, _, _ := bytes.Cut(rec.Value, []byte("\n")) // the record's signature does not count
		total += len(rec.Key) + len(object)
	}
	assert.LessOrEqual(t, total, bound)
	assert.Greater(t, total, bound*3/4)
}
