package objects

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// Records makes of a backend one whose records hold objects of the hubs of their kinds,
// of today's shape, whatever version and shape they are stored in: which one that is,
// nothing above it knows. The documentation of the package tells of records.
type Records struct {
	storage.Backend
	kinds map[meta.GroupResource]*kind
	log   *slog.Logger

	loads atomic.Bool // the first Scan comes, which notes what is wrong with records
	found findings    // by it; nobody else uses them until Accept
	noted bool        // the store says that this release served it; nobody asks after Accept
}

// historic is Records over a store that is a storage.HistoryReader.
type historic struct {
	*Records
	storage.HistoryReader
}

// OpenRecords returns the records of a store. They are used through Store. What the first
// Scan reads is judged by Accept, which comes after it.
func OpenRecords(ctx context.Context, b storage.Backend, types []*resource.Type, log *slog.Logger) (*Records, error) {
	r := &Records{Backend: b, kinds: kindsOf(types), log: log}
	by, _, err := readServed(ctx, b)
	if err != nil {
		return nil, err
	}
	for of, k := range r.kinds {
		k.first = !slices.Contains(by[of.String()].Shapes, k.shape)
	}
	r.loads.Store(true)
	return r, nil
}

// Begin gives an empty store its first revision: no state of it has the version "0", which
// to clients means any state.
func (r *Records) Begin(ctx context.Context) error {
	newest, err := r.Backend.Revision(ctx)
	if err != nil || newest > 0 {
		return err
	}
	return r.noteServed(ctx)
}

// Store returns the backend.
func (r *Records) Store() storage.Backend {
	if h, ok := r.Backend.(storage.HistoryReader); ok {
		return &historic{r, h}
	}
	return r
}

// kindOf returns the kind whose object a key leads to, or nil.
func (r *Records) kindOf(key string) *kind {
	of, _, ok := resource.ParseStorageKey(key)
	if !ok {
		return nil
	}
	return r.kinds[of]
}

// read makes a stored record one of the hub.
func (r *Records) read(ctx context.Context, rec storage.Record) (storage.Record, error) {
	return r.readNoting(ctx, rec, nil)
}

// readNoting is read, which notes what it finds, if it is to.
func (r *Records) readNoting(ctx context.Context, rec storage.Record, found *findings) (storage.Record, error) {
	of, key, ok := resource.ParseStorageKey(rec.Key)
	if !ok || rec.Value == nil {
		return rec, nil
	}
	object, shape := unsign(rec.Value)
	rec.Value = object
	k := r.kinds[of]
	if k == nil {
		return rec, nil
	}
	read, err := k.read(ctx, object, string(shape) == k.shape)
	if read.more && !k.keeps.Load() {
		k.keeps.Store(true)
	}
	if found != nil {
		found.note(ctx, k, key, object, read, err)
	}
	if err != nil {
		if stack := stackOf(err); stack != "" {
			r.log.Error("the conversion of a record panicked", "key", rec.Key, "error", err, "stack", stack)
		}
		rec.Value = nil
		return rec, &storage.DamagedError{Key: rec.Key, Revision: rec.Revision, Err: err}
	}
	rec.Value = read.object
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
// record holds beside the object, or a *meta.Status, see kind.write.
func (r *Records) write(ctx context.Context, w storage.Write) (storage.Write, error) {
	k := r.kindOf(w.Key)
	if k == nil || w.Value == nil {
		return w, nil
	}
	var now storage.Record
	if k.keeps.Load() && w.Expect != 0 { // else whoever expects the record has read that it holds nothing more
		var err error
		now, err = r.Backend.Get(ctx, w.Key, 0)
		var damaged *storage.DamagedError
		switch {
		case errors.As(err, &damaged): // of which nothing can be kept
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return w, err
		case w.Check(now) != nil:
			return w, nil // as the commit will say
		}
	}
	var err error
	w.Value, err = r.record(ctx, k, w.Key, w.Value, now.Value)
	return w, err
}

// record returns what is stored of an object of the hub in place of a record, if there is
// one.
func (r *Records) record(ctx context.Context, k *kind, key string, object, now []byte) ([]byte, error) {
	record, asHub, err := k.write(ctx, object, now)
	if asHub != nil {
		r.log.Warn("an object is stored as the hub has it, since the storage version cannot say it", "key", key, "error", asHub, "stack", stackOf(asHub))
	}
	return record, err
}

// Get implements storage.Backend.
func (r *Records) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	rec, err := r.Backend.Get(ctx, key, at)
	if err != nil {
		return rec, err
	}
	return r.read(ctx, rec)
}

// Scan implements storage.Backend.
func (r *Records) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	rev, records, err := r.Backend.Scan(ctx, prefix, start, at)
	if err != nil {
		return rev, nil, err
	}
	var found *findings
	if r.loads.CompareAndSwap(true, false) {
		found = &r.found
	}
	return rev, func(yield func(storage.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				rec, err = r.readNoting(ctx, rec, found)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, nil
}

// Commit implements storage.Backend.
func (r *Records) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
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
	first, err := r.write(ctx, first)
	if err != nil {
		return nil, err
	}
	var refused error // of the value after those that are committed
	if k := r.kindOf(first.Key); k != nil {
		records := make([][]byte, 0, len(then))
		for now := first.Value; len(records) < len(then) && refused == nil; {
			if now, refused = r.record(ctx, k, first.Key, then[len(records)], now); refused == nil {
				records = append(records, now)
			}
		}
		then = records
	}
	revisions, err := r.commitSequence(ctx, first, then)
	if err == nil {
		err = refused
	}
	return revisions, err
}

// commitSequence commits records together, or those that are too long for that one by one.
func (r *Records) commitSequence(ctx context.Context, first storage.Write, then [][]byte) ([]storage.Revision, error) {
	size := len(first.Value)
	for _, record := range then {
		size += len(record)
	}
	if size > storage.SequenceBytes {
		return storage.CommitSequence(ctx, struct{ storage.Backend }{r.Backend}, first, then...)
	}
	return storage.CommitSequence(ctx, r.Backend, first, then...)
}

// Watch implements storage.Backend. The event of a record that cannot be converted
// says so.
func (r *Records) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return r.events(ctx, r.Backend.Watch(ctx, prefix, after), true)
}

// Follow is Watch of all keys for one who does not ask what was there before: no
// Event.Prev has a value.
func (r *Records) Follow(ctx context.Context, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return r.events(ctx, r.Backend.Watch(ctx, "", after), false)
}

// History implements storage.HistoryReader.
func (h *historic) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return h.events(ctx, h.HistoryReader.History(ctx, prefix, after, last), true)
}

// events makes stored events those of the hubs, with what they replaced or without the
// values of that.
func (r *Records) events(ctx context.Context, commits iter.Seq2[[]storage.Event, error], previous bool) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for commit, err := range commits {
			if err == nil {
				commit = r.commit(ctx, commit, previous)
			}
			if !yield(commit, err) {
				return
			}
		}
	}
}

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
