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
		{"create what exists", []byte{}, 0, there, conflict},
		{"update", []byte{}, 3, there, nil},
		{"update an older one", []byte{}, 2, there, conflict},
		{"update a newer one", []byte{}, 4, there, conflict},
		{"update what does not exist", []byte{}, 3, none, conflict},
		{"write anything", []byte{}, storage.AnyRevision, none, nil},
		{"write over anything", []byte{}, storage.AnyRevision, there, nil},
		{"delete", nil, 3, there, nil},
		{"delete an older one", nil, 2, there, conflict},
		{"delete any", nil, storage.AnyRevision, there, nil},
		{"delete what does not exist", nil, storage.AnyRevision, none, storage.ErrNotFound},
		{"delete nothing", nil, 0, none, storage.ErrNotFound},
		{"delete a known one that is gone", nil, 3, none, conflict},
		{"delete what must not exist", nil, 0, there, conflict},
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

// TestGuardCheck: a guard only compares, also where nothing is.
func TestGuardCheck(t *testing.T) {
	there := storage.Record{Key: "a", Value: []byte{}, Revision: 3}
	for _, c := range []struct {
		expect  storage.Revision
		current storage.Record
		holds   bool
	}{
		{0, storage.Record{}, true}, {3, there, true}, {0, there, false}, {3, storage.Record{}, false}, {2, there, false},
	} {
		err := storage.Write{Key: "a", Expect: c.expect, Guard: true}.Check(c.current)
		if c.holds {
			require.NoError(t, err)
		} else {
			require.Equal(t, &storage.ConflictError{Key: "a", Expect: c.expect, Current: c.current}, err)
		}
	}
}

func TestDeleted(t *testing.T) {
	require.True(t, storage.Event{}.Deleted())
	require.False(t, storage.Event{Record: storage.Record{Value: []byte{}}}.Deleted())
}
