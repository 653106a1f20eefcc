package badgerstore_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

// childDir is an environment variable that makes the test binary write to a store until it is killed.
const childDir = "BADGERSTORE_TEST_CHILD_DIR"

const (
	childWriters = 16
	childGroup   = 5 // writes of a commit of several
)

// runChild writes from several goroutines. It prints each acknowledged write, and the events of a watch, to
// standard output.
func runChild(dir string) error {
	s, err := badgerstore.Open(badgerstore.Options{Dir: dir, Retain: -1})
	if err != nil {
		return err
	}
	ctx := context.Background()
	start, err := s.Revision(ctx)
	if err != nil {
		return err
	}
	lines := make(chan string, 1024)
	lines <- fmt.Sprintf("start %d", start)
	failed := make(chan error, childWriters+1)
	for w := range childWriters {
		go func() { failed <- childWrite(ctx, s, w, start, lines) }()
	}
	go func() {
		for commit, err := range s.Watch(ctx, "", start) {
			if err != nil {
				failed <- err
				return
			}
			lines <- fmt.Sprintf("seen %d", commit[0].Revision)
		}
	}()
	go func() {
		for {
			time.Sleep(40 * time.Millisecond)
			if at, err := s.Revision(ctx); err == nil && at > 500 {
				_ = s.Compact(ctx, min(start, at-500))
			}
		}
	}()
	for {
		select {
		case err := <-failed:
			return err
		case line := <-lines:
			if _, err := fmt.Println(line); err != nil {
				return err
			}
		}
	}
}

func childWrite(ctx context.Context, s *badgerstore.Store, w int, start storage.Revision, lines chan<- string) error {
	r := rand.New(rand.NewPCG(uint64(start), uint64(w)))
	for i := 0; ; i++ {
		write := storage.Write{Key: fmt.Sprintf("w%d/%d", w, r.IntN(20)), Expect: storage.AnyRevision}
		sum := uint32(0)
		if i == 0 || r.IntN(8) > 0 {
			write.Value = make([]byte, 64+r.IntN(4096-64))
			for j := 0; j+8 <= len(write.Value); j += 8 {
				binary.LittleEndian.PutUint64(write.Value[j:], r.Uint64())
			}
			sum = crc32.ChecksumIEEE(write.Value)
		}
		writes := []storage.Write{write}
		if w >= childWriters/2 && write.Value != nil { // several keys get the same value
			write.Key = fmt.Sprintf("z%d/%d", w, r.IntN(3))
			for j := range childGroup - 1 {
				other := write
				other.Key = fmt.Sprintf("w%d/%d", j, w)
				writes = append(writes, other)
			}
			writes[0] = write
		}
		revision, err := s.Commit(ctx, writes...)
		if err == storage.ErrNotFound {
			continue
		}
		if err != nil {
			return err
		}
		lines <- fmt.Sprintf("ack %d %s %d", revision, write.Key, sum)
	}
}

type ack struct {
	key string
	sum uint32 // 0: deleted
}

// life is the output of one child before it was killed.
type life struct {
	start, seen storage.Revision
	acks        map[storage.Revision]ack
}

func startAndKill(t *testing.T, dir string, after int) life {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	l := life{start: -1, acks: map[storage.Revision]ack{}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		n, err := strconv.ParseInt(fields[1], 10, 64)
		require.NoError(t, err)
		revision := storage.Revision(n)
		switch fields[0] {
		case "start":
			l.start = revision
		case "seen":
			require.Greater(t, revision, l.seen, "the watch of the process went back")
			l.seen = revision
		case "ack":
			sum, err := strconv.ParseUint(fields[3], 10, 32)
			require.NoError(t, err)
			l.acks[revision] = ack{fields[2], uint32(sum)}
			if len(l.acks) == after {
				require.NoError(t, cmd.Process.Kill())
			}
		}
	}
	require.Error(t, cmd.Wait())
	require.GreaterOrEqual(t, len(l.acks), after, "the process ended by itself")
	return l
}

func TestKillLosesNoAcknowledgedCommit(t *testing.T) {
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	ctx := context.Background()
	last := storage.Revision(0)
	for round := range 6 {
		l := startAndKill(t, dir, 1+r.IntN(1200))
		require.GreaterOrEqual(t, l.start, last, "the revision went back")
		s, err := badgerstore.Open(badgerstore.Options{Dir: dir, Retain: -1})
		require.NoError(t, err)
		require.NoError(t, s.Check(ctx))
		newest, err := s.Revision(ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, newest, l.seen, "a commit that a watch had shown is lost")
		checkLife(t, s, l, newest)
		t.Logf("round %d: %d acknowledged, revisions %d to %d", round, len(l.acks), l.start, newest)
		last = newest
		require.NoError(t, s.Close())
	}
}

// checkLife reads a watch from before the child to now. Each acknowledged write must be there with its value,
// and each event must replace the record that the previous event of its key left. Watches that start later
// must yield the same events.
func checkLife(t *testing.T, s *badgerstore.Store, l life, newest storage.Revision) {
	t.Helper()
	ctx := context.Background()
	state := map[string]storage.Record{}
	_, records, err := s.Scan(ctx, "", "", l.start)
	if l.start == 0 {
		_, records, err = s.Scan(ctx, "none", "", newest)
	}
	require.NoError(t, err)
	for rec, err := range records {
		require.NoError(t, err)
		state[rec.Key] = rec
	}
	found := map[storage.Revision]storage.Event{}
	var order []storage.Revision
	if newest == l.start {
		require.Empty(t, l.acks)
		return
	}
	for commit, err := range s.Watch(ctx, "", l.start) {
		require.NoError(t, err)
		for _, e := range commit {
			require.Equal(t, state[e.Key], e.Prev)
			if state[e.Key] = e.Record; e.Deleted() {
				delete(state, e.Key)
			}
		}
		checkWhole(t, commit)
		e := commit[len(commit)-1]
		found[e.Revision] = e
		order = append(order, e.Revision)
		if e.Revision == newest {
			break
		}
	}
	for revision, a := range l.acks {
		e, ok := found[revision]
		require.True(t, ok, "acknowledged revision %d is lost", revision)
		require.Equal(t, a.key, e.Key)
		require.Equal(t, a.sum == 0, e.Deleted())
		require.Equal(t, a.sum, crc32.ChecksumIEEE(e.Value))
	}
	_, records, err = s.Scan(ctx, "", "", 0)
	require.NoError(t, err)
	now := map[string]storage.Record{}
	for rec, err := range records {
		require.NoError(t, err)
		now[rec.Key] = rec
	}
	require.Equal(t, state, now)
	middle := len(order) / 2
	for commit, err := range s.Watch(ctx, "", order[middle]) {
		require.NoError(t, err)
		e := commit[len(commit)-1]
		middle++
		require.Equal(t, found[order[middle]], e)
		if e.Revision == newest {
			break
		}
		if middle == len(order)-1 {
			t.Fatal("the watch goes on after the newest revision")
		}
	}
}

// checkWhole checks that a commit has either one write or all of its several writes.
func checkWhole(t *testing.T, commit []storage.Event) {
	t.Helper()
	last := commit[len(commit)-1]
	if !strings.HasPrefix(last.Key, "z") {
		require.Equal(t, 1, len(commit))
		return
	}
	require.Equal(t, childGroup, len(commit))
	for _, e := range commit {
		require.Equal(t, last.Revision, e.Revision)
		require.Equal(t, string(last.Value), string(e.Value))
	}
}
