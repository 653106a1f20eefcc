package workqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func key(t *task) string {
	if t == nil {
		return ""
	}
	return t.key
}

func TestTakeReturnsDueKeysInOrder(t *testing.T) {
	q := newTasks(16)
	q.ask("b", noon)
	q.ask("a", noon)
	q.ask("first", noon.Add(-time.Second))
	q.ask("first", noon) // a later time does not change its place
	q.ask("later", noon.Add(time.Minute))
	for _, want := range []string{"first", "a", "b"} {
		got, _, _ := q.take(noon)
		assert.Equal(t, want, key(got))
		q.done(got, time.Time{})
	}
	got, _, next := q.take(noon)
	assert.Nil(t, got)
	assert.Equal(t, noon.Add(time.Minute), next)
	assert.True(t, q.idle(noon))
	assert.False(t, q.idle(noon.Add(time.Hour)))
	q.ask("later", noon) // an earlier time takes effect
	got, _, _ = q.take(noon)
	assert.Equal(t, "later", key(got))
	q.done(got, time.Time{})
	assert.Empty(t, q.byKey)
}

func TestTakeSkipsRunningKeys(t *testing.T) {
	q := newTasks(16)
	q.ask("a", noon)
	a, _, _ := q.take(noon)
	q.ask("a", noon.Add(time.Second))
	again, _, next := q.take(noon.Add(time.Hour))
	assert.Nil(t, again)
	assert.Zero(t, next)
	assert.False(t, q.idle(noon))
	q.done(a, noon.Add(time.Hour)) // the time that was asked for during the work is earlier
	_, _, next = q.take(noon)
	assert.Equal(t, noon.Add(time.Second), next)

	a, _, _ = q.take(noon.Add(time.Hour))
	q.ask("a", noon.Add(time.Hour))
	q.done(a, noon.Add(time.Minute)) // the time that the work returned is earlier
	_, _, next = q.take(noon)
	assert.Equal(t, noon.Add(time.Minute), next)
}

func TestTakeLimitsRunningKeys(t *testing.T) {
	q := newTasks(16)
	for i := range 17 {
		q.ask(fmt.Sprint(i), noon)
	}
	var last *task
	for range 16 {
		last, _, _ = q.take(noon)
		assert.NotNil(t, last)
	}
	none, _, next := q.take(noon)
	assert.Nil(t, none)
	assert.Zero(t, next, "no worker is free")
	q.done(last, time.Time{})
	again, _, _ := q.take(noon)
	assert.NotNil(t, again)
}
