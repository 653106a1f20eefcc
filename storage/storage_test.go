package storage_test

import (
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

func TestEventDeleted(t *testing.T) {
	require.True(t, storage.Event{}.Deleted())
	require.False(t, storage.Event{Record: storage.Record{Value: []byte{}}}.Deleted())
}
