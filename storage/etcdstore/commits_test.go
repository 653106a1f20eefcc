package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

func create(key string) []storage.Write { return []storage.Write{{Key: key, Value: []byte(key)}} }

func guarded(key, by string, at storage.Revision) []storage.Write {
	return []storage.Write{{Key: key, Value: []byte(key)}, {Key: by, Expect: at, Guard: true}}
}

func remove(key string) []storage.Write {
	return []storage.Write{{Key: key, Expect: storage.AnyRevision}}
}

// commitInOneTransaction applies commits in one transaction.
func commitInOneTransaction(t *testing.T, s *Store, all ...[]storage.Write) (made []*commit) {
	t.Helper()
	b := s.newBatch()
	for _, ws := range all {
		ws, err := storage.NormalizeCommit(ws)
		require.NoError(t, err)
		c := s.newCommit(t.Context(), ws)
		require.True(t, b.hasRoom(c) && !b.overlaps(c))
		b.add(c)
		made = append(made, c)
	}
	b.run(t.Context())
	for _, c := range made {
		<-c.done
		var r *refusal
		switch {
		case errors.As(c.err, &r):
			c.err = s.conflict(t.Context(), c.ws, r)
		case errors.Is(c.err, errOtherRefused):
			c.revision, c.err = s.commit(t.Context(), c.ws)
		}
	}
	return made
}

// TestMarkEncodesPosition: every value is decoded with its position, and a value without a mark is
// unchanged.
func TestMarkEncodesPosition(t *testing.T) {
	for position := range positions {
		for _, value := range []string{"", "{}", "\x81", "\xbf\xff", "\x00"} {
			stored := []byte(marked(position, []byte(value)))
			got, rest := unmarked(stored)
			require.Equal(t, position, got)
			require.Equal(t, value, string(rest))
			for other := range positions {
				low, high := string([]byte{mark(other) - 1}), string([]byte{mark(other) + 1})
				require.Equal(t, other == position, string(stored) > low && string(stored) < high)
			}
		}
	}
	for value, want := range map[string]int{"": 0, "{}": 0, "k8s\x00\x0a": 0, "\x7f": 0, "\x80": 0, "été": lastPosition, "\xff": lastPosition} {
		position, rest := unmarked([]byte(value))
		require.Equal(t, want, position)
		require.Equal(t, value, string(rest))
	}
	at := revisionOf(1<<40, lastPosition)
	require.EqualValues(t, 1<<40, etcdOf(at))
	require.Equal(t, lastPosition, positionOf(at))
	require.Equal(t, revisionOf(1<<40+1, 0), at+1)
}

// TestQueueJoin: a commit joins the waiting batch unless it overlaps the batch, deletes a key, is
// large, or exceeds the limits of the batch. A commit that exceeds the limits starts the next batch;
// the others are sent alone.
func TestQueueJoin(t *testing.T) {
	long := func(n int, key string) (ws []storage.Write) {
		for i := range n {
			ws = append(ws, create(fmt.Sprint(key, i))...)
		}
		return ws
	}
	large := func(key string, size int) []storage.Write {
		return []storage.Write{{Key: key, Value: make([]byte, size-len(key))}}
	}
	const alone, with, next = 0, 1, 2
	for _, c := range []struct {
		name          string
		first, second []storage.Write
		want          int
	}{
		{"other keys", create("a"), create("b"), with},
		{"the same key", create("a"), create("a"), alone},
		{"the same guard", guarded("a", "g", 1), guarded("b", "g", 1), with},
		{"writes a guarded key", guarded("a", "g", 1), create("g"), alone},
		{"guards a written key", create("g"), guarded("a", "g", 1), alone},
		{"a deletion", create("a"), remove("b"), alone},
		{"a deletion beside a creation", create("a"), append(create("b"), remove("c")...), alone},
		{"maximal size", create("a"), large("b", batchBytes-2), with},
		{"over the maximal size", create("a"), large("b", batchBytes-1), next},
		{"over the size of a batch", create("a"), large("b", batchBytes+1), alone},
		{"maximal number of writes", long(batchOps-1, "a"), create("b"), with},
		{"over the maximal number of writes", long(batchOps, "a"), create("b"), next},
	} {
		s := &Store{}
		s.queue.running = maxBatches
		first, second := s.newCommit(t.Context(), c.first), s.newCommit(t.Context(), c.second)
		require.True(t, s.queue.join(s, first))
		require.Equal(t, c.want != alone, s.queue.join(s, second), c.name)
		require.Equal(t, map[int][]*commit{alone: {first}, with: {first, second}, next: {first}}[c.want], s.queue.next().commits, c.name)
		if c.want == next {
			require.Equal(t, []*commit{second}, s.queue.next().commits, c.name)
		}
		require.Nil(t, s.queue.next())
		require.Equal(t, maxBatches-1, s.queue.running)
	}
	s := &Store{}
	s.queue.running = maxBatches
	for i := range positions + 1 {
		require.True(t, s.queue.join(s, s.newCommit(t.Context(), create(fmt.Sprint(i)))))
	}
	require.Len(t, s.queue.next().commits, positions)
	require.Len(t, s.queue.next().commits, 1)
}

