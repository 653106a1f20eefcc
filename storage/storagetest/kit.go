// Package storagetest provides conformance tests for implementations of storage.Backend. All stores of this project
// run them; run them for your own store, too.
//
//   - Run tests an open store.
//   - RunDurable tests that a store in a directory keeps its data when it is closed or its process crashes.
//   - RunRetained tests that a store drops old history by age.
//   - RunFaults tests several stores on one database engine while the engine fails.
package storagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// Run tests a store against the contract of storage.Backend. open returns an empty store that keeps its history until
// Compact is called; Run closes it. The cases run in parallel, each with its own store.
//
// If a case fails, the message quotes the sentence of the contract that the store violates and describes the first
// violation. A case also fails, instead of waiting forever, if a call does not return or a watch does not yield an
// acknowledged commit.
func Run(t *testing.T, open func(t testing.TB) storage.Backend) {
	h := &hang{}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t, h, open)
		})
	}
}

func rules() []rule {
	return slices.Concat(readRules(), writeRules(), togetherRules(), guardRules(), watchRules(), compactRules(), lifeRules(), importRules(), modelRules(), brokenRules())
}

// put sets the value of key, whether or not it exists.
func (s *store) put(key, value string) storage.Revision {
	s.t.Helper()
	revision, err := s.Commit(s.ctx, storage.Write{Key: key, Value: []byte(value), Expect: storage.AnyRevision})
	require.NoError(s.t, err)
	return revision
}

func (s *store) del(key string) storage.Revision {
	s.t.Helper()
	revision, err := s.Commit(s.ctx, storage.Write{Key: key, Expect: storage.AnyRevision})
	require.NoError(s.t, err)
	return revision
}

func (s *store) newest() storage.Revision {
	s.t.Helper()
	revision, err := s.Revision(s.ctx)
	require.NoError(s.t, err)
	return revision
}

// get returns a record, or the zero Record if the key does not exist.
func (s *store) get(key string, at storage.Revision) storage.Record {
	s.t.Helper()
	rec, err := s.Get(s.ctx, key, at)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Record{}
	}
	require.NoError(s.t, err)
	return rec
}

// scan returns all records of a scan and their revision.
func (s *store) scan(prefix, start string, at storage.Revision) (storage.Revision, []storage.Record) {
	s.t.Helper()
	revision, records, err := s.Scan(s.ctx, prefix, start, at)
	require.NoError(s.t, err)
	var got []storage.Record
	for rec, err := range records {
		require.NoError(s.t, err)
		got = append(got, rec)
	}
	return revision, got
}

func (s *store) keys(prefix, start string, at storage.Revision) []string {
	s.t.Helper()
	_, records := s.scan(prefix, start, at)
	keys := []string{}
	for _, rec := range records {
		keys = append(keys, rec.Key)
	}
	return keys
}

// follow returns the next n events of a watch. They must form complete commits.
func (s *store) follow(prefix string, after storage.Revision, n int) []storage.Event {
	s.t.Helper()
	events, err := collect(s.ctx, s.Backend, prefix, after, n)
	require.NoError(s.t, err)
	return events
}

// collect reads commits from a watch until they have n events in total. It returns an error if the watch ends before.
func collect(ctx context.Context, b storage.Backend, prefix string, after storage.Revision, n int) ([]storage.Event, error) {
	var events []storage.Event
	if n == 0 {
		return nil, nil
	}
	for commit, err := range b.Watch(ctx, prefix, after) {
		if err == nil {
			err = whole(commit, after)
		}
		if err != nil {
			return events, err
		}
		after = commit[0].Revision
		if events = append(events, commit...); len(events) >= n {
			return events, nil
		}
	}
	return events, fmt.Errorf("the watch ended after %d of %d events: %w", len(events), n, ctx.Err())
}

// whole returns an error unless commit is a valid element of a watch, newer than revision after.
func whole(commit []storage.Event, after storage.Revision) error {
	if len(commit) == 0 || commit[0].Revision <= after {
		return fmt.Errorf("the watch yields %+v after revision %d", commit, after)
	}
	for i := range commit[1:] {
		if commit[i].Revision != commit[i+1].Revision || commit[i].Key >= commit[i+1].Key {
			return fmt.Errorf("the watch yields %+v as one commit", commit)
		}
	}
	return nil
}

