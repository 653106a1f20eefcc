package memstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func BenchmarkCommit(b *testing.B) {
	s := memstore.New(memstore.Options{})
	ctx := context.Background()
	value := make([]byte, 1024)
	var next atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := fmt.Sprintf("k/%d", next.Add(1)%10000)
			if _, err := s.Commit(ctx, storage.Write{Key: key, Value: value, Expect: storage.AnyRevision}); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkCommitMultipleWrites measures commits of several writes of 100 bytes each, to 10,000 keys.
func BenchmarkCommitMultipleWrites(b *testing.B) {
	for _, n := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprintf("writes=%d", n), func(b *testing.B) {
			s := memstore.New(memstore.Options{})
			ctx, ws, serial := context.Background(), make([]storage.Write, n), 0
			b.ReportAllocs()
			for b.Loop() {
				for i := range ws {
					serial++
					ws[i] = storage.Write{Key: fmt.Sprintf("k/%09d", serial%10000), Value: make([]byte, 89), Expect: storage.AnyRevision}
				}
				if _, err := s.Commit(ctx, ws...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkScan measures scans of 10,000 records: at the newest revision, at one old revision that is
// cached, and at changing old revisions.
func BenchmarkScan(b *testing.B) {
	ctx := context.Background()
	s := memstore.New(memstore.Options{})
	for i := range 15000 {
		_, err := s.Commit(ctx, storage.Write{Key: fmt.Sprintf("k/%d", i%10000), Value: make([]byte, 100), Expect: storage.AnyRevision})
		require.NoError(b, err)
	}
	old := storage.Revision(10000)
	for _, c := range []struct {
		name string
		at   func() storage.Revision
	}{
		{"newest", func() storage.Revision { return 0 }},
		{"old", func() storage.Revision { return old }},
		{"each older", func() storage.Revision { old = 10000 + (old+37)%5000; return old }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, records, err := s.Scan(ctx, "k/", "", c.at())
				require.NoError(b, err)
				n := 0
				for range records {
					n++
				}
				require.Equal(b, 10000, n)
			}
		})
	}
}

func BenchmarkFork(b *testing.B) {
	ctx := context.Background()
	s := memstore.New(memstore.Options{})
	for i := range 100000 {
		_, err := s.Commit(ctx, storage.Write{Key: fmt.Sprintf("k/%d", i), Value: []byte("x")})
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f := s.Fork()
		if _, err := f.Commit(ctx, storage.Write{Key: "new", Value: []byte("x")}); err != nil {
			b.Fatal(err)
		}
	}
}
