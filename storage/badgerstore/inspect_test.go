package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

// salvaged opens a salvaged store and returns the number of records of fill in it. It requires that each has
// its original value.
func salvaged(t *testing.T, dir string) int {
	ctx := context.Background()
	s := open(t, dir)
	_, records, err := s.Scan(ctx, "", "", 0)
	require.NoError(t, err)
	n := 0
	for rec, err := range records {
		require.NoError(t, err)
		var i int
		_, err = fmt.Sscanf(rec.Key, "k/%d", &i)
		require.NoError(t, err)
		require.Equal(t, valueOf(i), rec.Value)
		require.EqualValues(t, i+1, rec.Revision)
		n++
	}
	revision, err := s.Commit(ctx, storage.Write{Key: "new", Value: []byte("x")})
	require.NoError(t, err)
	require.Greater(t, revision, storage.Revision(lives*lifeWrites))
	require.NoError(t, s.(storage.Checker).Check(ctx))
	require.NoError(t, s.Close())
	return n
}

// TestSalvageDamagedDirectory checks that Salvage reports the damage, copies the readable records, and does
// not change the damaged directory.
func TestSalvageDamagedDirectory(t *testing.T) {
	ctx := context.Background()
	const all = lives * lifeWrites
	killed := fill(t, true)
	middle := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for _, c := range []struct {
		name, pattern string
		damage        func([]byte) []byte
		whole         bool
		least, most   int
	}{
		{"nothing", "LOCK", func(b []byte) []byte { return b }, true, all, all},
		{"list missing", "MANIFEST", nil, false, all, all},
		{"list cut", "MANIFEST", func(b []byte) []byte { return b[:len(b)/2] }, false, all, all},
		{"list changed", "MANIFEST", middle, false, all, all},
		{"table missing", "*.sst", nil, false, all - lifeWrites, all - lifeWrites},
		{"table changed", "*.sst", middle, false, all - lifeWrites, all - 1},
		{"table cut", "*.sst", func(b []byte) []byte { return b[:len(b)/2] }, false, all - lifeWrites, all - lifeWrites},
		{"log missing", "*.mem", nil, false, all - lifeWrites, all - lifeWrites},
		{"log cut", "*.mem", func(b []byte) []byte { return b[:len(b)/100] }, false, all - lifeWrites, all - 1},
		{"witness missing", "REVISION", nil, true, all, all},
		{"registry gone", "KEYREGISTRY", func([]byte) []byte { return []byte("x") }, false, all, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
			require.NoError(t, copySparse(dir, killed))
			files, err := filepath.Glob(filepath.Join(dir, c.pattern))
			require.NoError(t, err)
			files = withoutEmptyLogs(files)
			spoil(t, files[len(files)-1], damage{c.name, c.damage})
			before := contents(t, dir)
			report, err := badgerstore.Inspect(ctx, dir)
			require.NoError(t, err)
			require.Equal(t, c.whole, report.Intact(), "%+v", report)
			again, err := badgerstore.Salvage(ctx, dir, out)
			require.NoError(t, err)
			require.Equal(t, report, again)
			require.Equal(t, before, contents(t, dir))
			n := salvaged(t, out)
			require.Equal(t, report.Records, n)
			require.GreaterOrEqual(t, n, c.least)
			require.LessOrEqual(t, n, c.most)
			_, err = badgerstore.Salvage(ctx, dir, out)
			require.ErrorContains(t, err, "not empty")
		})
	}
}

// TestSalvageKeepsStamps checks that stamps are salvaged.
func TestSalvageKeepsStamps(t *testing.T) {
	ctx := context.Background()
	dir, out := t.TempDir(), t.TempDir()
	s := open(t, dir).(*badgerstore.Store)
	_, err := s.Stamp(ctx, "names", "first")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = badgerstore.Salvage(ctx, dir, out)
	require.NoError(t, err)
	s = open(t, out).(*badgerstore.Store)
	have, err := s.Stamp(ctx, "names", "second")
	require.NoError(t, err)
	require.Equal(t, "first", have)
	require.NoError(t, s.Close())
}

// TestInspectOpenStoreFails checks that Inspect fails for a store that is open.
func TestInspectOpenStoreFails(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := open(t, dir)
	_, err := badgerstore.Inspect(ctx, dir)
	require.ErrorIs(t, err, badgerstore.ErrInUse)
	require.NoError(t, s.Close())
	_, err = badgerstore.Inspect(ctx, filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = badgerstore.Inspect(ended, fill(t, false))
	require.True(t, errors.Is(err, context.Canceled), "%v", err)
}
