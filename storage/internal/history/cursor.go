package history

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// Cursor is the position of a reader. It is not safe for concurrent use.
type Cursor struct {
	Prefix string
	After  storage.Revision // newest revision that was read
}

// Watch yields each commit after the given revision with its events under prefix, until the context
// ends. Any other error is yielded and ends the sequence.
//
// If the log has dropped commits that the watch needs, Watch calls older, which yields commits from
// another source, moves the cursor past them, and reports whether the watch goes on. If older is nil,
// Watch yields storage.ErrCompacted.
func (l *Log) Watch(ctx context.Context, prefix string, after storage.Revision, older func(c *Cursor, yield func([]storage.Event, error) bool) bool) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		cursor := Cursor{Prefix: prefix, After: after}
		for {
			commits, err := l.Next(ctx, &cursor)
			if older != nil && errors.Is(err, storage.ErrCompacted) {
				if !older(&cursor, yield) {
					return
				}
				continue
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, c := range commits {
				events := withPrefix(prefix, c.Events)
				if len(events) > 0 && (ctx.Err() != nil || !yield(events, nil)) {
					return
				}
			}
		}
	}
}

// withPrefix returns the events of a commit for keys with the prefix, as a slice of events. They
// are adjacent because events are sorted by key.
func withPrefix(prefix string, events []storage.Event) []storage.Event {
	for len(events) > 0 && !strings.HasPrefix(events[0].Key, prefix) {
		events = events[1:]
	}
	n := len(events)
	for n > 0 && !strings.HasPrefix(events[n-1].Key, prefix) {
		n--
	}
	return events[:n:n]
}

// Next returns the commits after the cursor and moves the cursor past them. The commits may have events
// under any prefix. If there are none, Next waits for a commit under the prefix of the cursor. It fails
// with storage.ErrCompacted if some of the commits were dropped, with storage.ErrClosed after Close,
// and with the error of the context when it ends. The result must not be modified.
func (l *Log) Next(ctx context.Context, c *Cursor) ([]Commit, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run, parked, err := l.poll(c)
		if err != nil {
			return nil, err
		}
		if parked == nil {
			c.After = run[len(run)-1].Revision
			return run, nil
		}
		select {
		case <-parked.Woken():
			c.After = max(c.After, parked.Quiet())
		case <-ctx.Done():
			l.mu.Lock()
			l.waiting.Leave(c.Prefix, parked)
			l.mu.Unlock()
		}
	}
}

// poll returns the next run of commits. If there is none, it parks the reader and returns its group.
func (l *Log) poll(c *Cursor) ([]Commit, *eventlog.Group, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Trim(time.Now())
	switch {
	case l.closed:
		return nil, nil, storage.ErrClosed
	case c.After < l.log.Floor():
		return nil, nil, &storage.CompactedError{Oldest: l.log.Floor()}
	case c.After < l.log.Newest():
		return l.log.After(c.After), nil, nil
	}
	return nil, l.waiting.Park(c.Prefix), nil
}
