package badgerstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

// Directories for the tests of damage. They are filled by several processes in turn, so that there are
// several tables, with values of different sizes.
const (
	lives      = 3
	lifeWrites = 60
)

func valueOf(i int) []byte {
	n := 100 + i%37*80
	if i%80 == 0 {
		n = 1<<20 + i*999
	}
	value := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(i), 7}).Read(value)
	return value
}

// fill opens, fills and closes a store several times. At the end the store is either closed or in the state
// that a kill leaves.
func fill(t *testing.T, killed bool) string {
	ctx, dir := context.Background(), t.TempDir()
	for life := range lives {
		s := open(t, dir)
		for i := range lifeWrites {
			n := life*lifeWrites + i
			_, err := s.Commit(ctx, storage.Write{Key: fmt.Sprintf("k/%03d", n), Value: valueOf(n)})
			require.NoError(t, err)
		}
		if killed && life == lives-1 {
			left := t.TempDir()
			require.NoError(t, copySparse(left, dir))
			require.NoError(t, s.Close())
			return left
		}
		require.NoError(t, s.Close())
	}
	return dir
}

// copySparse copies files and leaves holes for zeros.
func copySparse(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out, err := os.Create(filepath.Join(to, filepath.Base(path)))
		if err != nil {
			return err
		}
		_, err = out.Write(bytes.TrimRight(data, "\x00"))
		return errors.Join(err, out.Truncate(int64(len(data))), out.Close())
	})
}

// checkFilled opens a damaged copy of a directory of fill and reads everything. Unless Open refuses it, the
// store must be complete or report what is missing. It must never return an empty or a wrong value, and never
// reuse a revision.
func checkFilled(dir string) error {
	s, err := badgerstore.Open(badgerstore.Options{Dir: dir, Retain: -1})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	_, records, err := s.Scan(ctx, "", "", 0)
	if err != nil {
		return fmt.Errorf("broken: %w", err)
	}
	n := 0
	for rec, err := range records {
		var damaged *storage.DamagedError
		if errors.As(err, &damaged) {
			continue
		}
		if err != nil {
			return fmt.Errorf("broken: %w", err)
		}
		var i int
		if _, err := fmt.Sscanf(rec.Key, "k/%d", &i); err != nil || !bytes.Equal(rec.Value, valueOf(i)) {
			return fmt.Errorf("broken: a wrong value of %d bytes at %s", len(rec.Value), rec.Key)
		}
		n++
	}
	if missing := s.Check(ctx); n != lives*lifeWrites && missing == nil {
		return fmt.Errorf("broken: silent loss, %d records", n)
	} else if n == lives*lifeWrites && missing != nil {
		return fmt.Errorf("broken: all is there, but it says %w", missing)
	}
	revision, err := s.Commit(ctx, storage.Write{Key: "new", Value: []byte("x")})
	if err != nil || revision <= lives*lifeWrites {
		return fmt.Errorf("broken: revision %d is used again: %w", revision, err)
	}
	return s.Close()
}

// fillChild is an environment variable that makes the test binary check a directory and exit.
const fillChild = "BADGERSTORE_TEST_FILLED_DIR"

func spoils() []damage {
	list := append(damages(), damage{"zeroed", func(b []byte) []byte { return make([]byte, len(b)) }},
		damage{"zeros in the middle", func(b []byte) []byte {
			clear(b[len(b)/3 : len(b)/2])
			return b
		}})
	for _, part := range []int{50, 3} { // of the bytes that are not zeros at the end
		list = append(list, damage{fmt.Sprintf("bit flipped at 1/%d", part), func(b []byte) []byte {
			if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
				b[n/part] ^= 4
			}
			return b
		}})
	}
	return list
}

// TestDamagedFiles damages each kind of file in each way. With -short it covers a third of the cases.
func TestDamagedFiles(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, killed := range []bool{false, true} {
		filled := fill(t, killed)
		for _, pattern := range []string{"MANIFEST", "*.sst", "*.mem", "*.vlog", "KEYREGISTRY", "DISCARD", "REVISION", ".acknowledged", "LOCK"} {
			files, err := filepath.Glob(filepath.Join(filled, pattern))
			require.NoError(t, err)
			switch pattern {
			case "*.mem", ".acknowledged", "LOCK":
				if !killed {
					require.Empty(t, files)
					continue
				}
			case "*.vlog", "KEYREGISTRY", "DISCARD":
				if !killed {
					continue // as after a kill
				}
			}
			files = withoutEmptyLogs(files)
			require.NotEmpty(t, files, pattern)
			for i, d := range append([]damage{{name: "deleted"}}, spoils()...) {
				if testing.Short() && i%3 != 0 {
					continue
				}
				if plain := pattern == "*.vlog" || pattern == "KEYREGISTRY" || pattern == "DISCARD" || pattern == "LOCK"; plain && i > 4 {
					break // there is not much in them
				}
				name := fmt.Sprintf("%s/killed=%v/%s", strings.TrimPrefix(pattern, "*"), killed, d.name)
				t.Run(name, func(t *testing.T) {
					dir := t.TempDir()
					require.NoError(t, copySparse(dir, filled))
					spoil(t, filepath.Join(dir, filepath.Base(files[len(files)-1])), d)
					report, err := badgerstore.Inspect(t.Context(), dir)
					require.NoError(t, err)
					before := state(t, dir)
					cmd := exec.Command(exe, "-test.run=^$")
					cmd.Env = append(os.Environ(), fillChild+"="+dir)
					out, err := cmd.CombinedOutput()
					t.Logf("%s", out)
					if err == nil {
						return
					}
					var exit *exec.ExitError
					require.ErrorAs(t, err, &exit)
					require.Equal(t, 1, exit.ExitCode(), "the process broke")
					require.NotContains(t, string(out), "broken")
					require.Contains(t, string(out), dir)
					if strings.Contains(string(out), "open storage in") {
						require.False(t, report.Intact(), "Inspect finds nothing where Open refuses: %+v", report)
						require.Equal(t, before, state(t, dir), "a start that is refused touches nothing")
					}
				})
			}
		}
	}
}

