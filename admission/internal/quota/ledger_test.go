package quota_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/quota"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

var (
	configMaps = meta.GroupResource{Resource: "configmaps"}
	quotas     = meta.GroupResource{Resource: "resourcequotas"}
)

func object(name string) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}})
}

// withLedger returns a server with a Ledger, whose PluginContext the test can change.
func withLedger(t *testing.T, change func(*admission.PluginContext), configure ...func(*server.Builder)) (*servertest.Server, *quota.Ledger) {
	var ledger *quota.Ledger
	s := servertest.New(t, append(configure, func(b *server.Builder) {
		b.AdmissionOptions.Disable = []string{"ResourceQuota"}
		b.Admission = append(b.Admission, admission.Plugin{Name: "Quotas", Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			change(&env)
			ledger = quota.NewLedger(env, nil)
			p.Validate, p.Close = ledger.Admit, ledger.Close
			return nil
		}})
	})...)
	return s, ledger
}

// bound creates a quota for ConfigMaps in the namespace.
func bound(t *testing.T, c client.Client, hard int) {
	q := object("q")
	q.Set(fmt.Sprint(hard), "spec", "hard", "count/configmaps")
	_, err := c.Create(t.Context(), quotas, q)
	require.NoError(t, err)
}

// accounting is the type of admission.PluginContext.Accounting.
type accounting interface {
	client.Client
	Fence(ctx context.Context, namespace string) (storage.Revision, error)
	RaiseFence(ctx context.Context, namespace string) (storage.Revision, error)
}

// fenced calls look before it returns a fence.
type fenced struct {
	accounting
	look func(ctx context.Context, namespace string) error
}

func (f fenced) Fence(ctx context.Context, namespace string) (storage.Revision, error) {
	if err := f.look(ctx, namespace); err != nil {
		return 0, err
	}
	return f.accounting.Fence(ctx, namespace)
}

// lists counts how often config maps are listed.
type lists struct {
	accounting
	n *atomic.Int64
}

func (l lists) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	if r == configMaps {
		l.n.Add(1)
	}
	return l.accounting.List(ctx, r, namespace)
}

// TestDeletionsAreCountedTogether checks that a single count follows many deletions.
func TestDeletionsAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		s, _ := withLedger(t, func(env *admission.PluginContext) { env.Accounting = lists{env.Accounting, &n} })
		c := s.Objects()
		bound(t, c, 100)
		for i := range 100 {
			_, err := c.Create(t.Context(), configMaps, object(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		s.Settle()
		for _, name := range []string{"more", "again"} {
			n.Store(0)
			for i := range 50 {
				require.NoError(t, c.Delete(t.Context(), configMaps, meta.Key{Namespace: "default", Name: fmt.Sprint(i)}, registry.DeleteOptions{}))
				synctest.Wait()
			}
			s.Settle()
			assert.EqualValues(t, 1, n.Load())
			for i := range 50 {
				_, err := c.Create(t.Context(), configMaps, object(fmt.Sprint(i)))
				require.NoError(t, err)
			}
			_, err := c.Create(t.Context(), configMaps, object(name))
			assert.ErrorContains(t, err, "exceeded quota")
		}
	})
}

// TestFirstStatusIsCountedAfterDelay checks that the creator of a quota can write its
// first status, and that otherwise the objects are counted soon.
func TestFirstStatusIsCountedAfterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withLedger(t, func(*admission.PluginContext) {})
		c := s.Objects()
		bound(t, c, 1)
		used := func() string {
			synctest.Wait()
			q, err := c.Get(t.Context(), quotas, meta.Key{Namespace: "default", Name: "q"})
			require.NoError(t, err)
			return q.String("status", "used", "count/configmaps")
		}
		require.Empty(t, used())
		time.Sleep(2 * time.Second)
		require.Equal(t, "0", used())
	})
}

