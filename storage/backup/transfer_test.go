package backup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kinds are the kinds of stores that the tests copy between.
var kinds = []string{"memory", "badger"}

func open(t *testing.T, kind string) storage.Backend {
	t.Helper()
	var b storage.Backend = memstore.New(memstore.Options{Retain: -1, MaxEvents: -1, MaxBytes: -1})
	if kind == "badger" {
		store, err := badgerstore.Open(badgerstore.Options{Dir: t.TempDir(), Retain: -1})
		require.NoError(t, err)
		b = store
	}
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// own is a store that chooses its revisions itself: it implements only Backend.
type own struct{ storage.Backend }

func put(t *testing.T, b storage.Backend, key, value string) storage.Revision {
	t.Helper()
	at, err := b.Commit(t.Context(), storage.Write{Key: key, Value: []byte(value), Expect: storage.AnyRevision})
	require.NoError(t, err)
	return at
}

// busy makes commits with one or several writes (creates, updates and deletions, also of large values) until done is
// closed. It returns the acknowledged commits by revision.
type busy struct {
	mu    sync.Mutex
	acked map[storage.Revision][]storage.Write
	err   error
	stop  chan struct{}
	wg    sync.WaitGroup
}

func work(ctx context.Context, b storage.Backend, writers int) *busy {
	w := &busy{acked: map[storage.Revision][]storage.Write{}, stop: make(chan struct{})}
	for i := range writers {
		w.wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for n := 0; ; n++ {
				select {
				case <-w.stop:
					return
				default:
				}
				w.write(ctx, b, commit(r, i, n))
				time.Sleep(time.Millisecond) // a store in memory would leave no time to anybody else
			}
		})
	}
	return w
}

// commit returns random writes of the keys of one writer. Keys with an even number exist.
func commit(r *rand.Rand, writer, n int) []storage.Write {
	key := fmt.Sprintf("w%02d/%d", writer, r.IntN(20))
	value := []byte(fmt.Sprint(writer, " ", n, strings.Repeat("x", r.IntN(300))))
	switch {
	case n%97 == 96:
		value = bytes.Repeat([]byte("large"), 60_000)
	case n%5 == 0:
		return []storage.Write{{Key: key, Value: value, Expect: storage.AnyRevision}, {Key: key + "/more", Value: value, Expect: storage.AnyRevision}}
	case n%3 == 0:
		return []storage.Write{{Key: key, Expect: storage.AnyRevision}}
	}
	return []storage.Write{{Key: key, Value: value, Expect: storage.AnyRevision}}
}

func (w *busy) write(ctx context.Context, b storage.Backend, ws []storage.Write) {
	at, err := b.Commit(ctx, ws...)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.acked[at] = ws
	case !errors.Is(err, storage.ErrNotFound):
		w.err = err
	}
}

func (w *busy) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

func (w *busy) end(t *testing.T) {
	t.Helper()
	close(w.stop)
	w.wg.Wait()
	require.NoError(t, w.err)
}

// reach waits until the given number of commits are acknowledged.
func (w *busy) reach(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return w.count() >= n }, time.Minute, time.Millisecond)
}

// state returns all records at a revision.
func state(t *testing.T, b storage.Backend, at storage.Revision) map[string]storage.Record {
	t.Helper()
	_, records, err := b.Scan(t.Context(), "", "", at)
	require.NoError(t, err)
	all := map[string]storage.Record{}
	for rec, err := range records {
		require.NoError(t, err)
		all[rec.Key] = rec
	}
	return all
}

// commits returns the commits of a watch up to a revision.
func commits(t *testing.T, b storage.Backend, after, last storage.Revision) (list [][]storage.Event) {
	t.Helper()
	if after >= last {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for events, err := range b.Watch(ctx, "", after) {
		require.NoError(t, err)
		list = append(list, events)
		if events[0].Revision >= last {
			return list
		}
	}
	require.Fail(t, "the watch ended")
	return nil
}

// requireSame compares two stores: their records at a revision and at the end, and all commits in between.
func requireSame(t *testing.T, want, got storage.Backend, oldest, last storage.Revision) {
	t.Helper()
	newest, err := got.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, newest)
	if oldest > 0 {
		require.Equal(t, state(t, want, oldest), state(t, got, oldest))
	}
	require.Equal(t, state(t, want, last), state(t, got, last))
	require.Equal(t, commits(t, want, oldest, last), commits(t, got, oldest, last))
}

