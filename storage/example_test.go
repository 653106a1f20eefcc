package storage_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

// frozen is a store that can only be read. What a server asks of a store beyond
// Backend, this one says for itself.
type frozen struct {
	storage.Backend
	mu     sync.Mutex
	stamps map[string]string
}

func (*frozen) Commit(context.Context, ...storage.Write) (storage.Revision, error) {
	return 0, storage.ErrStopped
}

// Writable keeps /readyz from promising writes.
func (*frozen) Writable(context.Context) error { return storage.ErrStopped }

func (*frozen) Check(context.Context) error { return nil }

func (*frozen) Missing() (damaged, losses int) { return 0, 0 }

func (f *frozen) Stamp(_ context.Context, name, value string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stamps[name] == "" {
		f.stamps[name] = value
	}
	return f.stamps[name], nil
}

// A store around another one: what it does not embed it can do only if it says so.
func ExampleBackend() {
	ctx := context.Background()
	below := memstore.New(memstore.Options{})
	if _, err := below.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")}); err != nil {
		fmt.Println(err)
		return
	}
	var store storage.Backend = &frozen{Backend: below, stamps: map[string]string{}}
	defer store.Close()
	record, err := store.Get(ctx, "a", 0)
	fmt.Println(string(record.Value), err)
	if w, ok := store.(storage.Writer); ok {
		fmt.Println(errors.Is(w.Writable(ctx), storage.ErrStopped))
	}
	if c, ok := store.(storage.Checker); ok {
		fmt.Println(c.Check(ctx))
	}
	if s, ok := store.(storage.Stamper); ok {
		fmt.Println(s.Stamp(ctx, "names", "kubernetes"))
	}
	if s, ok := store.(storage.Sizer); ok { // this one lies nowhere
		fmt.Println(s.Size())
	}
	_, sequence := store.(storage.Sequencer)
	_, history := store.(storage.Historian)
	fmt.Println(sequence, history)
	// Output:
	// 1 <nil>
	// true
	// <nil>
	// kubernetes <nil>
	// false false
}

// Several values of one key, one commit each: at once where the store can, as
// badgerstore does with one wait for the disk.
func ExampleCommitSequence() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	revisions, err := storage.CommitSequence(ctx, store, storage.Write{Key: "a", Value: []byte("1")}, []byte("2"), []byte("3"))
	fmt.Println(revisions, err)
	var _ storage.Sequencer = (*badgerstore.Store)(nil)
	// Output: [1 2 3] <nil>
}

// A store of one's own refuses what is no commit, and puts the rest in order.
func ExampleTogether() {
	ws, err := storage.Together([]storage.Write{{Key: "b", Value: []byte("2")}, {Key: "a", Value: []byte("1")}})
	fmt.Println(ws[0].Key, ws[1].Key, err)
	_, err = storage.Together([]storage.Write{{Key: "a"}, {Key: "a"}})
	fmt.Println(errors.Is(err, storage.ErrNotTogether))
	// Output:
	// a b <nil>
	// true
}

// A store of one's own forgets by the rule of all stores, also after a restart.
func ExampleRetention() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := storage.Retention{Keep: time.Hour}
	for minute := range 90 {
		r.Committed(start.Add(time.Duration(minute)*time.Minute), storage.Revision(minute+1))
	}
	var kept []storage.Span = r.Spans() // to be kept on the disk

	now := start.Add(90 * time.Minute)
	again := storage.Retention{Keep: time.Hour}
	again.Restore(kept, now, 90)
	fmt.Println(r.Oldest(now) == again.Oldest(now), again.Oldest(now) > 1, again.Oldest(now.Add(24*time.Hour)))
	// Output: true true 90
}

// What a reader finds out about a revision that is forgotten, and about a record that
// is damaged.
func ExampleCompactedError() {
	for _, err := range []error{
		&storage.CompactedError{Oldest: 7},
		&storage.DamagedError{Key: "a", Revision: 3, Err: errors.New("checksum")},
	} {
		var compacted *storage.CompactedError
		var damaged *storage.DamagedError
		switch {
		case errors.As(err, &compacted):
			fmt.Println("start again at", compacted.Oldest, errors.Is(err, storage.ErrCompacted))
		case errors.As(err, &damaged):
			fmt.Println("leave out", damaged.Key)
		}
	}
	// Output:
	// start again at 7 true
	// leave out a
}

// many is a store that other processes write to, too.
type many struct{ storage.Backend }

func (many) Shared() bool { return true }

// Servers over such a store agree which of them runs a controller.
func ExampleShared() {
	store := memstore.New(memstore.Options{})
	defer store.Close()
	for _, b := range []storage.Backend{store, many{store}} {
		shared, ok := b.(storage.Shared)
		fmt.Println(ok && shared.Shared())
	}
	// Output:
	// false
	// true
}
