package badgerstore_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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

func TestOpenRefuses(t *testing.T) {
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

func TestOpenMakesPrivateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, open(t, dir).Close())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

const seeded = 200

// seed fills a directory so that every kind of file is in it.
func seed(t *testing.T) string {
	dir := t.TempDir()
	s := open(t, dir)
	for i := range seeded {
		value := []byte(strings.Repeat(fmt.Sprint(i), 500))
		if i == 0 {
			value = make([]byte, 2<<20)
		}
		_, err := s.Commit(context.Background(), storage.Write{Key: fmt.Sprint(i), Value: value})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	return dir
}

// openChild makes the test binary a process that opens a directory, reads all
// of it and says how that went.
const openChild = "BADGERSTORE_TEST_OPEN_DIR"

func runOpen(dir string) error {
	s, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	if err != nil {
		return err
	}
	revision, records, err := s.Scan(context.Background(), "", "", 0)
	if err != nil {
		return err
	}
	n := 0
	for _, err := range records {
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		n++
	}
	if revision != seeded || n != seeded {
		return fmt.Errorf("silent loss: %d records at revision %d", n, revision)
	}
	return s.Close()
}

// Whatever is broken in a directory, Open says so with its name, or what is
// whole is found whole; the process is not taken down. Each directory is
// opened by a process of its own, because the database leaves goroutines
// behind when it cannot open one.
func TestOpenDamaged(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	intact := seed(t)
	for _, pattern := range []string{"MANIFEST", "*.sst", "*.vlog", "KEYREGISTRY", "DISCARD", "REVISION"} {
		for _, d := range damages() {
			t.Run(pattern+" "+d.name, func(t *testing.T) {
				dir := t.TempDir()
				require.NoError(t, os.CopyFS(dir, os.DirFS(intact)))
				files, err := filepath.Glob(filepath.Join(dir, pattern))
				require.NoError(t, err)
				require.NotEmpty(t, files)
				data, err := os.ReadFile(files[0])
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(files[0], d.damage(data), 0o600))
				cmd := exec.Command(exe, "-test.run=^$")
				cmd.Env = append(os.Environ(), openChild+"="+dir)
				out, err := cmd.CombinedOutput()
				t.Logf("%s", out)
				if err == nil {
					return
				}
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit)
				require.Equal(t, 1, exit.ExitCode(), "the process broke")
				require.NotContains(t, string(out), "silent loss")
				if !strings.HasPrefix(string(out), "scan: ") {
					require.Contains(t, string(out), dir)
				}
			})
		}
	}
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
		require.ErrorIs(t, err, badgerstore.ErrTooLarge)
	}
	_, err := s.Commit(ctx, storage.Write{
		Key: strings.Repeat("k", badgerstore.MaxKeyBytes), Value: make([]byte, badgerstore.MaxValueBytes),
	})
	require.NoError(t, err)
	rec, err := s.Get(ctx, strings.Repeat("k", badgerstore.MaxKeyBytes), 0)
	require.NoError(t, err)
	require.Len(t, rec.Value, badgerstore.MaxValueBytes)
}
