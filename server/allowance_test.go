package server_test

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
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

var usedBytes = regexp.MustCompile(`used: (?:bytes=)?(\d+)`)

// used is how much the refusal of a write says is in use.
func used(t *testing.T, got answer) string {
	m := usedBytes.FindStringSubmatch(fmt.Sprint(got.body["message"]))
	require.NotNil(t, m, "%s", got.raw)
	return m[1]
}

// TestBytesAreBounded: what would make the objects of a namespace or of the store
// too large is refused; what makes them smaller, and deletions, pass. A new start
// counts the same.
func TestBytesAreBounded(t *testing.T) {
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
			onStores(t, func(t *testing.T, store storage.Backend) {
				build := func(b *server.Builder) { b.Storage = store; c.limits(&b.Limits) }
				a := inProcess(t, servertest.New(t, build))
				large := strings.Repeat("x", 8<<10)
				n := 0
				for got := a.do("POST", configMaps, newConfigMap("c0", "v", large)); got.code == 201; n++ {
					got = a.do("POST", configMaps, newConfigMap(fmt.Sprint("c", n+1), "v", large))
				}
				require.Greater(t, n, 3)
				require.Less(t, n, 8)
				refused := a.must(c.code, "POST", configMaps, newConfigMap("more", "v", large))
				assert.Contains(t, refused.body["message"], c.text)
				a.must(c.code, "POST", configMaps+"?dryRun=All", newConfigMap("more", "v", large))
				a.must(c.code, "PUT", configMaps+"/c0", newConfigMap("c0", "v", large+large))
				a.must(200, "PUT", configMaps+"/c0", newConfigMap("c0", "v", "small"))
				a.must(201, "POST", configMaps, newConfigMap("fits", "v", large[:7<<10]))
				before := used(t, a.must(c.code, "POST", configMaps, newConfigMap("more", "v", large)))

				again := inProcess(t, servertest.New(t, func(b *server.Builder) { build(b); b.Storage = unclosed{store} }))
				assert.Equal(t, before, used(t, again.must(c.code, "POST", configMaps, newConfigMap("more", "v", large))))

				// A deletion that has to wait makes the object larger and passes.
				held := newConfigMap("held", "v", "x")
				at(held, "metadata").(map[string]any)["finalizers"] = []any{"example.com/wait"}
				a.must(201, "POST", configMaps, held)
				a.must(200, "DELETE", configMaps+"/held", nil)
				a.must(200, "DELETE", configMaps+"/c1", nil)
				a.must(201, "POST", configMaps, newConfigMap("more", "v", large))
				if c.code == 403 {
					a.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "other"}})
					a.must(201, "POST", "/api/v1/namespaces/other/configmaps", newConfigMap("more", "v", large))
				}
			})
		})
	}
}

// TestObjectBytesAreBounded: an object above the bound is refused however it is written; with
// Kubernetes names as etcd's limit is there. An object from before the bound can be made
// smaller and be deleted.
func TestObjectBytesAreBounded(t *testing.T) {
	for _, profile := range []names.Profile{names.Orch, names.Kubernetes} {
		t.Run(profile.String(), func(t *testing.T) {
			store := memstore.New(memstore.Options{})
			build := func(bound int64) *api {
				return inProcess(t, servertest.New(t, func(b *server.Builder) {
					b.Storage, b.Names, b.Limits.ObjectBytes = unclosed{store}, profile, bound
				}))
			}
			large := strings.Repeat("x", 16<<10)
			held := func(size int) map[string]any {
				cm := newConfigMap("held", "v", large[:size])
				at(cm, "metadata").(map[string]any)["finalizers"] = []any{"example.com/wait"}
				return cm
			}
			unbounded := build(0)
			unbounded.must(201, "POST", configMaps, newConfigMap("old", "v", large))
			unbounded.must(201, "POST", configMaps, held(16<<10))

			a := build(8 << 10)
			code := map[names.Profile]int{names.Orch: 413, names.Kubernetes: 500}[profile]
			refused := func(got answer) {
				t.Helper()
				require.Equal(t, code, got.code, "%s", got.raw)
				if profile == names.Kubernetes {
					assert.Equal(t, map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
						"message": "etcdserver: request is too large", "code": got.body["code"]}, got.body)
					return
				}
				assert.Equal(t, "RequestEntityTooLarge", got.body["reason"])
				assert.Contains(t, got.body["message"], "the limit is 8192")
			}
			refused(a.do("POST", configMaps, newConfigMap("new", "v", large)))
			a.must(404, "GET", configMaps+"/new", nil)
			if dry := a.do("POST", configMaps+"?dryRun=All", newConfigMap("new", "v", large)); profile == names.Kubernetes {
				assert.Equal(t, 201, dry.code, "etcd is not asked")
			} else {
				refused(dry)
			}
			a.must(201, "POST", configMaps, newConfigMap("new", "v", large[:7<<10]))
			refused(a.do("PUT", configMaps+"/new", newConfigMap("new", "v", large)))
			for kind, path := range map[string]string{
				"application/merge-patch+json": "/new", "application/apply-patch+yaml": "/new?fieldManager=m&force=true",
			} {
				refused(a.do("PATCH", configMaps+path, newConfigMap("new", "v", large), "Content-Type", kind))
			}
			refused(a.do("PATCH", configMaps+"/other?fieldManager=m", newConfigMap("other", "v", large), "Content-Type", "application/apply-patch+yaml"))

			refused(a.do("PUT", configMaps+"/old", newConfigMap("old", "v", large+"x")))
			a.must(200, "PUT", configMaps+"/old", newConfigMap("old", "v", large[:12<<10]))
			a.must(200, "DELETE", configMaps+"/old", nil)
			a.must(200, "DELETE", configMaps+"/held", nil)
			a.must(200, "PATCH", configMaps+"/held", map[string]any{"metadata": map[string]any{"finalizers": nil}}, "Content-Type", "application/merge-patch+json")
			a.must(404, "GET", configMaps+"/held", nil)
		})
	}
}

// unclosed is a store that two servers have.
type unclosed struct{ storage.Backend }

func (unclosed) Close() error { return nil }

// TestBytesAreBoundedBesideOthers: however many write at once, the bound holds.
func TestBytesAreBoundedBesideOthers(t *testing.T) {
	const bound = 128 << 10
	store := memstore.New(memstore.Options{})
	a := inProcess(t, servertest.New(t, over(store), func(b *server.Builder) { b.Limits.NamespaceBytes = bound }))
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 20 {
				got := a.do("POST", configMaps, newConfigMap(fmt.Sprint("c", w, "-", i), "v", strings.Repeat("x", 1<<10)))
				assert.Contains(t, []int{201, 403}, got.code)
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
