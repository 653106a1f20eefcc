package main

import (
	"syscall"
	"testing"
	"time"

	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// some is how many requests are answered at least while something is wrong, and after it.
const some = 400

// faults are what goes wrong, one after the other: something happens, lasts, and is over.
type faults struct {
	*load
	etcd *etcdtest.Cluster
}

func (f *faults) while(name string, begin, end func()) {
	f.t.Helper()
	f.t.Log(name)
	begin()
	f.last()
	end()
	f.progress(some)
}

// last lets a fault last while there is progress.
func (f *faults) last() {
	until := time.Now().Add(*hold)
	f.progress(some)
	for time.Now().Before(until) {
		f.progress(some)
	}
}

func (f *faults) killServer(i int) {
	p := f.servers[i]
	f.while("a server is killed", p.kill, p.restart)
}

func (f *faults) pauseServer(i int) {
	p := f.servers[i]
	f.while("a server stands still", func() { p.signal(syscall.SIGSTOP) }, func() { p.signal(syscall.SIGCONT) })
}

func (f *faults) endServer(i int) {
	p := f.servers[i]
	f.while("a server ends in order", p.terminate, p.restart)
}

func (f *faults) isolateMember(i int) {
	f.while("a member of etcd is cut off from the others", func() { f.etcd.Isolate(i) }, func() { f.etcd.Rejoin(i); f.etcd.Members[i].Ready() })
}

func (f *faults) cutMember(i int) {
	f.while("a member of etcd is cut off from the servers", func() { f.etcd.CutClients(i) }, func() { f.etcd.JoinClients(i) })
}

func (f *faults) pauseMember(i int) {
	m := f.etcd.Members[i]
	f.while("a member of etcd stands still", m.Pause, func() { m.Resume(); m.Ready() })
}

func (f *faults) killMember(i int) {
	m := f.etcd.Members[i]
	f.while("a member of etcd is killed", m.Kill, m.Restart)
}

// both: a server stands still while the member that leads the others may be cut off from them.
func (f *faults) both(i int) {
	p := f.servers[i]
	f.while("a server stands still, and a member of etcd is cut off", func() { p.signal(syscall.SIGSTOP); f.etcd.Isolate(i) },
		func() { f.etcd.Rejoin(i); p.signal(syscall.SIGCONT); f.etcd.Members[i].Ready() })
}

// TestHistories: 32 clients and 6 watches go through three servers over three members of etcd,
// each of which is killed, stands still and is cut off once. What they were told is what one
// store would have told them.
func TestHistories(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	etcd, servers := three(t)
	f := &faults{startLoad(t, servers, 6, legacy{}), etcd}
	f.progress(some)
	for i := range servers {
		for _, fault := range []func(int){f.killServer, f.pauseServer, f.endServer, f.isolateMember, f.cutMember, f.pauseMember, f.killMember, f.both} {
			fault(i)
			if time.Since(f.began) > verdictTime { // all that was told is read again, and is kept for 5 minutes
				f.load = startLoad(t, servers, 6, f.check())
				f.progress(some)
			}
		}
	}
	f.check()
}
