package etcdstore

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestSharedReadStartsAfterRequest: one call serves all callers that wait for it, with the parameters
// of all of them, and no caller gets the result of a call that began before its request.
func TestSharedReadStartsAfterRequest(t *testing.T) {
	s := &Store{}
	s.lifetime, s.endLifetime = context.WithCancel(t.Context())
	var calls atomic.Int64
	begun, answer := make(chan int64), make(chan struct{})
	r := &shared[int, int64]{read: func(_ context.Context, askers int) (int64, error) {
		n := calls.Add(1)
		begun <- n
		<-answer
		return 1000*int64(askers) + n, nil
	}}
	count := func(askers *int) { *askers++ }
	first := r.join(s, count)
	require.EqualValues(t, 1, <-begun)
	var late []*answer64
	for range 100 {
		late = append(late, r.join(s, count))
	}
	answer <- struct{}{}
	<-first.done
	require.EqualValues(t, 1001, first.value)
	require.EqualValues(t, 2, <-begun)
	last := r.join(s, count)
	answer <- struct{}{}
	for _, a := range late {
		<-a.done
		require.EqualValues(t, 100002, a.value)
	}
	require.EqualValues(t, 3, <-begun)
	answer <- struct{}{}
	<-last.done
	require.EqualValues(t, 1003, last.value)
	require.NoError(t, s.Close())
	_, err := r.get(t.Context(), s, count)
	require.ErrorIs(t, err, storage.ErrClosed)
}

type answer64 = answer[int, int64]
