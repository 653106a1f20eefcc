package etcdstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// The benchmarks have beside each call of the store what etcd's own client does for the same.

func BenchmarkGet(b *testing.B) {
	m := etcdtest.Start(b)
	s, bare := open(b, m, "/bench"), another(b, m)
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

func BenchmarkCommit(b *testing.B) {
	m := etcdtest.Start(b)
	s, bare := open(b, m, "/bench"), another(b, m)
	defer func() { require.NoError(b, s.Close()) }()
	value := make([]byte, 1<<10)
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			put(b, s, "k", string(value))
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := bare.Put(b.Context(), "/bench/data/k", string(value))
			require.NoError(b, err)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	m := etcdtest.Start(b)
	s, bare := open(b, m, "/bench"), another(b, m)
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
	s, bare := open(b, m, "/bench"), another(b, m)
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
			for resp := range bare.Watch(ctx, "/bench/data/", clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(int64(base)+1)) {
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
