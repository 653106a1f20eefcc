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

// frozen is a read-only store around another one. It implements the optional interfaces that a server
// looks for itself, because an embedded Backend does not provide them.
type frozen struct {
	storage.Backend
	mu     sync.Mutex
	stamps map[string]string
}

func (*frozen) Commit(context.Context, ...storage.Write) (storage.Revision, error) {
	return 0, storage.ErrStopped
}

// Writable makes /readyz report that the store does not accept writes.
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

// A store that wraps another one has only the optional interfaces that it implements itself.
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
	if s, ok := store.(storage.Sizer); ok { // frozen does not implement Sizer
		fmt.Println(s.Size())
	}
	_, sequence := store.(storage.Sequencer)
	_, history := store.(storage.HistoryReader)
	fmt.Println(sequence, history)
	// Output:
	// 1 <nil>
	// true
	// <nil>
	// kubernetes <nil>
	// false false
}

// CommitSequence commits several values of one key, each in a commit of its own. A store that
// implements Sequencer, such as badgerstore, waits for the disk only once.
func ExampleCommitSequence() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	revisions, err := storage.CommitSequence(ctx, store, storage.Write{Key: "a", Value: []byte("1")}, []byte("2"), []byte("3"))
	fmt.Println(revisions, err)
	var _ storage.Sequencer = (*badgerstore.Store)(nil)
	// Output: [1 2 3] <nil>
}

// An implementation of Backend validates and sorts the writes of a commit.
func ExampleNormalizeCommit() {
	ws, err := storage.NormalizeCommit([]storage.Write{{Key: "b", Value: []byte("2")}, {Key: "a", Value: []byte("1")}})
	fmt.Println(ws[0].Key, ws[1].Key, err)
	_, err = storage.NormalizeCommit([]storage.Write{{Key: "a"}, {Key: "a"}})
	fmt.Println(errors.Is(err, storage.ErrInvalidCommit))
	// Output:
	// a b <nil>
	// true
}

// An implementation of Backend persists the spans of its Retention and restores them after a restart.
func ExampleRetention() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := storage.Retention{Keep: time.Hour}
	for minute := range 90 {
		r.Committed(start.Add(time.Duration(minute)*time.Minute), storage.Revision(minute+1))
	}
	var kept []storage.Span = r.Spans() // persist these

	now := start.Add(90 * time.Minute)
	again := storage.Retention{Keep: time.Hour}
	again.Restore(kept, now, 90)
	fmt.Println(r.Oldest(now) == again.Oldest(now), again.Oldest(now) > 1, again.Oldest(now.Add(24*time.Hour)))
	// Output: true true 90
}

// A reader can get the oldest readable revision from a CompactedError, and the key of the damaged record
// from a DamagedError.
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

// sharedStore is a store that several processes write to.
type sharedStore struct{ storage.Backend }

func (sharedStore) Shared() bool { return true }

// Servers that use a Shared store elect a leader that runs the controllers.
func ExampleShared() {
	store := memstore.New(memstore.Options{})
	defer store.Close()
	for _, b := range []storage.Backend{store, sharedStore{store}} {
		shared, ok := b.(storage.Shared)
		fmt.Println(ok && shared.Shared())
	}
	// Output:
	// false
	// true
}
