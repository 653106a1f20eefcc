package watch

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func benchWorld(b *testing.B, objects int) *world {
	store := memstore.New(memstore.Options{})
	for i := range objects {
		key := fmt.Sprintf("ns%d/o%d", i%10, i)
		_, err := store.Commit(b.Context(), storage.Write{Key: things + key, Value: object("app=a", "1")})
		require.NoError(b, err)
	}
	return openWorld(b, store, options{})
}

// idle parks n cursors of another prefix.
func (w *world) idle(b *testing.B, n int) {
	for range n {
		_, cur := w.set.Cache(things).ListAndWatch(query{Prefix: "idle/"})
		g, err := cur.park()
		require.NoError(b, err)
		require.NotNil(b, g)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprintf("%d idle watchers", n), func(b *testing.B) {
			w := benchWorld(b, 1000)
			w.idle(b, n)
			c := w.set.Cache(things)
			value := object("app=a", "1")
			rev := w.set.Revision()
			b.ReportAllocs()
			for b.Loop() {
				rev++
				w.set.apply(rev, []change[*thing]{{cache: c, key: "ns0/o0", revision: rev, entry: newThing(storage.Record{Key: "ns0/o0", Revision: rev, Value: value})}})
			}
		})
	}
}

// BenchmarkNext publishes a change and reads it with several cursors, without waiting.
func BenchmarkNext(b *testing.B) {
	w := benchWorld(b, 1000)
	c := w.set.Cache(things)
	value := object("app=a", "1")
	rev := w.set.Revision()
	const readers = 100
	var cursors [readers]*Cursor[*thing]
	for i := range cursors {
		_, cursors[i] = c.ListAndWatch(query{})
	}
	b.ReportAllocs()
	for b.Loop() {
		rev++
		w.set.apply(rev, []change[*thing]{{cache: c, key: "ns0/o0", revision: rev, entry: newThing(storage.Record{Key: "ns0/o0", Revision: rev, Value: value})}})
		for _, cur := range cursors {
			if events, err := cur.Next(b.Context()); err != nil || len(events) != 1 {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkList10k(b *testing.B) {
	w := benchWorld(b, 10_000)
	c := w.set.Cache(things)
	b.ReportAllocs()
	for b.Loop() {
		if len(c.List(query{}, "", 0).Entries) != 10_000 {
			b.Fatal("incomplete")
		}
	}
}

func BenchmarkPage500(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		for _, prefix := range []string{"", "ns5/"} {
			b.Run(fmt.Sprintf("of %d with prefix %q", n, prefix), func(b *testing.B) {
				w := benchWorld(b, n)
				c := w.set.Cache(things)
				start := prefix
				if start == "" {
					start = "ns4"
				}
				b.ReportAllocs()
				for b.Loop() {
					if len(c.List(query{Prefix: prefix}, start, 500).Entries) == 0 {
						b.Fatal("empty")
					}
				}
			})
		}
	}
}

// BenchmarkIdleCursorBytes measures the memory of a cursor, without the stack of a goroutine that waits in Next.
func BenchmarkIdleCursorBytes(b *testing.B) {
	w := benchWorld(b, 10)
	c := w.set.Cache(things)
	q := labeled("app=a")
	q.Prefix = "ns1/"
	cursors := make([]*Cursor[*thing], 10_000)
	var before, after runtime.MemStats
	for b.Loop() {
		clear(cursors)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range cursors {
			cur, err := c.Watch(q, w.set.Revision())
			require.NoError(b, err)
			cursors[i] = cur
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(len(cursors)), "B/cursor")
	runtime.KeepAlive(cursors)
}

// BenchmarkFanout1000 commits a change and waits until 1000 watchers have received it.
func BenchmarkFanout1000(b *testing.B) {
	const watchers = 1000
	w := benchWorld(b, 10)
	c := w.set.Cache(things)
	ctx, cancel := context.WithCancel(context.Background())
	var readers, seen sync.WaitGroup
	for range watchers {
		_, cur := c.ListAndWatch(query{})
		readers.Go(func() {
			for {
				events, err := cur.Next(ctx)
				if err != nil {
					return
				}
				seen.Add(-len(events))
			}
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		seen.Add(watchers)
		w.put(things, "ns0/o0", "", "1")
		seen.Wait()
	}
	cancel()
	readers.Wait()
}