// TestBatchedCommitsAreSeparateInHistory: to reads, watches and compaction, the commits of one
// transaction are successive commits.
func TestBatchedCommitsAreSeparateInHistory(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s, reader := openStore(t, m), openStore(t, m)
	older := commitInOneTransaction(t, s, create("b"))[0].revision
	old := commitInOneTransaction(t, s, []storage.Write{{Key: "b", Value: []byte("b"), Expect: older}})[0].revision
	made := commitInOneTransaction(t, s,
		create("a"),
		[]storage.Write{{Key: "b", Value: []byte("2"), Expect: old}},
		guarded("d", "none", 0),
		append(create("e"), create("f")...),
	)
	last := old
	for i, c := range made {
		require.NoError(t, c.err)
		require.Greater(t, c.revision, last)
		require.Equal(t, revisionOf(etcdOf(made[0].revision), i), c.revision)
		last = c.revision
	}
	later := commitInOneTransaction(t, s, create("later"))[0].revision
	at, err := reader.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, later, at)

	text := func(rec storage.Record) string {
		return fmt.Sprintf("%s=%s@%d.%d ", rec.Key, rec.Value, etcdOf(rec.Revision)-etcdOf(made[0].revision), positionOf(rec.Revision))
	}
	states := []string{
		"a=a@0.0 b=b@-1.0 ",
		"a=a@0.0 b=2@0.1 ",
		"a=a@0.0 b=2@0.1 d=d@0.2 ",
		"a=a@0.0 b=2@0.1 d=d@0.2 e=e@0.3 f=f@0.3 ",
	}
	events := []string{"a=a@0.0 ", "b=2@0.1 ", "d=d@0.2 ", "e=e@0.3 f=f@0.3 ", "later=later@1.0 "}
	check := func(from int) {
		t.Helper()
		for i, c := range made[from:] {
			shown, records, err := reader.Scan(t.Context(), "", "", c.revision)
			require.NoError(t, err)
			require.Equal(t, c.revision, shown)
			have := ""
			for rec, err := range records {
				require.NoError(t, err)
				have += text(rec)
			}
			require.Equal(t, states[from+i], have)
			for key, there := range map[string]int{"b": 0, "d": 2, "f": 3, "later": 9} {
				_, err := reader.Get(t.Context(), key, c.revision)
				if from+i < there {
					require.ErrorIs(t, err, storage.ErrNotFound)
				} else {
					require.NoError(t, err)
				}
			}
			var seen []string
			for commit, err := range reader.Watch(t.Context(), "", c.revision) {
				require.NoError(t, err)
				had := ""
				for _, e := range commit {
					had += text(e.Record)
				}
				if seen = append(seen, had); len(seen) == len(events)-1-from-i {
					break
				}
			}
			require.Equal(t, events[from+i+1:], seen)
		}
	}
	check(0)
	require.NoError(t, reader.Compact(t.Context(), made[2].revision))
	check(2)
	_, err = reader.Get(t.Context(), "b", older)
	require.ErrorIs(t, err, storage.ErrCompacted)
	require.NoError(t, reader.Compact(t.Context(), made[3].revision))
	check(3)
	_, _, err = reader.Scan(t.Context(), "", "", made[2].revision)
	require.ErrorIs(t, err, storage.ErrCompacted)
	for _, err := range reader.Watch(t.Context(), "", made[2].revision) {
		require.ErrorIs(t, err, storage.ErrCompacted)
	}
	for _, at := range []storage.Revision{1, lastPosition} { // before the first revision of etcd
		_, err := reader.Get(t.Context(), "a", at)
		require.ErrorIs(t, err, storage.ErrCompacted)
	}
}