// requireAcked requires that exactly the acknowledged commits up to a revision exist, with their revisions.
func requireAcked(t *testing.T, w *busy, got storage.Backend, oldest, last storage.Revision) {
	t.Helper()
	found := 0
	for _, events := range commits(t, got, oldest, last) {
		ws := w.acked[events[0].Revision]
		require.Len(t, events, len(ws), "revision %d", events[0].Revision)
		for i, e := range events {
			require.Equal(t, ws[i].Key, e.Key)
			require.Equal(t, ws[i].Value, e.Value)
		}
		found++
	}
	for at := range w.acked {
		if at <= oldest || at > last {
			found++
		}
	}
	require.Equal(t, len(w.acked), found)
}

func TestCopy(t *testing.T) {
	for _, from := range kinds {
		for _, to := range kinds {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				a, b := open(t, from), open(t, to)
				_, err := a.(storage.Stamper).Stamp(t.Context(), "names", "x")
				require.NoError(t, err)
				w := work(t.Context(), a, 4)
				w.reach(t, 400)
				var phases []backup.Phase
				report, err := backup.Copy(t.Context(), a, b, backup.Options{
					Cutover:  func(context.Context) error { w.end(t); return nil },
					Progress: func(p backup.Progress) { phases = append(phases, p.Phase) },
				})
				require.NoError(t, err)
				newest, err := a.Revision(t.Context())
				require.NoError(t, err)
				require.Equal(t, newest, report.Revision)
				require.Equal(t, newest, report.DestinationRevision)
				require.True(t, report.RevisionsKept)
				require.LessOrEqual(t, report.Oldest, storage.Revision(1), "the whole history is there")
				require.Contains(t, phases, backup.Copying)
				require.Equal(t, backup.Verifying, phases[len(phases)-1])
				requireSame(t, a, b, report.Oldest, report.Revision)
				requireAcked(t, w, b, report.Oldest, report.Revision)
				stamps, err := b.(storage.StampReader).Stamps(t.Context())
				require.NoError(t, err)
				require.Equal(t, map[string]string{"names": "x"}, stamps)
				require.Greater(t, put(t, b, "after", "x"), report.Revision)
			})
		}
	}
}

// TestCopyAfterCompaction checks that compacted history of the source stays compacted in the destination, so that no
// client resumes where commits are missing.
func TestCopyAfterCompaction(t *testing.T) {
	for _, kind := range kinds {
		a, b := open(t, kind), open(t, kind)
		for i := range 100 {
			put(t, a, fmt.Sprint("k", i%10), fmt.Sprint(i))
		}
		require.NoError(t, a.Compact(t.Context(), 60))
		report, err := backup.Copy(t.Context(), a, b, backup.Options{})
		require.NoError(t, err)
		require.Equal(t, storage.Revision(60), report.Oldest)
		requireSame(t, a, b, 60, 100)
		for _, err := range b.Watch(t.Context(), "", 59) {
			require.ErrorIs(t, err, storage.ErrCompacted)
		}
	}
}

