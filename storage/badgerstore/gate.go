package badgerstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/storage"
)

// The database writes a table into a mapped file in goroutines of its own,
// whenever it sees fit, and a disk that has filled up meanwhile ends the process.
// So it is given its directory under a name that can be taken away: without room no
// table is begun, and what was to be in it is tried again. A compaction, though, does
// not know that a table of it was not made, and fails only if its directory is not
// there at its end. So the name stays away until all that were under way have ended.
//
// A compaction asks for room before each of its tables, and needs more of it than the
// tables of deletions: it takes room before it gives any back. One that fails cannot
// remove the tables that it made, because their name is away, so they are removed here.
// The next one begins after a pause, in which deletions find the gate open.
//
// What remains is another process that takes the room of six tables, 6 to 48 MiB,
// between two looks at it.

// gate is the name. Nil is a gate that is always open.
type gate struct {
	path  string // of the directory
	set   func(open bool) error
	free  func() error // gives back what the gate holds
	merge func() error // fails without room for a table of a compaction
	sweep func() error // removes the tables that the database does not have

	// Held for reading while a batch is written that may make the database go on to its
	// next log, so that the gate is not shut between that and its look at the room.
	mu      sync.RWMutex
	shut    atomic.Bool   // written with mu held
	opened  atomic.Value  // of chan struct{}, closed when the gate opens
	ending  atomic.Bool   // the store closes: nobody waits for room any more
	left    atomic.Bool   // a failed compaction may have left tables
	short   atomic.Bool   // a compaction found no room
	stopped chan struct{} // closed when the store closes
	done    sync.WaitGroup

	reopening sync.Mutex // held for a moment by who opens the gate and by compactions
}

// Pauses between looks at the room on the disk: beside writes, and without any.
const (
	busyPause  = 10 * time.Millisecond
	quietPause = time.Second
	busyFor    = 10 * time.Second // after the last write
)

// mergePause is how long after a failed compaction the next one begins. There may be
// room by then, or less to write because records were deleted.
const mergePause = 3 * time.Second

// endPause is how long a compaction without room waits for the end of the store.
const endPause = 2 * time.Second

// watchRoom shuts the gate where there is no room for tables and opens it where
// there is, until stop.
func (g *gate) watchRoom(room func() error, writes func() uint64) {
	defer g.done.Done()
	last, at := uint64(0), time.Now()
	for {
		if now := writes(); now != last {
			last, at = now, time.Now()
		}
		pause := busyPause
		if time.Since(at) > busyFor {
			pause = quietPause
		}
		if g.left.Load() {
			g.clear()
		}
		g.turn(room() == nil)
		select {
		case <-time.After(pause):
		case <-g.stopped:
			return
		}
	}
}

// clear removes the tables that failed compactions left. The gate is shut meanwhile, and
// it waits for a moment at which no table is being made: then the database has all of its
// tables in its list.
func (g *gate) clear() {
	if !g.turn(false) || running(".runCompactDef+0x", ".handleMemTableFlush+0x") {
		return
	}
	if g.sweep() == nil {
		g.left.Store(false)
	}
}

// turn opens or shuts the gate, and reports whether it is as asked.
func (g *gate) turn(open bool) bool {
	if g == nil || g.shut.Load() != open {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.shut.Load() != open:
		return true
	case open && g.reopen():
		g.shut.Store(false)
		close(g.opened.Load().(chan struct{}))
		return true
	case !open && g.set(false) == nil:
		g.opened.Store(make(chan struct{}))
		g.shut.Store(true)
		return true
	}
	return false
}

// reopen opens the gate if no compaction is under way, which may have lost a table to it. One that
// begins meanwhile waits in built, so that the second look sees it.
func (g *gate) reopen() bool {
	g.reopening.Lock()
	defer g.reopening.Unlock()
	if running(compaction) || g.set(true) != nil {
		return false
	}
	if !running(compaction) {
		return true
	}
	return g.set(false) != nil
}

// compaction is the function of the database that makes tables of others.
const compaction = ".compactBuildTables+0x"

// running reports whether a goroutine of the process is in one of these functions.
func running(functions ...string) bool {
	var stacks bytes.Buffer
	if pprof.Lookup("goroutine").WriteTo(&stacks, 1) != nil {
		return true
	}
	return slices.ContainsFunc(functions, func(name string) bool { return bytes.Contains(stacks.Bytes(), []byte(name)) })
}

