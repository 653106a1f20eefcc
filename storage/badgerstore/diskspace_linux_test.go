package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// smallDisk mounts a file system in memory.
func smallDisk(t *testing.T, bytes int64) string {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skip("a file system of its own cannot be mounted here: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// fillDisk writes a file until the disk is full.
func fillDisk(t *testing.T, path string) { fillUntil(t, path, func() bool { return false }) }

// fillUntil writes a file until the disk is full or end returns true. It reports whether the disk has space.
func fillUntil(t *testing.T, path string, end func() bool) bool {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer f.Close()
	data := make([]byte, 256<<10)
	for !end() {
		if _, err := f.Write(data); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			return false
		}
	}
	return true
}

// writers commit to a key each and count acknowledged writes and writes that failed with ErrFull. Any other
// error fails the test.
type writers struct {
	t       *testing.T
	s       *Store
	mu      sync.Mutex
	changed *sync.Cond
	acked   map[string][]byte // newest value of each key
	taken   int
	refused int
	stopped bool
	wg      sync.WaitGroup
}

func (w *writers) start(s *Store, n int) {
	w.s, w.stopped = s, false
	w.changed = sync.NewCond(&w.mu)
	for i := range n {
		w.wg.Go(func() {
			for round := 0; ; round++ {
				key, value := fmt.Sprint("k", i, "/", round%5), bytes.Repeat(fmt.Append(nil, i, ",", round, ";"), 600)
				if round%3 == 2 {
					value = nil
				}
				_, err := s.Commit(context.Background(), storage.Write{Key: key, Value: value, Expect: storage.AnyRevision})
				w.mu.Lock()
				switch {
				case errors.Is(err, storage.ErrFull):
					w.refused++
				case err == nil:
					w.taken++
					if w.acked[key] = value; value == nil {
						delete(w.acked, key)
					}
				case !errors.Is(err, storage.ErrNotFound):
					w.t.Error(err)
					w.stopped = true
				}
				end := w.stopped
				w.changed.Broadcast()
				w.mu.Unlock()
				if end {
					return
				}
			}
		})
	}
}

// wait returns after the given number of further writes were acknowledged and refused.
func (w *writers) wait(taken, refused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken, refused = w.taken+taken, w.refused+refused
	for (w.taken < taken || w.refused < refused) && !w.stopped {
		w.changed.Wait()
	}
}

// next returns after one further write was acknowledged or refused.
func (w *writers) next() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := w.taken + w.refused; w.taken+w.refused == n && !w.stopped; {
		w.changed.Wait()
	}
}

// count returns the number of refused writes.
func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

func (w *writers) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.wg.Wait()
}

func (w *writers) check(s *Store) {
	_, records, err := s.Scan(context.Background(), "", "", 0)
	require.NoError(w.t, err)
	got := map[string][]byte{}
	for rec, err := range records {
		require.NoError(w.t, err)
		got[rec.Key] = rec.Value
	}
	require.Equal(w.t, len(w.acked), len(got))
	for key, value := range w.acked {
		require.True(w.t, bytes.Equal(value, got[key]), key)
	}
}

// TestDiskFilledByOthers checks that while other programs fill the disk, a store under load refuses writes
// but loses none, and accepts writes again when there is space.
func TestDiskFilledByOthers(t *testing.T) {
	disk := smallDisk(t, 192<<20)
	o := Options{Dir: filepath.Join(disk, "store"), Retain: time.Second}
	s, err := Open(o)
	require.NoError(t, err)
	w := &writers{t: t, acked: map[string][]byte{}}
	for round := range 4 {
		w.start(s, 8)
		w.wait(1000, 0)
		fill := filepath.Join(disk, "others")
		for refused, space := w.count(), true; space && w.count() == refused; { // as fast as the store notices
			free, _, _ := diskBytes(disk)
			space = fillUntil(t, fill, func() bool {
				left, _, _ := diskBytes(disk)
				return left < free-1<<20
			})
			w.next()
		}
		w.wait(0, 200)
		awaitTablesOf(t, s)
		fillDisk(t, fill) // to the last byte
		w.wait(0, 200)
		if round == 2 { // it is closed while the disk is full
			w.stop()
			w.check(s)
			err := s.Close()
			require.NoError(t, os.Remove(fill))
			if err != nil { // the ballast was in use
				require.ErrorIs(t, err, storage.ErrFull)
				_, err = Open(o)
				require.ErrorIs(t, err, ErrInUse)
				require.NoError(t, s.Close())
			}
			s, err = Open(o)
			require.NoError(t, err)
			w.check(s)
			continue
		}
		require.NoError(t, os.Remove(fill))
		w.wait(1000, 0)
		w.stop()
		w.check(s)
	}
	require.NoError(t, s.Close())
}

