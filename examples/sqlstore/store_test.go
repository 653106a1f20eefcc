package sqlstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/examples/sqlstore"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/storagetest"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(victim); file != "" {
		write(file)
	}
	goleak.VerifyTestMain(tests{m})
}

// tests stops the shared server after the tests.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	if started.Load() {
		if c, _ := commonCluster(); c != nil {
			if err := c.remove(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	return code
}

func open(t testing.TB, dir string, retain time.Duration) storage.Backend {
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{File: filepath.Join(dir, "data.db"), Retain: retain})
	require.NoError(t, err)
	return s
}

const forever time.Duration = -1

func TestConformance(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		storagetest.Run(t, func(t testing.TB) storage.Backend { return open(t, t.TempDir(), forever) })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		needPostgres(t)
		if testing.Short() {
			t.Skip("TestSeveral has the same cases")
		}
		storagetest.Run(t, func(t testing.TB) storage.Backend {
			s, err := sqlstore.Open(t.Context(), empty(t))
			require.NoError(t, err)
			return s
		})
	})
}

func TestDurabilityContract(t *testing.T) {
	storagetest.RunDurable(t, func(t testing.TB, dir string) storage.Backend { return open(t, dir, forever) })
}

func TestRetentionContract(t *testing.T) {
	storagetest.RunRetained(t, open, true)
}

// TestTwoStoresShareAFile: each of two stores in one file sees the commits of the other, also in its
// watches, and their revisions form one sequence.
func TestTwoStoresShareAFile(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, forever), open(t, dir, forever)
	defer func() { require.NoError(t, a.Close()); require.NoError(t, b.Close()) }()
	const each = 40
	var writers sync.WaitGroup
	for i, s := range []storage.Backend{a, b} {
		writers.Go(func() {
			for j := range each {
				_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprintf("k/%d/%d", i, j), Value: []byte("v")})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, s := range []storage.Backend{a, b} {
		var seen storage.Revision
		for events, err := range s.Watch(t.Context(), "k/", 0) {
			require.NoError(t, err)
			require.Equal(t, seen+1, events[0].Revision)
			if seen++; seen == 2*each {
				break
			}
		}
	}
	writers.Wait()
	_, err := b.Commit(t.Context(), storage.Write{Key: "k/0/0", Value: []byte("w")})
	require.IsType(t, &storage.ConflictError{}, err, "create of an existing key")
}

// victim is the environment variable with the file that a child process of the test writes to until it
// is killed.
const victim = "SQLSTORE_TEST_VICTIM"

// write commits as fast as it can, four commits at a time, and prints the acknowledged ones.
func write(file string) {
	s, err := sqlstore.Open(context.Background(), sqlstore.Options{File: file})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := range 4 {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("k/%d/%d", i, n)
				rev, err := s.Commit(context.Background(), storage.Write{Key: key, Value: []byte(key)})
				if err != nil {
					os.Exit(1)
				}
				os.Stdout.WriteString(fmt.Sprintln(key, rev)) // one write call per line
			}
		}()
	}
	select {}
}

// TestKilledProcessLosesNoCommit: all acknowledged commits are there after the process was killed.
func TestKilledProcessLosesNoCommit(t *testing.T) {
	for round := range 5 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victim+"="+filepath.Join(dir, "data.db"))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		acknowledged := make(map[string]storage.Revision)
		for lines.Scan() {
			key, rev := "", storage.Revision(0)
			if n, _ := fmt.Sscan(lines.Text(), &key, &rev); n == 2 {
				acknowledged[key] = rev
			}
			if len(acknowledged) == 200*(round+1) {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait() // killed
		s := open(t, dir, forever)
		for key, rev := range acknowledged {
			rec, err := s.Get(t.Context(), key, rev)
			require.NoError(t, err, key)
			require.Equal(t, storage.Record{Key: key, Value: []byte(key), Revision: rev}, rec)
		}
		require.NoError(t, s.Close())
	}
}

// TestOpenErrorNamesTheFile: the error for a file that cannot be opened contains its path.
func TestOpenErrorNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.db")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600))
	_, err := sqlstore.Open(t.Context(), sqlstore.Options{File: file})
	require.ErrorContains(t, err, file)
	_, err = sqlstore.Open(t.Context(), sqlstore.Options{File: filepath.Join(file, "below", "data.db")})
	require.ErrorContains(t, err, file)
	_, err = sqlstore.Open(t.Context(), sqlstore.Options{})
	require.ErrorContains(t, err, "neither Options.File nor Options.Postgres is set")
}

// TestConcurrentOpenOfNewDatabase: several stores create the same database at the same time.
func TestConcurrentOpenOfNewDatabase(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		openAtOnce(t, func() sqlstore.Options { return sqlstore.Options{File: filepath.Join(t.TempDir(), "data.db")} })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		openAtOnce(t, func() sqlstore.Options { return empty(t) })
	})
}

func openAtOnce(t *testing.T, fresh func() sqlstore.Options) {
	for range 5 {
		o := fresh()
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				s, err := sqlstore.Open(t.Context(), o)
				if assert.NoError(t, err) {
					assert.NoError(t, s.Close())
				}
			})
		}
		all.Wait()
	}
}
