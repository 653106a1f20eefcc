package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"orch.io/controlplane/storage"
)

// Bounds of one page, after which the commits of meanwhile have their turn.
const (
	pageRecords = 2_000
	pageBytes   = 2 << 20
)

// maxDamaged is how many damaged records are left out by their names; more end it.
const maxDamaged = 10_000

// source reads a store while it is written to: every record in pages, each as of the
// newest revision, and between them the commits up to the page's revision. What was
// read is therefore, at any time, all keys before one of them as of one revision, and
// the commits from the start of the history on. No page needs to be retained for longer
// than it takes to read it.
type source struct {
	store storage.Backend
	o     Options
	emit  func(storage.Record) error // gets each version; a deletion has no value

	next  func() ([]storage.Event, error, bool) // of the watch
	stop  func()
	ahead []storage.Event // of the watch, not yet applied

	oldest storage.Revision // start of the history
	seen   storage.Revision // every commit up to here is applied
	pass                    // what was read
	again  pass             // what was compared with that
	twice  bool             // it is to be compared
	report *Report
	phase  Phase
	pace   pace
	total  int64 // versions that there were at the beginning, about; 0 if nobody asks for them
}

// pass is one reading of all records, from the first key to the last one.
type pass struct {
	from  string // keys before it were read
	whole bool   // all keys were read
	now   digest // of those keys, as of source.seen

	versions, bytes int64 // that were read
}

// apply takes in one event.
func (p *pass) apply(e storage.Event) {
	if !p.whole && e.Key >= p.from {
		return
	}
	if e.Prev.Revision != 0 && e.Prev.Value != nil {
		p.now.remove(e.Prev)
	}
	if e.Value != nil {
		p.now.add(e.Record)
	}
}

// pace says when there is something to tell.
type pace struct{ versions, bytes int64 }

func (p *pace) due(versions, bytes int64) bool {
	if versions-p.versions < pageRecords && bytes-p.bytes < pageBytes {
		return false
	}
	p.versions, p.bytes = versions, bytes
	return true
}

// oldest returns the revision that the history of a store begins at, or the newest one if
// the store does not tell.
func oldest(ctx context.Context, b storage.Backend, newest storage.Revision) (storage.Revision, error) {
	if newest == 0 {
		return 0, nil
	}
	_, err := b.Get(ctx, "", 1)
	var compacted *storage.CompactedError
	var damaged *storage.DamagedError
	switch {
	case err == nil, errors.Is(err, storage.ErrNotFound), errors.As(err, &damaged):
		return 1, nil
	case errors.As(err, &compacted):
		return min(compacted.Oldest, newest), nil
	case errors.Is(err, storage.ErrCompacted):
		return newest, nil
	}
	return 0, err
}

// begin opens a watch at the start of the history. That moves on while it is opened, so
// that after some attempts the newest revision has to do.
func (s *source) begin(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		newest, err := s.store.Revision(ctx)
		if err != nil {
			return err
		}
		s.oldest = newest
		if !s.o.SkipDamaged && attempt < 3 {
			if s.oldest, err = oldest(ctx, s.store, newest); err != nil {
				return err
			}
		}
		s.seen, s.report.Oldest, s.report.Revision = s.oldest, s.oldest, s.oldest
		inner, cancel := context.WithCancel(ctx)
		next, stop := iter.Pull2(s.store.Watch(inner, "", s.oldest))
		s.next, s.stop = next, func() { cancel(); stop() }
		if s.oldest == newest {
			return nil
		}
		if err = s.pull(ctx); err == nil {
			return nil
		}
		s.stop()
		if !errors.Is(err, storage.ErrCompacted) {
			return err
		}
	}
}

// pull waits for the next commit.
func (s *source) pull(ctx context.Context) error {
	if s.ahead != nil {
		return nil
	}
	events, err, ok := s.next()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !ok:
		return errors.New("the watch of the source ended")
	case err != nil:
		return err
	}
	s.ahead = events
	return nil
}

// follow applies the commits up to a revision.
func (s *source) follow(ctx context.Context, upTo storage.Revision) error {
	for s.seen < upTo {
		err := s.pull(ctx)
		if errors.Is(err, storage.ErrCompacted) {
			return fmt.Errorf("the commits after revision %d cannot be read any more, since they are too many for the time that they take or damaged: %w", s.seen, err)
		}
		if err != nil {
			return err
		}
		if s.ahead[0].Revision > upTo {
			s.seen = upTo // other programs may use revisions, too
			return nil
		}
		events := s.ahead
		s.ahead = nil
		for _, e := range events {
			if err := s.apply(e); err != nil {
				return err
			}
		}
		s.seen = events[0].Revision
	}
	return nil
}

