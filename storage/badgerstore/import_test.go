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

// many is more than goes into one batch. before is called when most was given away.
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

// TestDiscardImport: what an import left that failed, or whose process was killed, is refused,
// and makes room for another one. Files that are not the store's stay.
func TestDiscardImport(t *testing.T) {
	dir, killed := t.TempDir(), filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "authority.pem"), []byte("x"), 0o600))
	s, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	stop, stamps := errors.New("cut off"), map[string]string{"names": "x"}
	err = s.Import(t.Context(), stamps, 0, many(func() {
		require.ErrorIs(t, DiscardImport(dir), ErrInUse)
		require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	}, stop))
	require.ErrorIs(t, err, stop)
	require.NoError(t, s.Close())
	for _, dir := range []string{dir, killed} {
		_, err := Open(Options{Dir: dir})
		require.ErrorContains(t, err, "incomplete")
		require.NoError(t, DiscardImport(dir))
		require.NoError(t, DiscardImport(dir))
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Equal(t, []string{filepath.Join(dir, "authority.pem")}, left)
		s, err := Open(Options{Dir: dir})
		require.NoError(t, err)
		have, err := s.Stamps(t.Context())
		require.NoError(t, err)
		require.Empty(t, have)
		stamps["names"] = "y"
		require.NoError(t, s.Import(t.Context(), stamps, 0, many(func() {}, nil)))
		require.NoError(t, s.Close())
		require.NoError(t, DiscardImport(dir), "it is whole, and stays")
		s, err = Open(Options{Dir: dir})
		require.NoError(t, err)
		newest, err := s.Revision(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 24, newest)
		require.NoError(t, s.Close())
	}
	require.NoError(t, DiscardImport(filepath.Join(dir, "nowhere")))
}