// TestWatchFromFutureRevisionInsideTransaction: a watch that begins at a position inside a transaction
// that does not exist yet yields only the later commits of the transaction.
func TestWatchFromFutureRevisionInsideTransaction(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	first := commitInOneTransaction(t, s, create("a"))[0].revision
	after := revisionOf(etcdOf(first)+1, 1)
	begun, seen := make(chan struct{}), make(chan storage.Revision)
	go func() {
		defer close(seen)
		close(begun)
		for commit, err := range s.Watch(t.Context(), "", after) {
			assert.NoError(t, err)
			seen <- commit[0].Revision
			return
		}
	}()
	<-begun
	made := commitInOneTransaction(t, s, create("b"), create("c"), create("d"))
	require.Equal(t, after, made[1].revision)
	require.Equal(t, made[2].revision, <-seen)
}

// TestConflictRefusesOnlyItsCommit: the commits of a batch that have a conflict fail with a
// ConflictError, and the others are applied. A revision that differs only in its position is a
// conflict, too.
func TestConflictRefusesOnlyItsCommit(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	there := commitInOneTransaction(t, s, create("a"), create("b"), create("c"))
	change := func(key string, expect storage.Revision) []storage.Write {
		return []storage.Write{{Key: key, Value: []byte("2"), Expect: expect}}
	}
	var conflict *storage.ConflictError
	conflicts := func(c *commit, key string) {
		t.Helper()
		require.ErrorAs(t, c.err, &conflict)
		require.Equal(t, storage.Record{Key: key, Value: []byte(key), Revision: there[strings.Index("abc", key)].revision}, conflict.Current)
	}
	made := commitInOneTransaction(t, s, create("a"), create("x"), change("b", there[1].revision-positions), change("c", there[2].revision))
	conflicts(made[0], "a")
	conflicts(made[2], "b")
	require.NoError(t, errors.Join(made[1].err, made[3].err))
	require.Equal(t, revisionOf(etcdOf(made[1].revision), 0), made[1].revision)
	require.Equal(t, made[1].revision+1, made[3].revision)

	for _, wrong := range []storage.Revision{-1, 1} { // they differ only in the position
		made = commitInOneTransaction(t, s, create(fmt.Sprint("y", wrong)), change("b", there[1].revision+wrong))
		require.NoError(t, made[0].err)
		conflicts(made[1], "b")
		alone := commitInOneTransaction(t, s, change("b", there[1].revision+wrong))
		conflicts(alone[0], "b")
		both := commitInOneTransaction(t, s, append(create("z"), change("b", there[1].revision+wrong)...))
		conflicts(both[0], "b")
	}
	for _, c := range commitInOneTransaction(t, s, create("a"), create("c")) {
		require.IsType(t, conflict, c.err)
	}
	revision, err := s.commit(t.Context(), create("z"))
	require.NoError(t, err)
	first := commitInOneTransaction(t, s, []storage.Write{
		{Key: "b", Value: []byte("2"), Expect: there[1].revision + 1}, {Key: "c", Value: []byte("2")},
	})
	conflicts(first[0], "b") // although the etcd revisions only show the conflict of c
	at, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, revision, at, "a batch without applied commits gets no revision")

	var all sync.WaitGroup
	for i := range 64 { // each commit gets its own answer if several of a batch are refused
		all.Go(func() {
			_, err := s.Commit(t.Context(), change("a", there[0].revision+storage.Revision(i%3))...)
			if i%3 != 0 {
				assert.IsType(t, conflict, err)
			}
			_, err = s.Commit(t.Context(), create(fmt.Sprint("new", i))...)
			assert.NoError(t, err)
		})
	}
	all.Wait()
}