// awaitTablesOf waits until the store is not writing a table: if another program took the last space during
// that, the process would end.
func awaitTablesOf(t *testing.T, s *Store) {
	t.Helper()
	require.Eventually(t, func() (idle bool) {
		require.NoError(t, s.perform(t.Context(), func() error {
			c := &s.committer
			idle = c.logs.unflushed(s.logPath) == 1 && !c.flattener.running.Load()
			return nil
		}))
		return idle
	}, time.Minute, 10*time.Millisecond)
}

// TestBallastOnFullDisk checks that on a disk that other programs have filled completely, deletions are
// accepted and the store can be closed, because of the ballast, and that the ballast is allocated again when
// there is space.
func TestBallastOnFullDisk(t *testing.T) {
	disk := smallDisk(t, 64<<20)
	o := Options{Dir: filepath.Join(disk, "store"), Retain: -1}
	s, err := Open(o)
	require.NoError(t, err)
	const n = 8000 // their deletions take more than one log
	var keys sync.WaitGroup
	for w := range 16 {
		keys.Go(func() {
			for i := w; i < n; i += 16 {
				_, err := s.Commit(context.Background(), storage.Write{Key: fmt.Sprint("k", i), Value: []byte("x")})
				require.NoError(t, err)
			}
		})
	}
	keys.Wait()
	ballastBytes := func() (bytes int64) {
		require.NoError(t, s.perform(t.Context(), func() error { bytes = s.committer.ballast.size(); return nil }))
		return bytes
	}
	require.EqualValues(t, ballastTables*smallTable, ballastBytes())
	fill := filepath.Join(disk, "others")
	awaitTablesOf(t, s)
	fillDisk(t, fill)
	require.Eventually(t, func() bool { // it is full for others, too
		_, err = s.Commit(t.Context(), storage.Write{Key: "more", Value: []byte("x"), Expect: storage.AnyRevision})
		return errors.Is(err, storage.ErrFull)
	}, time.Minute, time.Millisecond)
	for w := range 16 {
		keys.Go(func() {
			for i := w; i < n; i += 16 {
				for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // until the ballast is released
					_, err := s.Commit(context.Background(), storage.Write{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision})
					if err == nil {
						break
					}
					require.ErrorIs(t, err, storage.ErrFull)
					require.True(t, time.Now().Before(end), "deletion %d: %v", i, err)
				}
			}
		})
	}
	keys.Wait()
	require.Zero(t, ballastBytes())
	require.NoError(t, s.Close())
	rest := filepath.Join(disk, "rest")
	fillDisk(t, rest)
	_, err = Open(o)
	require.ErrorIs(t, err, storage.ErrFull)
	require.NoError(t, errors.Join(os.Remove(fill), os.Remove(rest)))
	s, err = Open(o)
	require.NoError(t, err)
	require.EqualValues(t, ballastTables*smallTable, ballastBytes())
	require.Equal(t, 0, s.Stats().Keys)
	require.NoError(t, s.Close())
}

// TestBallastHoldsSpace checks that other programs cannot take the space of the ballast, and that it is no
// file in the directory.
func TestBallastHoldsSpace(t *testing.T) {
	disk := smallDisk(t, 16<<20)
	b, err := allocateBallast(disk, 6<<20)
	require.NoError(t, err)
	files, err := os.ReadDir(disk)
	require.NoError(t, err)
	require.Empty(t, files)
	fillDisk(t, filepath.Join(disk, "others"))
	require.NoError(t, b.release())
	free, _, _ := diskBytes(disk)
	require.EqualValues(t, 6<<20, free)
	_, err = allocateBallast(disk, 7<<20)
	require.ErrorIs(t, err, syscall.ENOSPC)
	free, _, _ = diskBytes(disk)
	require.EqualValues(t, 6<<20, free)
}