// begin is called by a compaction before each of its tables. Without room the table is not
// made, and the compaction fails. While the store closes it waits before that, because the
// last table in memory is written at the same time.
func (g *gate) begin() {
	if g == nil || g.merge() == nil {
		return
	}
	for end := time.Now().Add(endPause); g.ending.Load() && time.Now().Before(end); time.Sleep(busyPause) {
		if g.merge() == nil {
			return
		}
	}
	g.short.Store(true)
	g.turn(false)
}

// recovers reports whether a compaction has room that it is going to give back.
func (g *gate) recovers() bool { return g != nil && (g.left.Load() || running(compaction)) }

// built is called by a compaction that has begun all its tables, before it looks at the directory.
func (g *gate) built() {
	if g != nil {
		g.reopening.Lock()
		defer g.reopening.Unlock()
	}
}

// pass holds the gate as it is until leave; it fails if it is shut.
func (g *gate) pass() error {
	if g == nil {
		return nil
	}
	g.mu.RLock()
	if g.shut.Load() {
		g.mu.RUnlock()
		return fmt.Errorf("%w for tables", storage.ErrFull)
	}
	return nil
}

func (g *gate) leave() {
	if g != nil {
		g.mu.RUnlock()
	}
}

// wait returns when the gate is open, or after a time.
func (g *gate) wait(most time.Duration) {
	if g == nil {
		return
	}
	opened := g.opened.Load().(chan struct{})
	if !g.shut.Load() || g.ending.Load() {
		return
	}
	select {
	case <-opened:
	case <-g.stopped:
	case <-time.After(most):
	}
}

// failed is called by goroutines of the database that could not write a table,
// before they try again. It reports whether they should rather end.
func (g *gate) failed() (end bool) {
	if g == nil {
		return false
	}
	ending := g.ending.Load()
	g.wait(time.Second)
	return ending
}

// mergeFailed is called by a compaction that failed, before the next one.
func (g *gate) mergeFailed() {
	if g == nil {
		return
	}
	g.left.Store(true)
	if !g.short.Swap(false) {
		return
	}
	select {
	case <-g.stopped:
	case <-time.After(mergePause):
	}
}

// end leaves the gate for good as the room is now.
func (g *gate) end(room error) {
	if g == nil {
		return
	}
	close(g.stopped)
	g.done.Wait()
	for !g.turn(room == nil) {
		time.Sleep(busyPause)
	}
	g.ending.Store(true)
}

func (g *gate) close() error {
	if g == nil {
		return nil
	}
	return g.free()
}

// tablesBegun says that a message of the database is by a compaction that has begun all
// the tables of a part of it, and has not looked whether they are there.
func tablesBegun(format string) bool { return strings.HasPrefix(format, "Discard stats") }

// tableBegins says that a message of the database is by a compaction that is about to make a
// table.
func tableBegins(format string) bool { return strings.Contains(format, "LOG Compact. Added") }

// compactionsEnded says that a message of the database is by its end, after that of all
// compactions, and before the last look at the directory.
func compactionsEnded(format string) bool { return strings.HasPrefix(format, "Waiting for closer") }

// mergeFailed says that a message of the database is about a compaction that failed.
func mergeFailed(format string) bool { return strings.Contains(format, "LOG Compact FAILED") }

// unflushed says that a message of the database is about a table in memory that
// it could not write to a file.
func unflushed(format string) bool { return strings.HasPrefix(format, "error flushing memtable") }

// inDirectory opens a gate to a directory by the name that the system has for an
// open file, which is taken away by putting another file there.
func inDirectory(dir string, replace func(from, to *os.File) error) (*gate, error) {
	name, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	there, err := os.Open(dir)
	if err != nil {
		return nil, errors.Join(err, name.Close())
	}
	nowhere, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errors.Join(err, name.Close(), there.Close())
	}
	g := &gate{path: fmt.Sprintf("/proc/self/fd/%d", name.Fd()), stopped: make(chan struct{})}
	g.opened.Store(make(chan struct{}))
	g.set = func(open bool) error {
		if open {
			return replace(there, name)
		}
		return replace(nowhere, name)
	}
	g.free = func() error { return errors.Join(name.Close(), there.Close(), nowhere.Close()) }
	if a, err := os.Stat(g.path); err == nil {
		if b, err := os.Stat(dir); err == nil && os.SameFile(a, b) {
			return g, nil
		}
	}
	return nil, g.free() // the system has no such names
}