// TestCommitExpectsManyRevisions: a commit with the maximal number of writes may expect a revision of
// each key.
func TestCommitExpectsManyRevisions(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	var ws []storage.Write
	for some := range 4 {
		var creates [][]storage.Write
		for i := range storage.CommitLength / 4 {
			creates = append(creates, create(fmt.Sprintf("%d/%02d", some, i)))
		}
		for _, c := range commitInOneTransaction(t, s, creates...) {
			require.NoError(t, c.err)
			ws = append(ws, storage.Write{Key: c.ws[0].Key, Value: []byte("2"), Expect: c.revision})
		}
	}
	for _, wrong := range []storage.Revision{1, -1, 1 << positionBits} {
		bad := slices.Clone(ws)
		bad[77].Expect += wrong
		_, err := s.Commit(t.Context(), bad...)
		var conflict *storage.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, bad[77].Key, conflict.Key)
		require.Equal(t, ws[77].Expect, conflict.Current.Revision)
	}
	at, err := s.Commit(t.Context(), ws...)
	require.NoError(t, err)
	for _, w := range ws {
		rec, err := s.Get(t.Context(), w.Key, at)
		require.NoError(t, err)
		require.Equal(t, at, rec.Revision)
	}
}

// TestRejectedBatchIsSplit: if etcd rejects a batch as too large, each commit is tried alone.
func TestRejectedBatchIsSplit(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t, "--max-request-bytes=8192"))
	var all [][]storage.Write
	for i := range 16 {
		all = append(all, []storage.Write{{Key: fmt.Sprint(i), Value: make([]byte, 1<<10)}})
	}
	all[5][0].Value = make([]byte, 1<<14)
	for i, c := range commitInOneTransaction(t, s, all...) {
		if i == 5 {
			require.ErrorIs(t, s.storageError(t.Context(), c.err), storage.ErrTooLarge)
			continue
		}
		require.NoError(t, c.err)
		require.Zero(t, positionOf(c.revision))
	}
}

// TestBatchWithoutSpace: commits of a batch are refused when etcd has no space; the batch with which
// etcd runs out of space is applied as a whole. Deletions succeed even if the history since the last
// change of the fence is compacted.
func TestBatchWithoutSpace(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t, "--quota-backend-bytes=4194304"))
	var ws []storage.Write
	for i := range 4 {
		var some [][]storage.Write
		for j := range 20 {
			some = append(some, create(fmt.Sprintf("%d/%02d", i, j)))
		}
		for _, c := range commitInOneTransaction(t, s, some...) {
			require.NoError(t, c.err)
			ws = append(ws, storage.Write{Key: c.ws[0].Key, Expect: c.revision})
		}
	}
	value := make([]byte, 1<<15)
	for full := false; !full; {
		for _, c := range commitInOneTransaction(t, s, []storage.Write{{Key: rand.Text(), Value: value}}, []storage.Write{{Key: rand.Text(), Value: value}}) {
			rec, err := s.Get(t.Context(), c.ws[0].Key, 0)
			if c.err != nil {
				require.ErrorIs(t, s.storageError(t.Context(), c.err), storage.ErrFull)
				require.ErrorIs(t, err, storage.ErrNotFound)
				full = true
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c.revision, rec.Revision)
		}
	}
	at, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Compact(t.Context(), at))
	_, err = s.Commit(t.Context(), create("c")...)
	require.ErrorIs(t, err, storage.ErrFull)
	_, err = s.Commit(t.Context(), append(remove("3/19"), ws[:79]...)...)
	require.NoError(t, err)
	_, err = s.Get(t.Context(), ws[0].Key, 0)
	require.ErrorIs(t, err, storage.ErrNotFound)
}

