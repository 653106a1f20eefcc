package storagetest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// OpenDir opens the store in dir, which is empty at the first call. The store must keep its history until Compact is
// called.
type OpenDir func(t testing.TB, dir string) storage.Backend

// RunDurable tests that a store in a local directory keeps its data after Close and after a crash of the process. It
// simulates a crash by opening a copy of the directory of the open store: the system keeps these files if the process
// is killed.
func RunDurable(t *testing.T, open OpenDir) {
	h := &hang{}
	for _, r := range []struct {
		name        string
		of          sentence
		description string
		test        func(d *durable)
	}{
		{"Reopen", commitShows, "after Close and Open, keys, history, watches and revision are unchanged", reopen},
		{"Crash", commitShows, "after a crash every acknowledged write exists", crash},
		{"CrashWhileWriting", commitShows, "after a crash during writes every acknowledged write exists and a watch has no gap", crashWhileWriting},
		{"CrashWhileCommittingTogether", commitApplies, "after a crash during writes each commit of several writes exists completely or not at all", crashTogether},
		{"RevisionAfterCompactedDeletes", revisionGrows, "the revision does not decrease when the newest commits were deletes and are compacted", revisionAfterDeletes},
		{"CompactionIsKept", compactOlder, "compacted history stays compacted after a restart", compactionIsKept},
		{"StampsAreKept", stampKeeps, "a stamp survives a restart", stampsAreKept},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			err := rule{r.name, r.of, r.description, nil}.examine(h, caseTime, func(v *verdict) {
				d := &durable{t: v, test: t, open: open, dir: t.TempDir()}
				d.start()
				defer func() { d.end() }()
				r.test(d)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// durable is a store that can be closed and opened again.
type durable struct {
	t     *verdict
	test  testing.TB
	open  OpenDir
	dir   string
	store *store
	end   func() // closes the store
}

// start opens the store.
func (d *durable) start() { d.store, d.end = newStore(d.t, d.open(d.test, d.dir)) }

// restart closes the store and opens it again.
func (d *durable) restart() {
	d.t.Helper()
	d.end()
	d.start()
}

// crash opens a copy of the directory, which has the files that a crash would leave now.
func (d *durable) crash() {
	d.t.Helper()
	left := d.test.TempDir()
	require.NoError(d.t, copyTree(left, d.dir))
	d.end()
	d.dir = left
	d.start()
}

// copyTree copies a directory and leaves holes for zeros, because files that are mapped into memory consist mostly of
// zeros.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		return copyFile(filepath.Join(to, rel), path)
	})
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the file was renamed or removed after it was listed
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() {
		if fault := out.Close(); err == nil {
			err = fault
		}
	}()
	buf := make([]byte, 1<<20)
	zeros := make([]byte, len(buf))
	for at := int64(0); ; {
		n, err := io.ReadFull(in, buf)
		if string(buf[:n]) != string(zeros[:n]) {
			if _, err := out.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return out.Truncate(at)
		}
		if err != nil {
			return err
		}
	}
}

func (d *durable) history() (*history, []string) {
	h := newHistory(d.store.newest())
	keys := []string{}
	for i := range 9 {
		keys = append(keys, fmt.Sprintf("k/%d", i))
	}
	return h, keys
}

func reopen(d *durable) {
	h, keys := d.history()
	for range 3 {
		h.fill(d.store, 30)
		h.fillTogether(d.store, 10)
		d.restart()
		h.verify(d.store, h.base, keys, []string{"", "k/4"})
	}
	require.NoError(d.t, d.store.Close())
}

func crash(d *durable) {
	h, keys := d.history()
	for range 3 {
		h.fill(d.store, 20)
		h.fillTogether(d.store, 10)
		d.crash()
		h.verify(d.store, h.base, keys, []string{"", "k/4"})
	}
}

// await waits until enough is closed. If all writers fail before that, it fails with their errors.
func (d *durable) await(enough <-chan struct{}, writers *sync.WaitGroup, errs []error) {
	d.t.Helper()
	ended := make(chan struct{})
	go func() {
		writers.Wait()
		close(ended)
	}()
	select {
	case <-enough:
	case <-ended:
		require.NoError(d.t, errors.Join(errs...))
	}
}

func crashWhileWriting(d *durable) {
	base := d.store.newest()
	const workers, atLeast = 8, 60
	acknowledged := make([][]storage.Record, workers)
	var mu sync.Mutex
	enough := make(chan struct{})
	total := 0
	var wg sync.WaitGroup
	errs := make([]error, workers)
	s := d.store
	for w := range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				write := storage.Write{Key: fmt.Sprint("k", w, i%5), Value: fmt.Appendf(nil, "%d", i), Expect: storage.AnyRevision}
				revision, err := s.Commit(s.ctx, write)
				if errs[w] = err; err != nil {
					return
				}
				mu.Lock()
				acknowledged[w] = append(acknowledged[w], storage.Record{Key: write.Key, Value: write.Value, Revision: revision})
				if total++; total == atLeast {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	d.await(enough, &wg, errs)
	mu.Lock()
	var want []storage.Record
	for _, records := range acknowledged {
		want = append(want, records...)
	}
	mu.Unlock()
	d.crash()
	wg.Wait()
	newest := d.store.newest()
	seen := map[storage.Revision]storage.Record{}
	last := base
	for commit, err := range d.store.Watch(d.store.ctx, "", base) {
		require.NoError(d.t, err)
		require.NoError(d.t, whole(commit, last))
		last = commit[0].Revision
		if seen[last] = commit[0].Record; last == newest {
			break
		}
	}
	for _, rec := range want {
		require.Equal(d.t, rec, seen[rec.Revision])
		require.Equal(d.t, rec, d.store.get(rec.Key, rec.Revision))
	}
}

func crashTogether(d *durable) {
	base := d.store.newest()
	const workers, atLeast = 6, 30
	var acknowledged sync.Map // keys are revisions
	enough := make(chan struct{})
	var total atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, workers)
	s := d.store
	for w := range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				var ws []storage.Write
				for j := range 2 + w {
					ws = append(ws, storage.Write{Key: fmt.Sprint("k", j, "/", w), Value: fmt.Append(nil, i), Expect: storage.AnyRevision})
				}
				revision, err := s.Commit(s.ctx, ws...)
				if errs[w] = err; err != nil {
					return
				}
				acknowledged.Store(revision, w)
				if total.Add(1) == atLeast {
					close(enough)
				}
			}
		})
	}
	d.await(enough, &wg, errs)
	var want []storage.Revision
	acknowledged.Range(func(revision, _ any) bool {
		want = append(want, revision.(storage.Revision))
		return true
	})
	d.crash()
	wg.Wait()
	newest := d.store.newest()
	found := map[storage.Revision]bool{}
	for commit, err := range d.store.Watch(d.store.ctx, "", base) {
		require.NoError(d.t, err)
		require.NoError(d.t, whole(commit, base))
		first := commit[0]
		require.Len(d.t, commit, 2+int(first.Key[len(first.Key)-1]-'0'))
		for _, e := range commit {
			require.Equal(d.t, string(first.Value), string(e.Value))
			require.Equal(d.t, e.Record, d.store.get(e.Key, e.Revision))
		}
		if found[first.Revision] = true; first.Revision == newest {
			break
		}
	}
	for _, revision := range want {
		require.True(d.t, found[revision])
	}
}

