package badgerstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/storage"
)

// The database writes a table into a mapped file in goroutines of its own,
// whenever it sees fit, and a disk that has filled up meanwhile ends the process.
// So it is given its directory under a name that can be taken away: without room no
// table is begun, and what was to be in it is tried again. A compaction, though, does
// not know that a table of it was not made, and fails only if its directory is not
// there at its end. So the name stays away until all that were under way have ended.
// What remains is who takes the room of eight tables, 24 to 64 MiB, between two looks
// at it.

// gate is the name. Nil is a gate that is always open.
type gate struct {
	path string // of the directory
	set  func(open bool) error
	free func() error // gives back what the gate holds

	// Held for reading while a batch is written that may make the database go on to its
	// next log, so that the gate is not shut between that and its look at the room.
	mu      sync.RWMutex
	shut    bool
	ending  bool          // the store closes: nobody waits for room any more
	opened  chan struct{} // closed when the gate opens
	stopped chan struct{}
	done    sync.WaitGroup

	reopening sync.Mutex // held for a moment by who opens the gate and by compactions
}

// Pauses between looks at the room on the disk: beside writes, and without any.
const (
	busyPause  = 10 * time.Millisecond
	quietPause = time.Second
	busyFor    = 10 * time.Second // after the last write
)

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
		g.turn(room() == nil)
		select {
		case <-time.After(pause):
		case <-g.stopped:
			return
		}
	}
}

// turn opens or shuts the gate, and reports whether it is as asked.
func (g *gate) turn(open bool) bool {
	g.mu.RLock()
	same := g.shut != open
	g.mu.RUnlock()
	if same {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.shut != open:
		return true
	case open && g.reopen():
		g.shut = false
		close(g.opened)
		return true
	case !open && g.set(false) == nil:
		g.shut, g.opened = true, make(chan struct{})
		return true
	}
	return false
}

// reopen opens the gate if no compaction is under way, which may have lost a table to it. One that
// begins meanwhile waits in built, so that the second look sees it.
func (g *gate) reopen() bool {
	g.reopening.Lock()
	defer g.reopening.Unlock()
	if compacting() || g.set(true) != nil {
		return false
	}
	if !compacting() {
		return true
	}
	return g.set(false) != nil
}

// compacting reports whether any database of the process makes tables of others.
func compacting() bool {
	var stacks bytes.Buffer
	if pprof.Lookup("goroutine").WriteTo(&stacks, 1) != nil {
		return true
	}
	return bytes.Contains(stacks.Bytes(), []byte(".compactBuildTables+0x"))
}

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
	if g.shut {
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

// failed is called by goroutines of the database that could not write a table,
// before they try again. It reports whether they should rather end.
func (g *gate) failed() (end bool) {
	if g == nil {
		return false
	}
	g.mu.RLock()
	shut, ending, opened := g.shut, g.ending, g.opened
	g.mu.RUnlock()
	if !shut || ending {
		return ending
	}
	select {
	case <-opened:
	case <-g.stopped:
	case <-time.After(time.Second):
	}
	return false
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
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ending = true
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
	g := &gate{path: fmt.Sprintf("/proc/self/fd/%d", name.Fd()), opened: make(chan struct{}), stopped: make(chan struct{})}
	close(g.opened)
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