// withoutEmptyLogs returns files without the next log, which is empty.
func withoutEmptyLogs(files []string) []string {
	return slices.DeleteFunc(files, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() == 0 && filepath.Ext(path) == ".mem"
	})
}

func spoil(t *testing.T, path string, d damage) {
	if d.damage == nil {
		require.NoError(t, os.Remove(path))
		return
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, d.damage(data), 0o600))
}

// state returns all properties of a directory and its files that a process could change.
func state(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if !d.IsDir() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(data)
		}
		all[filepath.Base(path)] = text
		return nil
	}))
	return all
}

// contents returns the files of a directory without the lock file.
func contents(t *testing.T, dir string) map[string]string {
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		if f.Name() != "LOCK" {
			all[f.Name()] = string(data)
		}
	}
	return all
}

// TestTruncatedManifest checks that wherever the list of tables is truncated, either the store is complete or
// Open fails and changes nothing.
func TestTruncatedManifest(t *testing.T) {
	for _, killed := range []bool{false, true} {
		filled := fill(t, killed)
		list, err := os.ReadFile(filepath.Join(filled, "MANIFEST"))
		require.NoError(t, err)
		refused := 0
		for end := 0; end < len(list); end += 1 + len(list)/15 {
			dir := t.TempDir()
			require.NoError(t, copySparse(dir, filled))
			require.NoError(t, os.Truncate(filepath.Join(dir, "MANIFEST"), int64(end)))
			before := contents(t, dir)
			err := checkFilled(dir)
			if err == nil {
				continue
			}
			refused++
			require.NotContains(t, err.Error(), "broken")
			require.ErrorContains(t, err, dir)
			require.Equal(t, before, contents(t, dir))
		}
		require.NotZero(t, refused)
	}
}

// TestMissingManifest checks that Open without the list of tables changes nothing, and that the store is
// complete when the list is back.
func TestMissingManifest(t *testing.T) {
	dir := fill(t, false)
	path := filepath.Join(dir, "MANIFEST")
	list, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	before := contents(t, dir)
	for range 2 {
		_, err = badgerstore.Open(badgerstore.Options{Dir: dir})
		require.ErrorContains(t, err, "MANIFEST")
		require.ErrorContains(t, err, "missing")
		require.Equal(t, before, contents(t, dir))
	}
	require.NoError(t, os.WriteFile(path, list, 0o600))
	require.NoError(t, checkFilled(dir))
}

// TestOnlyWitnessIsLeft checks that Open does not treat an emptied directory with a witness as a new store.
func TestOnlyWitnessIsLeft(t *testing.T) {
	dir := fill(t, false)
	for name := range contents(t, dir) {
		if name != "REVISION" {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	_, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.ErrorContains(t, err, "MANIFEST")
}

// TestLostLogIsReported checks that the store reports acknowledged commits that are lost with the end of the
// log until the file LOST is removed, and never reuses their revisions.
func TestLostLogIsReported(t *testing.T) {
	ctx := context.Background()
	filled := fill(t, true)
	logs, err := filepath.Glob(filepath.Join(filled, "*.mem"))
	require.NoError(t, err)
	require.Len(t, logs, 2, "the one in use and the next")
	for name, d := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(bytes.TrimRight(b, "\x00"))/2] },
		"zeroed":  func(b []byte) []byte { clear(b[len(bytes.TrimRight(b, "\x00"))/2:]); return b },
		"flipped": func(b []byte) []byte { b[len(bytes.TrimRight(b, "\x00"))/2] ^= 1; return b },
		"deleted": nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, copySparse(dir, filled))
			spoil(t, filepath.Join(dir, filepath.Base(logs[0])), damage{name, d})
			o := badgerstore.Options{Dir: dir, Retain: -1}
			s, err := badgerstore.Open(o)
			require.NoError(t, err)
			require.ErrorContains(t, s.Check(ctx), "LOST")
			require.True(t, s.Stats().Lost)
			acknowledged := storage.Revision(lives * lifeWrites)
			now, err := s.Revision(ctx)
			require.NoError(t, err)
			require.Greater(t, now, acknowledged, "what a client has seen is not in the future")
			for _, err := range s.Watch(ctx, "", acknowledged) {
				require.ErrorIs(t, err, storage.ErrCompacted, "whoever saw lost commits starts over")
			}
			revision, err := s.Commit(ctx, storage.Write{Key: "new", Value: []byte("x")})
			require.NoError(t, err)
			require.Greater(t, revision, now)
			require.NoError(t, s.Close())

			s, err = badgerstore.Open(o)
			require.NoError(t, err)
			require.Error(t, s.Check(ctx), "nobody has seen it yet")
			require.NoError(t, os.Remove(filepath.Join(dir, "LOST")))
			require.NoError(t, s.Check(ctx))
			require.NoError(t, s.Close())
		})
	}
}

