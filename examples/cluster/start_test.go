package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// TestTenAtOnce: ten servers that start at once over an empty store.
func TestTenAtOnce(t *testing.T) {
	etcd := etcdtest.Start(t)
	servers := overEtcd(t, []string{etcd.Endpoint}, 10)
	require.Len(t, servers, 10)
	for _, p := range servers {
		require.Empty(t, p.log.String(), "server %d", p.number)
	}
}
