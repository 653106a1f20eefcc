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

// Directories for the tests of damages: filled in several lives, so that there
// are several tables, with values of all sizes.
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

// fill writes a store in several lives. Its end is in order, or it is what a
// kill leaves.
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

// copySparse copies files and leaves out zeros.
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

// checkFilled reads everything in a directory that fill made. What Open does not
// refuse is whole, or the store says what is missing: never an empty or another
// value, never a revision that was used before.
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

// fillChild makes the test binary a process that checks a directory.
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

// TestDamagedFiles spoils each kind of file in each way, or with -short in a third of them.
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
			files = begun(files)
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
						require.False(t, report.Whole(), "Inspect finds nothing where Open refuses: %+v", report)
						require.Equal(t, before, state(t, dir), "a start that is refused touches nothing")
					}
				})
			}
		}
	}
}

// begun leaves out the log that is to be used next, which is empty.
func begun(files []string) []string {
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

// state returns everything about a directory and its files that a process could change.
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

// contents returns what is in a directory, without the note of who has it.
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

// TestManifestCut: wherever the list of tables ends, the store is whole, or Open
// refuses it and changes nothing.
func TestManifestCut(t *testing.T) {
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

// TestManifestLost: without the list of tables nothing is touched, and with it
// all is there again.
func TestManifestLost(t *testing.T) {
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

// TestEverythingButTheWitnessLost: a directory that was emptied is no new one.
func TestEverythingButTheWitnessLost(t *testing.T) {
	dir := fill(t, false)
	for name := range contents(t, dir) {
		if name != "REVISION" {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	_, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.ErrorContains(t, err, "MANIFEST")
}

// TestLogLost: when acknowledged commits are gone with the end of the log, the
// store says so until somebody has seen it, and never uses their revisions again.
func TestLogLost(t *testing.T) {
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

// TestEmptyLogs: what a kill leaves of a log before it is made does not keep a
// store from starting.
func TestEmptyLogs(t *testing.T) {
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

// TestRevisionsAfterKill: revisions that were reserved are not used again.
func TestRevisionsAfterKill(t *testing.T) {
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

// TestDamagedPieces: where a table lost a part of a large value, that record alone
// is refused, in every later life, until it is deleted; the table is kept.
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

// TestStrayTables: tables that a kill left beside the list do not keep a store
// from starting, if all that is in them is elsewhere.
func TestStrayTables(t *testing.T) {
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
