package storagetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// broken is a store whose methods can be replaced.
type broken struct {
	*memstore.Store
	release  chan struct{} // closed when the test is over
	get      func(ctx context.Context, key string, at storage.Revision) (storage.Record, error)
	scan     func(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error)
	commit   func(ctx context.Context, ws ...storage.Write) (storage.Revision, error)
	revision func(ctx context.Context) (storage.Revision, error)
	watch    func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool)
	compact  func(ctx context.Context, before storage.Revision) error
	close    func() error
	stamp    func(ctx context.Context, name, value string) (string, error)
}

func (b *broken) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	if b.get != nil {
		return b.get(ctx, key, at)
	}
	return b.Store.Get(ctx, key, at)
}

func (b *broken) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	if b.scan != nil {
		return b.scan(ctx, prefix, start, at)
	}
	return b.Store.Scan(ctx, prefix, start, at)
}

func (b *broken) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if b.commit != nil {
		return b.commit(ctx, ws...)
	}
	return b.Store.Commit(ctx, ws...)
}

func (b *broken) Revision(ctx context.Context) (storage.Revision, error) {
	if b.revision != nil {
		return b.revision(ctx)
	}
	return b.Store.Revision(ctx)
}

func (b *broken) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	if b.watch != nil {
		return func(yield func([]storage.Event, error) bool) { b.watch(ctx, prefix, after, yield) }
	}
	return b.Store.Watch(ctx, prefix, after)
}

func (b *broken) Compact(ctx context.Context, before storage.Revision) error {
	if b.compact != nil {
		return b.compact(ctx, before)
	}
	return b.Store.Compact(ctx, before)
}

func (b *broken) Close() error {
	if b.close != nil {
		return b.close()
	}
	return b.Store.Close()
}

func (b *broken) Stamp(ctx context.Context, name, value string) (string, error) {
	if b.stamp != nil {
		return b.stamp(ctx, name, value)
	}
	return b.Store.Stamp(ctx, name, value)
}

// breakage is a violation of the contract, the case that must find it, and the expected message.
type breakage struct {
	name, found string
	of          sentence
	did         string // part of the message
	apply       func(b *broken)
}

