package badgerstore

import (
	"context"
	"errors"
	"iter"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/internal/history"
)

// Watch implements storage.Backend. It reads commits that are not in memory from the disk. When the store is closed,
// the sequence yields storage.ErrClosed and ends.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return s.log.Watch(ctx, prefix, after, func(c *history.Cursor, yield func([]storage.Event, error) bool) bool {
		return s.replay(ctx, c, yield)
	})
}

// History implements storage.HistoryReader.
func (s *Store) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		cursor := history.Cursor{Prefix: prefix, After: after}
		within := func(events []storage.Event, err error) bool {
			return (err != nil || events[0].Revision <= last) && yield(events, err)
		}
		for cursor.After < last {
			at := cursor.After
			if !s.replay(ctx, &cursor, within) || cursor.After == at {
				return // last is newer than the newest commit
			}
		}
	}
}

// replayEvents is the number of events that are read at once, plus the rest of their last commit.
const replayEvents = 32

// replay yields the next old commits from the disk and moves the cursor past them. It returns false if the watch has
// ended.
func (s *Store) replay(ctx context.Context, cursor *history.Cursor, yield func([]storage.Event, error) bool) bool {
	commits, last, err := s.commits(cursor.Prefix, cursor.After)
	for err == nil && len(commits) > 0 {
		n := min(replayEvents, len(commits))
		for n < len(commits) && commits[n].revision == commits[n-1].revision {
			n++
		}
		var events []storage.Event
		if events, err = s.events(ctx, commits[:n]); err != nil {
			break
		}
		for first, rest := history.First(events); len(first) > 0; first, rest = history.First(rest) {
			if ctx.Err() != nil || !yield(first, nil) {
				return false
			}
		}
		commits = commits[n:]
	}
	if ctx.Err() != nil {
		return false
	}
	if damaged := (*storage.DamagedError)(nil); errors.As(err, &damaged) {
		s.logger.Error("a watch ended: its history cannot be read", "dir", s.dir, "err", err)
		err = storage.ErrCompacted
	}
	if err != nil {
		yield(nil, err)
		return false
	}
	cursor.After = last
	return true
}

// events returns the events of commits. It reads the written and the replaced records from the database.
func (s *Store) events(ctx context.Context, commits []commit) ([]storage.Event, error) {
	if !s.enter() {
		return nil, storage.ErrClosed
	}
	defer s.leave()
	events := make([]storage.Event, 0, len(commits))
	for _, c := range commits {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e := storage.Event{Record: storage.Record{Key: c.key, Revision: c.revision}}
		var err error
		if !c.deleted {
			if e.Record, err = s.read(c.key, c.revision); err == nil && e.Record.Revision != c.revision {
				err = &storage.DamagedError{Key: c.key, Revision: c.revision, Err: errNoValue}
			}
			if err != nil {
				return nil, err
			}
		}
		if !c.created {
			if e.Prev, err = s.read(c.key, c.revision-1); err != nil {
				return nil, err
			}
		}
		events = append(events, e)
	}
	if commits[0].revision-1 < s.oldestReadable() {
		return nil, s.compactedError()
	}
	return events, nil
}
