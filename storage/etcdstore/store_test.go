package etcdstore_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
	"orch.io/controlplane/storage/storagetest"
)

// TestMain runs more tests in parallel than there are processors, because the tests mostly wait for
// etcd, which starts watches of the past only every 100 ms. One test of storagetest starts 800 such
// watches; -short skips it.
func TestMain(m *testing.M) {
	flag.Parse()
	set := map[string]string{"test.parallel": "8"}
	if testing.Short() {
		set["test.skip"] = "TestConformance/RandomOperations"
	}
	for name, value := range set {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// largeRequests is the flag that lets etcd accept the values of several MiB that storagetest writes.
const largeRequests = "--max-request-bytes=8388608"

// etcd is a running etcd cluster.
type etcd struct{ endpoints []string }

// pool lends etcd clusters to tests, each to one test at a time, because compacting a store compacts
// the whole cluster.
type pool struct {
	start func() etcd
	mu    sync.Mutex
	idle  []etcd
	used  atomic.Int64 // number of prefixes used
}

func (p *pool) take() etcd {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		e := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return e
	}
	return p.start()
}

func (p *pool) give(e etcd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, e)
}

// open opens an empty store in a cluster that no other test uses until t ends.
func (p *pool) open(t testing.TB) storage.Backend {
	e := p.take()
	t.Cleanup(func() { p.give(e) })
	return openAt(t, e.endpoints, fmt.Sprint("/kit/", p.used.Add(1)))
}

func open(t testing.TB, m *etcdtest.Member, prefix string) *etcdstore.Store {
	return openAt(t, []string{m.Endpoint}, prefix)
}

func openAt(t testing.TB, endpoints []string, prefix string) *etcdstore.Store {
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: endpoints, Prefix: prefix, Retain: -1})
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	p := &pool{start: func() etcd { return etcd{[]string{etcdtest.Start(t, largeRequests).Endpoint}} }}
	storagetest.Run(t, p.open)
}

// TestConformanceOnCluster runs the conformance tests on three members whose clocks differ and of which
// one is paused.
func TestConformanceOnCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	p := &pool{start: func() etcd {
		c := etcdtest.StartCluster(t, largeRequests)
		setClocks(t, c, time.Hour, 0, -time.Hour)
		c.Members[rand.IntN(len(c.Members))].Pause()
		return etcd{c.Endpoints}
	}}
	storagetest.Run(t, p.open)
}
