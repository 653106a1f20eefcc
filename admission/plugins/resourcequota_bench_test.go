package plugins_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/badgerstore"
)

// BenchmarkResourceQuota measures creates by 32 concurrent writers in one namespace, with and without a
// quota, on a disk store.
func BenchmarkResourceQuota(b *testing.B) {
	for _, quota := range []string{"", "q"} {
		b.Run("quota="+quota, func(b *testing.B) {
			store, err := badgerstore.Open(badgerstore.Options{Dir: b.TempDir()})
			require.NoError(b, err)
			c := servertest.New(b, func(b *server.Builder) { b.Storage = store }).Objects()
			if quota != "" {
				bound(b, c, quota, 1<<30)
			}
			b.ResetTimer()
			var next atomic.Int64
			var all sync.WaitGroup
			for range 32 {
				all.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if _, err := c.Create(context.Background(), configMaps, configMap(fmt.Sprint(i))); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}

// BenchmarkResourceQuotaWithDeletions measures creates by 32 concurrent writers in a namespace with some
// thousand objects while others delete.
func BenchmarkResourceQuotaWithDeletions(b *testing.B) {
	for _, quota := range []string{"", "q"} {
		b.Run("quota="+quota, func(b *testing.B) {
			const there = 4000
			store, err := badgerstore.Open(badgerstore.Options{Dir: b.TempDir()})
			require.NoError(b, err)
			c := servertest.New(b, func(b *server.Builder) { b.Storage = store }).Objects()
			var all, deleters sync.WaitGroup
			create := func(prefix string, n int64, made chan<- string) {
				var next atomic.Int64
				for range 32 {
					all.Go(func() {
						for i := next.Add(1); i <= n; i = next.Add(1) {
							name := fmt.Sprint(prefix, i)
							if _, err := c.Create(context.Background(), configMaps, configMap(name)); err != nil {
								b.Error(err)
								return
							}
							if made != nil {
								made <- name
							}
						}
					})
				}
				all.Wait()
			}
			create("there-", there, nil)
			if quota != "" {
				bound(b, c, quota, 1<<30)
			}
			made := make(chan string, 1024)
			for range 16 {
				deleters.Go(func() {
					for name := range made {
						if err := c.Delete(context.Background(), configMaps, meta.Key{Namespace: "default", Name: name}, registry.DeleteOptions{}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.ResetTimer()
			create("new-", int64(b.N), made)
			b.StopTimer()
			close(made)
			deleters.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}

// BenchmarkCreateWithoutQuota measures the overhead of the plugin in a namespace without a quota.
func BenchmarkCreateWithoutQuota(b *testing.B) {
	for _, disabled := range [][]string{nil, {"ResourceQuota"}, {"ResourceQuota", "LimitRanger", "NamespaceLifecycle"}} {
		b.Run(fmt.Sprint("disabled=", len(disabled)), func(b *testing.B) {
			c := servertest.New(b, func(b *server.Builder) { b.AdmissionOptions = admission.Options{Disable: disabled} }).Objects()
			b.ReportAllocs()
			for i := range b.N {
				if _, err := c.Create(context.Background(), configMaps, configMap(fmt.Sprint(i))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
