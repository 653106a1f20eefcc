package etcdstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// Each benchmark compares a call of the store with the same call of etcd's own client ("bare").

func BenchmarkGet(b *testing.B) {
	m := etcdtest.Start(b)
	s, bare := open(b, m, "/bench"), newClient(b, m)
	defer func() { require.NoError(b, s.Close()) }()
	put(b, s, "k", string(make([]byte, 1<<10)))
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := s.Get(b.Context(), "k", 0)
			require.NoError(b, err)
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := bare.Get(b.Context(), "/bench/data/k")
			require.NoError(b, err)
		}
	})
}

// BenchmarkCommit measures durable creates of 1 KiB by several concurrent clients on three members. It
// alternates with puts of the same keys and values by etcd's client, which are the best that etcd can
// do: of-limit is the time of the puts divided by the time of the commits, and cpu-of-limit is the same
// ratio of the CPU time of the members. The ratio is only meaningful if members and clients do not
// share processors.
func BenchmarkCommit(b *testing.B) {
	c := etcdtest.StartCluster(b, "--unsafe-no-fsync=false")
	var endpoints []string
	for _, m := range c.Members {
		endpoints = append(endpoints, m.Endpoint)
	}
	s, err := etcdstore.Open(b.Context(), etcdstore.Options{Endpoints: endpoints, Prefix: "/bench", Retain: -1})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	bare, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	require.NoError(b, err)
	defer func() { require.NoError(b, bare.Close()) }()
	value := make([]byte, 1<<10)
	commit := func(key string) error {
		_, err := s.Commit(b.Context(), storage.Write{Key: key, Value: value})
		return err
	}
	put := func(key string) error {
		_, err := bare.Put(b.Context(), "/bench/data/"+key, string(value))
		return err
	}
	var serial atomic.Int64
	for _, clients := range []int{1, 16, 64, 128} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			const rounds = 10
			each := max(clients, b.N/rounds)
			run := func(do func(key string) error) (took, cpu float64) {
				before, begun := cpuSeconds(b, c), time.Now()
				var all sync.WaitGroup
				var done atomic.Int64
				for range clients {
					all.Go(func() {
						for done.Add(1) <= int64(each) {
							if err := do(fmt.Sprintf("k/%09d", serial.Add(1))); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				took = time.Since(begun).Seconds()
				return took, cpuSeconds(b, c) - before
			}
			run(commit)
			var ours, limit, ourCPU, limitCPU float64
			b.ResetTimer()
			for range rounds {
				took, cpu := run(commit)
				ours, ourCPU = ours+took, ourCPU+cpu
				b.StopTimer()
				took, cpu = run(put)
				limit, limitCPU = limit+took, limitCPU+cpu
				b.StartTimer()
			}
			b.ReportMetric(limit/ours, "of-limit")
			b.ReportMetric(limitCPU/ourCPU, "cpu-of-limit")
			b.ReportMetric(rounds*float64(each)/ours, "commits/s")
			b.ReportMetric(1e6*ourCPU/rounds/float64(each), "etcd-cpu-µs/commit")
		})
	}
}

// cpuSeconds returns the CPU time that the members have used.
func cpuSeconds(b *testing.B, c *etcdtest.Cluster) (seconds float64) {
	for _, m := range c.Members {
		seconds += metric(b, m, "process_cpu_seconds_total")
	}
	return seconds
}

func BenchmarkScan(b *testing.B) {
	m := etcdtest.Start(b)
	s, bare := open(b, m, "/bench"), newClient(b, m)
	defer func() { require.NoError(b, s.Close()) }()
	const n = 1000
	for i := range n {
		put(b, s, fmt.Sprintf("k/%04d", i), string(make([]byte, 1<<10)))
	}
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.Len(b, keys(b, s, 0), n)
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resp, err := bare.Get(b.Context(), "/bench/data/", clientv3.WithPrefix())
			require.NoError(b, err)
			require.Len(b, resp.Kvs, n)
		}
	})
}

func BenchmarkWatch(b *testing.B) {
	m := etcdtest.Start(b)
	s, bare := open(b, m, "/bench"), newClient(b, m)
	defer func() { require.NoError(b, s.Close()) }()
	const n = 1000
	base := put(b, s, "begin", "")
	for range n {
		put(b, s, "k", string(make([]byte, 1<<10)))
	}
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			follow(b, s, base, n)
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			seen := 0
			ctx, cancel := context.WithCancel(b.Context())
			for resp := range bare.Watch(ctx, "/bench/data/", clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(int64(base)>>5+1)) {
				require.NoError(b, resp.Err())
				if seen += len(resp.Events); seen == n {
					cancel()
					break
				}
			}
			cancel()
		}
	})
}

func follow(b *testing.B, s storage.Backend, after storage.Revision, n int) {
	for _, err := range s.Watch(b.Context(), "", after) {
		require.NoError(b, err)
		if n--; n == 0 {
			return
		}
	}
}
