package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// kept returns the bytes in the logs of both types.
func (w *world) kept() (bytes int64, records map[string]int) {
	records = map[string]int{}
	for _, c := range w.set.Caches() {
		c.mu.RLock()
		bytes += c.log.Bytes()
		records[c.prefix] = c.log.Events()
		c.mu.RUnlock()
	}
	return bytes, records
}

// The log is shortened after writers have continued, so it may exceed the limit by the newest change.
func TestLogsShareOneLimit(t *testing.T) {
	const most = 20 * (eventOverhead + 300)
	w := newWorld(t, options{MaxBytes: most})
	value := strings.Repeat("v", 150)
	for i := range 50 {
		w.put(others, "a/x", "", fmt.Sprint(i, value))
	}
	bytes, records := w.kept()
	require.LessOrEqual(t, bytes, int64(most+eventOverhead+400))
	require.Greater(t, records[others], 10, "the memory up to the limit is used")
	for i := range 50 {
		w.put(things, "a/x", "", fmt.Sprint(i, value))
		bytes, _ = w.kept()
		require.LessOrEqual(t, bytes, int64(most+eventOverhead+400))
	}
	_, records = w.kept()
	assert.Equal(t, 1, records[others], "the oldest changes make room, whatever type they are of")
	assert.Greater(t, records[things], 10)

	// States that are no longer in memory are read from the store.
	cur, err := w.set.Cache(others).Watch(query{}, 10)
	require.NoError(t, err)
	for want := storage.Revision(11); want <= 50; {
		events, err := cur.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			require.Equal(t, want, e.Revision)
			want++
		}
	}
}

// An object may be larger than the limit: a waiting cursor still gets its change.
func TestNewestChangeIsAlwaysKept(t *testing.T) {
	w := newWorld(t, options{MaxBytes: 1})
	_, cur := w.set.Cache(things).ListAndWatch(query{})
	for i := range 10 {
		rev := w.put(things, "a/x", "", fmt.Sprint(i))
		events, err := cur.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.Equal(t, rev, events[0].Revision)
	}
}

func TestPinnedStatesAreLimitedInBytes(t *testing.T) {
	w := newWorld(t, options{MaxBytes: 40 * (eventOverhead + 200), MaxEvents: 1})
	c := w.set.Cache(things)
	for i := range 10 {
		w.put(things, fmt.Sprintf("a/o%d", i), "", "1")
	}
	pins := func() int {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return len(c.pins)
	}
	// Each round replaces everything, so each state keeps ten objects.
	most := 0
	for round := range 20 {
		require.NotEmpty(t, c.List(query{}, "", 1).Next)
		for i := range 10 {
			w.put(things, fmt.Sprintf("a/o%d", i), "", fmt.Sprint(round))
		}
		most = max(most, pins())
	}
	assert.Greater(t, most, 2)
	assert.Less(t, most, 7)

	// Each earlier state is as large. The newest state stays for further pages,
	// however large it is.
	for rev := storage.Revision(30); rev < 60; rev += 10 {
		_, err := c.ListAt(t.Context(), rev, query{}, "", 1)
		require.NoError(t, err)
	}
	assert.Less(t, pins(), 7)
	last := c.List(query{}, "", 1)
	for i := range 200 {
		w.put(things, fmt.Sprintf("a/o%d", i%10), "", fmt.Sprint("later", i))
	}
	assert.Equal(t, 1, pins())
	require.NoError(t, w.store.Compact(t.Context(), w.set.Revision()))
	page, err := c.ListAt(t.Context(), last.Revision, query{}, last.Next, 0)
	require.NoError(t, err)
	assert.Len(t, page.Entries, 9)
}
