package badgerstore

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"orch.io/controlplane/storage"
)

// Badger maps its log into memory and writes to the mapped pages, so the blocks of a log must be allocated
// before. The store allocates the current log when it is opened. It allocates the next log before the
// current log is full, as an empty file with the name that Badger will open. If the directory does not
// accept a new file, the store detects that here, before a write has begun, and refuses writes until the
// directory accepts files again.

// logAllocator allocates the logs of the database. The committer owns it.
type logAllocator struct {
	id     int   // number of the next log; the current log precedes it
	oldest int   // no log has a smaller number
	made   bool  // the file of the next log exists
	used   int64 // upper bound of the bytes written to the current log
	size   int64 // bytes of a memtable
}

// A log may exceed the size of its memtable by 1/logSlack.
const logSlack = 4

// logBytes returns the maximum size of a log. The table that a log becomes is not larger.
func (p *logAllocator) logBytes() int64 { return p.size + p.size/logSlack }

// logPath returns the path of a log.
func (s *Store) logPath(id int) string { return filepath.Join(s.dir, fmt.Sprintf("%05d.mem", id)) }

// logID returns the number of a log, or math.MaxInt if path is not a log.
func logID(path string) (id int) {
	if _, err := fmt.Sscanf(filepath.Base(path), "%05d.mem", &id); err != nil {
		return math.MaxInt
	}
	return id
}

// unflushed returns the number of logs that are not yet written to a table, the current log included.
func (p *logAllocator) unflushed(path func(int) string) int64 {
	for p.oldest < p.id-1 {
		if _, err := os.Stat(path(p.oldest)); err == nil {
			break
		}
		p.oldest++
	}
	n := p.id - p.oldest
	if info, err := os.Stat(path(p.id)); err == nil && info.Size() > 0 { // Badger has begun to use it
		n++
	}
	return int64(n)
}

// allocateLogs allocates the current log, and the next log if the disk has space. table is the size of a
// memtable.
func (s *Store) allocateLogs(table int64) error {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.mem"))
	if err != nil {
		return err
	}
	newest, oldest := 0, math.MaxInt
	for _, name := range names {
		if id := logID(name); id != math.MaxInt {
			newest, oldest = max(newest, id), min(oldest, id)
		}
	}
	p := &s.committer.logs
	*p = logAllocator{id: newest + 1, oldest: oldest, size: table}
	f, err := os.OpenFile(s.logPath(newest), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, p.logBytes()), f.Close()); err != nil {
		return err
	}
	if err := p.allocateNext(s.logPath); !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return nil
}

// allocateNext creates the file of the next log unless it exists. If Badger has begun to write to it, it is
// the current log, and allocateNext creates the next log.
func (p *logAllocator) allocateNext(path func(int) string) error {
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
	if err := errors.Join(allocate(f, p.logBytes()), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path(p.id)))
	}
	p.made = true
	return nil
}

// checkFull returns ErrFull if a batch of the given size would take space that is left free for deletions.
func (s *Store) checkFull(bytes int64) error {
	if err := s.awaitSpace(true, s.deletionSpace()+2*bytes); err != nil {
		return err
	}
	if err := s.committer.logs.allocateNext(s.logPath); errors.Is(err, syscall.ENOSPC) {
		return s.noLogSpace()
	}
	return nil
}

// noLogSpace returns the error for a log that could not be allocated.
func (s *Store) noLogSpace() error {
	return fmt.Errorf("%w: no space for the next log in %s", storage.ErrFull, s.dir)
}

// admitBatch returns an error if there is no space for a batch of the given size. Otherwise it counts the
// bytes as used.
func (s *Store) admitBatch(bytes int64) error {
	p := &s.committer.logs
	err := p.allocateNext(s.logPath)
	if p.used+bytes >= p.size/2 { // the batch may fill the current log
		if errors.Is(err, syscall.ENOSPC) && s.committer.lowSpace {
			s.committer.releaseBallast()
			err = p.allocateNext(s.logPath)
		}
		if errors.Is(err, syscall.ENOSPC) {
			err = s.noLogSpace()
		}
		if err == nil {
			err = s.ensureSpace(false, 2*bytes+p.size/2) // half of the next log is left for Close
		}
	} else if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	if err == nil {
		p.used += bytes
	}
	return s.setWritable(err)
}

// setWritable sets the result of Writable according to err, and returns err. ErrFull is not a reason for
// Writable to fail.
func (s *Store) setWritable(err error) error {
	if err != nil && !errors.Is(err, storage.ErrFull) {
		err = fmt.Errorf("storage in %s does not accept writes: %w", s.dir, err)
		s.unwritable.Store(&err)
		return err
	}
	s.unwritable.Store(nil)
	return err
}

// removeUnusedLog removes the file of the next log unless Badger has written to it.
func (s *Store) removeUnusedLog() error {
	p := &s.committer.logs
	path := s.logPath(p.id)
	if info, err := os.Stat(path); err != nil || info.Size() > 0 {
		return nil
	}
	return os.Remove(path)
}
