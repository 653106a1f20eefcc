package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// fleet is several servers over the same store. A controller of configmaps runs on the leader, and
// another controller runs on each server.
type fleet struct {
	t       testing.TB
	store   *memstore.Store
	servers []*servertest.Server
	metrics []*prometheus.Registry
	logs    []*apitest.LogBuffer
	cuts    []*faultinject.Store

	mu        sync.Mutex
	led, each map[string]int // reconciles by "server key"
	work      func(ctx context.Context, client client.Client, key string) (time.Duration, error)
	forgot    int
}

func newFleet(t testing.TB) *fleet {
	f := &fleet{t: t, store: memstore.New(memstore.Options{}), led: map[string]int{}, each: map[string]int{}}
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

// add starts a server.
func (f *fleet) add(configure ...func(*server.Builder)) *servertest.Server {
	i := len(f.servers)
	cut, log, reg := faultinject.Wrap(apitest.SharedStore{Backend: f.store}, nil), &apitest.LogBuffer{}, prometheus.NewRegistry()
	f.cuts, f.logs, f.metrics = append(f.cuts, cut), append(f.logs, log), append(f.metrics, reg)
	basic := func(b *server.Builder) {
		b.Storage, b.Metrics, b.Logger = cut, reg, slog.New(slog.NewTextHandler(log, nil))
		own := client.Controller{
			Name: "test", Types: []meta.GroupResource{{Resource: "configmaps"}},
			MapEvent: func(c client.Event) []string { return []string{c.Key.Name} },
			Forget: func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.forgot++
			},
			Reconcile: func(ctx context.Context, client client.Client, key string) (time.Duration, error) {
				f.mu.Lock()
				f.led[fmt.Sprint(i, " ", key)]++
				work := f.work
				f.mu.Unlock()
				if work == nil {
					return 0, nil
				}
				return work(ctx, client, key)
			},
		}
		everywhere := client.Controller{
			Name: "everywhere", EveryServer: true, Types: own.Types, MapEvent: own.MapEvent,
			Reconcile: func(_ context.Context, _ client.Client, key string) (time.Duration, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.each[fmt.Sprint(i, " ", key)]++
				return 0, nil
			},
		}
		b.Controllers = append(b.Controllers, own, everywhere)
	}
	s := servertest.New(f.t, append([]func(*server.Builder){basic}, configure...)...)
	f.servers = append(f.servers, s)
	return s
}

// counts returns how often keys were reconciled, by server.
func (f *fleet) counts() (led, each map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	led, each = map[string]int{}, map[string]int{}
	for k, n := range f.led {
		led[k] = n
	}
	for k, n := range f.each {
		each[k] = n
	}
	return led, each
}

const (
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	testLease  = "controlplane-controller-test"
	leaseKey   = "leases.coordination.k8s.io/kube-system/" + testLease
)

// leads returns the value of a server's leader election metric for a Lease.
func (f *fleet) leads(server int, lease string) float64 {
	f.t.Helper()
	families, err := f.metrics[server].Gather()
	require.NoError(f.t, err)
	for _, family := range families {
		for _, m := range family.Metric {
			if family.GetName() == "leader_election_master_status" && m.Label[0].GetValue() == lease {
				return m.Gauge.GetValue()
			}
		}
	}
	f.t.Fatalf("server %d tells nothing of %s", server, lease)
	return 0
}

// leader returns the index of the running server that leads by a Lease, or -1.
func (f *fleet) leader(lease string, running ...int) int {
	f.t.Helper()
	found := -1
	for _, i := range running {
		if f.leads(i, lease) == 1 {
			require.Negative(f.t, found, "two lead")
			found = i
		}
	}
	return found
}

func (f *fleet) shutdown(i int) {
	f.t.Helper()
	require.NoError(f.t, f.servers[i].Shutdown(context.WithoutCancel(f.t.Context())))
}

func TestOneServerLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		for range 3 {
			f.add()
		}
		a := apitest.InProcess(t, f.servers[2])
		for i := range 20 {
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i)))
		}
		synctest.Wait()
		led, each := f.counts()
		for i := range 20 {
			key := fmt.Sprint("c", i)
			assert.Equal(t, 1, led["0 "+key], "the first that came leads")
			assert.Zero(t, led["1 "+key]+led["2 "+key])
			for s := range 3 {
				assert.Equal(t, 1, each[fmt.Sprint(s, " ", key)])
			}
		}
		time.Sleep(time.Minute)
		for _, lease := range []string{testLease, "controlplane-apis", "controlplane-cleanup"} {
			assert.Equal(t, 0, f.leader(lease, 0, 1, 2), lease)
			held := a.Must(200, "GET", leasesPath+"/"+lease, nil).Body
			assert.EqualValues(t, 15, apitest.Nested(held, "spec", "leaseDurationSeconds"))
			assert.Nil(t, apitest.Nested(held, "spec", "leaseTransitions"))
			assert.Regexp(t, `^.+_[0-9a-f-]{36}$`, apitest.Nested(held, "spec", "holderIdentity"))
			assert.Contains(t, f.logs[0].String(), fmt.Sprintf(`msg=leading lease=kube-system/%s id=%s`, lease, apitest.Nested(held, "spec", "holderIdentity")))
			assert.Contains(t, f.logs[1].String(), fmt.Sprintf(`msg="another server leads" lease=kube-system/%s`, lease))
			renewed, err := time.Parse(time.RFC3339, apitest.NestedString(held, "spec", "renewTime"))
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Since(renewed), 3*time.Second)
			a.Must(200, "PUT", leasesPath+"/"+lease, held) // it is an object as any other
		}
		a.Must(404, "GET", leasesPath+"/controlplane-controller-everywhere", nil)
		assert.NotContains(t, f.logs[0].String(), "level=ERROR")
		for _, s := range f.servers {
			s.Settle()
		}
	})
}

// TestLeadersHandOver: a leader that stops releases its Lease, so that the next leader begins at once,
// with all existing objects.
func TestLeadersHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		for range 3 {
			f.add()
		}
		a := apitest.InProcess(t, f.servers[2])
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
		synctest.Wait()
		begun := time.Now()
		f.shutdown(0)
		synctest.Wait()
		time.Sleep(100 * time.Millisecond) // who comes second to a Lease looks again
		synctest.Wait()
		next := f.leader(testLease, 1, 2)
		require.Positive(t, next)
		assert.Less(t, time.Since(begun), time.Second)
		led, _ := f.counts()
		assert.Equal(t, 1, led["0 c"])
		assert.Equal(t, 1, led[fmt.Sprint(next, " c")], "as at the start of a server")
		held := a.Must(200, "GET", leasesPath+"/"+testLease, nil).Body
		assert.EqualValues(t, 1, apitest.Nested(held, "spec", "leaseTransitions"))
		assert.Contains(t, f.logs[0].String(), `msg="released the lease" lease=kube-system/`+testLease)

		f.servers[next].Drain() // which still answers
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		last := 3 - next
		assert.Equal(t, last, f.leader(testLease, 1, 2))
		assert.Less(t, time.Since(begun), time.Second)
		apitest.InProcess(t, f.servers[next]).Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("d"))
		synctest.Wait()
		led, each := f.counts()
		assert.Equal(t, 1, led[fmt.Sprint(last, " d")])
		assert.Equal(t, 1, each[fmt.Sprint(next, " d")])
	})
}

// TestLeaderWithoutStoreStopsAndCompetesAgain: a leader that loses the store stops before
// another server leads, and competes again when the store is back.
func TestLeaderWithoutStoreStopsAndCompetesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.add()
		time.Sleep(time.Minute)
		begun := time.Now()
		f.cuts[0].SetPlan(func(faultinject.Call) faultinject.Fault {
			return faultinject.Fault{Err: errors.New("no way to the store")}
		})
		for f.leads(0, testLease) == 1 {
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, time.Since(begun), 10*time.Second+100*time.Millisecond)
		assert.Zero(t, f.leads(1, testLease))
		for f.leads(1, testLease) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, time.Since(begun), 16*time.Second)
		assert.Contains(t, f.logs[0].String(), `msg="lost the lease" lease=kube-system/`+testLease)

		f.cuts[0].SetPlan(nil)
		time.Sleep(time.Minute)
		assert.Equal(t, 1, f.leader(testLease, 0, 1))
		f.shutdown(1)
		time.Sleep(time.Second)
		assert.Equal(t, 0, f.leader(testLease, 0))
		f.mu.Lock()
		assert.Equal(t, 1, f.forgot, "what was remembered of the first term")
		f.mu.Unlock()
	})
}

