package plugins_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// paused is the store of a server that blocks before the commit to a key, until it is resumed.
type paused struct {
	*faultinject.Store
	stands, goesOn chan struct{}
}

func pausedAt(b storage.Backend, key string) *paused {
	p := &paused{stands: make(chan struct{}), goesOn: make(chan struct{})}
	var once sync.Once
	p.Store = faultinject.Wrap(shared{b}, func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit && slices.ContainsFunc(c.Writes, func(w storage.Write) bool { return w.Key == key }) {
			once.Do(func() { close(p.stands) })
		}
		select {
		case <-p.stands:
			return faultinject.Fault{Wait: p.goesOn}
		default:
			return faultinject.Fault{}
		}
	})
	return p
}

// ask sends a request about the namespace, and returns the code and the body of the answer.
func ask(t *testing.T, s *servertest.Server, do, body string) (code int, answer string) {
	method, path, _ := strings.Cut(do, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, s.Host()+"/api/v1/namespaces/default/"+path, strings.NewReader(body))
	if !assert.NoError(t, err) {
		return 0, ""
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := s.Client().Do(r)
	if !assert.NoError(t, err) {
		return 0, ""
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	assert.NoError(t, err)
	return res.StatusCode, string(raw)
}

// TestResourceQuotaOfPausedServer checks that the charge of a server that pauses before it commits the write
// is released after some time. When the server resumes, it charges again or refuses the write, and the status
// is exact.
func TestResourceQuotaOfPausedServer(t *testing.T) {
	const nodePort, clusterIP = `{"metadata":{"name":"%s"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`, `{"metadata":{"name":"late"},"spec":{"type":"ClusterIP","ports":[{"port":80}]}}`
	for name, c := range map[string]struct {
		bounds   string // spec.hard of the quotas
		first    string // exists before
		do, body string // of the paused server
		key      string
		then     string // created meanwhile by others, %s is the name
		made     []string
		code     int
		used     string // in the end
	}{
		"create, no room left": {
			bounds: "configmaps", do: "POST configmaps", body: `{"metadata":{"name":"late"}}`, key: "configmaps/default/late",
			then: `{"metadata":{"name":"%s"}}`, made: []string{"a", "b", "c"}, code: 403, used: "3",
		},
		"create, room for it alone": {
			bounds: "configmaps", do: "POST configmaps", body: `{"metadata":{"name":"late"}}`, key: "configmaps/default/late",
			then: `{"metadata":{"name":"%s"}}`, made: []string{"a", "b"}, code: 201, used: "3",
		},
		"create of what others made": {
			bounds: "configmaps", do: "POST configmaps", body: `{"metadata":{"name":"late"}}`, key: "configmaps/default/late",
			then: `{"metadata":{"name":"%s"}}`, made: []string{"a", "late", "c"}, code: 403, used: "3",
		},
		"create of what others made, with room": {
			bounds: "configmaps", do: "POST configmaps", body: `{"metadata":{"name":"late"}}`, key: "configmaps/default/late",
			then: `{"metadata":{"name":"%s"}}`, made: []string{"late"}, code: 409, used: "1",
		},
		"patch, no room left": {
			bounds: "services.nodeports", first: clusterIP, do: "PATCH services/late", body: `{"spec":{"type":"NodePort"}}`, key: "services/default/late",
			then: nodePort, made: []string{"a", "b", "c"}, code: 403, used: "3",
		},
		"patch, room for it alone": {
			bounds: "services.nodeports", first: clusterIP, do: "PATCH services/late", body: `{"spec":{"type":"NodePort"}}`, key: "services/default/late",
			then: nodePort, made: []string{"a", "b"}, code: 200, used: "3",
		},
		"update, no room left": {
			bounds: "services.nodeports", first: clusterIP, do: "PUT services/late", body: fmt.Sprintf(nodePort, "late"), key: "services/default/late",
			then: nodePort, made: []string{"a", "b", "c"}, code: 403, used: "3",
		},
		"update, room for it alone": {
			bounds: "services.nodeports", first: clusterIP, do: "PUT services/late", body: fmt.Sprintf(nodePort, "late"), key: "services/default/late",
			then: nodePort, made: []string{"a", "b"}, code: 200, used: "3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New(memstore.Options{})
				t.Cleanup(func() { assert.NoError(t, store.Close()) })
				stood := pausedAt(store, c.key)
				resource, _, _ := strings.Cut(strings.Fields(c.do)[1], "/")
				one := servertest.New(t, func(b *server.Builder) { b.Storage = shared{store} })
				for name, hard := range map[string]int{"q": 3, "wide": 9} {
					code, answer := ask(t, one, "POST resourcequotas", fmt.Sprintf(`{"metadata":{"name":"%s"},"spec":{"hard":{"%s":"%d"}}}`, name, c.bounds, hard))
					require.Equal(t, 201, code, answer)
				}
				if c.first != "" {
					code, answer := ask(t, one, "POST "+resource, c.first)
					require.Equal(t, 201, code, answer)
				}
				one.Settle()
				time.Sleep(time.Minute)
				two := servertest.New(t, func(b *server.Builder) { b.Storage = stood })
				two.Settle()

				var late sync.WaitGroup
				late.Go(func() {
					code, answer := ask(t, two, c.do, c.body)
					assert.Equal(t, c.code, code, answer)
					if code == 403 {
						assert.Contains(t, answer, "exceeded quota: q, requested: "+c.bounds+"=1, used: "+c.bounds+"=3, limited: "+c.bounds+"=3")
					}
				})
				<-stood.stands
				time.Sleep(20 * time.Second)
				for _, name := range c.made {
					code, answer := ask(t, one, "POST "+resource, fmt.Sprintf(strings.ReplaceAll(c.then, "%s", "%[1]s"), name))
					require.Contains(t, []int{201, 409}, code, answer)
				}
				close(stood.goesOn)
				late.Wait()

				told := func() map[string]string {
					list, err := one.Objects().List(t.Context(), resourceQuotas, "default")
					require.NoError(t, err)
					used := map[string]string{}
					for _, q := range list {
						used[q.Name()] = q.String("status", "used", c.bounds)
					}
					return used
				}
				if c.code == 403 {
					code, answer := ask(t, one, "POST "+resource, fmt.Sprintf(c.then, "more"))
					assert.Equal(t, 403, code, answer)
				}
				one.Settle()
				two.Settle()
				time.Sleep(time.Minute)
				assert.Equal(t, map[string]string{"q": c.used, "wide": c.used}, told())
			})
		})
	}
}

