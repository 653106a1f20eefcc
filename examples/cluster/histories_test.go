package main

import (
	"testing"
	"time"

	"orch.io/controlplane/examples/cluster/internal/testbed"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// some is the minimal number of requests that are answered during each fault and after it.
const some = 400

// faults injects faults one after another: each begins, lasts while requests are answered, and ends.
type faults struct {
	*testbed.Load
	t       *testing.T
	etcd    *etcdtest.Cluster
	servers []*testbed.Server
}

func (f *faults) during(name string, begin, end func()) {
	f.t.Helper()
	f.t.Log(name)
	begin()
	f.hold()
	end()
	f.Progress(some)
}

// hold keeps a fault for the duration of -hold, and requires progress meanwhile.
func (f *faults) hold() {
	until := time.Now().Add(*hold)
	f.Progress(some)
	for time.Now().Before(until) {
		f.Progress(some)
	}
}

func (f *faults) killServer(i int) {
	p := f.servers[i]
	f.during("server killed", p.Kill, p.Restart)
}

func (f *faults) pauseServer(i int) {
	p := f.servers[i]
	f.during("server paused", p.Pause, p.Resume)
}

func (f *faults) endServer(i int) {
	p := f.servers[i]
	f.during("server shut down", p.Terminate, p.Restart)
}

func (f *faults) isolateMember(i int) {
	f.during("etcd member isolated", func() { f.etcd.Isolate(i) }, func() { f.etcd.Rejoin(i); f.etcd.Members[i].Ready() })
}

func (f *faults) cutMember(i int) {
	f.during("etcd member cut off from the servers", func() { f.etcd.CutClients(i) }, func() { f.etcd.JoinClients(i) })
}

func (f *faults) pauseMember(i int) {
	m := f.etcd.Members[i]
	f.during("etcd member paused", m.Pause, func() { m.Resume(); m.Ready() })
}

func (f *faults) killMember(i int) {
	m := f.etcd.Members[i]
	f.during("etcd member killed", m.Kill, m.Restart)
}

// pauseServerAndIsolateMember pauses a server and isolates a member, perhaps the leader, at the same
// time.
func (f *faults) pauseServerAndIsolateMember(i int) {
	p := f.servers[i]
	f.during("server paused and etcd member isolated", func() { p.Pause(); f.etcd.Isolate(i) },
		func() { f.etcd.Rejoin(i); p.Resume(); f.etcd.Members[i].Ready() })
}

// TestHistories: 32 clients and 6 watches use three servers on three members of etcd; each server and
// member is killed, paused and cut off once. All answers and events are consistent with a single store.
func TestHistories(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	etcd, servers := testbed.StartCluster(t)
	f := &faults{testbed.StartLoad(t, testbed.Clients(servers...), 6, testbed.State{}), t, etcd, servers}
	f.Progress(some)
	began := time.Now()
	for i := range servers {
		for _, fault := range []func(int){f.killServer, f.pauseServer, f.endServer, f.isolateMember, f.cutMember, f.pauseMember, f.killMember, f.pauseServerAndIsolateMember} {
			fault(i)
			if time.Since(began) > verdictTime { // the verdict reads all events again, which are retained for 5 minutes
				f.Load, began = testbed.StartLoad(t, testbed.Clients(servers...), 6, f.Check()), time.Now()
				f.Progress(some)
			}
		}
	}
	f.Check()
}
