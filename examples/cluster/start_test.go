package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// TestConcurrentStart: ten servers start at the same time with an empty store.
func TestConcurrentStart(t *testing.T) {
	etcd := etcdtest.Start(t)
	servers := startServers(t, []string{etcd.Endpoint}, 10)
	require.Len(t, servers, 10)
	for _, p := range servers {
		require.Empty(t, p.log.String(), "server %d", p.number)
	}
}