// TestResourceQuotaCausesNoRetries checks that servers that create up to the quota in one namespace retry no
// write, even if the quota is recounted meanwhile.
func TestResourceQuotaCausesNoRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hard, writers = 300, 33
		store := memstore.New(memstore.Options{})
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		var raised, creates atomic.Int64
		watched := faultinject.Wrap(shared{store}, func(c faultinject.Call) faultinject.Fault {
			for _, w := range c.Writes {
				if strings.HasPrefix(w.Key, resource.FencePrefix) && !w.Guard {
					raised.Add(1)
				}
				if strings.HasPrefix(w.Key, "configmaps/default/") {
					creates.Add(1)
				}
			}
			return faultinject.Fault{}
		})
		var servers []*servertest.Server
		for range 3 {
			servers = append(servers, servertest.New(t, func(b *server.Builder) { b.Storage = watched }))
		}
		bound(t, servers[0].Objects(), "q", hard)
		servers[0].Settle()
		assert.NotZero(t, raised.Load(), "the first count")
		time.Sleep(time.Minute)
		var made atomic.Int64
		for i, s := range servers { // the first write may meet a fence that another server raised
			_, err := s.Objects().Create(t.Context(), configMaps, configMap(fmt.Sprint("first-", i)))
			require.NoError(t, err)
			made.Add(1)
		}
		raised.Store(0)
		creates.Store(made.Load())
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				for n := range hard / 30 {
					_, err := servers[(i+n)%3].Objects().Create(t.Context(), configMaps, configMap(fmt.Sprintf("%d-%d", i, n)))
					if err == nil {
						made.Add(1)
					} else if !exceeded(err) {
						t.Error(err)
					}
					time.Sleep(time.Second)
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, hard, made.Load())
		assert.EqualValues(t, hard, creates.Load())
		assert.Zero(t, raised.Load())
	})
}

// TestResourceQuotaOfSlowServers checks that the quota is never exceeded, however long servers take between
// the charge and the write, and that the status is exact in the end.
func TestResourceQuotaOfSlowServers(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { quotaOfSlowServers(t, seed) })
	}
}

func quotaOfSlowServers(t *testing.T, seed uint64) {
	const hard, writers = 6, 12
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	var servers []*servertest.Server
	for i := range uint64(3) {
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(seed, i))
		slow := faultinject.Wrap(shared{store}, func(c faultinject.Call) (f faultinject.Fault) {
			mu.Lock()
			defer mu.Unlock()
			if c.Op == faultinject.OpCommit && random.IntN(8) == 0 {
				f.Delay = time.Duration(random.IntN(20_000)) * time.Millisecond
			}
			return f
		})
		servers = append(servers, servertest.New(t, func(b *server.Builder) { b.Storage = slow }))
	}
	bound(t, servers[0].Objects(), "q", hard)
	servers[0].Settle()
	most, stop := countConfigMaps(t, store)
	until := time.Now().Add(5 * time.Minute)
	var all sync.WaitGroup
	for i := range writers {
		random := rand.New(rand.NewPCG(seed, uint64(100+i)))
		some := func() time.Duration { return time.Duration(random.IntN(5_000)) * time.Millisecond }
		all.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				name := fmt.Sprintf("%d-%d", i, n)
				_, err := servers[random.IntN(3)].Objects().Create(t.Context(), configMaps, configMap(name))
				time.Sleep(some())
				if err == nil {
					c := servers[random.IntN(3)].Objects()
					assert.NoError(t, c.Delete(t.Context(), configMaps, meta.Key{Namespace: "default", Name: name}, registry.DeleteOptions{}))
				}
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, most(), hard)
	assert.GreaterOrEqual(t, most(), hard-1, "the quota was not tried")
	time.Sleep(11 * time.Minute)
	assert.Equal(t, "0", used(t, servers[0].Objects(), "q"))
	stop()
}

// countConfigMaps starts to count config maps; most returns the largest number that existed at one time.
func countConfigMaps(t *testing.T, store storage.Backend) (most func() int, stop func()) {
	begin, err := store.Revision(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	now, highest := 0, 0
	var watch sync.WaitGroup
	watch.Go(func() {
		for events, err := range store.Watch(ctx, "configmaps/default/", begin) {
			if !assert.NoError(t, err) {
				return
			}
			mu.Lock()
			for _, e := range events {
				switch {
				case e.Deleted():
					now--
				case e.Prev.Revision == 0:
					now++
				}
			}
			highest = max(highest, now)
			mu.Unlock()
		}
	})
	most = func() int {
		mu.Lock()
		defer mu.Unlock()
		return highest
	}
	return most, func() {
		cancel()
		watch.Wait()
	}
}