// TestCandidateWithStalledWatchDoesNotLead: a server whose watch is stalled leaves the Lease to
// others, although it can write, and leads again when events arrive.
func TestCandidateWithStalledWatchDoesNotLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.add()
		time.Sleep(61 * time.Second) // between two renewals: at one, server 1 may see at once that the Lease is released
		apitest.InProcess(t, f.servers[0]).Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
		held := make(chan struct{})
		hear := sync.OnceFunc(func() { close(held) })
		defer hear()
		f.cuts[1].SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpEvent {
				return faultinject.Fault{Wait: held}
			}
			return faultinject.Fault{}
		})
		f.shutdown(0)
		time.Sleep(20 * time.Second)
		require.Equal(t, 1, f.leader(testLease, 1), "nobody else is there")
		f.add()
		time.Sleep(20 * time.Second)
		require.Equal(t, 2, f.leader(testLease, 1, 2))
		led, _ := f.counts()
		assert.Zero(t, led["1 c"])
		assert.Equal(t, 1, led["2 c"])

		hear()
		f.shutdown(2)
		time.Sleep(time.Second)
		assert.Equal(t, 1, f.leader(testLease, 1))
		led, _ = f.counts()
		assert.Equal(t, 1, led["1 c"])
	})
}

// TestCandidatesRunOnlyChosenControllers: a server competes only for the controllers that it is
// configured to run.
func TestCandidatesRunOnlyChosenControllers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(func(b *server.Builder) { b.RunControllers = []string{"*", "-test"} })
		f.add()
		a := apitest.InProcess(t, f.servers[0])
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
		synctest.Wait()
		assert.Equal(t, 0, f.leader("controlplane-cleanup", 0, 1))
		led, each := f.counts()
		assert.Equal(t, map[string]int{"1 c": 1}, drop(led, "kube-root-ca.crt"))
		assert.Len(t, each, 2)
	})
}

func drop(counts map[string]int, key string) map[string]int {
	for k := range counts {
		if strings.HasSuffix(k, " "+key) {
			delete(counts, k)
		}
	}
	return counts
}

// TestInvalidLeaseDoesNotBlockElection: a Lease with invalid values blocks the election no
// longer than an expired Lease.
func TestInvalidLeaseDoesNotBlockElection(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"a century":  `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"x","namespace":"kube-system","uid":"1"},"spec":{"holderIdentity":"other","leaseDurationSeconds":2147483647,"renewTime":"2999-01-01T00:00:00.000000Z"}}`,
		"negative":   `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"uid":"1"},"spec":{"holderIdentity":"other","leaseDurationSeconds":-1,"leaseTransitions":2147483647}}`,
		"no lease":   `{"spec":{"holderIdentity":["a"],"leaseDurationSeconds":"x"}}`,
		"no JSON":    `[`,
		"no content": ` `,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				f.add()
				_, err := f.store.Commit(t.Context(), storage.Write{Key: leaseKey, Value: []byte(value), Expect: storage.AnyRevision})
				require.NoError(t, err)
				time.Sleep(5 * time.Second)
				assert.Zero(t, f.leads(0, testLease))
				time.Sleep(15 * time.Second)
				assert.EqualValues(t, 1, f.leads(0, testLease))
				held := apitest.InProcess(t, f.servers[0]).Must(200, "GET", leasesPath+"/"+testLease, nil).Body
				assert.EqualValues(t, 15, apitest.Nested(held, "spec", "leaseDurationSeconds"))
				assert.NotEmpty(t, apitest.Nested(held, "metadata", "uid"))
			})
		})
	}
}

// TestLeasesAreOfOperators: a leader stops if a user takes over or deletes its Lease, but not if a
// user adds a label to it.
func TestLeasesAreOfOperators(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.add()
		a := apitest.InProcess(t, f.servers[1])
		patch := func(body string) {
			a.Must(200, "PATCH", leasesPath+"/"+testLease, body, "Content-Type", "application/merge-patch+json")
		}
		patch(`{"metadata":{"labels":{"seen":"yes"}}}`)
		time.Sleep(time.Minute)
		assert.Equal(t, 0, f.leader(testLease, 0, 1))
		patch(`{"spec":{"holderIdentity":""}}`)
		time.Sleep(5 * time.Second)
		assert.Equal(t, 1, f.leader(testLease, 0, 1))
		assert.Equal(t, "yes", apitest.Nested(a.Must(200, "GET", leasesPath+"/"+testLease, nil).Body, "metadata", "labels", "seen"))
		a.Must(200, "DELETE", leasesPath+"/"+testLease, nil)
		time.Sleep(5 * time.Second)
		assert.Equal(t, 0, f.leader(testLease, 0, 1))
		patch(`{"spec":{"holderIdentity":"nobody"}}`)
		time.Sleep(5 * time.Second)
		assert.Equal(t, -1, f.leader(testLease, 0, 1))
		time.Sleep(15 * time.Second)
		assert.NotEqual(t, -1, f.leader(testLease, 0, 1))
	})
}

