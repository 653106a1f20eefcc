package badgerstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestHistoryBeyondNewestRevisionEnds checks that History ends at the newest commit if last is larger.
func TestHistoryBeyondNewestRevisionEnds(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Retain: -1})
	require.NoError(t, err)
	last, err := s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")})
	require.NoError(t, err)
	n := 0
	for commit, err := range s.History(t.Context(), "", 0, last+100) {
		require.NoError(t, err)
		require.Equal(t, last, commit[0].Revision)
		n++
	}
	require.Equal(t, 1, n)
	require.NoError(t, s.Close())
}

// TestCommitTimesAreSavedAtStart checks that the commit times of the history are saved when the store is
// opened, so that the history does not grow forever if the process is always killed.
func TestCommitTimesAreSavedAtStart(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	last, err := s.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s, err = Open(Options{Dir: dir, Retain: time.Hour})
	require.NoError(t, err)
	r := &request{ctx: t.Context(), done: make(chan struct{}), do: func() error { return nil }}
	require.NoError(t, s.submit(r))
	saved := &Store{retain: time.Hour}
	saved.state.revision = last
	txn := s.db.NewTransactionAt(1<<62, false)
	saved.loadAges(txn)
	txn.Discard()
	require.Equal(t, last, saved.ages.saved)
	require.NoError(t, s.Close())
}
