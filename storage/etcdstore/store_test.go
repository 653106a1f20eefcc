package etcdstore_test

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

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

// pool lends etcds to tests, each to one at a time: compacting a store compacts all that is
// in its etcd.
type pool struct {
	t    testing.TB
	mu   sync.Mutex
	idle []*etcdtest.Member
	used atomic.Int64 // prefixes
}

func (p *pool) take() *etcdtest.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		m := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return m
	}
	return etcdtest.Start(p.t, takesLargeValues)
}

func (p *pool) give(m *etcdtest.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, m)
}

// open opens an empty store in an etcd that nothing else uses meanwhile.
func (p *pool) open(t testing.TB) storage.Backend {
	m := p.take()
	t.Cleanup(func() { p.give(m) })
	return open(t, m, fmt.Sprint("/kit/", p.used.Add(1)))
}

func open(t testing.TB, m *etcdtest.Member, prefix string) *etcdstore.Store {
	s, err := etcdstore.Open(t.Context(), etcdstore.Options{Endpoints: []string{m.Endpoint}, Prefix: prefix, Retain: -1})
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	p := &pool{t: t}
	storagetest.Run(t, p.open)
}
