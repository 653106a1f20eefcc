package eventlog

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

type log = Log[storage.Revision]

// commit returns a commit of n events with the given number of bytes each.
func commit(rev storage.Revision, n int, bytes int64) Commit[storage.Revision] {
	return Commit[storage.Revision]{rev, slices.Repeat([]storage.Revision{rev}, n), int64(n) * bytes}
}

// revisions returns the revisions of the commits in runs, which must be complete.
func revisions(t *testing.T, n int, runs ...[]Commit[storage.Revision]) (all []storage.Revision) {
	for _, run := range runs {
		for _, c := range run {
			require.Equal(t, commit(c.Revision, n, 1), c)
			all = append(all, c.Revision)
		}
	}
	return all
}

// Revisions may have gaps.
func TestBetweenReturnsCommitsInRange(t *testing.T) {
	for _, n := range []int{1, 3} {
		var l log
		l.Init(10, Limits{Events: 40})
		var all []storage.Revision
		for i := range storage.Revision(100) {
			all = append(all, 11+i*3)
			l.Append(time.Now(), commit(11+i*3, n, 1))
			require.LessOrEqual(t, l.Events(), 40)
		}
		require.Greater(t, l.Events(), 30)
		require.Equal(t, int64(l.Events()), l.Bytes())
		floor := l.Floor()
		require.Greater(t, floor, storage.Revision(11))
		for after := floor; after < 320; after++ {
			for _, last := range []storage.Revision{after, after + 1, after + 30, 1000} {
				var want []storage.Revision
				for _, revision := range all {
					if revision > after && revision <= last {
						want = append(want, revision)
					}
				}
				runs, ok := l.Between(after, last)
				require.True(t, ok)
				require.Equal(t, want, revisions(t, n, runs...), "after %d to %d", after, last)
			}
		}
		_, ok := l.Between(floor-1, 1000)
		require.False(t, ok)
	}
}

func TestForgetRaisesFloor(t *testing.T) {
	var l log
	l.Init(0, Limits{})
	for i := range storage.Revision(1000) {
		l.Append(time.Now(), commit(i+1, 2, 1))
	}
	require.Equal(t, storage.Revision(1), l.First())
	l.Forget(700)
	require.Equal(t, storage.Revision(700), l.Floor())
	require.Equal(t, storage.Revision(701), l.After(700)[0].Revision)
	require.Greater(t, l.First(), storage.Revision(700-chunkEvents))
	l.Forget(300)
	require.Equal(t, storage.Revision(700), l.Floor())
	l.Forget(5000)
	require.Equal(t, storage.Revision(1000), l.Floor())
	require.Equal(t, storage.Revision(1000), l.Newest())
	require.Empty(t, l.After(0))
	require.Zero(t, l.Events())
	require.Zero(t, l.Bytes())
	require.Zero(t, l.First())
}

// Runs stay valid after Shorten has dropped their commits, and the newest commit stays in the log.
func TestShortenKeepsNewestCommit(t *testing.T) {
	var l log
	l.Init(0, Limits{Bytes: 1 << 20})
	var held [][]Commit[storage.Revision]
	for i := range storage.Revision(200) {
		l.Append(time.Now(), commit(i+1, 1, 1))
		held = append(held, l.After(i))
	}
	for l.First() != 0 {
		before := l.Bytes()
		l.Shorten()
		require.Less(t, l.Bytes(), before)
		require.Equal(t, int64(l.Events()), l.Bytes())
	}
	l.Shorten()
	require.Equal(t, 1, l.Events())
	require.Equal(t, storage.Revision(199), l.Floor())
	require.Equal(t, []storage.Revision{200}, revisions(t, 1, l.After(199)))
	l.Append(time.Now(), commit(201, 1, 1))
	require.Equal(t, []storage.Revision{200, 201}, revisions(t, 1, l.After(199)))
	for i, run := range held {
		require.Equal(t, []storage.Revision{storage.Revision(i + 1)}, revisions(t, 1, run))
	}
}

// A commit that exceeds the limits stays until the next commit.
func TestNewestCommitMayExceedLimits(t *testing.T) {
	var l log
	l.Init(0, Limits{Events: 3, Bytes: 10})
	for i := range storage.Revision(10) {
		l.Append(time.Now(), commit(i+1, 20, 1))
		require.Equal(t, []storage.Revision{i + 1}, revisions(t, 20, l.After(i)))
		require.Equal(t, 20, l.Events())
	}
}

func TestAgeLimit(t *testing.T) {
	var l log
	l.Init(0, Limits{Age: time.Minute})
	now := time.Now()
	l.Append(now, commit(1, 1, 1))
	l.Append(now.Add(50*time.Second), commit(2, 1, 1))
	require.Zero(t, l.Floor())
	l.Trim(now.Add(62 * time.Second))
	require.Equal(t, storage.Revision(1), l.Floor())
	require.Equal(t, l.Floor(), l.Retained(now.Add(62*time.Second)))
	l.Trim(now.Add(2 * time.Minute))
	require.Equal(t, storage.Revision(2), l.Floor())
	require.Zero(t, l.Events())
}

func TestForkIsIndependent(t *testing.T) {
	var a, b log
	a.Init(0, Limits{})
	for i := range storage.Revision(10) {
		a.Append(time.Now(), commit(i+1, 1, 1))
	}
	a.Fork(&b, time.Now())
	for i := range storage.Revision(100) {
		a.Append(time.Now(), commit(11+2*i, 1, 1))
		b.Append(time.Now(), commit(12+2*i, 1, 1))
	}
	for i, l := range []*log{&a, &b} {
		runs, ok := l.Between(0, 1000)
		require.True(t, ok)
		got := revisions(t, 1, runs...)
		require.Len(t, got, 110)
		for j := range storage.Revision(100) {
			require.Equal(t, storage.Revision(11+i)+2*j, got[10+j])
		}
	}
}

func TestWakeRemovesGroupOfWaiters(t *testing.T) {
	w := make(Waiters[string])
	a, again, b := w.Park("a"), w.Park("a"), w.Park("b")
	require.Same(t, a, again)
	require.True(t, w.Leave("a", a))
	require.True(t, w.Leave("b", b))
	require.Len(t, w, 1, "a group without members is removed")
	woken := w.Wake(nil, "a", 7)
	require.Empty(t, w.Wake(nil, "a", 8))
	next := w.Park("a")
	require.NotSame(t, a, next)
	require.False(t, w.Leave("a", a), "it was woken")
	woken.Release()
	<-a.Woken()
	require.Equal(t, storage.Revision(7), a.Quiet())
	require.True(t, w.Leave("a", next))
	require.Empty(t, w)
}