// TestMovedDirectoryIsReadOnly checks that a store whose directory is renamed can be read, does not accept writes, and
// cannot be closed until the directory is back.
func TestMovedDirectoryIsReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	put := func(key string) error {
		_, err := s.Commit(t.Context(), storage.Write{Key: key, Value: []byte("x")})
		return err
	}
	require.NoError(t, put("a"))
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.ErrorIs(t, put("b"), os.ErrNotExist)
	require.ErrorIs(t, s.Writable(t.Context()), os.ErrNotExist)
	_, err = s.Get(t.Context(), "a", 0)
	require.NoError(t, err)
	require.NoError(t, os.Rename(dir+".away", dir))
	require.NoError(t, put("b"))
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.ErrorIs(t, s.Close(), os.ErrNotExist)
	_, err = Open(Options{Dir: dir + ".away", Retain: -1})
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, os.Rename(dir+".away", dir))
	require.NoError(t, s.Close())
	s, err = Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	require.Equal(t, 2, s.Stats().Keys)
	require.NoError(t, s.Close())
}

// TestSmallDisk checks that an empty store is small on a small disk, and that the blocks of its logs are
// allocated.
func TestSmallDisk(t *testing.T) {
	disk := smallDisk(t, 64<<20)
	s, err := Open(Options{Dir: disk, Retain: time.Second})
	require.NoError(t, err)
	w := &writers{t: t, acked: map[string][]byte{}}
	w.start(s, 4)
	w.wait(3000, 0)
	w.stop()
	require.Zero(t, w.refused)
	w.check(s)
	require.NoError(t, s.Close())
	s, err = Open(Options{Dir: disk})
	require.NoError(t, err)
	w.check(s)
	require.NoError(t, s.Close())
}

// TestLogsAreAllocated checks that the blocks of the current and of the next log are allocated before they
// are written.
func TestLogsAreAllocated(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Retain: -1, memTable: 1 << 20})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, s.Close())
		logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
		require.NoError(t, err)
		require.Empty(t, logs)
	}()
	for i := range 100 {
		_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprint(i), Value: make([]byte, 40<<10)})
		require.NoError(t, err)
		next := s.committer.logs.id
		for _, id := range []int{next, next - 1} {
			info, err := os.Stat(s.logPath(id))
			require.NoError(t, err)
			require.GreaterOrEqual(t, info.Sys().(*syscall.Stat_t).Blocks*512, int64(5<<18), "log %d", id)
			if info.Size() > 0 {
				break // this log is in use since this commit, and the log before it is being written to a table
			}
		}
	}
	require.Greater(t, s.committer.logs.id, 3)
}

const immutable = 0x10 // FS_IMMUTABLE_FL

// setImmutable sets or clears the immutable flag of a directory, which prevents new files.
func setImmutable(t *testing.T, dir string, on bool) {
	d, err := os.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	flags := uint32(0)
	if on {
		flags = immutable
	}
	if _, _, no := syscall.Syscall(syscall.SYS_IOCTL, d.Fd(), 0x40086602, uintptr(unsafe.Pointer(&flags))); no != 0 {
		t.Skip("the directory cannot be made immutable here: ", no)
	}
}

// TestImmutableDirectory checks that writes fail and Writable returns an error while files cannot be created,
// and that writes succeed afterwards.
func TestImmutableDirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Retain: -1, memTable: 1 << 20})
	require.NoError(t, err)
	put := func(i int) (storage.Revision, error) {
		return s.Commit(t.Context(), storage.Write{Key: fmt.Sprint(i), Value: make([]byte, 40<<10)})
	}
	for round := range 3 {
		setImmutable(t, dir, true)
		defer setImmutable(t, dir, false)
		var acked storage.Revision
		err := error(nil)
		for i := 0; err == nil; i++ {
			require.Less(t, i, 1000, "an immutable directory has taken all")
			var revision storage.Revision
			if revision, err = put(round*10000 + i); err == nil {
				acked = revision
			}
		}
		require.NotErrorIs(t, err, storage.ErrStopped)
		require.ErrorIs(t, s.Writable(t.Context()), syscall.EPERM)
		now, err := s.Revision(t.Context())
		require.NoError(t, err)
		require.Equal(t, acked, now)
		_, err = s.Get(t.Context(), fmt.Sprint(round*10000), 0)
		require.NoError(t, err)

		setImmutable(t, dir, false)
		_, err = put(round*10000 + 5000)
		require.NoError(t, err)
		require.NoError(t, s.Writable(t.Context()))
	}
	keys := s.Stats().Keys
	require.NoError(t, s.Close())
	s, err = Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	require.Equal(t, keys, s.Stats().Keys)
	require.NoError(t, s.Close())
}

