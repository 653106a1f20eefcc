package eventlog

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"orch.io/controlplane/storage"
)

// Cursor is one reader's position. It belongs to one goroutine.
type Cursor struct {
	Prefix string
	After  storage.Revision // everything up to here was read
}

// Watch yields every event under a prefix after a revision, until the context
// ends; any other error ends it, too, after it was yielded. What the log has
// forgotten is for older to yield: it moves the cursor on and reports whether
// the watch goes on. Without it that is storage.ErrCompacted.
func (l *Log) Watch(ctx context.Context, prefix string, after storage.Revision, older func(c *Cursor, yield func(storage.Event, error) bool) bool) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		cursor := Cursor{Prefix: prefix, After: after}
		var buf []storage.Event
		for {
			events, err := l.Next(ctx, &cursor, buf[:0])
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
				yield(storage.Event{}, err)
				return
			}
			for i, e := range events {
				e.More = i+1 < len(events) && events[i+1].Revision == e.Revision
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
			}
			clear(events)
			buf = events
		}
	}
}

// waiter is a parked reader: it has read everything that matters to it up to
// now, so it cannot fall behind while nothing under its prefix is committed.
type waiter struct {
	prefix string
	after  storage.Revision
	place  int
	parked bool
	woken  chan struct{}
}

// Next appends to buf the events that match the cursor, waits for the first
// one, and moves the cursor on, never to between those of one commit. It fails with storage.ErrCompacted if part of
// them is forgotten, with storage.ErrClosed after Close and with the context's
// error when that ends.
func (l *Log) Next(ctx context.Context, c *Cursor, buf []storage.Event) ([]storage.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return buf, err
		}
		run, w, err := l.poll(c)
		if err != nil {
			return buf, err
		}
		if w != nil {
			select {
			case <-w.woken:
				c.After = w.after
			case <-ctx.Done():
				l.leave(w)
			}
			continue
		}
		c.After = run[len(run)-1].Revision
		n := len(buf)
		for _, e := range run {
			if strings.HasPrefix(e.Key, c.Prefix) {
				buf = append(buf, e)
			}
		}
		if len(buf) > n {
			return buf, nil
		}
	}
}

// poll returns the next run of events, or parks the reader if there is none.
func (l *Log) poll(c *Cursor) ([]storage.Event, *waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim(time.Now())
	switch {
	case l.closed:
		return nil, nil, storage.ErrClosed
	case c.After < l.floor:
		return nil, nil, &storage.CompactedError{Oldest: l.floor}
	case c.After < l.newest:
		events := l.chunks[l.find(c.After)].events
		return events[index(events, c.After):], nil, nil
	}
	w := &waiter{prefix: c.Prefix, after: c.After, woken: make(chan struct{})}
	w.place, w.parked = len(l.waiters), true
	l.waiters = append(l.waiters, w)
	return nil, w, nil
}

func (l *Log) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.parked {
		l.unpark(w)
	}
}

// unpark takes w off the list; the caller holds the lock.
func (l *Log) unpark(w *waiter) {
	last := len(l.waiters) - 1
	moved := l.waiters[last]
	l.waiters[w.place], moved.place = moved, w.place
	l.waiters[last] = nil
	l.waiters = l.waiters[:last]
	w.parked = false
}