// TestNoRefusalBeforeCount checks that deleted objects can be recreated immediately, also
// while other creates are admitted, and that this takes only a single additional count.
func TestNoRefusalBeforeCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hard = 20
		var n atomic.Int64
		s, _ := withLedger(t, func(env *admission.PluginContext) { env.Accounting = lists{env.Accounting, &n} })
		c := s.Objects()
		bound(t, c, hard)
		for i := range hard {
			_, err := c.Create(t.Context(), configMaps, object(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		s.Settle()
		for i := range hard {
			require.NoError(t, c.Delete(t.Context(), configMaps, meta.Key{Namespace: "default", Name: fmt.Sprint(i)}, registry.DeleteOptions{}))
			n.Store(0)
			var all sync.WaitGroup
			var made atomic.Int64
			for w := range 8 {
				all.Go(func() {
					if _, err := c.Create(t.Context(), configMaps, object(fmt.Sprintf("%d-%d", i, w))); err == nil {
						made.Add(1)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 1, made.Load())
			require.EqualValues(t, 1, n.Load())
			if i%5 == 4 {
				s.Settle()
			}
		}
	})
}

// TestCanceledWritesReleaseUsage cancels writes at random times. Reserved usage is released
// unless the object was written, the ledger keeps no state of the writes, and exactly the
// permitted number of objects is created.
func TestCanceledWritesReleaseUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers, rounds, hard = 32, 20, 32 * 20
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		s, ledger := withLedger(t, func(env *admission.PluginContext) { env.Control = nil }, func(b *server.Builder) { b.Storage = store })
		c := s.Objects()
		bound(t, c, hard)
		store.SetPlan(func(call faultinject.Call) (f faultinject.Fault) {
			if call.Op == faultinject.OpCommit {
				f.Delay = time.Millisecond
			}
			return f
		})
		exact := func(want int) {
			t.Helper()
			list, err := c.List(t.Context(), configMaps, "default")
			require.NoError(t, err)
			now, err := c.Get(t.Context(), quotas, meta.Key{Namespace: "default", Name: "q"})
			require.NoError(t, err)
			require.Len(t, list, want)
			require.Equal(t, fmt.Sprint(want), now.String("status", "used", "count/configmaps"))
			require.Zero(t, ledger.Accounts())
		}
		var made, left atomic.Int64
		var all sync.WaitGroup
		for i := range writers {
			random := rand.New(rand.NewPCG(2, uint64(i)))
			all.Go(func() {
				for n := range rounds {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(8000))*time.Microsecond)
					switch _, err := c.Create(ctx, configMaps, object(fmt.Sprintf("%d-%d", i, n))); {
					case err == nil:
						made.Add(1)
					case errors.Is(ctx.Err(), context.DeadlineExceeded):
						left.Add(1)
					default:
						t.Error(err)
					}
					cancel()
				}
			})
		}
		all.Wait()
		require.EqualValues(t, writers*rounds, made.Load()+left.Load())
		require.Greater(t, made.Load(), int64(writers))
		require.Greater(t, left.Load(), int64(writers))
		list, err := c.List(t.Context(), configMaps, "default")
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(list), int(made.Load()))
		exact(len(list))
		for i := range hard - len(list) {
			_, err := c.Create(t.Context(), configMaps, object(fmt.Sprint("last-", i)))
			require.NoError(t, err)
		}
		_, err = c.Create(t.Context(), configMaps, object("more"))
		assert.ErrorContains(t, err, "exceeded quota")
		exact(hard)
	})
}

// TestRetryReadsRaisedFence raises the fence from another server during each attempt of a
// write, as it can happen during webhook calls. The retry must read the new fence.
func TestRetryReadsRaisedFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		attempts := 0
		s, _ := withLedger(t, func(*admission.PluginContext) {}, func(b *server.Builder) {
			b.Storage = store
			b.Admission = append(b.Admission, admission.Plugin{
				Name: "Slow", Rules: []admission.Rule{{Resources: []string{"configmaps"}}},
				Mutate: func(ctx context.Context, r *admission.Request) error {
					if attempts++; attempts > 5 {
						return errors.New("too many attempts")
					}
					_, err := store.Commit(ctx, storage.Write{Key: resource.FencePrefix + r.Namespace, Value: []byte("raised"), Expect: storage.AnyRevision})
					return err
				},
			})
		})
		bound(t, s.Objects(), 3)
		s.Settle()
		_, err := s.Objects().Create(t.Context(), configMaps, object("a"))
		require.NoError(t, err)
		assert.Equal(t, 2, attempts)
	})
}

// TestScheduledCountEndsWithQuota checks that a scheduled count is dropped with the quota if
// no controller runs. The PluginContext has only a client, as in a program without a server.
func TestScheduledCountEndsWithQuota(t *testing.T) {
	s, ledger := withLedger(t, func(env *admission.PluginContext) { env.Control, env.Accounting = nil, nil })
	c := s.Objects()
	bound(t, c, 10)
	_, err := c.Create(t.Context(), configMaps, object("a"))
	require.NoError(t, err)
	require.NoError(t, c.Delete(t.Context(), configMaps, meta.Key{Namespace: "default", Name: "a"}, registry.DeleteOptions{}))
	assert.Equal(t, 1, ledger.Stale())
	require.NoError(t, c.Delete(t.Context(), quotas, meta.Key{Namespace: "default", Name: "q"}, registry.DeleteOptions{}))
	_, err = c.Create(t.Context(), configMaps, object("b"))
	require.NoError(t, err)
	assert.Zero(t, ledger.States())
}

// TestStateEndsWithLastQuota deletes the last quota of a namespace during a
// reservation. The ledger must keep no state of the namespace.
func TestStateEndsWithLastQuota(t *testing.T) {
	var c client.Client
	goes := false
	s, ledger := withLedger(t, func(env *admission.PluginContext) {
		env.Control = nil
		env.Accounting = fenced{env.Accounting, func(ctx context.Context, namespace string) error {
			if !goes {
				return nil
			}
			goes = false
			return c.Delete(ctx, quotas, meta.Key{Namespace: namespace, Name: "q"}, registry.DeleteOptions{})
		}}
	})
	c = s.Objects()
	bound(t, c, 10)
	goes = true
	_, err := c.Create(t.Context(), configMaps, object("a"))
	require.NoError(t, err)
	require.False(t, goes)
	assert.Zero(t, ledger.States())
}