func readBreakages() []breakage {
	// records returns a breakage that changes the records of a scan.
	records := func(change func(list []storage.Record) []storage.Record) func(b *broken) {
		return func(b *broken) {
			b.scan = func(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				revision, seq, err := b.Store.Scan(ctx, prefix, start, at)
				if err != nil {
					return revision, seq, err
				}
				var list []storage.Record
				for rec := range seq {
					list = append(list, rec)
				}
				return revision, func(yield func(storage.Record, error) bool) {
					for _, rec := range change(list) {
						if !yield(rec, nil) {
							return
						}
					}
				}, nil
			}
		}
	}
	got := func(change func(b *broken, key string, at storage.Revision, rec storage.Record, err error) (storage.Record, error)) func(b *broken) {
		return func(b *broken) {
			b.get = func(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
				rec, err := b.Store.Get(ctx, key, at)
				return change(b, key, at, rec, err)
			}
		}
	}
	return []breakage{
		{"a read is stale", "NoStaleRead", getReturns, `Get("a", 0) returned revision 1, and 2 was acknowledged before the call`, func(b *broken) {
			b.get = func(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
				if newest, _ := b.Store.Revision(ctx); at == 0 && newest > 1 {
					at = newest - 1
				}
				return b.Store.Get(ctx, key, at)
			}
		}},
		{"a read returns another record", "GetReturnsWhatWasCommitted", getReturns, `Get("a", 0) returned the record of "b"`,
			got(func(_ *broken, _ string, _ storage.Revision, rec storage.Record, err error) (storage.Record, error) {
				rec.Key = "b"
				return rec, err
			})},
		{"a read at a revision returns a newer record", "GetAtRevision", getReturns, `Get("a", 1) returned revision 6, which is later`, func(b *broken) {
			b.get = func(ctx context.Context, key string, _ storage.Revision) (storage.Record, error) {
				return b.Store.Get(ctx, key, 0)
			}
		}},
		{"a read returns another value", "GetAtRevision", getReturns, `Get("other", 1): expected "other" = "x" of revision 1, got "other" = "" of revision 1`,
			got(func(_ *broken, _ string, _ storage.Revision, rec storage.Record, err error) (storage.Record, error) {
				if err == nil {
					rec.Value = []byte{}
				}
				return rec, err
			})},
		{"a missing key is an empty record", "GetErrors", getFails, "", got(func(_ *broken, _ string, _ storage.Revision, rec storage.Record, err error) (storage.Record, error) {
			if errors.Is(err, storage.ErrNotFound) {
				return rec, nil
			}
			return rec, err
		})},
		{"a future revision is ErrNotFound", "GetErrors", getFails, "", got(func(_ *broken, _ string, _ storage.Revision, rec storage.Record, err error) (storage.Record, error) {
			if errors.Is(err, storage.ErrFuture) {
				err = storage.ErrNotFound
			}
			return rec, err
		})},
		{"a read at a compacted revision succeeds", "CompactedReadFails", compactOlder, "", got(func(b *broken, key string, _ storage.Revision, rec storage.Record, err error) (storage.Record, error) {
			if errors.Is(err, storage.ErrCompacted) {
				return b.Store.Get(context.Background(), key, 0)
			}
			return rec, err
		})},
		{"the buffer of a value is reused", "CompactKeepsNewest", getReturns, `returned has become "!"`, func(b *broken) {
			var buffer []byte
			b.get = func(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
				rec, err := b.Store.Get(ctx, key, at)
				if err != nil {
					return rec, err
				}
				for i := range buffer {
					buffer[i] = '!'
				}
				buffer = slices.Clone(rec.Value)
				rec.Value = buffer
				return rec, nil
			}
		}},
		{"a scan uses a shorter prefix", "ScanOrder", scanReturns, `Scan("/a", "", 0) yielded key "/"`, func(b *broken) {
			b.scan = func(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				return b.Store.Scan(ctx, prefix[:max(0, len(prefix)-1)], start, at)
			}
		}},
		{"a scan omits the last record", "GetReturnsWhatWasCommitted", getReturns, "", records(func(list []storage.Record) []storage.Record { return list[:max(0, len(list)-1)] })},
		{"a scan at a revision omits the last record", "WatchResumes", scanReturns, `Scan("", "", 2): expected "b/3" = "1" of revision 2 as record 2, got nothing`,
			records(func(list []storage.Record) []storage.Record { return list[:min(1, len(list))] })},
		{"a scan runs backwards", "ScanOrder", scanReturns, `Scan("", "", 0) yielded key "\xff" after "\xff\xff"`, records(func(list []storage.Record) []storage.Record {
			slices.Reverse(list)
			return list
		})},
		{"a scan omits the key start", "ScanStart", scanStarts, "", func(b *broken) {
			b.scan = func(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				if start != "" {
					start += "\x00"
				}
				return b.Store.Scan(ctx, prefix, start, at)
			}
		}},
		{"start is ignored", "ScanStart", scanStarts, `Scan("p/", "p/b", 0) yielded key "p/a"`, func(b *broken) {
			b.scan = func(ctx context.Context, prefix, _ string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				return b.Store.Scan(ctx, prefix, "", at)
			}
		}},
		{"a scan shows later commits", "ScanIsOneRevision", scanShows, `shows revision 50, and yielded "k/49" of revision`, func(b *broken) {
			b.scan = func(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				revision, seq, err := b.Store.Scan(ctx, prefix, start, at)
				return revision, func(yield func(storage.Record, error) bool) {
					for rec := range seq {
						if now, err := b.Store.Get(ctx, rec.Key, 0); err == nil && !yield(now, nil) {
							return
						}
					}
				}, err
			}
		}},
		{"a scan is stale", "NoStaleRead", scanReturns, `Scan("a", "", 0) shows revision`, func(b *broken) {
			b.scan = func(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				newest, _ := b.Store.Revision(ctx)
				return b.Store.Scan(ctx, prefix, start, newest-1)
			}
		}},
		{"Revision is stale", "RevisionsIncrease", revisionNewest, "was acknowledged before the call", func(b *broken) {
			b.revision = func(ctx context.Context) (storage.Revision, error) {
				newest, err := b.Store.Revision(ctx)
				return max(newest-1, 0), err
			}
		}},
		{"concurrent calls of Revision are stale", "Linearizable", revisionNewest, "", func(b *broken) {
			b.revision = func(ctx context.Context) (storage.Revision, error) {
				newest, err := b.Store.Revision(ctx)
				return max(newest-3, 0), err
			}
		}},
	}
}

