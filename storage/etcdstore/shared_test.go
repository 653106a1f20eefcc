package etcdstore

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestShared: one call serves all who wait for it, and nobody gets the answer of a call that
// had begun before the question.
func TestShared(t *testing.T) {
	s := &Store{}
	s.life, s.end = context.WithCancel(t.Context())
	var calls atomic.Int64
	begun, answer := make(chan int64), make(chan struct{})
	r := &shared[int64]{read: func(context.Context) (int64, error) {
		n := calls.Add(1)
		begun <- n
		<-answer
		return n, nil
	}}
	first := r.join(s)
	require.EqualValues(t, 1, <-begun)
	var late []*answer64
	for range 100 {
		late = append(late, r.join(s))
	}
	answer <- struct{}{}
	<-first.done
	require.EqualValues(t, 1, first.value)
	require.EqualValues(t, 2, <-begun)
	last := r.join(s)
	answer <- struct{}{}
	for _, a := range late {
		<-a.done
		require.EqualValues(t, 2, a.value)
	}
	require.EqualValues(t, 3, <-begun)
	answer <- struct{}{}
	<-last.done
	require.EqualValues(t, 3, last.value)
	require.NoError(t, s.Close())
	_, err := r.ask(t.Context(), s)
	require.ErrorIs(t, err, storage.ErrClosed)
}

type answer64 = answer[int64]

// TestQueue: a queue takes what is larger than its bound only if it is empty, and tells its end
// after all that it holds.
func TestQueue(t *testing.T) {
	q := &queue{news: make(chan struct{}, 1)}
	one := [][]storage.Event{{{Record: storage.Record{Key: "a", Revision: 1}}}}
	require.True(t, q.put(one, 2*queueBytes))
	require.False(t, q.put(one, 1))
	q.end(storage.ErrCompacted)
	q.end(nil)
	b := q.take()
	require.Len(t, b.commits, 1)
	require.ErrorIs(t, b.err, storage.ErrCompacted)
	require.True(t, b.ended)
	require.Empty(t, q.take().commits)
}
