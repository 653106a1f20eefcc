package etcdstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

func opened(t *testing.T, m *etcdtest.Member) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Endpoints: []string{m.Endpoint}, Prefix: "/own", Retain: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// begun is a commit that is under way, with a copy of it that etcd may get at any time.
func begun(t *testing.T, s *Store, key string) (c, late *commit) {
	t.Helper()
	m, name := s.marks.take()
	require.NoError(t, s.renew(t.Context(), m))
	c = &commit{store: s, ws: []storage.Write{{Key: key, Value: []byte("v"), Expect: storage.AnyRevision}}, mark: m, name: name}
	same, before := *c, *m
	same.mark = &before
	return c, &same
}

func (c *commit) sent(t *testing.T) *clientv3.TxnResponse {
	t.Helper()
	resp, err := c.send(t.Context(), callTime, clientv3.OpPut(c.store.head, ""), clientv3.OpPut(c.mark.key, c.name))
	require.NoError(t, err)
	return resp
}

// TestSettle: of a commit without an answer it is found out that it was made, or it never is.
func TestSettle(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))

	c, late := begun(t, s, "made")
	at := late.sent(t).Header.Revision
	made, err := s.settle(t.Context(), c.mark, c.name)
	require.NoError(t, err)
	require.Equal(t, at, made)
	s.marks.give(c.mark)

	c, late = begun(t, s, "not")
	made, err = s.settle(t.Context(), c.mark, c.name)
	require.NoError(t, err)
	require.Zero(t, made)
	require.False(t, late.sent(t).Succeeded)
	_, err = s.Get(t.Context(), "not", 0)
	require.ErrorIs(t, err, storage.ErrNotFound)
	_, err = c.make(t.Context())
	require.NoError(t, err)
	require.False(t, late.sent(t).Succeeded)
	s.marks.give(c.mark)

	c, _ = begun(t, s, "forgotten")
	_, err = s.client.Delete(t.Context(), c.mark.key)
	require.NoError(t, err)
	_, err = s.settle(t.Context(), c.mark, c.name)
	require.ErrorIs(t, err, errForgotten)
}

// TestLate: a commit that its caller gave up gets to etcd before the next one that uses its mark.
func TestLate(t *testing.T) {
	t.Parallel()
	s := opened(t, etcdtest.Start(t))
	c, late := begun(t, s, "late")
	s.marks.give(c.mark)
	require.True(t, late.sent(t).Succeeded)
	_, err := s.Commit(t.Context(), storage.Write{Key: "next", Value: []byte("v")})
	require.NoError(t, err)
	require.Equal(t, c.mark.at, s.acked.Load(), "it was the same mark")
}

// TestSweep: there are as many marks as commits at a time. Those that nobody writes to are removed,
// and made again by a store that needs them.
func TestSweep(t *testing.T) {
	t.Parallel()
	m := etcdtest.Start(t)
	s, gone := opened(t, m), opened(t, m)
	const n = 20
	for i := range n {
		for _, s := range []*Store{s, gone} {
			_, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte{byte(i)}, Expect: storage.AnyRevision})
			require.NoError(t, err)
		}
	}
	require.NoError(t, gone.Close())
	looked := func(before map[string]int64) map[string]int64 {
		seen, err := s.sweep(t.Context(), before)
		require.NoError(t, err)
		return seen
	}
	seen := looked(nil)
	require.Len(t, seen, 2)
	at, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("used"), Expect: storage.AnyRevision})
	require.NoError(t, err)
	seen = looked(seen)
	require.Equal(t, map[string]int64{s.marks.prefix + "1": int64(at)}, seen)
	require.Empty(t, looked(seen))
	next, err := s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("again"), Expect: at})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{s.marks.prefix + "1": int64(next)}, looked(nil))
	s.marks.idle[0].written = time.Now().Add(-markTime)
	_, err = s.Commit(t.Context(), storage.Write{Key: "k", Value: []byte("renewed"), Expect: next})
	require.NoError(t, err)
	require.Less(t, time.Since(s.marks.idle[0].written), markTime/2)
}