// TestSourceCompactedDuringCopy checks that if the source is compacted while it is read, the destination has all
// records or none.
func TestSourceCompactedDuringCopy(t *testing.T) {
	for _, kind := range kinds {
		a := open(t, kind)
		w := work(t.Context(), a, 4)
		restored := map[*backup.Report]storage.Backend{}
		for round := 1; round <= 10 || len(restored) == 0 && round < 50; round++ {
			w.reach(t, 100*round)
			var compacting sync.WaitGroup
			done := make(chan struct{})
			compacting.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(time.Duration(round*round) * time.Millisecond):
						if newest, err := a.Revision(t.Context()); err == nil {
							_ = a.Compact(t.Context(), newest)
						}
					}
				}
			})
			var file bytes.Buffer
			report, err := backup.Backup(t.Context(), a, &file, backup.Options{})
			close(done)
			compacting.Wait()
			if err != nil {
				require.ErrorIs(t, err, storage.ErrCompacted)
				continue
			}
			restored[report] = open(t, "memory")
			_, err = backup.Restore(t.Context(), restored[report], backup.Options{}, &file)
			require.NoError(t, err)
		}
		w.end(t)
		require.NotEmpty(t, restored)
		for report, to := range restored {
			requireAcked(t, w, to, report.Oldest, report.Revision)
		}
		t.Logf("%s: %d were whole", kind, len(restored))
	}
}

func TestCopyOfNothing(t *testing.T) {
	for _, to := range []storage.Backend{open(t, "memory"), open(t, "badger"), own{open(t, "memory")}} {
		report, err := backup.Copy(t.Context(), open(t, "badger"), to, backup.Options{})
		require.NoError(t, err)
		require.Zero(t, report.Keys)
		require.Positive(t, put(t, to, "a", "b"))
	}
}

func TestCopyRefuses(t *testing.T) {
	full := open(t, "memory")
	put(t, full, "a", "b")
	for _, to := range []storage.Backend{full, own{full}} {
		_, err := backup.Copy(t.Context(), open(t, "badger"), to, backup.Options{})
		require.ErrorIs(t, err, storage.ErrNotEmpty)
	}
	stamped := open(t, "memory").(*memstore.Store)
	for i, b := range []storage.Stamper{full.(storage.Stamper), stamped} {
		_, err := b.Stamp(t.Context(), "names", fmt.Sprint(i))
		require.NoError(t, err)
	}
	_, err := backup.Copy(t.Context(), full, stamped, backup.Options{})
	require.ErrorContains(t, err, `stamp "names" has the value "1" instead of "0"`)
	stop := errors.New("the writers go on")
	for i := range 10 {
		put(t, full, fmt.Sprint("large", i), strings.Repeat("x", 500<<10))
	}
	dir := t.TempDir()
	to, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.NoError(t, err)
	_, err = backup.Copy(t.Context(), full, to, backup.Options{Cutover: func(context.Context) error { return stop }})
	require.ErrorIs(t, err, stop)
	_, err = to.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")})
	require.ErrorIs(t, err, storage.ErrStopped, "it has a part of what it should have")
	require.NoError(t, to.Close())
	_, err = badgerstore.Open(badgerstore.Options{Dir: dir})
	require.ErrorContains(t, err, "incomplete")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = backup.Copy(ctx, full, open(t, "memory"), backup.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestCopyToOwnRevisions checks that a store that chooses its revisions gets all records, each with a larger revision
// than in the source, and that old watches do not continue. An interrupted copy cannot be a source, and can be started
// again.
func TestCopyToOwnRevisions(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, b := open(t, kind), own{open(t, kind)}
			w := work(t.Context(), a, 4)
			w.reach(t, 400)
			stop := errors.New("not yet")
			_, err := backup.Copy(t.Context(), a, b, backup.Options{Cutover: func(context.Context) error { return stop }})
			require.ErrorIs(t, err, stop)
			_, err = b.Get(t.Context(), storage.IncompleteKey, 0)
			require.NoError(t, err)
			_, err = backup.Copy(t.Context(), b, open(t, "memory"), backup.Options{})
			require.ErrorContains(t, err, "never finished")
			_, err = backup.Backup(t.Context(), b, io.Discard, backup.Options{})
			require.ErrorContains(t, err, "never finished")

			report, err := backup.Copy(t.Context(), a, b, backup.Options{Cutover: func(context.Context) error { w.end(t); return nil }})
			require.NoError(t, err)
			require.False(t, report.RevisionsKept)
			require.Greater(t, report.DestinationRevision, report.Revision)
			want, got := state(t, a, 0), state(t, b, 0)
			require.Len(t, got, len(want))
			for key, rec := range want {
				require.Equal(t, rec.Value, got[key].Value)
				require.Greater(t, got[key].Revision, rec.Revision)
			}
			for _, err := range b.Watch(t.Context(), "", report.Revision) {
				require.ErrorIs(t, err, storage.ErrCompacted)
			}
		})
	}
}

