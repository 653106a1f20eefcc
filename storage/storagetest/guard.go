package storagetest

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/storage"
)

// guarded wraps a backend and checks each call, independently of the case: the call must return in time, and its result
// must be consistent with earlier results.
type guarded struct {
	backend storage.Backend
	v       *verdict

	mu        sync.Mutex
	shown     storage.Revision // largest revision that a call returned
	acked     []acked          // acknowledged commits, sorted by revision
	compacted storage.Revision // history before this revision is dropped
	ofKey     map[string]storage.Revision
	kept      []kept // values that the store returned
	closes    int    // number of calls of Close
}

// acked is an acknowledged commit.
type acked struct {
	revision storage.Revision
	keys     []string
}

// kept is a value that the store returned, with a copy of its content.
type kept struct {
	of         sentence
	by         string
	live, then []byte
}

// call executes one call with a time limit. It returns a breach if the call does not return.
func (g *guarded) call(ctx context.Context, what string, f func(ctx context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return g.await(ctx, cancel, what, func() { f(ctx) })
}

// await waits for f, which must return after the context has ended.
func (g *guarded) await(ctx context.Context, cancel func(), what string, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer g.recovered(what)
		f()
	}()
	patience := g.v.hang.patience()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
	}
	g.v.hang.note()
	why := "and its context had ended"
	if ctx.Err() == nil {
		cancel()
		why = "nor when its context ended then"
		timer.Reset(patience / 10)
		select {
		case <-done:
			why = "but when its context ended then"
		case <-timer.C:
		}
	}
	return g.v.note(breaks(allMethods, "%s did not return within %v, %s", what, patience, why))
}

func (g *guarded) recovered(what string) {
	if p := recover(); p != nil {
		g.v.note(breaks(allMethods, "%s panicked: %v\n%s", what, p, debug.Stack()))
	}
}

// state returns the lower bounds for the results of later calls: the largest revision that was returned, and the newest
// acknowledged commit of the store and of one key.
func (g *guarded) state(key string) (shown, newest, ofKey storage.Revision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.acked); n > 0 {
		newest = g.acked[n-1].revision
	}
	return g.shown, newest, g.ofKey[key]
}

func (g *guarded) saw(revision storage.Revision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shown = max(g.shown, revision)
}

// keep records a value, which must not change.
func (g *guarded) keep(of sentence, by string, value []byte) {
	const most, longest = 2000, 64 << 10
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(value) > 0 && len(value) <= longest && len(g.kept) < most {
		g.kept = append(g.kept, kept{of, by, value, slices.Clone(value)})
	}
}

// unchanged checks that the returned values have not changed.
func (g *guarded) unchanged() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range g.kept {
		if string(k.live) != string(k.then) {
			g.v.note(breaks(k.of, "the value %.40q that %s has become %.40q", k.then, k.by, k.live))
		}
	}
}

// Get implements storage.Backend.
func (g *guarded) Get(ctx context.Context, key string, at storage.Revision) (rec storage.Record, err error) {
	what := fmt.Sprintf("Get(%q, %d)", key, at)
	_, _, before := g.state(key)
	var got storage.Record
	var failed error
	if err := g.call(ctx, what, func(ctx context.Context) { got, failed = g.backend.Get(ctx, key, at) }); err != nil || failed != nil {
		return rec, either(err, failed)
	}
	switch {
	case got.Revision == 0:
		return got, g.v.note(breaks(getFails, "%s returned a record of no revision, and no error", what))
	case got.Key != key:
		return got, g.v.note(breaks(getReturns, "%s returned the record of %q", what, got.Key))
	case at == 0 && got.Revision < before:
		return got, g.v.note(breaks(getReturns, "%s returned revision %d, and %d was acknowledged before the call", what, got.Revision, before))
	case at > 0 && got.Revision > at:
		return got, g.v.note(breaks(getReturns, "%s returned revision %d, which is later", what, got.Revision))
	}
	g.saw(got.Revision)
	g.keep(getReturns, what+" returned", got.Value)
	return got, nil
}

// Commit implements storage.Backend.
func (g *guarded) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	keys := make([]string, len(ws))
	for i, w := range ws {
		keys[i] = w.Key
		g.keep(commitApplies, "Commit was given", w.Value)
	}
	what := fmt.Sprintf("Commit of %.200q", keys)
	before, _, _ := g.state("")
	var revision storage.Revision
	var failed error
	if err := g.call(ctx, what, func(ctx context.Context) { revision, failed = g.backend.Commit(ctx, ws...) }); err != nil || failed != nil {
		return revision, either(err, failed)
	}
	if revision <= before {
		return revision, g.v.note(breaks(commitApplies, "%s returned revision %d, and %d was shown before the call", what, revision, before))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shown = max(g.shown, revision)
	i, _ := slices.BinarySearchFunc(g.acked, revision, func(a acked, r storage.Revision) int { return int(a.revision - r) })
	g.acked = slices.Insert(g.acked, i, acked{revision, keys})
	for _, key := range keys {
		g.ofKey[key] = max(g.ofKey[key], revision)
	}
	return revision, nil
}