// history is the expected content of a store.
type history struct {
	base   storage.Revision // revision before the first event
	events []storage.Event
	now    map[string]storage.Record // expected newest records
}

func newHistory(base storage.Revision) *history {
	return &history{base: base, now: make(map[string]storage.Record)}
}

// add records a commit of one key. A nil value is a deletion.
func (h *history) add(key string, value []byte, revision storage.Revision) {
	rec := storage.Record{Key: key, Value: value, Revision: revision}
	h.events = append(h.events, storage.Event{Record: rec, Prev: h.now[key]})
	if value == nil {
		delete(h.now, key)
	} else {
		h.now[key] = rec
	}
}

func (h *history) newest() storage.Revision {
	if len(h.events) == 0 {
		return h.base
	}
	return h.events[len(h.events)-1].Revision
}

// at returns the expected result of a scan.
func (h *history) at(revision storage.Revision, prefix, start string) []storage.Record {
	state := make(map[string]storage.Record)
	for _, e := range h.events {
		if e.Revision > revision {
			break
		}
		if e.Deleted() {
			delete(state, e.Key)
		} else {
			state[e.Key] = e.Record
		}
	}
	var records []storage.Record
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if strings.HasPrefix(key, prefix) && key >= start {
			records = append(records, state[key])
		}
	}
	return records
}

// after returns the expected events of a watch.
func (h *history) after(revision storage.Revision, prefix string) []storage.Event {
	var events []storage.Event
	for _, e := range h.events {
		if e.Revision > revision && strings.HasPrefix(e.Key, prefix) {
			events = append(events, e)
		}
	}
	return events
}

// verifyWatches compares watches of all prefixes after a revision with the history. They run concurrently, because a store
// may need some time to start a watch.
func (h *history) verifyWatches(s *store, at storage.Revision, prefixes []string) {
	s.t.Helper()
	got, errs := make([][]storage.Event, len(prefixes)), make([]error, len(prefixes))
	var all sync.WaitGroup
	for i, prefix := range prefixes {
		all.Go(func() { got[i], errs[i] = collect(s.ctx, s.Backend, prefix, at, len(h.after(at, prefix))) })
	}
	all.Wait()
	for i, prefix := range prefixes {
		require.NoError(s.t, errs[i])
		s.sameEvents(h.after(at, prefix), got[i], "Watch(%q, %d)", prefix, at)
	}
}

// verify compares the store with the history: reads of all keys and scans of all prefixes at every revision from a
// revision on, and watches after each of these revisions.
func (h *history) verify(s *store, from storage.Revision, keys, prefixes []string) {
	s.t.Helper()
	require.Equal(s.t, h.newest(), s.newest(), "the newest revision")
	revisions := []storage.Revision{}
	if from > 0 {
		revisions = append(revisions, from)
	}
	for _, e := range h.events {
		if e.Revision > from && (len(revisions) == 0 || e.Revision > revisions[len(revisions)-1]) {
			revisions = append(revisions, e.Revision)
		}
	}
	for _, at := range revisions {
		state := make(map[string]storage.Record)
		for _, rec := range h.at(at, "", "") {
			state[rec.Key] = rec
		}
		for _, key := range keys {
			s.same(getReturns, state[key], s.get(key, at), "Get(%q, %d)", key, at)
		}
		for _, prefix := range prefixes {
			shown, records := s.scan(prefix, "", at)
			require.Equal(s.t, at, shown)
			s.sameRecords(h.at(at, prefix, ""), records, "Scan(%q, \"\", %d)", prefix, at)
		}
		h.verifyWatches(s, at, prefixes)
	}
	for _, prefix := range prefixes {
		shown, records := s.scan(prefix, "", 0)
		require.Equal(s.t, h.newest(), shown)
		s.sameRecords(h.at(shown, prefix, ""), records, "Scan(%q, \"\", 0) at %d", prefix, shown)
	}
}
