package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/cluster/internal/testbed"
)

// TestInformersFailOver: the servers are killed in turn, and informers continue through the balancer
// without a gap: they report every change once and in order, and do not list again.
func TestInformersFailOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	_, servers := testbed.StartCluster(t)
	b := testbed.NewBalancer(t, servers)
	var informers []*testbed.Informer
	for range 6 {
		informers = append(informers, testbed.StartInformer(t, b.Config()))
	}
	l := testbed.StartLoad(t, b.Clients(8), 3, testbed.State{})
	for _, p := range servers {
		l.Progress(2 * some) // client-go treats a watch that ends within a second without an event as a failure
		p.Kill()
		l.Progress(2 * some)
		p.Restart()
	}
	l.Progress(some)
	l.Check(informers...)
	resumed := int64(0)
	for _, i := range informers {
		resumed += i.Resumed()
	}
	t.Logf("informers resumed their watches %d times", resumed)
	require.NotZero(t, resumed)
}