// apply takes in one event. What it replaced belongs to the history if it is from before.
func (s *source) apply(e storage.Event) error {
	if e.Damaged != nil {
		if err := s.damaged(e.Damaged); err != nil {
			return err
		}
	}
	lost := e.Prev.Revision != 0 && e.Prev.Value == nil
	if e.Prev.Revision != 0 && e.Prev.Revision <= s.oldest {
		if lost {
			if err := s.damaged(&storage.DamagedError{Key: e.Key, Revision: e.Prev.Revision, Err: errors.New("its value is gone")}); err != nil {
				return err
			}
		} else if err := s.version(e.Prev); err != nil {
			return err
		}
	}
	s.pass.apply(e)
	s.again.apply(e)
	if e.Damaged != nil {
		return nil
	}
	return s.version(e.Record)
}

func (s *source) version(rec storage.Record) error {
	s.report.Revision = max(s.report.Revision, rec.Revision)
	s.report.Versions++
	s.report.Bytes += int64(len(rec.Key) + len(rec.Value))
	if s.pace.due(s.report.Versions, s.report.Bytes) {
		s.tell(s.phase)
	}
	return s.emit(rec)
}

// damaged ends it, unless what is damaged is to be left out.
func (s *source) damaged(err *storage.DamagedError) error {
	if !s.o.SkipDamaged || len(s.report.Damaged) >= maxDamaged {
		return err
	}
	s.report.Damaged = append(s.report.Damaged, err)
	return nil
}

// page reads the next records of a pass and, before it takes them in, the commits up to their
// revision. Those of the first pass are given away.
func (s *source) page(ctx context.Context, p *pass) error {
	at, records, err := s.store.Scan(ctx, "", p.from, 0)
	if err != nil {
		return err
	}
	var page []storage.Record
	size, from, whole, first := 0, p.from, true, p == &s.pass
	for rec, err := range records {
		var damaged *storage.DamagedError
		switch {
		case errors.As(err, &damaged):
			if !s.o.SkipDamaged {
				return err
			}
			if first {
				err = s.damaged(damaged)
			} else {
				err = nil // it is known
			}
			if err != nil {
				return err
			}
			rec.Key = damaged.Key
		case errors.Is(err, storage.ErrCompacted): // go on at a newer revision
			whole = false
		case err != nil:
			return err
		default:
			page = append(page, rec)
			size += len(rec.Key) + len(rec.Value)
		}
		if !whole {
			break
		}
		from = rec.Key + "\x00"
		if whole = len(page) < pageRecords && size < pageBytes; !whole {
			break
		}
	}
	if err := s.follow(ctx, at); err != nil {
		return err
	}
	for _, rec := range page {
		p.now.add(rec)
		p.versions, p.bytes = p.versions+1, p.bytes+int64(len(rec.Key)+len(rec.Value))
		if !first {
			continue
		}
		if err := s.version(rec); err != nil {
			return err
		}
	}
	p.from, p.whole = from, whole
	return nil
}

// read does all of it, up to a newest revision after which there is none, if the program
// says so, and returns it.
func (s *source) read(ctx context.Context) error {
	for s.phase = Copying; !s.whole; {
		if err := s.page(ctx, &s.pass); err != nil {
			return err
		}
		s.tell(Copying)
	}
	if err := s.compare(ctx); err != nil {
		return err
	}
	if s.o.Cutover == nil {
		return s.catchUp(ctx)
	}
	s.phase = Following
	for lag := storage.Revision(1 << 62); lag > catchUpLag; {
		before := s.seen
		if err := s.catchUp(ctx); err != nil {
			return err
		}
		if s.seen-before >= lag {
			break // it does not get less
		}
		lag = s.seen - before
		s.tell(Following)
	}
	if err := s.o.Cutover(ctx); err != nil {
		return fmt.Errorf("stopping writes: %w", err)
	}
	return s.catchUp(ctx)
}

// compare reads all records once more, if that is wanted, and compares them with what was read.
// It is done while there are writes, so that their stop does not take that long.
func (s *source) compare(ctx context.Context) error {
	if !s.twice {
		return nil
	}
	s.tell(Verifying)
	for s.phase = Verifying; !s.again.whole; {
		if err := s.page(ctx, &s.again); err != nil {
			return err
		}
		s.tell(Verifying)
	}
	if err := s.again.now.compare(s.now); err != nil {
		return fmt.Errorf("the source at revision %d: %w", s.seen, err)
	}
	s.again = pass{}
	return nil
}

// catchUpLag is how many commits may be left when writes are stopped.
const catchUpLag = 100

func (s *source) catchUp(ctx context.Context) error {
	newest, err := s.store.Revision(ctx)
	if err != nil {
		return err
	}
	if err := s.follow(ctx, newest); err != nil {
		return err
	}
	s.report.Keys = s.now.keys
	return nil
}

func (s *source) tell(phase Phase) {
	if s.o.Progress == nil {
		return
	}
	p := Progress{Phase: phase, Versions: s.report.Versions, Bytes: s.report.Bytes, Revision: s.seen}
	switch phase {
	case Copying:
		p.Total = s.total
	case Verifying:
		p.Versions, p.Bytes, p.Total = s.again.versions, s.again.bytes, s.pass.versions
	}
	s.o.Progress(p)
}
