package objects

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// Records makes of a backend one whose records hold objects of the hubs of their kinds,
// of today's shape, whatever version and shape they are stored in: which one that is,
// nothing above it knows. Every record names its version, and is read from that.
//
// A record always gives back the object of the hub as it was. Where the storage
// version cannot say all of it, the record has the hub's form, too, in an annotation
// that nobody sees, with a hash of what the record says beside it. As long as that is
// what it says, the hub's form is the object. Else a release that knows nothing of the
// hub has written since, and what it changed is taken over, see resource.Version.Merge.
// An object that the storage version cannot say at all is stored as it is.
//
// A store may hold what types of another shape wrote, see kinds. Then every record of the
// type is lifted when it is read: what the type has no place for is not shown. It
// stays in the record, also when that is written again.
type Records struct {
	storage.Backend
	kinds
	log *slog.Logger

	loads atomic.Bool // the first Scan comes, which notes what is wrong with records
	found findings    // by it; nobody else uses them until Accept
	said  words       // by the store, of what was scanned
}

// historic is Records over a store that is a storage.Historian.
type historic struct {
	*Records
	storage.Historian
}

// OpenRecords reads what the store says of its records. It is used through Store. What the
// first Scan reads is judged by Accept, which comes after it.
func OpenRecords(ctx context.Context, b storage.Backend, types []*resource.Type, log *slog.Logger) (*Records, error) {
	r := &Records{Backend: b, log: log}
	if err := r.kinds.open(ctx, b, types); err != nil {
		return nil, fmt.Errorf("reading what the store says of its kinds: %w", err)
	}
	r.loads.Store(true)
	return r, nil
}

// Begin gives an empty store its first revision.
func (r *Records) Begin(ctx context.Context) error {
	if !r.kinds.empty {
		return nil
	}
	return r.kinds.say(ctx, r.Backend, begins)
}

// Store returns the backend.
func (r *Records) Store() storage.Backend {
	if h, ok := r.Backend.(storage.Historian); ok {
		return &historic{r, h}
	}
	return r
}

// read makes a stored record one of the hub.
func (r *Records) read(ctx context.Context, rec storage.Record) (storage.Record, error) {
	return r.note(ctx, rec, nil)
}

// note is read, which notes what it finds, if it is to.
func (r *Records) note(ctx context.Context, rec storage.Record, found *findings) (storage.Record, error) {
	k := r.kindOf(rec.Key)
	if k == nil || rec.Value == nil || !k.looks() {
		return rec, nil
	}
	value, unshown, err := k.inHub(ctx, rec.Value, k.mixed.Load())
	if found != nil {
		found.note(ctx, k, rec, value, unshown, err)
	}
	if err != nil {
		if stack := stackOf(err); stack != "" {
			r.log.Error("the conversion of a record panicked", "key", rec.Key, "error", err, "stack", stack)
		}
		rec.Value = nil
		return rec, &storage.DamagedError{Key: rec.Key, Revision: rec.Revision, Err: err}
	}
	rec.Value = value
	return rec, nil
}

// stackOf returns where a conversion panicked, empty if none did.
func stackOf(err error) string {
	var conversion *resource.ConversionError
	if !errors.As(err, &conversion) {
		return ""
	}
	return string(conversion.Stack())
}

// write makes an object of the hub a record. The error is that of reading what the
// record holds beside the object.
func (r *Records) write(ctx context.Context, w storage.Write) (storage.Write, error) {
	k := r.kindOf(w.Key)
	if k == nil || w.Value == nil {
		return w, nil
	}
	var now storage.Record
	if k.mixed.Load() && w.Expect != 0 {
		var err error
		var damaged *storage.DamagedError // of which nothing can be kept
		if now, err = r.Backend.Get(ctx, w.Key, 0); err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.As(err, &damaged) {
			return w, err
		}
	}
	w.Value = r.stored(ctx, k, w.Key, w.Value, now.Value)
	return w, nil
}

// stored cannot fail: an object that its storage version cannot say must still be
// written, to end its deletion for one, and harm no write that is committed with it.
func (r *Records) stored(ctx context.Context, k *kind, key string, value, now []byte) []byte {
	stored, err := k.inRecord(ctx, value, now)
	if err != nil {
		r.log.Warn("an object is stored as the hub has it, since the storage version cannot say it", "key", key, "error", err, "stack", stackOf(err))
		return value
	}
	return stored
}

// Get implements storage.Backend.
func (r *Records) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	rec, err := r.Backend.Get(ctx, key, at)
	if err != nil {
		return rec, err
	}
	return r.read(ctx, rec)
}

