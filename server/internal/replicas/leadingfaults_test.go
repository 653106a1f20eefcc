package replicas_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
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
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/storage"
)

// fullStore is the plan of a full store: it accepts only deletions.
func fullStore(c faultinject.Call) faultinject.Fault {
	for _, w := range c.Writes {
		if w.Value != nil {
			return faultinject.Fault{Err: storage.ErrFull}
		}
	}
	return faultinject.Fault{}
}

// unanswered applies commits of a key and loses their answers.
func unanswered(key string) faultinject.Plan {
	return func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit && c.Key == key {
			return faultinject.Fault{Err: errors.New("no answer"), Done: true}
		}
		return faultinject.Fault{}
	}
}

func gone(c faultinject.Call) faultinject.Fault {
	return faultinject.Fault{Err: errors.New("no way to the store")}
}

// TestFullStoreWithoutLeader: if no leader can be elected because the store is full, the cleanup
// controllers run on every server and can only delete.
func TestFullStoreWithoutLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		for range 3 {
			f.add()
		}
		a := apitest.InProcess(t, f.servers[1])
		a.Must(201, "POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"lastTimestamp":"`+time.Now().UTC().Format(time.RFC3339)+`"}`)
		synctest.Wait()
		f.cuts[0].SetPlan(gone)
		f.cuts[1].SetPlan(fullStore)
		f.cuts[2].SetPlan(fullStore)
		before, err := f.store.Revision(t.Context())
		require.NoError(t, err)
		time.Sleep(59 * time.Minute)
		a.Must(200, "GET", "/api/v1/namespaces/default/events/e", nil)
		time.Sleep(2 * time.Minute)
		a.Must(404, "GET", "/api/v1/namespaces/default/events/e", nil)
		after, err := f.store.Revision(t.Context())
		require.NoError(t, err)
		assert.Equal(t, before+1, after)
		for _, i := range []int{1, 2} {
			assert.Zero(t, f.leads(i, "controlplane-cleanup"))
			assert.Contains(t, f.logs[i].String(), "store is full; running cleanup without a leader")
			assert.Equal(t, 1, strings.Count(f.logs[i].String(), `msg="failed to acquire the lease" lease=kube-system/controlplane-apis`), "it is told once")
		}
		led, _ := f.counts()
		assert.Empty(t, drop(led, "kube-root-ca.crt"), "controllers of the program do more than to delete")

		f.cuts[1].SetPlan(nil)
		f.cuts[2].SetPlan(nil)
		time.Sleep(time.Minute)
		leader := f.leader("controlplane-cleanup", 1, 2)
		require.Positive(t, leader)
		a.Must(201, "POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"lastTimestamp":"`+time.Now().UTC().Format(time.RFC3339)+`"}`)
		time.Sleep(61 * time.Minute)
		a.Must(404, "GET", "/api/v1/namespaces/default/events/e", nil)
		assert.Equal(t, leader, f.leader("controlplane-cleanup", 1, 2))
	})
}

// TestFullStoreIsSwept: orphaned reservations are deleted from a full store even if other reservations
// are missing. The missing ones are created when there is space, and are logged only once until then.
func TestFullStoreIsSwept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		s := f.add()
		apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("s", ""))
		held := reserved(t, f.store)
		require.Len(t, held, 1)
		for key := range held {
			_, err := f.store.Commit(t.Context(), storage.Write{Key: key, Expect: storage.AnyRevision})
			require.NoError(t, err)
		}
		left := resource.ReservationKey(meta.GroupResource{Resource: "services"}, resource.PoolClaim("10.0.0.12"))
		_, err := f.store.Commit(t.Context(), storage.Write{Key: left, Value: []byte("services./default/gone 1")})
		require.NoError(t, err)
		f.cuts[0].SetPlan(fullStore)
		time.Sleep(2 * time.Hour)
		assert.Empty(t, reserved(t, f.store))
		assert.NotContains(t, f.logs[0].String(), "controller=reservations")
		f.cuts[0].SetPlan(nil)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, held, reserved(t, f.store))
	})
}

