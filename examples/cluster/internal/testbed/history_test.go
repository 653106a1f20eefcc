package testbed

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func configMap(version uint64, value string) ConfigMap {
	return ConfigMap{Name: "k", Version: version, Value: value, Epoch: "e"}
}

// event returns an event of the object k.
func event(kind string, version uint64, value string) Event {
	var o Object
	o.Metadata.Name, o.Metadata.ResourceVersion = "k", strconv.FormatUint(version, 10)
	o.Metadata.Labels, o.Data = map[string]string{"epoch": "e"}, map[string]string{"value": value}
	return Event{Type: kind, Object: o}
}

func read(version uint64, value string, call, ret int64) operation {
	return operation{client: 9, action: get, key: "k", outcome: done, found: configMap(version, value), call: call, ret: ret}
}

// consistent returns the history of one object, and the events of the store: k is created, updated,
// deleted and created again.
func consistent() (*history, []Event) {
	events := []Event{event("ADDED", 11, "a"), event("MODIFIED", 12, "b"), event("DELETED", 13, "b"), event("ADDED", 14, "c")}
	return &history{
		base: 10,
		operations: []operation{
			{client: 1, action: create, key: "k", value: "a", outcome: done, found: configMap(11, "a"), call: 10, ret: 20},
			read(11, "a", 15, 25),
			{client: 2, action: create, key: "k", value: "x", outcome: exists, call: 21, ret: 30},
			{client: 1, action: update, key: "k", value: "b", expect: "a", outcome: done, found: configMap(12, "b"), call: 40, ret: 60},
			read(11, "a", 41, 45), // the update takes effect after this read
			read(12, "b", 46, 50),
			{client: 2, action: update, key: "k", value: "y", expect: "a", outcome: conflict, call: 61, ret: 70},
			{client: 1, action: remove, key: "k", outcome: done, call: 80, ret: 90},
			{client: 9, action: get, key: "k", outcome: absent, call: 91, ret: 95},
			{client: 2, action: update, key: "k", value: "z", outcome: absent, call: 91, ret: 95},
			{client: 1, action: create, key: "k", value: "c", outcome: unknown, call: 100, ret: 110},
			read(14, "c", 120, 130),
			{client: 2, action: update, key: "k", value: "never", outcome: unknown, call: 140, ret: 150},
			{client: 2, action: remove, key: "k", outcome: unknown, call: 140, ret: 150},
			read(14, "c", 160, 170),
		},
		lists: []list{
			{version: 9, epoch: "e", items: map[string]ConfigMap{"old": {}}}, // before the load
			{version: 12, epoch: "e", items: map[string]ConfigMap{"k": configMap(12, "b")}},
			{version: 13, epoch: "e", items: map[string]ConfigMap{}},
			{version: 14, items: map[string]ConfigMap{"k": configMap(14, "c")}},
		},
		watches: [][]Event{slices.Clone(events), slices.Clone(events)},
	}, events
}

func TestCheckAcceptsConsistentHistory(t *testing.T) {
	h, events := consistent()
	require.NoError(t, h.check(events))
	require.NoError(t, (&history{}).check(nil), "empty history")
}

func TestCheckAcceptsExistingObjects(t *testing.T) {
	old := ConfigMap{Name: "old", Version: 5, Value: "o", Epoch: "d"}
	h, events := consistent()
	h.before = State{Version: 9, Objects: map[string]ConfigMap{"old": old}}
	h.lists[3].items["old"] = old
	require.NoError(t, h.check(events))
	require.Equal(t, map[string]ConfigMap{"old": old}, h.before.Objects, "the previous state is not changed")
	delete(h.lists[3].items, "old")
	require.ErrorContains(t, h.check(events), "list of version 14")
}

