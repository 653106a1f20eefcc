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

// client returns an etcd client with one endpoint.
func client(t testing.TB, endpoint string) *clientv3.Client {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// tryPut puts a key until it succeeds or 20 seconds have passed.
func tryPut(t testing.TB, c *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, 5*time.Second)
		_, err := c.Put(attempt, "k", "v")
		done()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// fails reports whether a read does not succeed within 300 ms.
func fails(t testing.TB, c *clientv3.Client) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Get(ctx, "k")
	return err != nil
}

// TestFaultsAffectOneMember: each fault stops the member that it is injected at, and no other member.
func TestFaultsAffectOneMember(t *testing.T) {
	c := etcdtest.StartCluster(t)
	direct, front, other := client(t, c.Members[0].Endpoint), client(t, c.Endpoints[0]), client(t, c.Endpoints[1])
	require.NoError(t, tryPut(t, front))
	for name, fault := range map[string]struct{ begin, end func() }{
		"killed":   {c.Members[0].Kill, c.Members[0].Restart},
		"paused":   {c.Members[0].Pause, c.Members[0].Resume},
		"isolated": {func() { c.Isolate(0) }, func() { c.Rejoin(0) }},
	} {
		t.Log(name)
		fault.begin()
		require.True(t, fails(t, direct), name)
		require.NoError(t, tryPut(t, other), name)
		fault.end()
		c.Members[0].Ready()
		require.NoError(t, tryPut(t, direct), name)
	}
	c.CutClients(0)
	require.NoError(t, tryPut(t, direct))
	require.True(t, fails(t, front))
	c.JoinClients(0)
	require.NoError(t, tryPut(t, front))
}

// TestEraseDeletesData: data survives the death of the process, and is gone after Erase.
func TestEraseDeletesData(t *testing.T) {
	m := etcdtest.Start(t)
	c := client(t, m.Endpoint)
	require.NoError(t, tryPut(t, c))
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

// A test starts a cluster and pauses one member.
func Example() {
	test := func(t *testing.T) {
		cluster := etcdtest.StartCluster(t)
		cluster.Members[0].Pause()
		// The other members serve: cluster.Endpoints[1:].
		cluster.Members[0].Resume()
		cluster.Members[0].Ready()
	}
	fmt.Println(test != nil)
	// Output: true
}