// TestOpenWithEmptyLogs checks that Open succeeds if a kill has left an empty log file.
func TestOpenWithEmptyLogs(t *testing.T) {
	for _, killed := range []bool{false, true} {
		filled := fill(t, killed)
		for _, name := range []string{"00099.mem", "000099.vlog"} {
			dir := t.TempDir()
			require.NoError(t, copySparse(dir, filled))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
			require.NoError(t, checkFilled(dir))
		}
	}
}

// TestReservedRevisionsAreNotReused checks that revisions that were reserved before a kill are not used
// again.
func TestReservedRevisionsAreNotReused(t *testing.T) {
	ctx := context.Background()
	dir := fill(t, true)
	s := open(t, dir)
	now, err := s.Revision(ctx)
	require.NoError(t, err)
	require.EqualValues(t, lives*lifeWrites, now, "nothing is new")
	first, err := s.Commit(ctx, storage.Write{Key: "new", Value: []byte("x")})
	require.NoError(t, err)
	require.Greater(t, first, storage.Revision(10_000))
	for commit, err := range s.Watch(ctx, "", now) {
		require.NoError(t, err)
		require.Equal(t, first, commit[0].Revision)
		break
	}
	require.NoError(t, s.Close())
	s = open(t, dir)
	second, err := s.Commit(ctx, storage.Write{Key: "newer", Value: []byte("x")})
	require.NoError(t, err)
	require.Equal(t, first+1, second, "after an end in order nothing is left out")
	require.NoError(t, s.Close())
}

// TestDamagedPieces checks that if a table has lost a piece of a large value, only that record is damaged,
// also after restarts, until it is deleted, and that the damaged table is kept.
func TestDamagedPieces(t *testing.T) {
	ctx, dir := context.Background(), fill(t, false)
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	data, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	at := bytes.Index(data, valueOf(0)[500<<10:501<<10]) // no compression makes random bytes smaller
	require.Positive(t, at)
	data[at] ^= 1
	require.NoError(t, os.WriteFile(tables[0], data, 0o600))
	for range 2 {
		s, err := badgerstore.Open(badgerstore.Options{Dir: dir, Retain: -1})
		require.NoError(t, err)
		require.Equal(t, 1, s.Stats().Damaged)
		require.False(t, s.Stats().Lost)
		require.Equal(t, lives*lifeWrites, s.Stats().Keys)
		var damaged *storage.DamagedError
		require.ErrorAs(t, s.Check(ctx), &damaged)
		require.Equal(t, "k/000", damaged.Key)
		_, records, err := s.Scan(ctx, "", "", 0)
		require.NoError(t, err)
		for rec, err := range records {
			if rec.Key == damaged.Key {
				require.ErrorAs(t, err, &damaged)
				continue
			}
			require.NoError(t, err)
			var i int
			_, err = fmt.Sscanf(rec.Key, "k/%d", &i)
			require.NoError(t, err)
			require.Equal(t, valueOf(i), rec.Value)
		}
		require.NoError(t, s.Close())
	}
	kept, err := os.ReadFile(tables[0] + ".damaged")
	require.NoError(t, err)
	require.Equal(t, data, kept)
	s := open(t, dir)
	_, err = s.Commit(ctx, storage.Write{Key: "k/000", Expect: storage.AnyRevision})
	require.NoError(t, err)
	require.NoError(t, s.(storage.Checker).Check(ctx))
	require.NoError(t, s.Close())
}

// TestUnlistedTables checks that Open succeeds if a kill has left tables that the manifest does not name,
// provided that all their entries exist elsewhere.
func TestUnlistedTables(t *testing.T) {
	filled := fill(t, true)
	tables, err := filepath.Glob(filepath.Join(filled, "*.sst"))
	require.NoError(t, err)
	whole, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	for name, data := range map[string][]byte{"a copy": whole, "unfinished": whole[:len(whole)/2], "empty": nil, "zeros": make([]byte, 4096)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, copySparse(dir, filled))
			stray := filepath.Join(dir, "000077.sst")
			require.NoError(t, os.WriteFile(stray, data, 0o600))
			require.NoError(t, checkFilled(dir))
		})
	}
}