func writeBreakages() []breakage {
	commit := func(f func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error)) func(b *broken) {
		return func(b *broken) {
			b.commit = func(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
				return f(b, ctx, slices.Clone(ws))
			}
		}
	}
	unconditional := func(ws []storage.Write) []storage.Write {
		ws = slices.Clone(ws)
		for i := range ws {
			ws[i].Expect = storage.AnyRevision
		}
		return ws
	}
	unguarded := func(ws []storage.Write) []storage.Write {
		return slices.DeleteFunc(slices.Clone(ws), func(w storage.Write) bool { return w.Guard })
	}
	return []breakage{
		{"a comparison is skipped", "CommitCompares", commitChecks, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			return b.Store.Commit(ctx, unconditional(ws)...)
		})},
		{"a comparison is skipped in concurrent commits", "ConcurrentIncrement", commitChecks, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			return b.Store.Commit(ctx, unconditional(ws)...)
		})},
		{"a conflict lacks the current record", "CommitCompares", commitChecks, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			revision, err := b.Store.Commit(ctx, ws...)
			var conflict *storage.ConflictError
			if errors.As(err, &conflict) {
				err = &storage.ConflictError{Key: conflict.Key, Expect: conflict.Expect}
			}
			return revision, err
		})},
		{"a conflict is another error", "CommitCompares", commitChecks, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			revision, err := b.Store.Commit(ctx, ws...)
			if err != nil {
				err = errors.New("conflict")
			}
			return revision, err
		})},
		{"a commit is applied partially", "CommitTogetherCompares", commitChecks, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (revision storage.Revision, err error) {
			if revision, err = b.Store.Commit(ctx, ws...); err != nil && len(ws) > 1 {
				_, _ = b.Store.Commit(ctx, ws[0])
			}
			return revision, err
		})},
		{"writes get separate revisions", "CommitTogetherCompares", commitApplies, `Commit returned revision 2, and "b" has 1`, commit(func(b *broken, ctx context.Context, ws []storage.Write) (revision storage.Revision, err error) {
			for _, w := range ws {
				if revision, err = b.Store.Commit(ctx, w); err != nil {
					return 0, err
				}
			}
			return revision, nil
		})},
		{"a revision is returned twice", "RevisionsIncrease", commitApplies, "was shown before the call", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			revision, err := b.Store.Commit(ctx, ws...)
			return max(1, revision-1), err
		})},
		{"Revision runs ahead of commits", "RevisionsIncrease", commitApplies, "was shown before the call", func(b *broken) {
			b.revision = func(ctx context.Context) (storage.Revision, error) {
				newest, err := b.Store.Revision(ctx)
				return newest + 1, err
			}
		}},
		{"a write is applied twice", "RetriedWrite", commitApplies, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			if revision, err := b.Store.Commit(ctx, ws...); err != nil || ws[0].Value == nil {
				return revision, err
			}
			return b.Store.Commit(ctx, unconditional(ws)...)
		})},
		{"two writes of one key are accepted", "CommitTogetherRefuses", commitRefuses, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			ws = slices.CompactFunc(ws, func(x, y storage.Write) bool { return x.Key == y.Key })
			return b.Store.Commit(ctx, ws...)
		})},
		{"a guard is skipped", "CommitGuards", guardWrites, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			return b.Store.Commit(ctx, unguarded(ws)...)
		})},
		{"a guard is skipped in concurrent commits", "CommitGuardsConcurrent", commitChecks, "2 of two commits", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			return b.Store.Commit(ctx, unguarded(ws)...)
		})},
		{"a commit of guards only is accepted", "CommitGuardsRefuses", commitRefuses, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			if len(unguarded(ws)) == 0 {
				newest, err := b.Store.Revision(ctx)
				return newest + 1, err
			}
			return b.Store.Commit(ctx, ws...)
		})},
		{"a guard writes", "CommitGuards", guardWrites, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			for i, w := range ws {
				if w.Guard && w.Expect != 0 {
					rec, err := b.Get(ctx, w.Key, 0)
					if err != nil {
						return 0, err
					}
					ws[i].Guard, ws[i].Value = false, rec.Value
				}
			}
			return b.Store.Commit(ctx, ws...)
		})},
		{"deleting a missing key succeeds", "CommitDeletes", commitMissing, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			revision, err := b.Store.Commit(ctx, ws...)
			if errors.Is(err, storage.ErrNotFound) {
				newest, err := b.Store.Revision(ctx)
				return newest + 1, err
			}
			return revision, err
		})},
		{"a delete keeps an empty record", "CommitDeletes", commitMissing, "", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			for i := range ws {
				if ws[i].Value == nil {
					ws[i].Value = []byte{}
				}
			}
			return b.Store.Commit(ctx, ws...)
		})},
		{"a commit of the maximal size is refused", "CommitTogetherBounds", commitTakes, "write is too large", commit(func(b *broken, ctx context.Context, ws []storage.Write) (storage.Revision, error) {
			if len(ws) > 100 {
				return 0, storage.ErrTooLarge
			}
			return b.Store.Commit(ctx, ws...)
		})},
		{"an ended context is ignored", "CancelledContext", allMethods, "", commit(func(b *broken, _ context.Context, ws []storage.Write) (storage.Revision, error) {
			return b.Store.Commit(context.Background(), ws...)
		})},
		{"a stamp is replaced", "StampKeepsFirst", stampKeeps, "", func(b *broken) {
			b.stamp = func(_ context.Context, _, value string) (string, error) { return value, nil }
		}},
		{"compaction is ignored", "CompactForgets", compactOlder, "", func(b *broken) { b.compact = func(context.Context, storage.Revision) error { return nil } }},
		{"compaction drops current records", "CompactKeepsNewest", compactOlder, "", func(b *broken) {
			compacted := false
			b.compact = func(ctx context.Context, before storage.Revision) error {
				compacted = true
				return b.Store.Compact(ctx, before)
			}
			b.get = func(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
				if compacted {
					return storage.Record{}, storage.ErrNotFound
				}
				return b.Store.Get(ctx, key, at)
			}
		}},
		{"compacting a future revision succeeds", "CompactArguments", compactTakes, "", func(b *broken) {
			b.compact = func(ctx context.Context, before storage.Revision) error {
				newest, _ := b.Store.Revision(ctx)
				return b.Store.Compact(ctx, min(before, newest))
			}
		}},
		{"calls succeed after Close", "CloseFailsCalls", allMethods, "", func(b *broken) { b.close = func() error { return nil } }},
		{"a second Close fails", "CloseFailsCalls", closeTwice, "Close() = storage is closed", func(b *broken) {
			closed := false
			b.close = func() error {
				if closed {
					return storage.ErrClosed
				}
				closed = true
				return b.Store.Close()
			}
		}},
	}
}

