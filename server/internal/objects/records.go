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

// Records wraps a backend and converts between stored records and objects in the hub version of their kinds. The code
// above it does not depend on the version and shape in which an object is stored; see "Records" in the package
// comment. It is safe for concurrent use, except that Begin, the first Scan and Accept run one after the other, when
// the server starts.
type Records struct {
	storage.Backend
	kinds map[meta.GroupResource]*kind
	log   *slog.Logger

	firstScan atomic.Bool // the next Scan is the first one, which fills report
	report    loadReport  // used only by the first Scan and then by Accept
	noted     bool        // the store has recorded that this release served it; used by Begin and Accept
}

// historic is a Records over a storage.HistoryReader.
type historic struct {
	*Records
	storage.HistoryReader
}

// OpenRecords returns the Records of a backend for types. Use it through Store. The first Scan collects problems of
// the stored records; call Accept after it.
func OpenRecords(ctx context.Context, b storage.Backend, types []*resource.Type, log *slog.Logger) (*Records, error) {
	r := &Records{Backend: b, kinds: kindsOf(types), log: log}
	by, _, err := readServed(ctx, b)
	if err != nil {
		return nil, err
	}
	for of, k := range r.kinds {
		k.newShape = !slices.Contains(by[of.String()].Shapes, k.shape)
	}
	r.firstScan.Store(true)
	return r, nil
}

// Begin makes the first commit of an empty store. Otherwise the resourceVersion of its state would be "0", which
// means any state to clients.
func (r *Records) Begin(ctx context.Context) error {
	newest, err := r.Backend.Revision(ctx)
	if err != nil || newest > 0 {
		return err
	}
	return r.noteServed(ctx)
}

// Store returns the backend that converts records. It is a storage.HistoryReader if the wrapped backend is.
func (r *Records) Store() storage.Backend {
	if h, ok := r.Backend.(storage.HistoryReader); ok {
		return &historic{r, h}
	}
	return r
}

// kindOf returns the kind of the object that is stored under a key, or nil.
func (r *Records) kindOf(key string) *kind {
	of, _, ok := resource.ParseStorageKey(key)
	if !ok {
		return nil
	}
	return r.kinds[of]
}

// read returns a stored record with its object in the hub version. The error is a *storage.DamagedError.
func (r *Records) read(ctx context.Context, rec storage.Record) (storage.Record, error) {
	return r.readReporting(ctx, rec, nil)
}

// readReporting is read. If report is not nil, it adds the problems of the record to report.
func (r *Records) readReporting(ctx context.Context, rec storage.Record, report *loadReport) (storage.Record, error) {
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
	if read.hasUnshown && !k.hasUnshown.Load() {
		k.hasUnshown.Store(true)
	}
	if report != nil {
		report.note(ctx, k, key, object, read, err)
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

// stackOf returns the stack trace of a panic in a conversion, or "" if err is no such error.
func stackOf(err error) string {
	var conversion *resource.ConversionError
	if !errors.As(err, &conversion) {
		return ""
	}
	return string(conversion.Stack())
}

// write returns w with the record for its object. It fails if the present record cannot be read from the backend, or
// with the *meta.Status of kind.write.
func (r *Records) write(ctx context.Context, w storage.Write) (storage.Write, error) {
	k := r.kindOf(w.Key)
	if k == nil || w.Value == nil {
		return w, nil
	}
	var now storage.Record
	if k.hasUnshown.Load() && w.Expect != 0 { // otherwise no record with unshown data has been read, so w.Expect is not the revision of one
		var err error
		now, err = r.Backend.Get(ctx, w.Key, 0)
		var damaged *storage.DamagedError
		switch {
		case errors.As(err, &damaged): // nothing of the record can be kept
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return w, err
		case w.Check(now) != nil:
			return w, nil // the commit will report the conflict
		}
	}
	var err error
	w.Value, err = r.record(ctx, k, w.Key, w.Value, now.Value)
	return w, err
}

// record returns the record for an object in the hub version. now is the record that it replaces, or nil.
func (r *Records) record(ctx context.Context, k *kind, key string, object, now []byte) ([]byte, error) {
	record, asHub, err := k.write(ctx, object, now)
	if asHub != nil {
		r.log.Warn("storing object in the hub version because the storage version cannot represent it", "key", key, "error", asHub, "stack", stackOf(asHub))
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
	var report *loadReport
	if r.firstScan.CompareAndSwap(true, false) {
		report = &r.report
	}
	return rev, func(yield func(storage.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				rec, err = r.readReporting(ctx, rec, report)
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
	var refused error // of the first value that is not committed
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

// commitSequence commits records in one sequence, or one by one if they exceed storage.SequenceBytes, because a
// record may be larger than its object.
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

// Watch implements storage.Backend. Event.Damaged is set for a record that cannot be converted.
func (r *Records) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return r.events(ctx, r.Backend.Watch(ctx, prefix, after), true)
}

// Follow is like Watch for all keys, but leaves Event.Prev.Value nil, which saves the conversion of previous records.
func (r *Records) Follow(ctx context.Context, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return r.events(ctx, r.Backend.Watch(ctx, "", after), false)
}

// History implements storage.HistoryReader.
func (h *historic) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return h.events(ctx, h.HistoryReader.History(ctx, prefix, after, last), true)
}

// events converts the records of stored events. It sets Event.Prev.Value only if previous is true.
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
			ev.Prev, _ = r.read(ctx, ev.Prev) // after an error Value is nil, as for a damaged record
		} else {
			ev.Prev.Value = nil
		}
		var err error
		ev.Record, err = r.read(ctx, ev.Record)
		errors.As(err, &ev.Damaged)
	}
	return out
}
