package badgerstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestMissingWitness checks that without a witness, revisions that may have been used are not used again,
// also after a second restart.
func TestMissingWitness(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	o := Options{Dir: dir, Retain: -1}
	s, err := Open(o)
	require.NoError(t, err)
	first, err := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("x")})
	require.NoError(t, err)
	unfinished := first + 7
	require.NoError(t, s.flush(100, func(batch *badger.WriteBatch) error {
		return batch.SetEntryAt(badger.NewEntry(pieceKey(unfinished, 0), make([]byte, 9)).WithMeta(encodingPiece), uint64(unfinished))
	}))
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, witnessFile)))
	for range 2 { // the first life writes nothing
		s, err = Open(o)
		require.NoError(t, err)
		require.Greater(t, s.committer.next, unfinished+revisionBlock)
		require.NoError(t, s.Check(ctx))
		require.NoError(t, s.Close())
	}
}

// TestPowerFailureInCompact checks that a process that ends after it has written the mark and before it has
// updated the witness has lost nothing.
func TestPowerFailureInCompact(t *testing.T) {
	ctx, dir, left := t.Context(), t.TempDir(), t.TempDir()
	s, err := Open(Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	var last storage.Revision
	for i := range 9 {
		last, err = s.Commit(ctx, storage.Write{Key: fmt.Sprint(i % 2), Value: []byte("x"), Expect: storage.AnyRevision})
		require.NoError(t, err)
		if i == 3 {
			require.NoError(t, s.Compact(ctx, last-1))
		}
	}
	require.NoError(t, s.Compact(ctx, last-1))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		switch f.Name() {
		case runningFile, lockFile:
			continue
		case witnessFile:
			turn := 1 - s.committer.witness.durable.turn // of the line that was written last
			data = append(data[:turn*lineBytes:turn*lineBytes], append(bytes.Repeat([]byte{' '}, lineBytes), data[(turn+1)*lineBytes:]...)...)
		}
		require.NoError(t, os.WriteFile(filepath.Join(left, f.Name()), data, 0o600))
	}
	require.NoError(t, s.Close())
	s, err = Open(Options{Dir: left, Retain: -1})
	require.NoError(t, err)
	require.NoError(t, s.Check(ctx))
	require.NoError(t, s.Close())
}

// TestFailedWitnessWriteKeepsLastLine checks that the last intact line stays if another line cannot be
// written.
func TestFailedWitnessWriteKeepsLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	f, err := os.Create(path)
	require.NoError(t, err)
	l := lines{File: f}
	require.NoError(t, l.write(witnessRecord{revision: 1, reserved: 1}, true))
	require.NoError(t, f.Close())
	for range 2 {
		require.Error(t, l.write(witnessRecord{revision: 2, reserved: 2}, true))
		require.EqualValues(t, 1, l.turn)
	}
}