// TestLeaderOfFullStoreNoticesSuccessor: the leader of a full store, which cannot renew its
// Lease, notices that another server became the leader while there was room.
func TestLeaderOfFullStoreNoticesSuccessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.cuts[0].SetPlan(fullStore)
		time.Sleep(time.Minute)
		require.Equal(t, 0, f.leader(testLease, 0))
		other := `{"metadata":{"uid":"1"},"spec":{"holderIdentity":"other","leaseDurationSeconds":15}}`
		_, err := f.store.Commit(t.Context(), storage.Write{Key: leaseKey, Value: []byte(other), Expect: storage.AnyRevision})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		assert.Equal(t, -1, f.leader(testLease, 0))
	})
}

// TestReleaseAfterALostAnswer: a server that shuts down releases its Lease even if the response to its
// last acquisition or renewal was lost.
func TestReleaseAfterALostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.add()
		time.Sleep(time.Minute)
		f.cuts[0].SetPlan(unanswered(leaseKey))
		time.Sleep(3500 * time.Millisecond)
		require.Equal(t, 0, f.leader(testLease, 0, 1))
		f.cuts[0].SetPlan(nil)
		f.cuts[1].SetPlan(unanswered(leaseKey)) // it begins, and does not know it
		f.shutdown(0)
		time.Sleep(time.Second)
		require.Equal(t, -1, f.leader(testLease, 1))
		f.cuts[1].SetPlan(nil)
		f.shutdown(1)
		f.add()
		time.Sleep(100 * time.Millisecond)
		assert.Equal(t, 2, f.leader(testLease, 2))
	})
}

// TestLeaseIsRenewedDespiteEdits: a leader renews its Lease although other clients edit the
// Lease all the time.
func TestLeaseIsRenewedDespiteEdits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.add()
		time.Sleep(time.Minute)
		var edited atomic.Int32
		f.cuts[0].SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpCommit && c.Key == leaseKey && edited.Add(1)%2 == 1 {
				is, err := f.store.Get(context.Background(), leaseKey, 0)
				assert.NoError(t, err)
				_, err = f.store.Commit(context.Background(), storage.Write{Key: leaseKey, Value: is.Value, Expect: is.Revision})
				assert.NoError(t, err)
			}
			return faultinject.Fault{}
		})
		time.Sleep(time.Minute)
		assert.GreaterOrEqual(t, edited.Load(), int32(30))
		assert.Equal(t, 0, f.leader(testLease, 0, 1))
		assert.NotContains(t, f.logs[0].String(), "lost the lease")
	})
}

// TestFormerLeaderIsReportedBeforeControllersEnd: a former leader reports that it does not lead
// although its controllers have not ended.
func TestFormerLeaderIsReportedBeforeControllersEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		goOn := make(chan struct{})
		defer func() {
			close(goOn)
			f.cuts[0].SetPlan(nil)
		}()
		f.work = func(context.Context, client.Client, string) (time.Duration, error) {
			<-goOn
			return 0, nil
		}
		f.add()
		f.add()
		apitest.InProcess(t, f.servers[0]).Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
		synctest.Wait()
		require.Equal(t, 0, f.leader(testLease, 0, 1))
		f.cuts[0].SetPlan(gone)
		time.Sleep(time.Minute)
		assert.Equal(t, 1, f.leader(testLease, 0, 1))
	})
}

