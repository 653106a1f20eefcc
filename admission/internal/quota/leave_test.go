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
	"orch.io/controlplane/controller"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/faulty"
	"orch.io/controlplane/storage/memstore"
)

var (
	configMaps = meta.GroupResource{Resource: "configmaps"}
	quotas     = meta.GroupResource{Resource: "resourcequotas"}
)

func object(name string) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}})
}

// counted is a server whose quotas are kept by a ledger, which never counts anew what it
// counted once.
func counted(t *testing.T, configure ...func(*server.Builder)) (*servertest.Server, *quota.Ledger) {
	var ledger *quota.Ledger
	s := servertest.New(t, append(configure, func(b *server.Builder) {
		b.AdmissionOptions.Disable = []string{"ResourceQuota"}
		b.Admission = append(b.Admission, admission.Plugin{Name: "Quotas", Setup: func(p *admission.Plugin, env admission.Env) error {
			env.Control = nil
			ledger = quota.NewLedger(env, nil)
			p.Validate, p.Close = ledger.Admit, ledger.Close
			return nil
		}})
	})...)
	return s, ledger
}

// TestWritersWhoLeave: of writers who go away at any time what was taken and not written is
// given back, what was written nevertheless stays counted, and nothing is kept of them. So
// just what may be is created in the end.
func TestWritersWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers, rounds, hard = 32, 20, 32 * 20
		store := faulty.Wrap(memstore.New(memstore.Options{}), nil)
		s, ledger := counted(t, func(b *server.Builder) { b.Storage = store })
		c := s.Objects()
		q := object("q")
		q.Set(fmt.Sprint(hard), "spec", "hard", "count/configmaps")
		_, err := c.Create(t.Context(), quotas, q)
		require.NoError(t, err)
		store.SetPlan(func(call faulty.Call) (f faulty.Fault) {
			if call.Op == faulty.OpCommit {
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
		require.NoError(t, c.Delete(t.Context(), configMaps, meta.Key{Namespace: "default", Name: list[0].Name()}, controller.DeleteOptions{}))
		_, err = c.Create(t.Context(), configMaps, object("more"))
		assert.ErrorContains(t, err, "exceeded quota") // nobody counted anew: the test sees what was given back alone
	})
}