func revisionAfterDeletes(d *durable) {
	d.store.put("kept", "x")
	for i := range 3 {
		d.store.put("a", fmt.Sprint(i))
		last := d.store.del("a")
		require.NoError(d.t, d.store.Compact(d.store.ctx, last))
		if i == 1 {
			d.crash()
		} else {
			d.restart()
		}
		require.Equal(d.t, last, d.store.newest())
		require.Greater(d.t, d.store.put("b", "x"), last)
	}
}

func compactionIsKept(d *durable) {
	h, keys := d.history()
	for i := range 3 {
		h.fill(d.store, 30)
		at := h.events[len(h.events)-10].Revision
		before := h.events[len(h.events)-11].Revision
		require.NoError(d.t, d.store.Compact(d.store.ctx, at))
		if i == 1 {
			d.crash()
		} else {
			d.restart()
		}
		_, err := d.store.Get(d.store.ctx, keys[0], before)
		require.ErrorIs(d.t, err, storage.ErrCompacted)
		require.NoError(d.t, compactedWatch(d.store, "", before))
		h.verify(d.store, at, keys, []string{"", "k/4"})
	}
}

func stampsAreKept(d *durable) {
	if _, ok := d.store.raw.(storage.Stamper); !ok {
		return
	}
	for i := range 4 {
		have, err := d.store.raw.(storage.Stamper).Stamp(d.store.ctx, "names", fmt.Sprint("value", i))
		require.NoError(d.t, err)
		require.Equal(d.t, "value0", have)
		before := d.store.newest()
		if i%2 == 0 {
			d.restart()
		} else {
			d.crash()
		}
		require.Equal(d.t, before, d.store.newest())
		require.NoError(d.t, d.store.Compact(d.store.ctx, d.store.put("a", "x")))
	}
}
