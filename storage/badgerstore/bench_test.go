package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// BenchmarkCommit measures durable creates of 1 KiB by concurrent writers.
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

// BenchmarkCommitMultipleWrites measures durable commits of several writes of 100 bytes, one after the other.
// For comparison it appends the same number of bytes to a file with one fsync, the optimum for a disk, in
// alternation. The metric of-limit is the time of the file divided by the time of the store.
func BenchmarkCommitMultipleWrites(b *testing.B) {
	for _, n := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprintf("writes=%d", n), func(b *testing.B) {
			s := benchStore(b)
			bare, err := os.Create(filepath.Join(b.TempDir(), "bare"))
			require.NoError(b, err)
			ctx, ws, data := context.Background(), make([]storage.Write, n), make([]byte, n*100)
			before := s.Stats()
			var limit time.Duration
			serial := 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for i := range ws {
					serial++
					ws[i] = storage.Write{Key: fmt.Sprintf("k/%09d", serial), Value: make([]byte, 89)}
				}
				if _, err := s.Commit(ctx, ws...); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				begun := time.Now()
				_, err := bare.Write(data)
				if err = errors.Join(err, bare.Sync()); err != nil {
					b.Fatal(err)
				}
				limit += time.Since(begun)
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(float64(limit)/float64(b.Elapsed()), "of-limit")
			b.ReportMetric(float64(s.Stats().Fsyncs-before.Fsyncs)/float64(b.N), "fsyncs/op")
			require.NoError(b, bare.Close())
		})
	}
}

// BenchmarkUpdate measures durable compare-and-swap updates by concurrent writers with a key each.
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

// BenchmarkScan measures scans of 10,000 records of 1 KiB.
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

// BenchmarkOpen measures Open and Close of an empty store.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := badgerstore.Open(badgerstore.Options{Dir: dir})
		require.NoError(b, err)
		require.NoError(b, s.Close())
	}
}
