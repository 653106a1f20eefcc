package objects

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func guard(key string, rev storage.Revision) *precondition {
	return &precondition{Write: storage.Write{Key: key, Expect: rev, Guard: true}, reason: becauseAdmitted}
}

// TestRequireKeepsTheOlderRevision: if there are two preconditions on one record, the older revision counts, and the
// record is renewed only if both can be renewed.
func TestRequireKeepsTheOlderRevision(t *testing.T) {
	var a attempt
	renews := func(rev storage.Revision) *precondition {
		p := guard("r", rev)
		p.renew = func(context.Context) (storage.Revision, bool) { return 0, false }
		return p
	}
	a.require(renews(7))
	a.require(renews(5))
	a.require(guard("other", 9))
	require.Len(t, a.required, 2)
	assert.Equal(t, storage.Revision(5), a.required[0].Expect)
	assert.NotNil(t, a.required[0].renew)
	defined := guard("r", 6)
	defined.reason = becauseDefined
	a.require(defined)
	assert.Equal(t, storage.Revision(5), a.required[0].Expect)
	assert.Nil(t, a.required[0].renew)
	assert.Equal(t, becauseDefined, a.required[0].reason)
}

// TestTransactNamesTheFailedPrecondition: a failed precondition is a conflict, except the leader fence, which refuses
// the write and reports that the leader is lost.
func TestTransactNamesTheFailedPrecondition(t *testing.T) {
	s := &Store{backend: memstore.New(memstore.Options{})}
	ctx := t.Context()
	term, err := s.backend.Commit(ctx, storage.Write{Key: "term", Value: []byte("1")})
	require.NoError(t, err)
	other, err := s.backend.Commit(ctx, storage.Write{Key: "object", Value: []byte("1")})
	require.NoError(t, err)
	lost := 0
	led := consistency.WithLeaderFence(ctx, &consistency.LeaderFence{Record: "term", Revision: term, Lost: func() { lost++ }})

	_, err = s.transact(led, []*precondition{guard("object", other)}, storage.Write{Key: "a", Value: []byte("1")})
	require.NoError(t, err)
	_, err = s.transact(led, []*precondition{guard("object", term)}, storage.Write{Key: "b", Value: []byte("1")})
	var conflict *storage.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "object", conflict.Key)
	assert.ErrorContains(t, err, string(becauseAdmitted))
	assert.Zero(t, lost)

	_, err = s.backend.Commit(ctx, storage.Write{Key: "term", Value: []byte("2"), Expect: term})
	require.NoError(t, err)
	_, err = s.transact(led, nil, storage.Write{Key: "b", Value: []byte("1")})
	require.ErrorIs(t, err, errDeposed)
	assert.False(t, errors.As(err, &conflict), "a retry cannot succeed")
	assert.Equal(t, 1, lost)
	_, err = s.backend.Get(ctx, "b", 0)
	assert.ErrorIs(t, err, storage.ErrNotFound)
}

// TestWithoutALeaderOnlyDeletionsAreCommitted: controllers that run without a leader because the store is full may
// only delete.
func TestWithoutALeaderOnlyDeletionsAreCommitted(t *testing.T) {
	s := &Store{backend: memstore.New(memstore.Options{})}
	ctx := consistency.WithLeaderFence(t.Context(), &consistency.LeaderFence{})
	rev, err := s.backend.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")})
	require.NoError(t, err)
	_, err = s.transact(ctx, nil, storage.Write{Key: "b", Value: []byte("1")})
	require.ErrorIs(t, err, storage.ErrFull)
	reserves := &precondition{Write: storage.Write{Key: "b", Value: []byte("1")}, reason: becauseUnique}
	_, err = s.transact(ctx, []*precondition{reserves}, storage.Write{Key: "a", Expect: rev})
	require.ErrorIs(t, err, storage.ErrFull)
	_, err = s.transact(ctx, nil, storage.Write{Key: "a", Expect: rev})
	require.NoError(t, err)
}
