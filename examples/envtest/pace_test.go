package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestRemovalWaitsForReadersOfTheLastWrite: a client that receives the event of a write has time to
// read the record before it is removed, as with an etcd.
func TestRemovalWaitsForReadersOfTheLastWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPaced()
		defer s.Close()
		created, err := s.Commit(t.Context(), storage.Write{Key: "pod", Value: []byte("running")})
		require.NoError(t, err)
		time.Sleep(time.Second)
		ends, err := s.Commit(t.Context(), storage.Write{Key: "pod", Value: []byte("ends"), Expect: created})
		require.NoError(t, err)
		removed := make(chan error, 1)
		go func() {
			_, err := s.Commit(t.Context(), storage.Write{Key: "pod", Expect: ends})
			removed <- err
		}()
		synctest.Wait()
		got, err := s.Get(t.Context(), "pod", 0)
		require.NoError(t, err, "the record was removed too early")
		assert.Equal(t, "ends", string(got.Value))
		_, err = s.Commit(t.Context(), storage.Write{Key: "other", Value: []byte("x")})
		require.NoError(t, err, "other commits do not wait")
		require.NoError(t, <-removed)
		_, err = s.Get(t.Context(), "pod", 0)
		require.ErrorIs(t, err, storage.ErrNotFound)
	})
}

// TestRemovalOfOlderRecordsDoesNotWait: only recently written records delay their removal, and the
// store remembers no others.
func TestRemovalOfOlderRecordsDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPaced().(*paced)
		defer s.Close()
		for range 3 {
			_, err := s.Commit(t.Context(), storage.Write{Key: "old", Value: []byte("x"), Expect: storage.AnyRevision})
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		assert.Zero(t, s.untilRemoval([]storage.Write{{Key: "old"}}))
		_, err := s.Commit(t.Context(), storage.Write{Key: "new", Value: []byte("x")})
		require.NoError(t, err)
		assert.Len(t, s.last, 1)
		assert.Len(t, s.recent, 1)
		assert.Zero(t, s.untilRemoval([]storage.Write{{Key: "new", Guard: true}}), "a guard removes nothing")
		assert.Positive(t, s.untilRemoval([]storage.Write{{Key: "old"}, {Key: "new"}}))
	})
}
