package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"orch.io/controlplane/storage"
)

// Limits of one page. After each page, source applies the commits made in the meantime.
const (
	pageRecords = 2_000
	pageBytes   = 2 << 20
)

// maxDamaged is the maximum number of damaged records that are skipped.
const maxDamaged = 10_000

// source reads a store while it is written to. It reads the records in pages, each at the newest revision, and after each page
// the commits up to the revision of the page, from a watch. At any time it has therefore read all keys before some
// key as of one revision, and all commits from the start of the history to that revision. A revision must be
// retained only for the time that it takes to read one page.
type source struct {
	store storage.Backend
	o     Options
	emit  func(storage.Record) error // called for each version; a deletion has a nil Value

	next  func() ([]storage.Event, error, bool) // next commit of the watch
	stop  func()                                // ends the watch
	ahead []storage.Event                       // commit of the watch that is not applied yet

	oldest storage.Revision // start of the history
	seen   storage.Revision // all commits up to this revision are applied
	pass                    // the first reading of the records
	again  pass             // the second reading, which is compared with the first
	twice  bool             // read the records a second time
	report *Report
	phase  Phase
	pace   pace
	total  int64 // estimated number of versions, set by count; 0 if there is no progress callback
}

// pass is one reading of all records in key order.
type pass struct {
	from  string // keys before it were read
	whole bool   // all keys were read
	now   digest // digest of the keys that were read, as of source.seen

	versions, bytes int64 // number and size of the records that were read
}

// apply updates the digest for an event, if its key was read already.
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

// pace limits the number of progress reports.
type pace struct{ versions, bytes int64 }

func (p *pace) due(versions, bytes int64) bool {
	if versions-p.versions < pageRecords && bytes-p.bytes < pageBytes {
		return false
	}
	p.versions, p.bytes = versions, bytes
	return true
}

// oldest returns the start of the history of a store, or newest if the store does not report it.
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

// begin starts a watch at the start of the history. If the start is compacted before the watch has begun, begin tries again,
// and after three attempts it starts at the newest revision.
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

// pull waits for the next commit of the watch and stores it in s.ahead.
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
			return fmt.Errorf("the commits after revision %d are damaged, or were compacted before they could be read: %w", s.seen, err)
		}
		if err != nil {
			return err
		}
		if s.ahead[0].Revision > upTo {
			s.seen = upTo // revisions may have gaps
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

// apply emits the record of an event and updates both passes. If the replaced record is from before the history, it is emitted,
// too.
func (s *source) apply(e storage.Event) error {
	if e.Damaged != nil {
		if err := s.damaged(e.Damaged); err != nil {
			return err
		}
	}
	lost := e.Prev.Revision != 0 && e.Prev.Value == nil
	if e.Prev.Revision != 0 && e.Prev.Revision <= s.oldest {
		if lost {
			if err := s.damaged(&storage.DamagedError{Key: e.Key, Revision: e.Prev.Revision, Err: errors.New("value is missing")}); err != nil {
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

// version emits a version and counts it in the report.
func (s *source) version(rec storage.Record) error {
	s.report.Revision = max(s.report.Revision, rec.Revision)
	s.report.Versions++
	s.report.Bytes += int64(len(rec.Key) + len(rec.Value))
	if s.pace.due(s.report.Versions, s.report.Bytes) {
		s.reportProgress(s.phase)
	}
	return s.emit(rec)
}

// damaged returns err, or nil after it added err to the report if damaged records are skipped.
func (s *source) damaged(err *storage.DamagedError) error {
	if !s.o.SkipDamaged || len(s.report.Damaged) >= maxDamaged {
		return err
	}
	s.report.Damaged = append(s.report.Damaged, err)
	return nil
}

// page reads the next records of a pass, then applies the commits up to their revision, and then adds the records. It emits
// the records of the first pass.
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
				err = nil // reported by the first pass
			}
			if err != nil {
				return err
			}
			rec.Key = damaged.Key
		case errors.Is(err, storage.ErrCompacted): // continue at a newer revision
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

// read reads the whole source: all records, the second pass, and the commits. If there is a Cutover function, it follows the
// commits until few are left, calls it, and then reads the last commits.
func (s *source) read(ctx context.Context) error {
	for s.phase = Copying; !s.whole; {
		if err := s.page(ctx, &s.pass); err != nil {
			return err
		}
		s.reportProgress(Copying)
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
			break // the lag does not shrink
		}
		lag = s.seen - before
		s.reportProgress(Following)
	}
	if err := s.o.Cutover(ctx); err != nil {
		return fmt.Errorf("stopping writes: %w", err)
	}
	return s.catchUp(ctx)
}

// compare reads all records a second time, if s.twice is set, and compares them with the first pass. The source can be written
// to meanwhile, so this does not prolong the interruption of writes.
func (s *source) compare(ctx context.Context) error {
	if !s.twice {
		return nil
	}
	s.reportProgress(Verifying)
	for s.phase = Verifying; !s.again.whole; {
		if err := s.page(ctx, &s.again); err != nil {
			return err
		}
		s.reportProgress(Verifying)
	}
	if err := s.again.now.compare(s.now); err != nil {
		return fmt.Errorf("the source at revision %d: %w", s.seen, err)
	}
	s.again = pass{}
	return nil
}

// catchUpLag is the maximum number of commits that are left when Cutover is called.
const catchUpLag = 100

// catchUp applies the commits up to the newest revision.
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

func (s *source) reportProgress(phase Phase) {
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
