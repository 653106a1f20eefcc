package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// state is the state of one object: its value, empty if it does not exist, and its newest version so
// far.
type state struct {
	value   string
	version uint64
}

// model is the porcupine model of one object. A deletion with an unknown outcome takes effect only if
// it can: porcupine may order it after everything else.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, input, _ any) (bool, any) {
		o := input.(operation)
		if o.action == get {
			return s.(state).read(o), s
		}
		return s.(state).write(o)
	},
}

func (s state) read(o operation) bool {
	if o.outcome == absent {
		return s.value == ""
	}
	return s == state{o.found.Value, o.found.Version}
}

func (s state) write(o operation) (bool, any) {
	there, met := s.value != "", o.expect == "" || o.expect == s.value
	switch o.outcome {
	case exists:
		return there, s
	case absent:
		return !there, s
	case conflict:
		return there && !met, s
	}
	takes := there && met
	switch o.action {
	case create:
		takes = !there
	case remove:
		if o.outcome == unknown && !takes {
			return true, s
		}
		return takes, state{version: s.version}
	}
	return takes && o.found.Version > s.version, state{o.value, o.found.Version}
}

// check ends the load, compares everything that was observed, and returns the final state.
func (l *load) check() legacy {
	l.t.Helper()
	fence := l.fence()
	reference := l.reference()
	resumed := 0
	for i, w := range l.watchers {
		resumed += len(w.resumed) - 1
		l.checkWatch(fmt.Sprint("watcher ", i), reference, w)
	}
	l.t.Logf("%d operations, %d listings, %d requests failed, %d events, watches resumed %d times, %v",
		len(l.operations), len(l.listings), l.failed.Load(), len(reference), resumed, time.Since(l.began).Round(time.Second))
	l.checkWrites(reference)
	left := legacy{fence, l.checkListings(reference, fence), l.epochs() + 1}
	l.checkLinearizable(reference)
	return left
}

// checkWatch compares the events of a watch with the reference.
func (l *load) checkWatch(name string, reference []event, w *watcher) {
	l.t.Helper()
	for i := range max(len(reference), len(w.seen)) {
		var want, got event
		if i < len(reference) {
			want = reference[i]
		}
		if i < len(w.seen) {
			got = w.seen[i]
		}
		require.Equal(l.t, want, got, "%s, event %d of %d, %d told\n%s", name, i, len(reference), len(w.seen), strings.Join(w.resumed, "\n"))
	}
}

// fence ends the load and then the watches by creating a last object.
func (l *load) fence() (version uint64) {
	l.t.Helper()
	l.stop()
	l.all.Wait()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	for i := 0; version == 0; i++ {
		require.NoError(l.t, ctx.Err())
		p := l.servers[i%len(l.servers)]
		code, answer, err := p.call(ctx, "POST", mapsPath, object{Name: l.fenceName(), Value: "the end"}.body())
		if err == nil && code == 409 {
			code, answer, err = p.call(ctx, "GET", mapsPath+"/"+l.fenceName(), "")
		}
		if err == nil && code < 300 {
			version = answer.version()
		}
	}
	return version
}

// reference returns the events of a watch that runs without faults.
func (l *load) reference() []event {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	w := &watcher{load: l, last: l.base}
	require.NoError(l.t, l.servers[0].watch(ctx, l.base, w.take))
	ended := make(chan struct{})
	go func() { l.watches.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		require.FailNow(l.t, "a watch does not reach the fence")
	}
	return w.seen
}

