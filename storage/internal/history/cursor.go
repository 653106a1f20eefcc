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

// Cursor is one reader's position. It belongs to one goroutine.
type Cursor struct {
	Prefix string
	After  storage.Revision // everything up to here was read
}

// Watch yields every commit under a prefix after a revision, until the context
// ends; any other error ends it, too, after it was yielded. What the log has
// forgotten is for older to yield: it moves the cursor on and reports whether
// the watch goes on. Without it that is storage.ErrCompacted.
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
				events := under(prefix, c.Events)
				if len(events) > 0 && (ctx.Err() != nil || !yield(events, nil)) {
					return
				}
			}
		}
	}
}

// under returns the events of a commit whose key begins with a prefix. As they are
// in the order of their keys, these are neighbours.
func under(prefix string, events []storage.Event) []storage.Event {
	for len(events) > 0 && !strings.HasPrefix(events[0].Key, prefix) {
		events = events[1:]
	}
	n := len(events)
	for n > 0 && !strings.HasPrefix(events[n-1].Key, prefix) {
		n--
	}
	return events[:n:n]
}

// Next returns the next commits, of whatever keys, waits for one under the cursor's
// prefix if there are none, and moves the cursor on. It fails with
// storage.ErrCompacted if part of them is forgotten, with storage.ErrClosed after
// Close and with the context's error when that ends.
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

// poll returns the next run of commits, or parks the reader if there is none.
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
