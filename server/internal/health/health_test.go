package health_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestHealthEndpointsReportFailures requests every endpoint, with failures of the store and of the program's own check.
func TestHealthEndpointsReportFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		var sick atomic.Bool
		s := servertest.New(t, func(b *server.Builder) {
			b.Storage = store
			b.Serving.LivezGrace = time.Minute
			b.Checks = map[string]func(context.Context) error{"mine": func(context.Context) error {
				if sick.Load() {
					return errors.New("secret reason")
				}
				return nil
			}}
		})
		a := apitest.InProcess(t, s)
		get := func(code int, path string) []string {
			t.Helper()
			got := a.Do("GET", path, nil)
			assert.Equal(t, code, got.Code, "%s: %s", path, got.Raw)
			assert.NotContains(t, string(got.Raw), "secret")
			return strings.Split(strings.TrimSpace(string(got.Raw)), "\n")
		}
		for _, e := range []string{"/livez", "/readyz", "/healthz"} {
			assert.Equal(t, []string{"ok"}, get(200, e))
			assert.Equal(t, []string{"ok"}, get(200, e+"/ping"))
			assert.Equal(t, []string{"ok"}, get(200, e+"/storage"))
			get(404, e+"/none")
			lines := get(200, e+"?verbose")
			for _, check := range []string{"ping", "log", "storage", "etcd", "mine", "poststarthook/namespace", "poststarthook/start-system-namespaces-controller", "poststarthook/generic-apiserver-start-informers", "poststarthook/crd-informer-synced"} {
				assert.Contains(t, lines, "[+]"+check+" ok")
			}
			assert.Equal(t, e[1:]+" check passed", lines[len(lines)-1])
			assert.Contains(t, get(200, e+"?verbose&exclude=storage&exclude=mine"), "[+]storage excluded: ok")
			assert.Equal(t, []string{"ok"}, get(200, e+"/etcd"))
			assert.Contains(t, get(200, e+"?verbose&exclude=nosuch"), `warn: some health checks cannot be excluded: no matches for "nosuch"`)
			got := a.Do("POST", e, nil)
			assert.Equal(t, 405, got.Code)
		}
		for _, check := range []string{"etcd-readiness", "informer-sync", "shutdown"} {
			assert.Equal(t, []string{"ok"}, get(200, "/readyz/"+check))
			get(404, "/livez/"+check)
		}
		assert.Contains(t, get(200, "/metrics/slis"), `kubernetes_healthcheck{name="etcd",type="livez"} 1`)
		assert.Contains(t, get(200, "/metrics/slis"), `kubernetes_healthcheck{name="shutdown",type="readyz"} 1`)

		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpRevision {
				return faultinject.Fault{Err: errors.New("secret reason")}
			}
			return faultinject.Fault{}
		})
		assert.Equal(t, []string{"ok"}, get(200, "/livez"), "within the grace period")
		assert.Contains(t, get(500, "/readyz"), "[-]storage failed: reason withheld")
		assert.Contains(t, get(500, "/readyz/storage"), "[-]storage failed: reason withheld")
		assert.Equal(t, []string{"ok"}, get(200, "/readyz/ping"))
		assert.Equal(t, []string{"ok"}, get(200, "/readyz?exclude=storage"))
		assert.Equal(t, []string{"ok"}, get(200, "/readyz?exclude=etcd"))
		get(500, "/readyz?exclude=")
		time.Sleep(time.Minute)
		assert.Contains(t, get(500, "/livez"), "[-]storage failed: reason withheld")
		get(500, "/livez/storage")

		// A store that does not answer fails the check and does not block it.
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpRevision {
				return faultinject.Fault{Delay: time.Hour}
			}
			return faultinject.Fault{}
		})
		begun := time.Now()
		get(500, "/readyz")
		assert.Less(t, time.Since(begun), 10*time.Second)

		store.SetPlan(nil)
		sick.Store(true)
		assert.Contains(t, get(500, "/healthz?verbose"), "[-]mine failed: reason withheld")
		get(500, "/livez/mine")
		assert.Contains(t, get(200, "/metrics/slis"), `kubernetes_healthcheck{name="mine",type="livez"} 0`)
		sick.Store(false)
		s.Drain()
		assert.Contains(t, get(500, "/readyz"), "[-]shutdown failed: reason withheld")
		get(200, "/livez")
		get(200, apitest.ConfigMapsPath)
	})
}

// readOnlyStore is a store whose writes can fail.
type readOnlyStore struct {
	*memstore.Store
	why atomic.Pointer[error]
}

func (s *readOnlyStore) Writable(context.Context) error {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return nil
}

// TestHealthOfReadOnlyStore checks that readiness fails while writes fail, and that liveness fails
// only if a restart is needed.
func TestHealthOfReadOnlyStore(t *testing.T) {
	t.Parallel()
	store := &readOnlyStore{Store: memstore.New(memstore.Options{})}
	a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
	codes := func() (codes []int) {
		for _, e := range []string{"/readyz", "/healthz", "/livez", "/livez/storage"} {
			codes = append(codes, a.Do("GET", e, nil).Code)
		}
		return codes
	}
	assert.Equal(t, []int{200, 200, 200, 200}, codes())
	why := errors.New("the directory takes no new file")
	store.why.Store(&why)
	assert.Equal(t, []int{500, 500, 200, 200}, codes())
	store.why.Store(nil)
	assert.Equal(t, []int{200, 200, 200, 200}, codes())
	why = fmt.Errorf("%w: input/output error", storage.ErrStopped)
	store.why.Store(&why)
	assert.Equal(t, []int{500, 500, 500, 500}, codes())
}

// laggingStore is a store whose revision is ahead of its events.
type laggingStore struct {
	*memstore.Store
	by atomic.Uint64
}

func (s *laggingStore) Revision(ctx context.Context) (storage.Revision, error) {
	rev, err := s.Store.Revision(ctx)
	return rev + storage.Revision(s.by.Load()), err
}

// TestHealthOfLaggingCaches checks that a server whose caches lag is alive, but not ready.
func TestHealthOfLaggingCaches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &laggingStore{Store: memstore.New(memstore.Options{})}
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		store.by.Store(1)
		assert.Equal(t, 200, a.Do("GET", "/livez", nil).Code)
		assert.Equal(t, 200, a.Do("GET", "/healthz", nil).Code)
		got := a.Do("GET", "/readyz", nil)
		assert.Equal(t, 500, got.Code)
		assert.Equal(t, 1, strings.Count(string(got.Raw), "[-]"), "%s", got.Raw)
		assert.Contains(t, string(got.Raw), "[-]informer-sync failed")
		store.by.Store(0)
		assert.Equal(t, 200, a.Do("GET", "/readyz", nil).Code)
	})
}

// stillChecker is a store whose Check does not return.
type stillChecker struct{ storage.Backend }

func (stillChecker) Check(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (stillChecker) Missing() (damaged, losses int) { return 0, 0 }

// TestHealthOfUnresponsiveStore checks that requests are answered, and that only the first failures
// of a minute are logged.
func TestHealthOfUnresponsiveStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &apitest.LogBuffer{}
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(stillChecker{memstore.New(memstore.Options{})}), func(b *server.Builder) {
			b.Logger = slog.New(slog.NewTextHandler(log, nil))
		}))
		for range 25 {
			begun := time.Now()
			assert.Equal(t, 500, a.Do("GET", "/readyz", nil).Code)
			assert.Equal(t, 2*time.Second, time.Since(begun))
		}
		assert.Equal(t, 10, strings.Count(log.String(), "health check failed"))
	})
}
