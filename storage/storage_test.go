package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleConflictError() {
	current := storage.Record{Key: "a", Value: []byte("new"), Revision: 7}
	err := storage.Write{Key: "a", Value: []byte("mine"), Expect: 5}.Check(current)

	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println(conflict)
		fmt.Printf("start again from %q\n", conflict.Current.Value)
	}
	// Output:
	// commit "a": expected revision 5, found 7
	// start again from "new"
}

func TestWriteCheck(t *testing.T) {
	none, there := storage.Record{}, storage.Record{Key: "a", Value: []byte{}, Revision: 3}
	conflict := &storage.ConflictError{}
	for _, c := range []struct {
		name    string
		value   []byte
		expect  storage.Revision
		current storage.Record
		want    any // nil, a sentinel or conflict
	}{
		{"create", []byte{}, 0, none, nil},
		{"create an existing key", []byte{}, 0, there, conflict},
		{"update", []byte{}, 3, there, nil},
		{"update with an older revision", []byte{}, 2, there, conflict},
		{"update with a newer revision", []byte{}, 4, there, conflict},
		{"update a missing key", []byte{}, 3, none, conflict},
		{"create with AnyRevision", []byte{}, storage.AnyRevision, none, nil},
		{"update with AnyRevision", []byte{}, storage.AnyRevision, there, nil},
		{"delete", nil, 3, there, nil},
		{"delete with an older revision", nil, 2, there, conflict},
		{"delete with AnyRevision", nil, storage.AnyRevision, there, nil},
		{"delete a missing key with AnyRevision", nil, storage.AnyRevision, none, storage.ErrNotFound},
		{"delete a missing key with Expect 0", nil, 0, none, storage.ErrNotFound},
		{"delete a missing key with its old revision", nil, 3, none, conflict},
		{"delete an existing key with Expect 0", nil, 0, there, conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := storage.Write{Key: "a", Value: c.value, Expect: c.expect}.Check(c.current)
			switch want := c.want.(type) {
			case nil:
				require.NoError(t, err)
			case *storage.ConflictError:
				require.Equal(t, &storage.ConflictError{Key: "a", Expect: c.expect, Current: c.current}, err)
			case error:
				require.ErrorIs(t, err, want)
			}
		})
	}
}

// TestGuardCheck checks that a guard compares the revision, also of a key that does not exist.
func TestGuardCheck(t *testing.T) {
	there := storage.Record{Key: "a", Value: []byte{}, Revision: 3}
	for _, c := range []struct {
		expect  storage.Revision
		current storage.Record
		ok      bool
	}{
		{0, storage.Record{}, true}, {3, there, true}, {0, there, false}, {3, storage.Record{}, false}, {2, there, false},
	} {
		err := storage.Write{Key: "a", Expect: c.expect, Guard: true}.Check(c.current)
		if c.ok {
			require.NoError(t, err)
		} else {
			require.Equal(t, &storage.ConflictError{Key: "a", Expect: c.expect, Current: c.current}, err)
		}
	}
}

// TestNormalizeCommitRejectsInvalidCommits checks which writes form a commit, and their order.
func TestNormalizeCommitRejectsInvalidCommits(t *testing.T) {
	put := func(key string) storage.Write { return storage.Write{Key: key, Value: []byte{}} }
	guard := func(key string) storage.Write { return storage.Write{Key: key, Expect: 3, Guard: true} }
	for name, ws := range map[string][]storage.Write{
		"none":                      {},
		"guards only":               {guard("a"), guard("b")},
		"two writes of a key":       {put("a"), put("b"), put("a")},
		"a write and a deletion":    {put("a"), {Key: "a", Expect: 3}},
		"a write and a guard":       {put("a"), guard("a")},
		"two guards of a key":       {put("b"), guard("a"), guard("a")},
		"a guard with a value":      {put("b"), {Key: "a", Value: []byte{}, Expect: 3, Guard: true}},
		"a guard with any revision": {put("b"), {Key: "a", Expect: storage.AnyRevision, Guard: true}},
	} {
		_, err := storage.NormalizeCommit(ws)
		require.ErrorIs(t, err, storage.ErrInvalidCommit, name)
	}
	given := []storage.Write{put("c"), guard("b"), put("a")}
	sorted, err := storage.NormalizeCommit(given)
	require.NoError(t, err)
	require.Equal(t, []storage.Write{put("a"), guard("b"), put("c")}, sorted)
	require.Equal(t, []storage.Write{put("c"), guard("b"), put("a")}, given, "the argument is not changed")
}

// single is a Backend of which only Commit works. It has one record.
type single struct {
	storage.Backend
	record  storage.Record
	foreign bool // another writer replaces the record after each commit
}

func (b *single) Commit(_ context.Context, ws ...storage.Write) (storage.Revision, error) {
	if err := ws[0].Check(b.record); err != nil {
		return 0, err
	}
	at := b.record.Revision + 1
	b.record = storage.Record{Key: ws[0].Key, Value: ws[0].Value, Revision: at}
	if b.foreign {
		b.record.Revision++
	}
	return at, nil
}

// TestCommitSequenceComparesEachValue checks a Backend without sequences: each commit replaces the one before, and
// nothing else.
func TestCommitSequenceComparesEachValue(t *testing.T) {
	first := storage.Write{Key: "a", Value: []byte("1")}
	b := &single{}
	revisions, err := storage.CommitSequence(t.Context(), b, first, []byte("2"), []byte("3"))
	require.NoError(t, err)
	require.Equal(t, []storage.Revision{1, 2, 3}, revisions)
	require.Equal(t, storage.Record{Key: "a", Value: []byte("3"), Revision: 3}, b.record)

	b = &single{foreign: true}
	revisions, err = storage.CommitSequence(t.Context(), b, first, []byte("2"), []byte("3"))
	require.ErrorAs(t, err, new(*storage.ConflictError))
	require.Equal(t, []storage.Revision{1}, revisions)
	require.Equal(t, "1", string(b.record.Value))
}

func TestEventDeleted(t *testing.T) {
	require.True(t, storage.Event{}.Deleted())
	require.False(t, storage.Event{Record: storage.Record{Value: []byte{}}}.Deleted())
}