// TestLargeWritesToImmutableDirectory checks that a value that needs several logs is refused if no new log
// can be created, although a part of it is written, and that its pieces are deleted.
func TestLargeWritesToImmutableDirectory(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, err := Open(Options{Dir: dir, Retain: -1, memTable: 1 << 20})
	require.NoError(t, err)
	put := func(key string, value []byte) (storage.Revision, error) {
		return s.Commit(ctx, storage.Write{Key: key, Value: value, Expect: storage.AnyRevision})
	}
	acked, err := put("a", []byte("1"))
	require.NoError(t, err)
	large := bytes.Repeat([]byte("0123456789abcdef"), MaxValueBytes/16)

	setImmutable(t, dir, true)
	defer setImmutable(t, dir, false)
	for range 3 {
		_, err = put("b", large)
		require.Error(t, err)
		require.NotErrorIs(t, err, storage.ErrStopped)
		require.ErrorIs(t, s.Writable(ctx), syscall.EPERM)
		now, err := s.Revision(ctx)
		require.NoError(t, err)
		require.Equal(t, acked, now)
	}
	require.NotZero(t, countPieces(t, s))

	setImmutable(t, dir, false)
	revision, err := put("c", large)
	require.NoError(t, err)
	require.Greater(t, revision, acked+3, "revisions of pieces are not used again")
	require.NoError(t, s.Writable(ctx))
	require.NoError(t, s.Compact(ctx, revision))
	require.Equal(t, (len(large)+s.piece-1)/s.piece, countPieces(t, s))
	require.NoError(t, s.Close())

	s, err = Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	rec, err := s.Get(ctx, "c", 0)
	require.NoError(t, err)
	require.Equal(t, large, rec.Value)
	require.NoError(t, s.Check(ctx))
	require.NoError(t, s.Close())
}

// TestFailedPieceDeletionIsRetried checks that pieces that could not be deleted are deleted later.
func TestFailedPieceDeletionIsRetried(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "store")
	s, err := Open(Options{Dir: dir, Retain: -1, memTable: 1 << 20})
	require.NoError(t, err)
	var last storage.Revision
	for range 2 {
		last, err = s.Commit(ctx, storage.Write{Key: "a", Value: make([]byte, 1<<20), Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	each := countPieces(t, s) / 2
	drop := func() error {
		r := &request{ctx: ctx, done: make(chan struct{}), do: func() error { return s.dropPieces(last) }}
		require.NoError(t, s.submit(r))
		return r.err
	}
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.Error(t, drop())
	require.Equal(t, 2*each, countPieces(t, s))
	require.NoError(t, os.Rename(dir+".away", dir))
	require.NoError(t, drop())
	require.Equal(t, each, countPieces(t, s))
	require.NoError(t, s.Close())
}

// TestInspectImmutableDirectory checks that a directory in which files cannot be created can be inspected.
func TestInspectImmutableDirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	_, err = s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	setImmutable(t, dir, true)
	defer setImmutable(t, dir, false)
	report, err := Inspect(t.Context(), dir)
	require.NoError(t, err)
	require.True(t, report.Intact(), "%+v", report)
	require.Equal(t, 1, report.Records)
}

// TestCloseInImmutableDirectory checks that Close fails and keeps the lock of the directory, and succeeds
// after files can be created again.
func TestCloseInImmutableDirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	_, err = s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")})
	require.NoError(t, err)
	setImmutable(t, dir, true)
	defer setImmutable(t, dir, false)
	require.ErrorIs(t, s.Close(), syscall.EPERM)
	_, err = Open(Options{Dir: dir, Retain: -1})
	require.ErrorIs(t, err, ErrInUse)
	setImmutable(t, dir, false)
	require.NoError(t, s.Close())
	s, err = Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "a", 0)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