// checkWrites checks that each acknowledged write is among the events, and that each event belongs to a
// write.
func (l *load) checkWrites(reference []event) {
	l.t.Helper()
	written, deleted, mayDelete := map[string]operation{}, map[string]int{}, map[string]int{}
	for _, o := range l.operations {
		switch {
		case o.action == get || o.outcome != done && o.outcome != unknown:
		case o.action != remove:
			written[o.value] = o
		case o.outcome == done:
			deleted[o.key]++
			fallthrough
		default:
			mayDelete[o.key]++
		}
	}
	there, found, gone := map[string]object{}, map[string]bool{}, map[string]int{}
	for _, e := range reference {
		now := e.Object.object()
		before, was := there[now.Name]
		if e.Type == "DELETED" {
			require.True(l.t, was && before.Value == now.Value, "%+v was deleted, %+v was there", now, before)
			delete(there, now.Name)
			gone[now.Name]++
			continue
		}
		o, known := written[now.Value]
		require.True(l.t, known && o.key == now.Name, "event without a write: %+v", now)
		require.False(l.t, found[now.Value], "%+v came twice", now)
		require.True(l.t, o.outcome == unknown || o.found.Version == now.Version, "%+v was told %+v", now, o)
		require.Equal(l.t, map[bool]string{true: "MODIFIED", false: "ADDED"}[was], e.Type, "%+v", now)
		found[now.Value], there[now.Name] = true, now
	}
	for value, o := range written {
		require.True(l.t, o.outcome == unknown || found[value], "acknowledged and lost: %+v", o)
	}
	for key, n := range deleted {
		require.True(l.t, n <= gone[key] && gone[key] <= mayDelete[key], "%s: %d deletions acknowledged, %d unknown, %d told", key, n, mayDelete[key]-n, gone[key])
	}
}

// checkListings compares each list, and a list at the end, with the state after the events up to its
// version. It returns the objects at the end.
func (l *load) checkListings(reference []event, fence uint64) map[string]object {
	l.t.Helper()
	code, answer, err := l.servers[len(l.servers)-1].call(l.t.Context(), "GET", fmt.Sprintf("%s?resourceVersionMatch=Exact&resourceVersion=%d", mapsPath, fence), "")
	require.NoError(l.t, err)
	require.Equal(l.t, 200, code)
	last := answer.objects()
	l.listings = append(l.listings, listing{version: fence, items: last})
	slices.SortFunc(l.listings, func(a, b listing) int { return cmp.Compare(a.version, b.version) })
	epochs := map[string]map[string]object{"": {}}
	maps.Copy(epochs[""], l.before.objects)
	for _, x := range l.listings {
		for len(reference) > 0 && reference[0].Object.version() <= x.version {
			apply(epochs, reference[0])
			reference = reference[1:]
		}
		if x.version < l.base {
			continue // a state before the load, from a cache
		}
		require.True(l.t, maps.Equal(epochs[x.epoch], x.items), "list of version %d: %v, but there was %v", x.version, x.items, epochs[x.epoch])
	}
	return last
}

// apply applies an event to the objects of its epoch.
func apply(epochs map[string]map[string]object, e event) {
	o := e.Object.object()
	for _, epoch := range []string{o.Epoch, ""} {
		if epochs[epoch] == nil {
			epochs[epoch] = map[string]object{}
		}
		if epochs[epoch][o.Name] = o; e.Type == "DELETED" {
			delete(epochs[epoch], o.Name)
		}
	}
}

// checkLinearizable checks with porcupine that the operations on each object are linearizable. The
// events show whether a write without an answer took effect.
func (l *load) checkLinearizable(reference []event) {
	l.t.Helper()
	versions := map[string]uint64{}
	for _, e := range reference {
		if e.Type != "DELETED" {
			versions[e.Object.object().Value] = e.Object.version()
		}
	}
	keys := map[string][]porcupine.Operation{}
	for _, o := range l.operations {
		ret := o.ret
		if o.outcome == unknown {
			ret = math.MaxInt64
			version, happened := versions[o.value]
			switch {
			case happened:
				o.outcome, o.found.Version = done, version
			case o.action != remove:
				continue
			}
		}
		keys[o.key] = append(keys[o.key], porcupine.Operation{ClientId: o.client, Input: o, Call: o.call, Return: ret})
	}
	for key, history := range keys {
		if result := porcupine.CheckOperationsTimeout(model, history, time.Minute); result != porcupine.Ok {
			slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
			for _, o := range history {
				l.t.Logf("%+v", o.Input)
			}
			require.Equal(l.t, porcupine.Ok, result, key)
		}
	}
}
