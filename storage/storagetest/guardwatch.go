package storagetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/storage"
)

// watched is a watch with the commits that it has yielded.
type watched struct {
	g         *guarded
	what      string
	prefix    string
	after     storage.Revision
	last      storage.Revision
	floor     storage.Revision   // start of the history when the watch began
	delivered []storage.Revision // revisions of the last commits
	failed    error              // error that it yielded
	of        sentence           // violated if it yields a commit that is not newer than after
	ctx       context.Context    // context of the consumer
}

// check compares an element of the watch with the contract and with the acknowledged commits.
func (w *watched) check(commit []storage.Event, err error) *breach {
	if w.failed != nil {
		return breaks(watchForgets, "%s went on after it yielded: %v", w.what, w.failed)
	}
	if err != nil {
		if w.failed = err; errors.Is(err, context.Canceled) {
			return breaks(watchYields, "%s ended with an error when its context did: %v", w.what, err)
		}
		return nil
	}
	if len(commit) == 0 {
		return breaks(watchEvents, "%s yielded a commit without events", w.what)
	}
	revision := commit[0].Revision
	switch {
	case w.after < w.floor:
		return breaks(watchForgets, "%s delivered revision %d, and Compact(%d) was before it", w.what, revision, w.floor)
	case revision <= w.after:
		return breaks(w.of, "%s delivered revision %d", w.what, revision)
	case revision <= w.last:
		return breaks(watchYields, "%s delivered revision %d after %d", w.what, revision, w.last)
	}
	if missed := w.pending(); missed != 0 && missed < revision {
		return breaks(watchYields, "%s delivered revision %d without %d; before it %s", w.what, revision, missed, w.sofar())
	}
	for i, e := range commit {
		switch {
		case !strings.HasPrefix(e.Key, w.prefix):
			return breaks(watchYields, "%s delivered key %q", w.what, e.Key)
		case e.Revision != revision:
			return breaks(watchEvents, "%s delivered revisions %d and %d as one commit", w.what, revision, e.Revision)
		case i > 0 && e.Key <= commit[i-1].Key:
			return breaks(watchEvents, "%s delivered key %q after %q in revision %d", w.what, e.Key, commit[i-1].Key, revision)
		}
		w.g.keep(watchEvents, w.what+" delivered", e.Value)
	}
	const few = 8
	w.last = revision
	if w.delivered = append(w.delivered, revision); len(w.delivered) > few {
		w.delivered = w.delivered[1:]
	}
	w.g.saw(revision)
	return nil
}

// pending returns the first acknowledged revision that the watch must still yield, or 0.
func (w *watched) pending() storage.Revision {
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	i, found := slices.BinarySearchFunc(w.g.acked, w.last, func(a acked, r storage.Revision) int { return int(a.revision - r) })
	if found {
		i++
	}
	for _, a := range w.g.acked[i:] {
		for _, key := range a.keys {
			if strings.HasPrefix(key, w.prefix) {
				return a.revision
			}
		}
	}
	return 0
}

func (w *watched) sofar() string {
	if len(w.delivered) == 0 {
		return "it delivered nothing"
	}
	return fmt.Sprintf("it delivered %v", w.delivered)
}

// late returns a breach if the watch should have yielded an acknowledged commit or ended within the given time, else nil.
func (w *watched) late(within time.Duration) *breach {
	w.g.mu.Lock()
	closed := w.g.closes > 0
	w.g.mu.Unlock()
	missed := w.pending()
	switch {
	case closed:
		return breaks(closeEnds, "%s did not end within %v after Close", w.what, within)
	case w.ctx.Err() != nil:
		return breaks(watchYields, "%s did not end within %v after its context", w.what, within)
	case missed != 0:
		return breaks(watchYields, "%s did not deliver revision %d within %v; %s", w.what, missed, within, w.sofar())
	}
	return nil
}

// guardSeq wraps a sequence of a backend. It runs the sequence in its own goroutine, so that it can stop waiting for it.
// check checks each element. late returns a breach if an element or the end of the sequence is overdue.
func guardSeq[T any](g *guarded, cancel func(), what string, seq iter.Seq2[T, error], check func(T, error) *breach, late func(time.Duration) *breach) iter.Seq2[T, error] {
	type item struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		items, next, gone, ended := make(chan item), make(chan bool), make(chan struct{}), make(chan struct{})
		defer cancel()
		defer close(gone)
		go func() {
			defer close(ended)
			defer g.recovered(what)
			stopped := false
			seq(func(value T, err error) bool {
				if stopped {
					g.v.note(breaks(watchYields, "%s went on after its consumer had stopped", what))
					return false
				}
				select {
				case items <- item{value, err}:
				case <-gone:
					stopped = true
					return false
				}
				select {
				case goOn := <-next:
					stopped = !goOn
				case <-gone:
					stopped = true
				}
				return !stopped
			})
		}()
		for {
			it, more, err := wait(g, items, ended, late)
			if !more {
				if err != nil {
					yield(it.value, err)
				}
				return
			}
			if b := check(it.value, it.err); b != nil {
				it.err = g.v.note(b)
			}
			if !yield(it.value, it.err) {
				next <- false
				_, _, _ = wait(g, items, ended, func(within time.Duration) *breach {
					return breaks(watchYields, "%s did not end within %v after its consumer stopped", what, within)
				})
				return
			}
			next <- true
		}
	}
}

// wait returns the next element, the end of the sequence, or the breach of late.
func wait[T any](g *guarded, items <-chan T, ended <-chan struct{}, late func(time.Duration) *breach) (it T, more bool, err error) {
	for {
		patience := g.v.hang.patience()
		timer := time.NewTimer(patience)
		select {
		case it = <-items:
			timer.Stop()
			return it, true, nil
		case <-ended:
			timer.Stop()
			return it, false, nil
		case <-timer.C:
		}
		if b := late(patience); b != nil {
			g.v.hang.note()
			return it, false, g.v.note(b)
		}
	}
}