// TestUnansweredBatchIsAppliedOnce: if etcd does not answer a batch, each of its commits is applied
// exactly once, or refused if it has a conflict.
func TestUnansweredBatchIsAppliedOnce(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	there := commitInOneTransaction(t, s, create("there"))[0].revision
	way := &failingCalls{}
	s.client.KV = &interceptedKV{s.client.KV, way.call}
	lost := status.Error(codes.Unavailable, "connection lost")
	for _, made := range []bool{false, true} {
		for before := range 3 { // number of answers before the lost answers
			for n := range 3 {
				t.Log(made, before, n)
				way.fail(made, append(make([]error, before), slices.Repeat([]error{lost}, n)...)...)
				key := fmt.Sprint(made, before, n)
				all := commitInOneTransaction(t, s, create(key+"a"), create("there"), create(key+"b"))
				require.IsType(t, &storage.ConflictError{}, all[1].err)
				require.NoError(t, errors.Join(all[0].err, all[2].err))
				require.Equal(t, all[0].revision+1, all[2].revision)
				way.fail(false)
				for _, c := range []*commit{all[0], all[2]} {
					rec, err := s.Get(t.Context(), c.ws[0].Key, 0)
					require.NoError(t, err)
					require.Equal(t, c.revision, rec.Revision)
				}
			}
		}
	}
	rec, err := s.Get(t.Context(), "there", 0)
	require.NoError(t, err)
	require.Equal(t, there, rec.Revision)
}

// TestForeignRecordCanBeReadAndReplaced: a record that another program wrote can be read, and replaced
// with its revision as the expected one.
func TestForeignRecordCanBeReadAndReplaced(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	for _, value := range []string{"", "{}", "été"} {
		_, err := s.client.Put(t.Context(), s.data+"k"+value, value)
		require.NoError(t, err)
		rec, err := s.Get(t.Context(), "k"+value, 0)
		require.NoError(t, err)
		require.Equal(t, value, string(rec.Value))
		_, err = s.Commit(t.Context(), storage.Write{Key: rec.Key, Value: []byte("2"), Expect: rec.Revision})
		require.NoError(t, err)
	}
}

// TestCommitsShareTransactions: commits that arrive while others are running share transactions, and
// each has its own revision. A commit whose caller gives up before it is sent is not applied.
func TestCommitsShareTransactions(t *testing.T) {
	t.Parallel()
	s := openStore(t, etcdtest.Start(t))
	var sent atomic.Int64
	etcd := s.client.KV
	s.client.KV = &interceptedKV{etcd, func(make func() error) error {
		sent.Add(1)
		time.Sleep(5 * time.Millisecond)
		return make()
	}}
	const committers, each = 64, 10
	revisions := make([]storage.Revision, committers*each)
	var all sync.WaitGroup
	for c := range committers {
		all.Go(func() {
			for i := range each {
				at, err := s.Commit(t.Context(), create(fmt.Sprint(c, "/", i))...)
				assert.NoError(t, err)
				revisions[c*each+i] = at
			}
		})
	}
	all.Wait()
	slices.Sort(revisions)
	require.Len(t, slices.Compact(revisions), committers*each)
	t.Logf("%d commits took %d transactions", len(revisions), sent.Load())
	require.Less(t, sent.Load(), int64(committers*each/4))

	held := make(chan struct{})
	s.client.KV = &interceptedKV{etcd, func(make func() error) error { <-held; return make() }}
	for i := range maxBatches {
		all.Go(func() {
			_, err := s.Commit(t.Context(), create(fmt.Sprint("held", i))...)
			assert.NoError(t, err)
		})
	}
	require.Eventually(t, func() bool {
		s.queue.mu.Lock()
		defer s.queue.mu.Unlock()
		return s.queue.running == maxBatches
	}, time.Minute, time.Millisecond)
	waits, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	_, err := s.Commit(waits, create("given up")...)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(held)
	all.Wait()
	require.Eventually(t, func() bool {
		s.queue.mu.Lock()
		defer s.queue.mu.Unlock()
		return s.queue.running == 0
	}, time.Minute, time.Millisecond)
	_, err = s.Get(t.Context(), "given up", 0)
	require.ErrorIs(t, err, storage.ErrNotFound)
}
