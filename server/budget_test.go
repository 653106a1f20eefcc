package server_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/faulty"
	"orch.io/controlplane/storage/memstore"
)

// TestLargeBodies share a budget: who gets nothing of it in time is told to come
// again; small bodies do not wait.
func TestLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := faulty.Wrap(memstore.New(memstore.Options{}), nil)
		a := inProcess(t, servertest.New(t, func(b *server.Builder) {
			b.Storage, b.Limits.LargeBodies = store, 1<<20
		}))
		hold := make(chan struct{})
		store.SetPlan(func(c faulty.Call) faulty.Fault {
			if c.Op == faulty.OpCommit {
				return faulty.Fault{Wait: hold}
			}
			return faulty.Fault{}
		})
		large := strings.Repeat("x", 300<<10)
		post := func(name, data, query string) answer {
			return a.do("POST", configMaps+query, newConfigMap(name, "k", data))
		}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() { assert.Equal(t, 201, post(fmt.Sprint("held", i), large, "").code) })
		}
		synctest.Wait()

		begun := time.Now()
		for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			path, headers := configMaps, []string(nil)
			if verb != "POST" {
				path += "/x"
			}
			if verb == "PATCH" {
				headers = []string{"Content-Type", "application/merge-patch+json"}
			}
			got := a.do(verb, path, newConfigMap("x", "k", large), headers...)
			assert.Equal(t, 429, got.code, verb)
			assert.Equal(t, "1", got.header.Get("Retry-After"), verb)
			assert.Equal(t, "TooManyRequests", got.body["reason"], verb)
		}
		assert.Equal(t, 40*time.Second, time.Since(begun))
		begun = time.Now()
		assert.Equal(t, 201, post("small", large[:60<<10], "?dryRun=All").code)
		assert.Zero(t, time.Since(begun))

		// The largest share waits in front; the small ones behind do not starve it.
		var late atomic.Int64
		for i, size := range []int{900 << 10, 80 << 10, 80 << 10} {
			all.Go(func() {
				assert.Equal(t, 201, post(fmt.Sprint("late", i), strings.Repeat("x", size), "?dryRun=All").code)
				late.Add(1)
			})
			synctest.Wait()
		}
		assert.Zero(t, late.Load())
		close(hold)
		all.Wait()
		assert.EqualValues(t, 3, late.Load())

		// A body larger than the budget takes all of it.
		b := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Limits.LargeBodies = 1 }))
		assert.Equal(t, 201, b.do("POST", configMaps, newConfigMap("a", "k", large)).code)
		assert.Equal(t, 201, b.do("POST", configMaps, newConfigMap("b", "k", large)).code)
	})
}
