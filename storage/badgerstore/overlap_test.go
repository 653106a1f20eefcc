package badgerstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestSwappedTables checks that Open and Inspect name tables that were swapped and change nothing in the
// directory.
func TestSwappedTables(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Retain: -1, memTable: 1 << 20}
	s, err := Open(o)
	require.NoError(t, err)
	value, random := make([]byte, 20<<10), rand.NewChaCha8([32]byte{})
	levels := func() map[int][]uint64 {
		found := map[int][]uint64{}
		for _, t := range s.db.Tables() {
			found[t.Level] = append(found[t.Level], t.ID)
		}
		return found
	}
	lower := 0
	for i, end := 0, time.Now().Add(time.Minute); lower == 0 && time.Now().Before(end); i++ {
		_, _ = random.Read(value)
		_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprintf("%06d", i*7919%1000000), Value: value})
		require.NoError(t, err)
		if i%50 > 0 {
			continue
		}
		for level, ids := range levels() {
			if level > 0 && len(ids) > 3 {
				lower = level
			}
		}
	}
	require.NotZero(t, lower, "there is no table below the first level")
	require.NoError(t, s.Close())
	// The newest table has keys from the ranges of all others.
	found, err := surveyDir(dir)
	require.NoError(t, err)
	require.NoError(t, found.verifyFiles())
	var first, second uint64
	for _, id := range found.tables {
		switch found.levels[id] {
		case 0:
			first = id
		case lower:
			second = id
		}
	}
	require.NotZero(t, first)
	require.NotZero(t, second)
	a, b := found.path(first), found.path(second)
	require.NoError(t, os.Rename(a, a+".swap"))
	require.NoError(t, os.Rename(b, a))
	require.NoError(t, os.Rename(a+".swap", b))
	before, err := os.Stat(dir)
	require.NoError(t, err)
	_, err = Open(o)
	require.ErrorContains(t, err, table.IDToFilename(second))
	require.ErrorContains(t, err, "tables were swapped")
	require.NotContains(t, err.Error(), "00000000 ", "keys are printed as raw bytes")
	after, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	require.NoFileExists(t, filepath.Join(dir, lockFile))
	report, err := Inspect(t.Context(), dir)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(report.Problems), "tables were swapped")
}
