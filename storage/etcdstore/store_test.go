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

// TestMain lets more tests run at once than there are processors, since they wait for etcd
// most of the time: it begins a watch of the past only every 100 ms. One case of the kit begins
// 800 of them, which -short leaves out.
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

// takesLargeValues lets etcd take the values of some MiB that the kit writes.
const takesLargeValues = "--max-request-bytes=8388608"

// etcd is where a store can be.
type etcd struct{ endpoints []string }

// pool lends etcds to tests, each to one at a time: compacting a store compacts all that is
// in its etcd.
type pool struct {
	start func() etcd
	mu    sync.Mutex
	idle  []etcd
	used  atomic.Int64 // prefixes
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

// open opens an empty store in an etcd that nothing else uses meanwhile.
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
	p := &pool{start: func() etcd { return etcd{[]string{etcdtest.Start(t, takesLargeValues).Endpoint}} }}
	storagetest.Run(t, p.open)
}

// TestConformanceOfThree: three members whose clocks are apart, and of which one stands still, are one store.
func TestConformanceOfThree(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	p := &pool{start: func() etcd {
		c := etcdtest.StartCluster(t, takesLargeValues)
		setClocks(t, c, time.Hour, 0, -time.Hour)
		c.Members[rand.IntN(len(c.Members))].Pause()
		return etcd{c.Endpoints}
	}}
	storagetest.Run(t, p.open)
}
