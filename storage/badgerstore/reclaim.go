package badgerstore

import (
	"sync"
	"sync/atomic"
)

// fillKey is written to fill a table in memory. Its value means nothing.
const fillKey = "fill"

// reclaim gives the room of deleted records back on a disk that has none for other writes. The
// database does that when enough is written, which on such a disk never comes: the deletions wait
// in memory for the rest of their table, and tables that nothing is merged into stay as they are.
type reclaim struct {
	due     atomic.Bool // history was forgotten since the last one that succeeded
	running atomic.Bool
	done    sync.WaitGroup
}

// reclaimRoom begins to give room back if that is due and there is too little. It is called by the
// committing goroutine.
func (s *Store) reclaimRoom() {
	r := s.committer.reclaim
	if !r.due.Load() || r.running.Load() || s.room(tablesToWrite, 0) == nil {
		return
	}
	if err := s.turnOver(); err != nil {
		s.logger.Warn("storage could not write its deletions to a table", "dir", s.dir, "err", err)
		return
	}
	r.due.Store(false)
	r.running.Store(true)
	r.done.Go(func() {
		defer r.running.Store(false)
		if err := s.db.Flatten(1); err != nil {
			r.due.Store(true)
			s.logger.Warn("storage could not give back the room of deleted records yet", "dir", s.dir, "err", err)
		}
	})
}

// turnOver has the database go on to its next log, and write the table of the one in use.
func (s *Store) turnOver() error {
	p, zeros := &s.committer.spare, make([]byte, s.piece)
	for id, size := p.id, int64(0); p.id == id && size < 2*p.size; size += int64(len(zeros)) {
		if err := s.note([]byte(fillKey), zeros); err != nil {
			return err
		}
	}
	return nil
}
