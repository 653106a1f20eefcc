package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"orch.io/controlplane/storage"
)

// The database maps its log into memory and writes there, where a disk without
// room ends the process. So the room of a log is taken before: that of the one in
// use when the store is opened, that of the next one, as an empty file by its
// name, before the one in use is full. A directory that takes no new file is
// noticed by this, too, at a point where nothing is half done, so that writes go
// on when it does again.

// spare is the log that the database goes on with when the one in use is full.
type spare struct {
	id   int   // its number; 0: there is none yet
	made bool  // it is there
	used int64 // what went into the log in use, about, in bytes
	size int64 // of a table in memory
}

// logSlack is how much longer than a table its log may get.
const logSlack = 4

func (s *Store) logPath(id int) string { return filepath.Join(s.dir, fmt.Sprintf("%05d.mem", id)) }

// openSpare takes the room of the log in use, and of the next one if there is some.
func (s *Store) openSpare(table int64) error {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.mem"))
	if err != nil {
		return err
	}
	newest := 0
	for _, name := range names {
		id := 0
		if _, err := fmt.Sscanf(filepath.Base(name), "%05d.mem", &id); err == nil {
			newest = max(newest, id)
		}
	}
	p := &s.committer.spare
	*p = spare{id: newest + 1, size: table}
	f, err := os.OpenFile(s.logPath(newest), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, table+table/logSlack), f.Close()); err != nil {
		return err
	}
	if err := p.prepare(s.logPath); !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return nil
}

// prepare makes the spare log if it is not there, and finds out whether the
// database has begun to use it.
func (p *spare) prepare(path func(int) string) error {
	if p.made {
		info, err := os.Stat(path(p.id))
		if err == nil && info.Size() == 0 {
			return nil
		}
		p.made = false
		if err == nil {
			p.id, p.used = p.id+1, 0
		}
	}
	f, err := os.OpenFile(path(p.id), os.O_CREATE|os.O_RDWR, privateFile)
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, p.size+p.size/logSlack), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path(p.id)))
	}
	p.made = true
	return nil
}

// full says why there is room for deletions only; it passes.
func (s *Store) full(bytes int64) error {
	if err := s.room(tablesToWrite, 2*bytes); err != nil {
		return err
	}
	if err := s.committer.spare.prepare(s.logPath); errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w in %s", storage.ErrFull, s.dir)
	}
	return nil
}

// ready fails while a batch of so many bytes cannot be written; it passes, too.
// written is to be called afterwards.
func (s *Store) ready(bytes int64) (written func(), err error) {
	p := &s.committer.spare
	written = func() {}
	err = p.prepare(s.logPath)
	if p.used+bytes >= p.size/2 {
		// The log in use may be full, then the next one is begun and a table made.
		if err == nil {
			err = s.passGate(bytes)
		}
		if err == nil {
			written = s.gate.leave
		}
	} else if errors.Is(err, syscall.ENOSPC) {
		err = nil // the log in use has room
	}
	if err == nil {
		p.used += bytes
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w in %s", storage.ErrFull, s.dir)
	}
	return written, s.noteReady(err)
}

// recoverTime is how long a write waits for the room that a compaction gives back.
const recoverTime = 5 * time.Second

// passGate fails without room for tables. It holds the gate until gate.leave.
func (s *Store) passGate(bytes int64) error {
	for end := time.Now().Add(recoverTime); ; time.Sleep(busyPause) {
		err := s.room(tablesToFlush, 2*bytes)
		if err == nil {
			err = s.gate.pass()
		}
		if err == nil || !s.gate.recovers() || time.Now().After(end) {
			return err
		}
	}
}

// noteReady remembers for Writable what keeps the store from writing.
func (s *Store) noteReady(err error) error {
	if err != nil && !errors.Is(err, storage.ErrFull) {
		err = fmt.Errorf("storage in %s takes no writes: %w", s.dir, err)
		s.unready.Store(&err)
		return err
	}
	s.unready.Store(nil)
	return err
}

// closeSpare removes the log that was not needed.
func (s *Store) closeSpare() error {
	p := &s.committer.spare
	path := s.logPath(p.id)
	if info, err := os.Stat(path); err != nil || info.Size() > 0 {
		return nil
	}
	return os.Remove(path)
}