// Revision implements storage.Backend.
func (g *guarded) Revision(ctx context.Context) (revision storage.Revision, err error) {
	_, before, _ := g.state("")
	var failed error
	if err := g.call(ctx, "Revision()", func(ctx context.Context) { revision, failed = g.backend.Revision(ctx) }); err != nil {
		return 0, err
	}
	if failed == nil && revision < before {
		return revision, g.v.note(breaks(revisionNewest, "Revision() returned %d, and %d was acknowledged before the call", revision, before))
	}
	g.saw(revision)
	return revision, failed
}

// Compact implements storage.Backend.
func (g *guarded) Compact(ctx context.Context, before storage.Revision) error {
	var failed error
	err := g.call(ctx, fmt.Sprintf("Compact(%d)", before), func(ctx context.Context) { failed = g.backend.Compact(ctx, before) })
	if err == nil && failed == nil {
		g.mu.Lock()
		g.compacted = max(g.compacted, before)
		g.mu.Unlock()
	}
	return either(err, failed)
}

// either returns the breach of a call, or the error that the store returned.
func either(call, failed error) error {
	if call != nil {
		return call
	}
	return failed
}

// Close implements storage.Backend.
func (g *guarded) Close() error {
	var failed error
	g.mu.Lock()
	g.closes++
	of := closeEnds
	if g.closes > 1 {
		of = closeTwice
	}
	g.mu.Unlock()
	err := g.call(context.Background(), "Close()", func(context.Context) { failed = g.backend.Close() })
	if err == nil && failed != nil {
		return g.v.note(breaks(of, "Close() = %v", failed))
	}
	return err
}

// Scan implements storage.Backend.
func (g *guarded) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	what := fmt.Sprintf("Scan(%q, %q, %d)", prefix, start, at)
	_, newest, _ := g.state("")
	ctx, cancel := context.WithCancel(ctx)
	var revision storage.Revision
	var records iter.Seq2[storage.Record, error]
	var failed error
	if err := g.await(ctx, cancel, what, func() { revision, records, failed = g.backend.Scan(ctx, prefix, start, at) }); err != nil || failed != nil {
		cancel()
		return 0, nil, either(err, failed)
	}
	if at > 0 && revision != at {
		cancel()
		return revision, nil, g.v.note(breaks(scanReturns, "%s shows revision %d", what, revision))
	}
	if at == 0 && revision < newest {
		cancel()
		return revision, nil, g.v.note(breaks(scanReturns, "%s shows revision %d, and %d was acknowledged before the call", what, revision, newest))
	}
	g.saw(revision)
	last := ""
	check := func(rec storage.Record, err error) *breach {
		defer func() { last = rec.Key }()
		switch {
		case err != nil:
			return nil
		case !strings.HasPrefix(rec.Key, prefix):
			return breaks(scanReturns, "%s yielded key %q", what, rec.Key)
		case rec.Key < start:
			return breaks(scanStarts, "%s yielded key %q", what, rec.Key)
		case rec.Key <= last && last != "":
			return breaks(scanReturns, "%s yielded key %q after %q", what, rec.Key, last)
		case rec.Revision > revision:
			return breaks(scanShows, "%s shows revision %d, and yielded %q of revision %d", what, revision, rec.Key, rec.Revision)
		}
		return nil
	}
	late := func(within time.Duration) *breach {
		return breaks(allMethods, "%s did not go on within %v after key %q", what, within, last)
	}
	return revision, guardSeq(g, cancel, what, records, check, late), nil
}

// Watch implements storage.Backend.
func (g *guarded) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	what := fmt.Sprintf("Watch(%q, %d)", prefix, after)
	inner, cancel := context.WithCancel(ctx)
	w := &watched{g: g, what: what, prefix: prefix, after: after, last: after, ctx: ctx, of: watchYields}
	if _, newest, _ := g.state(""); after > newest {
		w.of = watchInFuture
	}
	g.mu.Lock()
	w.floor = g.compacted
	g.mu.Unlock()
	var events iter.Seq2[[]storage.Event, error]
	if err := g.await(inner, cancel, what, func() { events = g.backend.Watch(inner, prefix, after) }); err != nil {
		cancel()
		return func(yield func([]storage.Event, error) bool) { yield(nil, err) }
	}
	return guardSeq(g, cancel, what, events, w.check, w.late)
}
