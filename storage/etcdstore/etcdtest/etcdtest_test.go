package etcdtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is one of etcd's own, which uses one endpoint.
func client(t testing.TB, endpoint string) *clientv3.Client {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// works says whether a key can be put by a client before long.
func works(t testing.TB, c *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, time.Second)
		_, err := c.Put(attempt, "k", "v")
		done()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// fails says whether a key cannot be read by a client now.
func fails(t testing.TB, c *clientv3.Client) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Get(ctx, "k")
	return err != nil
}

// TestCluster: each fault stops the member it is made at, and none of the others.
func TestCluster(t *testing.T) {
	c := etcdtest.StartCluster(t)
	direct, front, other := client(t, c.Members[0].Endpoint), client(t, c.Endpoints[0]), client(t, c.Endpoints[1])
	require.NoError(t, works(t, front))
	for name, fault := range map[string]struct{ begin, end func() }{
		"killed":   {c.Members[0].Kill, c.Members[0].Restart},
		"paused":   {c.Members[0].Pause, c.Members[0].Resume},
		"isolated": {func() { c.Isolate(0) }, func() { c.Rejoin(0) }},
	} {
		t.Log(name)
		fault.begin()
		require.True(t, fails(t, direct), name)
		require.NoError(t, works(t, other), name)
		fault.end()
		c.Members[0].Ready()
		require.NoError(t, works(t, direct), name)
	}
	c.CutClients(0)
	require.NoError(t, works(t, direct))
	require.True(t, fails(t, front))
	c.JoinClients(0)
	require.NoError(t, works(t, front))
}

// TestErase: what was on the disk is there after the death of the process, and gone if it is
// erased.
func TestErase(t *testing.T) {
	m := etcdtest.Start(t)
	c := client(t, m.Endpoint)
	require.NoError(t, works(t, c))
	count := func() int64 {
		resp, err := c.Get(t.Context(), "k")
		require.NoError(t, err)
		return resp.Count
	}
	m.Kill()
	m.Restart()
	require.EqualValues(t, 1, count())
	m.Kill()
	m.Erase()
	m.Restart()
	require.EqualValues(t, 0, count())
}

// A test of another module starts a cluster and lets one member stand still.
func Example() {
	test := func(t *testing.T) {
		cluster := etcdtest.StartCluster(t)
		cluster.Members[0].Pause()
		// The others serve: cluster.Endpoints[1:].
		cluster.Members[0].Resume()
		cluster.Members[0].Ready()
	}
	fmt.Println(test != nil)
	// Output: true
}