func watchBreakages() []breakage {
	// watch returns a breakage that changes the commits of a watch, depending on the previous ones.
	watch := func(change func(n int, commit []storage.Event) [][]storage.Event) func(b *broken) {
		return func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				n := 0
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					if err != nil {
						yield(nil, err)
						return
					}
					for _, c := range change(n, commit) {
						if !yield(c, nil) {
							return
						}
					}
					n++
				}
			}
		}
	}
	return []breakage{
		{"a watch loses an event", "WatchPrefix", watchYields, `Watch("a/", 0) delivered revision 7 without 6; before it it delivered [2 3]`,
			watch(func(_ int, commit []storage.Event) [][]storage.Event {
				if commit[0].Deleted() {
					return nil
				}
				return [][]storage.Event{commit}
			})},
		{"a watch stalls", "WatchPrefix", watchYields, `Watch("a/", 0) did not deliver revision 6 within 30s; it delivered [2 3]`,
			watch(func(n int, commit []storage.Event) [][]storage.Event {
				if n >= 2 {
					return nil
				}
				return [][]storage.Event{commit}
			})},
		{"a watch yields twice", "WatchResumes", watchYields, "delivered revision 2 after 2", watch(func(_ int, commit []storage.Event) [][]storage.Event { return [][]storage.Event{commit, commit} })},
		{"a watch is out of order", "WatchStops", watchYields, "without 1; before it it delivered nothing", func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				var held []storage.Event
				for commit := range b.Store.Watch(ctx, prefix, after) {
					if held == nil {
						held = commit
						continue
					}
					if !yield(commit, nil) || !yield(held, nil) {
						return
					}
					held = nil
				}
			}
		}},
		{"a watch omits the replaced record", "WatchResumes", watchReplaced, `replaced "`, watch(func(_ int, commit []storage.Event) [][]storage.Event {
			commit = slices.Clone(commit)
			for i := range commit {
				commit[i].Prev = storage.Record{}
			}
			return [][]storage.Event{commit}
		})},
		{"a watch shows another value", "WatchResumes", watchYields, `: expected "b/3" = "1" of revision 2 as event 1, got "b/3" = "?" of revision 2`,
			watch(func(_ int, commit []storage.Event) [][]storage.Event {
				commit = slices.Clone(commit)
				commit[0].Value = []byte("?")
				return [][]storage.Event{commit}
			})},
		{"a commit comes in parts", "CommitTogether", watchYields, "delivered revision", watch(func(_ int, commit []storage.Event) (parts [][]storage.Event) {
			for i := range commit {
				parts = append(parts, commit[i:i+1])
			}
			return parts
		})},
		{"a commit is out of order", "CommitTogether", watchEvents, `delivered key "k/`, watch(func(_ int, commit []storage.Event) [][]storage.Event {
			commit = slices.Clone(commit)
			slices.Reverse(commit)
			return [][]storage.Event{commit}
		})},
		{"the slice of events is reused", "WatchStops", watchEvents, `that Watch("", 0) delivered has become "`, func(b *broken) {
			var mu sync.Mutex
			var buffer []byte
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				mu.Lock()
				defer mu.Unlock()
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					commit = slices.Clone(commit)
					for i := range buffer {
						buffer[i] = '!'
					}
					buffer = slices.Clone(commit[0].Value)
					commit[0].Value = buffer
					if !yield(commit, err) {
						return
					}
				}
			}
		}},
		{"a watch yields keys outside its prefix", "WatchPrefix", watchYields, `Watch("a/", 0) delivered key "a"`, func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				b.Store.Watch(ctx, prefix[:max(0, len(prefix)-1)], after)(yield)
			}
		}},
		{"a watch begins too early", "WatchResumes", watchYields, "delivered revision 1", func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				b.Store.Watch(ctx, prefix, max(0, after-1))(yield)
			}
		}},
		{"a watch after a future revision yields older commits", "WatchInTheFuture", watchInFuture, `Watch("a", 6) delivered revision 2`, func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				if newest, _ := b.Store.Revision(ctx); newest < after {
					after = newest
				}
				b.Store.Watch(ctx, prefix, after)(yield)
			}
		}},
		{"a watch after a compacted revision skips commits", "CompactForgets", watchForgets, `Watch("k/", 1) delivered revision 21, and Compact(16) was before it`, func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					if errors.Is(err, storage.ErrCompacted) {
						newest, _ := b.Store.Revision(ctx)
						b.Store.Watch(ctx, prefix, newest-5)(yield)
						return
					}
					if !yield(commit, err) {
						return
					}
				}
			}
		}},
		{"a watch goes on after its error", "CompactForgets", watchForgets, `Watch("k/", 1) went on after it yielded: `, func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					if !yield(commit, err) || err != nil && !yield(nil, err) {
						return
					}
				}
			}
		}},
		{"a watch ends with the context's error", "WatchCancelled", watchYields, "ended with an error when its context did: context canceled", func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					if !yield(commit, err) {
						return
					}
				}
				yield(nil, ctx.Err())
			}
		}},
		{"a watch does not end with its context", "WatchCancelled", watchYields, "did not end within 30s after its context", func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				b.Store.Watch(ctx, prefix, after)(yield)
				<-b.release
			}
		}},
		{"a watch goes on without its consumer", "WatchStops", watchYields, "went on after its consumer had stopped", func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					if !yield(commit, err) {
						yield(commit, err)
						return
					}
				}
			}
		}},
		{"a watch does not end with the store", "CloseEndsWatches", closeEnds, "did not end within 30s after Close", func(b *broken) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					if err != nil || !yield(commit, nil) {
						break
					}
				}
				<-b.release
			}
		}},
		{"a slow consumer delays commits", "WatchSlowConsumer", allMethods, `Commit of ["a"] did not return within 30s`, func(b *broken) {
			busy := make(chan struct{}, 1)
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range b.Store.Watch(ctx, prefix, after) {
					busy <- struct{}{}
					goOn := yield(commit, err)
					<-busy
					if !goOn {
						return
					}
				}
			}
			b.commit = func(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
				busy <- struct{}{}
				defer func() { <-busy }()
				return b.Store.Commit(ctx, ws...)
			}
		}},
	}
}

