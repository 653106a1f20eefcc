package badgerstore

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// many yields more records than fit into one batch. It calls before when it has yielded most of them.
func many(before func(), last error) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for i := range 24 {
			if i == 23 {
				before()
			}
			value := bytes.Repeat([]byte("x"), 1<<20)
			if !yield(storage.Record{Key: fmt.Sprint("k", i), Value: value, Revision: storage.Revision(i + 1)}, nil) {
				return
			}
		}
		if last != nil {
			yield(storage.Record{}, last)
		}
	}
}

// requireEmpty requires that a directory has no files of a store.
func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "authority.pem")}, left)
}

// TestFillFailureLeavesNoStore checks that Fill leaves no file of the store if it fails before or after it
// has written entries, and that Open refuses the directory and Fill starts over if the process is killed.
// Other files stay.
func TestFillFailureLeavesNoStore(t *testing.T) {
	stop, stamps := errors.New("cut off"), map[string]string{"names": "x"}
	none := func(yield func(storage.Record, error) bool) { yield(storage.Record{}, stop) }
	killed := map[string]string{} // directories as they were at some time
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "authority.pem"), []byte("x"), 0o600))
	keep := func(when string) {
		killed[when] = filepath.Join(t.TempDir(), "killed")
		require.NoError(t, os.CopyFS(killed[when], os.DirFS(dir)))
		require.ErrorIs(t, Fill(Options{Dir: dir}, nil), ErrInUse)
	}
	for when, fill := range map[string]func(*Store) error{
		"opened":  func(*Store) error { keep("opened"); return stop },
		"begun":   func(s *Store) error { return s.Import(t.Context(), stamps, 0, none) },
		"in part": func(s *Store) error { return s.Import(t.Context(), stamps, 0, many(func() { keep("in part") }, stop)) },
		"whole": func(s *Store) error {
			require.NoError(t, s.Import(t.Context(), stamps, 0, many(func() {}, nil)))
			keep("whole")
			return stop
		},
	} {
		require.ErrorIs(t, Fill(Options{Dir: dir}, fill), stop, when)
		requireEmpty(t, dir)
	}
	for when, dir := range killed {
		_, err := Open(Options{Dir: dir})
		require.ErrorContains(t, err, "incomplete", when)
		require.ErrorIs(t, Fill(Options{Dir: dir}, func(s *Store) error {
			have, err := s.Stamps(t.Context())
			require.NoError(t, err)
			require.Empty(t, have)
			return stop
		}), stop)
		requireEmpty(t, dir)
		require.NoError(t, Fill(Options{Dir: dir}, func(s *Store) error {
			return s.Import(t.Context(), map[string]string{"names": "y"}, 0, many(func() {}, nil))
		}))
		require.ErrorIs(t, Fill(Options{Dir: dir}, nil), storage.ErrNotEmpty, "it is whole, and stays")
		s, err := Open(Options{Dir: dir})
		require.NoError(t, err)
		newest, err := s.Revision(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 24, newest)
		require.NoError(t, s.Close())
	}
}