// TestElectionWorksWithoutServedLeases: servers that do not serve Leases still elect a leader.
func TestElectionWorksWithoutServedLeases(t *testing.T) {
	t.Parallel()
	type thing struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
	}
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		defer store.Close()
		var reconciled [2]atomic.Int32
		var log apitest.LogBuffer
		start := func(i int) (*server.Server, func()) {
			things := meta.GroupResource{Group: "example.com", Resource: "things"}
			b := &server.Builder{Authorizer: auth.AllowAll, Storage: apitest.SharedStore{Backend: store}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			b.Controllers = []client.Controller{{
				Name: "My controller/ü", Types: []meta.GroupResource{things}, MapEvent: func(e client.Event) []string { return []string{e.Key.Name} },
				Reconcile: func(context.Context, client.Client, string) (time.Duration, error) {
					reconciled[i].Add(1)
					return 0, nil
				},
			}}
			b.Register(registry.Of(registry.Definition[thing]{Group: "example.com", Version: "v1", Kind: "Thing", Scope: registry.Cluster}))
			s, err := b.Build(t.Context())
			require.NoError(t, err)
			ran := make(chan error, 1)
			go func() { ran <- s.Run(context.Background()) }()
			<-s.Running()
			return s, func() {
				require.NoError(t, s.Shutdown(context.Background()))
				require.NoError(t, <-ran)
			}
		}
		one, end := start(0)
		other, endOther := start(1)
		_, err := one.Objects().Create(t.Context(), meta.GroupResource{Group: "example.com", Resource: "things"}, meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a"}}))
		require.NoError(t, err)
		synctest.Wait()
		assert.EqualValues(t, []int32{1, 0}, []int32{reconciled[0].Load(), reconciled[1].Load()})
		end()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		assert.EqualValues(t, []int32{1, 1}, []int32{reconciled[0].Load(), reconciled[1].Load()})
		assert.NoError(t, other.Settle(t.Context()))
		endOther()
		third, endThird := start(0)
		assert.NotContains(t, log.String(), "neither registered nor defined")
		_ = third
		endThird()
	})
}

// TestSingleUserOfStoreLeadsWithoutLease: a server that has the store for itself leads without a
// Lease, and at once after a crash.
func TestSingleUserOfStoreLeadsWithoutLease(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
	s.Settle()
	rev, err := store.Revision(t.Context())
	require.NoError(t, err)
	_, records, err := store.Scan(t.Context(), "", "", rev)
	require.NoError(t, err)
	for rec, err := range records {
		require.NoError(t, err)
		require.False(t, strings.HasPrefix(rec.Key, "leases.") || strings.HasPrefix(rec.Key, "~term/"), rec.Key)
	}
}

// TestLeaderOfAFullStore: while the store is full, the leader continues to delete, and no other server
// can be elected.
func TestLeaderOfAFullStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.add()
		a := apitest.InProcess(t, f.servers[0])
		a.Must(201, "POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"lastTimestamp":"`+time.Now().UTC().Format(time.RFC3339)+`"}`)
		for _, cut := range f.cuts {
			cut.SetPlan(fullStore)
		}
		time.Sleep(59 * time.Minute)
		a.Must(200, "GET", "/api/v1/namespaces/default/events/e", nil)
		time.Sleep(2 * time.Minute)
		a.Must(404, "GET", "/api/v1/namespaces/default/events/e", nil)
		assert.Equal(t, 0, f.leader("controlplane-cleanup", 0, 1))
		for _, cut := range f.cuts {
			cut.SetPlan(nil)
		}
		time.Sleep(time.Minute)
		assert.NotEqual(t, -1, f.leader("controlplane-cleanup", 0, 1))
	})
}
