package badgerstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

func benchStore(b *testing.B) *badgerstore.Store {
	s, err := badgerstore.Open(badgerstore.Options{Dir: b.TempDir()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	return s
}

// BenchmarkCommit is durable creates of 1 KiB by some writers at once.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := benchStore(b)
			value := make([]byte, 1024)
			ctx := context.Background()
			before := s.Stats()
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range writers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if _, err := s.Commit(ctx, storage.Write{Key: fmt.Sprintf("k/%09d", i), Value: value}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			after := s.Stats()
			b.ReportMetric(float64(after.Commits-before.Commits)/float64(after.Fsyncs-before.Fsyncs), "writes/fsync")
		})
	}
}

// BenchmarkUpdate is durable compare-and-swap updates, each writer of its own key.
func BenchmarkUpdate(b *testing.B) {
	s := benchStore(b)
	ctx := context.Background()
	value := make([]byte, 1024)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for w := range 128 {
		wg.Go(func() {
			revision := storage.Revision(0)
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				var err error
				revision, err = s.Commit(ctx, storage.Write{Key: fmt.Sprintf("k/%d", w), Value: value, Expect: revision})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkScan reads 10,000 records of 1 KiB.
func BenchmarkScan(b *testing.B) {
	s := benchStore(b)
	ctx := context.Background()
	var wg sync.WaitGroup
	for w := range 100 {
		wg.Go(func() {
			for i := range 100 {
				if _, err := s.Commit(ctx, storage.Write{Key: fmt.Sprintf("k/%d/%d", w, i), Value: make([]byte, 1024)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportAllocs()
	for b.Loop() {
		_, records, err := s.Scan(ctx, "k/", "", 0)
		require.NoError(b, err)
		n := 0
		for _, err := range records {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		require.Equal(b, 10000, n)
	}
}

// BenchmarkOpen opens and closes an empty store.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := badgerstore.Open(badgerstore.Options{Dir: dir})
		require.NoError(b, err)
		require.NoError(b, s.Close())
	}
}
