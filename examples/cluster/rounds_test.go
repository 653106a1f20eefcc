package main

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// What is judged at once: rounds, and fewer where they take long, since the events of all of them are
// read at the end, and are kept for 5 minutes.
const (
	verdictAfter = 50
	verdictTime  = 2 * time.Minute
)

// endings are how often a server ended in which way.
type endings struct {
	killed, starting, stopped, inOrder int
}

// round lets the server work, ends it and starts it again over the same directory.
func (e *endings) round(l *load) {
	p := l.servers[0]
	l.progress(1 + rand.Int64N(some))
	switch n := rand.IntN(10); {
	case n < 6:
		e.killed++
		p.kill()
	case n < 7: // and again while it reads what it finds
		e.starting++
		p.kill()
		p.start()
		time.Sleep(rand.N(100 * time.Millisecond))
		p.kill()
	case n < 8: // clients still get connections, but no answer
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

// TestRounds: 32 clients and 3 watches go through one server over a directory, which ends again
// and again, mostly without warning. What they were told is what one store would have told them
// that never ended, and nothing of it is lost in later rounds.
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
