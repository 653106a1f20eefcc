package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/cluster/internal/testbed"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// TestConcurrentStart: ten servers start at the same time with an empty store.
func TestConcurrentStart(t *testing.T) {
	etcd := etcdtest.Start(t)
	servers := testbed.StartServers(t, []string{etcd.Endpoint}, 10)
	require.Len(t, servers, 10)
	for _, p := range servers {
		require.Empty(t, p.Log(), "server %d", p.Number)
	}
}
