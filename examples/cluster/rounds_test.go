package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"orch.io/controlplane/examples/cluster/internal/testbed"
)

// The number of rounds before a verdict. It is smaller if rounds take long, because a verdict reads the
// events of all rounds, and events are retained for 5 minutes.
const (
	verdictAfter = 50
	verdictTime  = 2 * time.Minute
)

// endings counts how often a server was stopped in which way.
type endings struct {
	killed, starting, stopped, inOrder int
}

// round lets the server work, stops it, and restarts it with the same directory.
func (e *endings) round(p *testbed.Server, l *testbed.Load) {
	l.Progress(1 + rand.Int64N(some))
	switch n := rand.IntN(10); {
	case n < 6:
		e.killed++
		p.Kill()
	case n < 7: // and kill it again while it opens the store
		e.starting++
		p.Kill()
		p.Start()
		time.Sleep(rand.N(100 * time.Millisecond))
		p.Kill()
	case n < 8: // connections are accepted, but not answered
		e.stopped++
		p.Pause()
		time.Sleep(rand.N(50 * time.Millisecond))
		p.Kill()
	default:
		e.inOrder++
		p.Terminate()
	}
	p.Restart()
}

// TestRounds: 32 clients and 3 watches use one server with a directory, which is stopped repeatedly,
// mostly without warning. All answers and events are consistent with a store that never stopped, and no
// write is lost in later rounds.
func TestRounds(t *testing.T) {
	p := testbed.NewServer(t, 0, t.TempDir())
	p.Restart()
	var ended endings
	var left testbed.State
	began := time.Now()
	for done := 0; done < *rounds; {
		loaded := time.Now()
		l := testbed.StartLoad(t, testbed.Clients(p), 3, left)
		for until := min(done+verdictAfter, *rounds); done < until && time.Since(loaded) < verdictTime; done++ {
			ended.round(p, l)
		}
		l.Progress(some)
		left = l.Check()
	}
	t.Logf("%d rounds, %+v, version %d, %d objects, %v", *rounds, ended, left.Version, len(left.Objects), time.Since(began).Round(time.Second))
	p.Terminate()
}