// Scan implements storage.Backend. One of all that there is now begins with what the store
// says of it: what was said since it was opened, or since the last event, may be missed.
func (r *Records) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	rev, records, err := r.Backend.Scan(ctx, prefix, start, at)
	if err != nil {
		return rev, nil, err
	}
	var found *findings
	if r.loads.CompareAndSwap(true, false) {
		found = &r.found
	}
	if prefix == "" && at == 0 && rev > 0 {
		said, err := r.kinds.hear(ctx, r.Backend, rev)
		if err != nil {
			return rev, nil, err
		}
		if found != nil {
			r.said = said
		}
	}
	return rev, func(yield func(storage.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				rec, err = r.note(ctx, rec, found)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, nil
}

// Commit implements storage.Backend.
func (r *Records) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if err := r.kinds.claim(ctx, r.Backend, ws...); err != nil {
		return 0, err
	}
	out := make([]storage.Write, len(ws))
	for i, w := range ws {
		var err error
		if out[i], err = r.write(ctx, w); err != nil {
			return 0, err
		}
	}
	rev, err := r.Backend.Commit(ctx, out...)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		conflict.Current, _ = r.read(ctx, conflict.Current)
	}
	return rev, err
}

// CommitSequence implements storage.Sequencer.
func (r *Records) CommitSequence(ctx context.Context, first storage.Write, then ...[]byte) ([]storage.Revision, error) {
	if err := r.kinds.claim(ctx, r.Backend, first); err != nil {
		return nil, err
	}
	first, err := r.write(ctx, first)
	if err != nil {
		return nil, err
	}
	values, size, k := then, len(first.Value), r.kindOf(first.Key)
	if k != nil {
		values = make([][]byte, len(then))
		now := first.Value
		for i, value := range then {
			if value != nil {
				value = r.stored(ctx, k, first.Key, value, now)
			}
			values[i], now = value, value
		}
	}
	for _, value := range values {
		size += len(value)
	}
	if size > storage.SequenceBytes { // as they are stored: one by one
		return storage.CommitSequence(ctx, struct{ storage.Backend }{r.Backend}, first, values...)
	}
	return storage.CommitSequence(ctx, r.Backend, first, values...)
}

// Watch implements storage.Backend. The event of a record that cannot be converted
// says so.
func (r *Records) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return r.events(ctx, r.Backend.Watch(ctx, prefix, after))
}

// Follow is Watch of all keys for one who does not ask what was there before: no
// Event.Prev has a value. What the store says of its kinds is heard on the way.
func (r *Records) Follow(ctx context.Context, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		var claims sync.WaitGroup
		defer claims.Wait()
		defer stop()
		for commit, err := range r.Backend.Watch(ctx, "", after) {
			if err == nil {
				if r.learns(commit) {
					claims.Go(func() { r.contradict(ctx) })
				}
				commit = r.commit(ctx, commit, false)
			}
			if !yield(commit, err) || err != nil {
				return
			}
		}
	}
}

// learns takes in what a commit says of the kinds. It reports whether it is to be contradicted.
func (r *Records) learns(commit []storage.Event) bool {
	for i := range commit {
		if commit[i].Key == resource.KindsKey {
			return r.kinds.learn(commit[i].Value)
		}
	}
	return false
}

// contradict takes back what another release said, without which that would only come with
// the next write: others are under way.
func (r *Records) contradict(ctx context.Context) {
	if err := r.kinds.say(ctx, r.Backend, claims); err != nil && ctx.Err() == nil {
		r.log.Warn("another release says that it alone writes to the store; that is taken back with the next write", "error", err)
	}
}

// History implements storage.Historian.
func (h *historic) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return h.events(ctx, h.Historian.History(ctx, prefix, after, last))
}

func (r *Records) events(ctx context.Context, commits iter.Seq2[[]storage.Event, error]) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for commit, err := range commits {
			if err == nil {
				commit = r.commit(ctx, commit, true)
			}
			if !yield(commit, err) || err != nil {
				return
			}
		}
	}
}

// commit makes the events of a stored commit those of the hubs, with what they
// replaced or without the values of that.
func (r *Records) commit(ctx context.Context, stored []storage.Event, previous bool) []storage.Event {
	out := slices.Clone(stored)
	for i := range out {
		ev := &out[i]
		if previous {
			ev.Prev, _ = r.read(ctx, ev.Prev) // without a value, as of what is damaged
		} else {
			ev.Prev.Value = nil
		}
		var err error
		ev.Record, err = r.read(ctx, ev.Record)
		errors.As(err, &ev.Damaged)
	}
	return out
}