// blockBreakages are stores with a method that never returns.
func noWatch(b *broken) {
	b.watch = func(_ context.Context, _ string, _ storage.Revision, yield func([]storage.Event, error) bool) {
		yield(nil, errors.New("no watch today"))
	}
}

func blockBreakages() []breakage {
	return []breakage{
		{"Get blocks", "GetAtRevision", allMethods, `Get("a", 1) did not return within 30s, nor when its context ended then`, func(b *broken) {
			b.get = func(context.Context, string, storage.Revision) (storage.Record, error) {
				<-b.release
				return storage.Record{}, nil
			}
		}},
		{"Get waits for its context", "GetAtRevision", allMethods, `Get("a", 1) did not return within 30s, but when its context ended then`, func(b *broken) {
			b.get = func(ctx context.Context, _ string, _ storage.Revision) (storage.Record, error) {
				<-ctx.Done()
				return storage.Record{}, ctx.Err()
			}
		}},
		{"Get panics", "GetAtRevision", allMethods, `Get("a", 1) panicked: oh`, func(b *broken) {
			b.get = func(context.Context, string, storage.Revision) (storage.Record, error) { panic("oh") }
		}},
		{"Scan blocks", "ScanOrder", allMethods, `Scan("", "", 0) did not return within 30s`, func(b *broken) {
			b.scan = func(context.Context, string, string, storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				<-b.release
				return 0, nil, storage.ErrClosed
			}
		}},
		{"a scan blocks", "ScanOrder", allMethods, `Scan("", "", 0) did not go on within 30s after key "/"`, func(b *broken) {
			b.scan = func(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
				revision, seq, err := b.Store.Scan(ctx, prefix, start, at)
				return revision, func(yield func(storage.Record, error) bool) {
					n := 0
					for rec, err := range seq {
						if n++; n == 3 {
							<-b.release
						}
						if !yield(rec, err) {
							return
						}
					}
				}, err
			}
		}},
		{"Commit blocks", "CommitCompares", allMethods, `Commit of ["a"] did not return within 30s`, func(b *broken) {
			b.commit = func(context.Context, ...storage.Write) (storage.Revision, error) {
				<-b.release
				return 0, storage.ErrClosed
			}
		}},
		{"Revision blocks", "RevisionsIncrease", allMethods, "Revision() did not return within 30s", func(b *broken) {
			b.revision = func(context.Context) (storage.Revision, error) {
				<-b.release
				return 0, storage.ErrClosed
			}
		}},
		{"Compact blocks", "CompactKeepsNewest", allMethods, "Compact(31) did not return within 30s", func(b *broken) {
			b.compact = func(context.Context, storage.Revision) error {
				<-b.release
				return nil
			}
		}},
		{"watches fail", "CloseEndsWatches", closeEnds, "no watch today", noWatch},
		{"a slow watch fails", "WatchSlowConsumer", watchBehind, "no watch today", noWatch},
		{"commits fail during Close", "CloseWhileBusy", closeEnds, "no commit today", func(b *broken) {
			b.commit = func(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
				if n, err := b.Store.Revision(ctx); n > 0 || err != nil {
					return 0, errors.New("no commit today")
				}
				return b.Store.Commit(ctx, ws...)
			}
		}},
		{"a watch blocks", "WatchThenRead", watchYields, `Watch("", 0) did not deliver revision 1 within 30s; it delivered nothing`, func(b *broken) {
			b.watch = func(context.Context, string, storage.Revision, func([]storage.Event, error) bool) { <-b.release }
		}},
		{"Close blocks", "ScanStops", allMethods, "Close() did not return within 30s", func(b *broken) {
			b.close = func() error {
				<-b.release
				return nil
			}
		}},
		{"Stamp blocks", "StampKeepsFirst", stampKeeps, "the case has not ended within 2m0s", func(b *broken) {
			b.stamp = func(context.Context, string, string) (string, error) {
				<-b.release
				return "", nil
			}
		}},
	}
}

// TestBreakagesAreReported checks that the case for each violation finds it and reports the sentence of the contract
// and the first difference. It runs with the fake clock of a synctest bubble.
func TestBreakagesAreReported(t *testing.T) {
	all := slices.Concat(readBreakages(), writeBreakages(), watchBreakages(), blockBreakages())
	require.Greater(t, len(all), 50)
	list := rules()
	for _, c := range all {
		i := slices.IndexFunc(list, func(r rule) bool { return r.name == c.found })
		require.GreaterOrEqual(t, i, 0, c.found)
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &broken{Store: memstore.New(memstore.Options{}), release: make(chan struct{})}
				c.apply(b)
				err := list[i].examine(&hang{}, caseTime, func(v *verdict) {
					s, end := newStore(v, b)
					defer end()
					list[i].test(s)
				})
				close(b.release)
				require.NoError(t, b.Store.Close())
				require.Error(t, err)
				assert.Equal(t, c.of, breachIn(err).of, err)
				assert.ErrorContains(t, err, c.did)
				assert.ErrorContains(t, err, "the store breaks the contract of storage.")
			})
		})
	}
}