// TestMapEventSeesWritesOfFormerLeader: when a new leader calls Reconcile, MapEvent has seen all
// writes of the former leader.
func TestMapEventSeesWritesOfFormerLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.add()
		a := apitest.InProcess(t, f.servers[0])
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
		synctest.Wait()
		held := make(chan struct{})
		f.cuts[1].SetPlan(func(c faultinject.Call) faultinject.Fault { // its caches are behind
			if c.Op == faultinject.OpEvent {
				return faultinject.Fault{Wait: held}
			}
			return faultinject.Fault{}
		})
		a.Must(200, "DELETE", apitest.ConfigMapsPath+"/c", nil)
		f.cuts[0].SetPlan(gone)
		time.Sleep(time.Minute)
		led, _ := f.counts()
		assert.Zero(t, led["1 c"])
		close(held)
		synctest.Wait()
		time.Sleep(time.Minute)
		assert.Equal(t, 1, f.leader(testLease, 1))
		led, _ = f.counts()
		assert.Zero(t, led["1 c"])
		f.cuts[0].SetPlan(nil)
	})
}

// TestFailureOfTheControllers: if the controllers cannot start, Run and Settle return the error.
func TestFailureOfTheControllers(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "workqueue_adds_total", Help: "of somebody else"}))
	b := &server.Builder{Authorizer: auth.AllowAll, Metrics: reg, Logger: slog.New(slog.DiscardHandler)}
	b.Register(builtin.Kinds()...)
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	err = s.Settle(t.Context())
	require.Error(t, err)
	require.ErrorContains(t, <-ran, err.Error())
	select {
	case <-s.Running():
		assert.Fail(t, "nothing runs")
	default:
	}
	require.NoError(t, s.Shutdown(context.Background()))
}

// wrongClock is the store of a machine with a wrong clock, as the other servers see it.
type wrongClock struct {
	*faultinject.Store
	says []byte
}

var timesOfLeases = regexp.MustCompile(`"(acquire|renew)Time":"[^"]*"`)

func (s *wrongClock) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	ws = slices.Clone(ws)
	for i := range ws {
		if strings.HasPrefix(ws[i].Key, "leases.") {
			ws[i].Value = timesOfLeases.ReplaceAll(ws[i].Value, []byte(`"${1}Time":"`+string(s.says)+`"`))
		}
	}
	return s.Store.Commit(ctx, ws...)
}

// TestLeaderElectionToleratesClockSkew: a candidate measures a lease by its own clock from the
// last renewal that it saw, whatever time the lease contains.
func TestLeaderElectionToleratesClockSkew(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"2999-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000000Z"} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				f.add(func(b *server.Builder) { b.Storage = &wrongClock{b.Storage.(*faultinject.Store), []byte(says)} })
				f.add()
				a := apitest.InProcess(t, f.servers[1])
				for range 60 {
					time.Sleep(time.Second)
					require.Equal(t, 0, f.leader(testLease, 0, 1))
				}
				assert.Equal(t, says, apitest.Nested(a.Must(200, "GET", leasesPath+"/"+testLease, nil).Body, "spec", "renewTime"))
				begun := time.Now()
				f.cuts[0].SetPlan(gone)
				for f.leads(1, testLease) == 0 {
					time.Sleep(100 * time.Millisecond)
				}
				assert.Less(t, 10*time.Second, time.Since(begun))
				assert.LessOrEqual(t, time.Since(begun), 16*time.Second)
				f.cuts[0].SetPlan(nil)
				time.Sleep(time.Minute)
				assert.Equal(t, 1, f.leader(testLease, 0, 1))
				f.shutdown(1)
				time.Sleep(time.Second)
				assert.Equal(t, 0, f.leader(testLease, 0))
			})
		})
	}
}

// TestLeaderOverSlowStoreContinues: the leader continues although each renewal takes longer than
// the interval between renewals.
func TestLeaderOverSlowStoreContinues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add()
		f.add()
		time.Sleep(time.Minute)
		for _, cut := range f.cuts {
			cut.SetPlan(func(faultinject.Call) faultinject.Fault { return faultinject.Fault{Delay: 4 * time.Second} })
		}
		for range 60 {
			time.Sleep(time.Second)
			require.Equal(t, 0, f.leader(testLease, 0, 1))
		}
		for _, cut := range f.cuts {
			cut.SetPlan(nil)
		}
	})
}