// TestCopyToStoreWithoutCompact checks that Copy fails before it copies anything if the destination cannot be
// compacted.
func TestCopyToStoreWithoutCompact(t *testing.T) {
	from, denied := open(t, "memory"), errors.New("permission denied")
	for range 10 {
		put(t, from, "a", "b")
	}
	to := own{faultinject.Wrap(open(t, "memory"), func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCompact {
			return faultinject.Fault{Err: denied}
		}
		return faultinject.Fault{}
	})}
	_, err := backup.Copy(t.Context(), from, to, backup.Options{})
	require.ErrorIs(t, err, denied)
	at, err := to.Revision(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, at, "the mark alone is there")
}

// TestCopyOfACopy checks that the mark and the scratch keys in the history of a copied store are not copied to the next
// one.
func TestCopyOfACopy(t *testing.T) {
	a := open(t, "memory")
	for i := range 50 {
		put(t, a, fmt.Sprint("k", i), "x")
	}
	stores := []storage.Backend{a, own{open(t, "memory")}, own{open(t, "memory")}, open(t, "badger")}
	for i, to := range stores[1:] {
		_, err := backup.Copy(t.Context(), stores[i], to, backup.Options{})
		require.NoError(t, err)
		require.Len(t, state(t, to, 0), 50)
	}
}

// TestDamagedRecords checks that damaged records make a copy fail, or are skipped and reported.
func TestDamagedRecords(t *testing.T) {
	a := faultinject.Wrap(open(t, "memory"), nil)
	for i := range 10 {
		put(t, a, fmt.Sprint("k", i), "x")
	}
	a.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpRecord && c.Key == "k7" {
			return faultinject.Fault{Err: &storage.DamagedError{Key: "k7", Revision: 8, Err: errors.New("checksum")}}
		}
		return faultinject.Fault{}
	})
	var damaged *storage.DamagedError
	_, err := backup.Copy(t.Context(), a, open(t, "memory"), backup.Options{})
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, "k7", damaged.Key)
	_, err = backup.Backup(t.Context(), a, io.Discard, backup.Options{})
	require.ErrorAs(t, err, &damaged)
	to := open(t, "badger")
	report, err := backup.Copy(t.Context(), a, to, backup.Options{SkipDamaged: true})
	require.NoError(t, err)
	require.Len(t, report.Damaged, 1)
	require.Equal(t, "k7", report.Damaged[0].Key)
	require.Len(t, state(t, to, 0), 9)
	require.Equal(t, report.Revision, report.Oldest, "the history is left out, too")
}

// TestScanContinuesAfterCompaction checks that a scan continues at a newer revision if its own is compacted.
func TestScanContinuesAfterCompaction(t *testing.T) {
	a := faultinject.Wrap(open(t, "badger"), nil)
	for i := 0; i < 6_000; i += 100 {
		var ws []storage.Write
		for j := range 100 {
			ws = append(ws, storage.Write{Key: fmt.Sprintf("k%05d", i+j), Value: bytes.Repeat([]byte("x"), 100)})
		}
		_, err := a.Commit(t.Context(), ws...)
		require.NoError(t, err)
	}
	records := 0
	a.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpRecord {
			if records++; records%1_500 == 0 {
				return faultinject.Fault{Err: storage.ErrCompacted}
			}
		}
		return faultinject.Fault{}
	})
	var file bytes.Buffer
	report, err := backup.Backup(t.Context(), a, &file, backup.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 6_000, report.Keys)
	to := open(t, "memory")
	_, err = backup.Restore(t.Context(), to, backup.Options{}, &file)
	require.NoError(t, err)
	a.SetPlan(nil)
	requireSame(t, a, to, report.Oldest, report.Revision)
}

