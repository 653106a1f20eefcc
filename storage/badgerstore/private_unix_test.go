//go:build linux || darwin

package badgerstore

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// requirePrivate requires that only the owner has access to a directory and its files.
func requirePrivate(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(privateFile)
		if d.IsDir() {
			want = privateDir
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
}

// private reports whether all files of a directory have mode 0600.
func private(dir string) bool {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, fault := e.Info()
		if fault == nil && info.Mode().Perm() != privateFile {
			return false
		}
	}
	return err == nil
}

// openMask sets the umask to 0, so that files are created without restrictions.
func openMask(t *testing.T) {
	old := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(old) })
}

// TestFilesArePrivate checks that independent of the umask only the owner has access to the files of a store
// while it is open, closed, filled or salvaged, and to the files of an older release after the store was
// opened.
func TestFilesArePrivate(t *testing.T) {
	openMask(t)
	dir := filepath.Join(t.TempDir(), "made by hand")
	require.NoError(t, os.Mkdir(dir, 0o777))
	o := Options{Dir: dir, Retain: -1, memTable: 1 << 20}
	s, err := Open(o)
	require.NoError(t, err)
	requirePrivate(t, dir)
	for i := range 200 { // several tables, which are made in the background
		_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprint(i), Value: bytes.Repeat([]byte(fmt.Sprint(i)), 10<<10)})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return private(dir) }, time.Minute, 10*time.Millisecond)
	require.NoError(t, s.Check(t.Context()))
	require.NoError(t, s.Close())
	requirePrivate(t, dir)

	salvaged := filepath.Join(t.TempDir(), "salvaged")
	require.NoError(t, os.Mkdir(salvaged, 0o777))
	_, err = Salvage(t.Context(), dir, salvaged)
	require.NoError(t, err)
	requirePrivate(t, salvaged)

	filled := filepath.Join(t.TempDir(), "filled")
	require.NoError(t, os.Mkdir(filled, 0o777))
	require.NoError(t, Fill(Options{Dir: filled, Retain: -1}, func(s *Store) error {
		return s.Import(t.Context(), nil, 0, func(yield func(storage.Record, error) bool) {
			yield(storage.Record{Key: "a", Value: []byte("1"), Revision: 1}, nil)
		})
	}))
	requirePrivate(t, filled)

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.Chmod(filepath.Join(dir, e.Name()), 0o644))
	}
	require.NoError(t, os.Chmod(dir, 0o755))
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, err = Open(o)
	require.NoError(t, err)
	requirePrivate(t, dir)
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "mode 0755")
	require.NoError(t, s.Close())
}

// TestSharedDirectoryFailsCheck checks that Check names the remedy if other users have access to the
// directory, and that the mode of a directory with subdirectories is not changed.
func TestSharedDirectoryFailsCheck(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o755))
	require.NoError(t, os.Chmod(dir, 0o755))
	var log bytes.Buffer
	s, err := Open(Options{Dir: dir, Retain: -1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.Contains(t, log.String(), "chmod 700 "+dir)
	require.ErrorContains(t, s.Check(t.Context()), "chmod 700 "+dir)
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, s.Check(t.Context()))
	require.NoError(t, os.Chmod(dir, 0o710))
	require.ErrorContains(t, s.Check(t.Context()), "0710")
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, s.Close())
}
