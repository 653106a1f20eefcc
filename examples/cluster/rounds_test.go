package main

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
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
func (e *endings) round(l *load) {
	p := l.servers[0]
	l.progress(1 + rand.Int64N(some))
	switch n := rand.IntN(10); {
	case n < 6:
		e.killed++
		p.kill()
	case n < 7: // and kill it again while it opens the store
		e.starting++
		p.kill()
		p.start()
		time.Sleep(rand.N(100 * time.Millisecond))
		p.kill()
	case n < 8: // connections are accepted, but not answered
		e.stopped++
		p.signal(syscall.SIGSTOP)
		time.Sleep(rand.N(50 * time.Millisecond))
		p.kill()
	default:
		e.inOrder++
		p.terminate()
	}
	p.restart()
}

// TestRounds: 32 clients and 3 watches use one server with a directory, which is stopped repeatedly,
// mostly without warning. All answers and events are consistent with a store that never stopped, and no
// write is lost in later rounds.
func TestRounds(t *testing.T) {
	p := newProcess(t, 0, t.TempDir())
	p.restart()
	var ended endings
	var left legacy
	began := time.Now()
	for done := 0; done < *rounds; {
		l := startLoad(t, []*process{p}, 3, left)
		for until := min(done+verdictAfter, *rounds); done < until && time.Since(l.began) < verdictTime; done++ {
			ended.round(l)
		}
		l.progress(some)
		left = l.check()
	}
	t.Logf("%d rounds, %+v, version %d, %d objects, %v", *rounds, ended, left.version, len(left.objects), time.Since(began).Round(time.Second))
	p.terminate()
}