// TestRestoreHasAcknowledgedCommits checks that a restore of three files has exactly the commits of 16
// writers that were acknowledged up to the revision of the last file.
func TestRestoreHasAcknowledgedCommits(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := open(t, kind)
			w := work(t.Context(), a, 16)
			var files [3]bytes.Buffer
			var last *backup.Report
			since := backup.Position{}
			for i := range files {
				w.reach(t, 300*(i+1))
				var err error
				last, err = backup.Backup(t.Context(), a, &files[i], backup.Options{Base: since})
				require.NoError(t, err)
				since = last.Position
				found, err := backup.Verify(t.Context(), backup.Options{}, bytes.NewReader(files[i].Bytes()))
				require.NoError(t, err)
				require.Equal(t, last.Position, found.Position)
			}
			w.end(t)
			restore := func(to storage.Backend, which ...int) error {
				var readers []io.Reader
				for _, i := range which {
					readers = append(readers, bytes.NewReader(files[i].Bytes()))
				}
				_, err := backup.Restore(t.Context(), to, backup.Options{}, readers...)
				return err
			}
			for _, to := range kinds {
				b := open(t, to)
				require.NoError(t, restore(b, 0, 1, 2))
				requireSame(t, a, b, last.Oldest, last.Revision)
			}
			plain := own{open(t, "memory")}
			require.NoError(t, restore(plain, 0, 1, 2))
			require.Len(t, state(t, plain, 0), len(state(t, a, last.Revision)))
			for _, wrong := range [][]int{{1}, {0, 2}, {0, 2, 1}, {1, 2}, {0, 0}, {1, 0}} {
				b := open(t, "memory")
				require.ErrorIs(t, restore(b, wrong...), backup.ErrWrongBase, "%v", wrong)
				require.Empty(t, state(t, b, 0))
			}
		})
	}
}

// TestDamagedFiles checks that truncated and modified files are rejected and none of their records becomes visible.
func TestDamagedFiles(t *testing.T) {
	a := open(t, "memory")
	for i := range 12 {
		put(t, a, fmt.Sprint("k", i), strings.Repeat(fmt.Sprint(i%10), 100<<10))
	}
	var file bytes.Buffer
	_, err := backup.Backup(t.Context(), a, &file, backup.Options{})
	require.NoError(t, err)
	whole := file.Bytes()
	refused := func(text []byte, why string, args ...any) {
		t.Helper()
		_, err := backup.Verify(t.Context(), backup.Options{}, bytes.NewReader(text))
		require.ErrorIs(t, err, backup.ErrDamaged, why, args)
		b := open(t, "memory")
		_, err = backup.Restore(t.Context(), b, backup.Options{}, bytes.NewReader(text))
		require.ErrorIs(t, err, backup.ErrDamaged, why, args)
		require.Empty(t, state(t, b, 0), why, args)
	}
	starts := blocks(whole)
	require.Greater(t, len(starts), 5)
	for i, at := range starts {
		refused(whole[:at], "cut before block %d", i)
		for _, offset := range []int{0, 1, 4, 5, 9, 20} {
			changed := bytes.Clone(whole)
			changed[at+offset] ^= 0x20
			refused(changed, "block %d changed at %d", i, offset)
		}
	}
	refused(whole[:len(whole)-1], "cut at the end")
	refused(append(bytes.Clone(whole), 0), "something follows")
	refused([]byte("no backup at all, but long enough"), "foreign")
	swapped := bytes.Clone(whole[:starts[1]])
	swapped = append(swapped, whole[starts[2]:starts[3]]...)
	swapped = append(swapped, whole[starts[1]:starts[2]]...)
	refused(append(swapped, whole[starts[3]:]...), "two blocks changed places")
	refused(append(bytes.Clone(whole[:starts[1]]), whole[starts[2]:]...), "a block is missing")
}

// blocks returns the offsets of the blocks of a file.
func blocks(file []byte) (starts []int) {
	for at := 8; at < len(file); {
		starts = append(starts, at)
		at += 9 + int(binary.BigEndian.Uint32(file[at+1:]))
	}
	return starts
}