func TestCheckRejectsInconsistentHistory(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *history, events []Event) []Event
		want   string
	}{
		"lost write": {func(h *history, events []Event) []Event {
			h.operations = append(h.operations, operation{client: 1, action: update, key: "k", value: "lost", outcome: done, found: configMap(15, "lost"), call: 180, ret: 190})
			return events
		}, "an acknowledged write was lost"},
		"lost deletion": {func(h *history, events []Event) []Event {
			h.operations = append(h.operations,
				operation{client: 1, action: remove, key: "k", outcome: done, call: 180, ret: 190})
			return events
		}, "2 deletions acknowledged"},
		"deletion without a request": {func(h *history, events []Event) []Event {
			h.operations = slices.DeleteFunc(h.operations, func(o operation) bool { return o.outcome == unknown && o.action == remove })
			return append(events, event("DELETED", 15, "c"))
		}, "1 deletions acknowledged, 0 with an unknown outcome, 2 events"},
		"event without a write": {func(_ *history, events []Event) []Event {
			return append(events, event("MODIFIED", 15, "unwritten"))
		}, "event without a write"},
		"write executed twice": {func(_ *history, events []Event) []Event {
			return append(events, event("MODIFIED", 15, "c"))
		}, "two events for one write"},
		"wrong version in the answer": {func(h *history, events []Event) []Event {
			h.operations[0].found.Version = 12
			return events
		}, "the write was answered with"},
		"wrong event type": {func(_ *history, events []Event) []Event {
			events[1].Type = "ADDED"
			return events
		}, "ADDED event"},
		"deletion of another value": {func(_ *history, events []Event) []Event {
			events[2] = event("DELETED", 13, "a")
			return events
		}, "was deleted, but"},
		"stale read": {func(h *history, events []Event) []Event {
			h.operations = append(h.operations, read(11, "a", 61, 65)) // after the update was acknowledged
			return events
		}, "not linearizable"},
		"read of a deleted object": {func(h *history, events []Event) []Event {
			h.operations = append(h.operations, read(12, "b", 91, 95))
			return events
		}, "not linearizable"},
		"reads that go back": {func(h *history, events []Event) []Event {
			h.operations = append(h.operations, read(11, "a", 51, 55)) // during the update, after a read of its value
			return events
		}, "not linearizable"},
		"unfounded conflict": {func(h *history, events []Event) []Event {
			h.operations = append(h.operations, operation{client: 2, action: update, key: "k", value: "w", expect: "b", outcome: conflict, call: 62, ret: 65})
			return events
		}, "not linearizable"},
		"precondition ignored": {func(h *history, events []Event) []Event {
			h.operations[3].expect = "other"
			return events
		}, "not linearizable"},
		"stale list": {func(h *history, events []Event) []Event {
			h.lists[1].items["k"] = configMap(11, "a")
			return events
		}, "list of version 12"},
		"list without an object": {func(h *history, events []Event) []Event {
			clear(h.lists[3].items)
			return events
		}, "list of version 14"},
	} {
		t.Run(name, func(t *testing.T) {
			h, events := consistent()
			events = c.change(h, slices.Clone(events))
			h.watches = [][]Event{events}
			require.ErrorContains(t, h.check(events), c.want)
		})
	}
}

func TestCheckRejectsIncompleteWatch(t *testing.T) {
	for want, change := range map[string]func(events []Event) []Event{
		"watch 1: event 1 is":         func(events []Event) []Event { return slices.Delete(events, 1, 2) }, // a gap
		"watch 1: 3 events, want 4":   func(events []Event) []Event { return events[:3] },
		"watch 1: 5 events, want 4":   func(events []Event) []Event { return append(events, events[3]) },
		"watch 1: event 2 is {Type:A": func(events []Event) []Event { events[2], events[3] = events[3], events[2]; return events },
	} {
		h, events := consistent()
		h.watches[1] = change(h.watches[1])
		require.ErrorContains(t, h.check(events), want)
	}
}

func TestStreamAcceptsEventsInOrder(t *testing.T) {
	fence, other, overloaded := event("ADDED", 15, ""), event("ADDED", 13, ""), Event{Type: "ERROR"}
	fence.Object.Metadata.Name, other.Object.Metadata.Labels, overloaded.Object.Code = "fence", nil, 500
	bookmark := event("BOOKMARK", 12, "")
	first, last := event("ADDED", 11, "a"), event("MODIFIED", 14, "b")
	s := stream{fence: "fence", last: 10}
	for _, e := range []Event{first, bookmark, bookmark, other, overloaded, last} {
		require.True(t, s.take(e), "%+v", e)
	}
	require.False(t, s.take(fence))
	require.NoError(t, s.err)
	require.True(t, s.fenced)
	require.Equal(t, []Event{first, last}, s.seen)
}

func TestStreamRejectsEventsOutOfOrder(t *testing.T) {
	expired := Event{Type: "ERROR"}
	expired.Object.Code = 410
	for name, e := range map[string]Event{
		"duplicate revision": event("MODIFIED", 11, "b"),
		"old revision":       event("MODIFIED", 10, "b"),
		"old bookmark":       event("BOOKMARK", 10, ""),
		"expired":            expired,
	} {
		s := stream{fence: "fence", last: 9}
		require.True(t, s.take(event("ADDED", 11, "a")))
		require.False(t, s.take(e), name)
		require.Error(t, s.err, name)
		require.False(t, s.fenced, name)
		require.Len(t, s.seen, 1, name)
	}
}
