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

// Badger maps its log into memory and writes there, so the blocks of a log are allocated before:
// those of the log in use when the store is opened, and those of the next one, as an empty file with
// the name that Badger will open, before the log in use is full. If the directory takes no new
// file, the store notices here, when no write is half done, and continues when it does again.

// spare is the log that Badger uses after the one in use.
type spare struct {
	id     int   // its number; the log in use is the one before
	oldest int   // no log has a smaller number
	made   bool  // its file exists
	used   int64 // bytes written to the log in use, at most
	size   int64 // of a table in memory
}

// logSlack is the part of a table by which its log may exceed it.
const logSlack = 4

// logBytes returns the size of a full log. The table of the log is no larger.
func (p *spare) logBytes() int64 { return p.size + p.size/logSlack }

func (s *Store) logPath(id int) string { return filepath.Join(s.dir, fmt.Sprintf("%05d.mem", id)) }

// logID returns the number of a log, or math.MaxInt for another file.
func logID(path string) (id int) {
	if _, err := fmt.Sscanf(filepath.Base(path), "%05d.mem", &id); err != nil {
		return math.MaxInt
	}
	return id
}

// unflushed returns how many logs are no tables yet, the log in use included.
func (p *spare) unflushed(path func(int) string) int64 {
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

// openSpare allocates the log in use, and the next one if there is room.
func (s *Store) openSpare(table int64) error {
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
	p := &s.committer.spare
	*p = spare{id: newest + 1, oldest: oldest, size: table}
	f, err := os.OpenFile(s.logPath(newest), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, p.logBytes()), f.Close()); err != nil {
		return err
	}
	if err := p.prepare(s.logPath); !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return nil
}

// prepare creates the spare log unless it exists. If Badger has begun to use it, prepare creates
// the one after it.
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
	if err := errors.Join(allocate(f, p.logBytes()), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path(p.id)))
	}
	p.made = true
	return nil
}

// full returns ErrFull if there is room for deletions only, while a batch of so many bytes is to
// be written.
func (s *Store) full(bytes int64) error {
	if err := s.awaitRoom(true, s.deletionRoom()+2*bytes); err != nil {
		return err
	}
	if err := s.committer.spare.prepare(s.logPath); errors.Is(err, syscall.ENOSPC) {
		return s.noSpace()
	}
	return nil
}

func (s *Store) noSpace() error { return fmt.Errorf("%w for a log in %s", storage.ErrFull, s.dir) }

// ready returns an error if a batch of so many bytes cannot be written now, and otherwise counts it.
func (s *Store) ready(bytes int64) error {
	p := &s.committer.spare
	err := p.prepare(s.logPath)
	if p.used+bytes >= p.size/2 { // the batch may fill the log in use
		if errors.Is(err, syscall.ENOSPC) && s.committer.short {
			s.committer.dropReserve()
			err = p.prepare(s.logPath)
		}
		if errors.Is(err, syscall.ENOSPC) {
			err = s.noSpace()
		}
		if err == nil {
			err = s.makeRoom(false, 2*bytes+p.size/2) // the first half of the next log is for Close
		}
	} else if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	if err == nil {
		p.used += bytes
	}
	return s.noteReady(err)
}

// noteReady keeps the error that Writable reports.
func (s *Store) noteReady(err error) error {
	if err != nil && !errors.Is(err, storage.ErrFull) {
		err = fmt.Errorf("storage in %s takes no writes: %w", s.dir, err)
		s.unready.Store(&err)
		return err
	}
	s.unready.Store(nil)
	return err
}

// closeSpare removes the spare log if Badger has not used it.
func (s *Store) closeSpare() error {
	p := &s.committer.spare
	path := s.logPath(p.id)
	if info, err := os.Stat(path); err != nil || info.Size() > 0 {
		return nil
	}
	return os.Remove(path)
}
