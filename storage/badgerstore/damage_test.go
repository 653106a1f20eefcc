package badgerstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

func TestOpenInUse(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.ErrorIs(t, err, badgerstore.ErrInUse)
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, fmt.Sprintf("by process %d", os.Getpid()))
	require.NoError(t, s.Close())
	require.NoError(t, open(t, dir).Close())
}

func TestOpenInvalidDirectoryFails(t *testing.T) {
	_, err := badgerstore.Open(badgerstore.Options{})
	require.ErrorContains(t, err, "no directory")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err = badgerstore.Open(badgerstore.Options{Dir: dir})
		require.ErrorIs(t, err, syscall.ENOTDIR)
		require.ErrorContains(t, err, dir)
		require.NotContains(t, err.Error(), "damaged")
	}
}

func TestOpenCreatesPrivateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, open(t, dir).Close())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

type damage struct {
	name   string
	damage func([]byte) []byte
}

func damages() []damage {
	return []damage{
		{"empty", func([]byte) []byte { return nil }},
		{"truncated", func(b []byte) []byte { return b[:len(b)/2] }},
		{"head", func(b []byte) []byte {
			n := min(16, len(b))
			return append([]byte(strings.Repeat("x", n)), b[n:]...)
		}},
		{"middle", func(b []byte) []byte {
			b[len(b)/2] ^= 1
			return b
		}},
		{"tail", func(b []byte) []byte {
			return append(b[:max(0, len(b)-16)], strings.Repeat("\xff", 16)...)
		}},
		{"garbage", func([]byte) []byte { return []byte(strings.Repeat("garbage ", 512)) }},
	}
}

func TestCommitTooLarge(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	ctx := context.Background()
	for _, w := range []storage.Write{
		{Key: strings.Repeat("k", badgerstore.MaxKeyBytes+1), Value: []byte("x")},
		{Key: "k", Value: make([]byte, badgerstore.MaxValueBytes+1)},
	} {
		_, err := s.Commit(ctx, w)
		require.ErrorIs(t, err, storage.ErrTooLarge)
	}
	_, err := s.Commit(ctx, storage.Write{
		Key: strings.Repeat("k", badgerstore.MaxKeyBytes), Value: make([]byte, badgerstore.MaxValueBytes),
	})
	require.NoError(t, err)
	rec, err := s.Get(ctx, strings.Repeat("k", badgerstore.MaxKeyBytes), 0)
	require.NoError(t, err)
	require.Len(t, rec.Value, badgerstore.MaxValueBytes)
}
