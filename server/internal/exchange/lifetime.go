package exchange

import (
	"context"
	"sync"
)

// Lifetime counts the requests of a server, and ends its watches and connections when the server
// stops. The zero Lifetime has not ended. Its methods may be called concurrently.
type Lifetime struct {
	requests sync.WaitGroup

	mu     sync.Mutex                   // guards the fields below, and prevents requests.Add after Close
	closed bool                         // Close was called
	ended  bool                         // End was called
	bound  map[*context.CancelFunc]bool // cancelled by End
}

// Enter counts a request in. It reports false after Close; otherwise the caller calls Leave when
// the request is over.
func (l *Lifetime) Enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.requests.Add(1)
	return true
}

// Leave counts a request out.
func (l *Lifetime) Leave() { l.requests.Done() }

// Bind makes End call cancel; if End was called before, Bind calls it at once. The caller calls
// release when cancel is no longer needed.
func (l *Lifetime) Bind(cancel context.CancelFunc) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		cancel()
		return func() {}
	}
	if l.bound == nil {
		l.bound = map[*context.CancelFunc]bool{}
	}
	l.bound[&cancel] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.bound, &cancel)
	}
}

// End ends all watches and connections, and from now on ends new ones at once.
func (l *Lifetime) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

func (l *Lifetime) end() {
	l.ended = true
	for cancel := range l.bound {
		(*cancel)()
	}
	l.bound = nil
}

// Ended reports whether End was called.
func (l *Lifetime) Ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Close refuses further requests and ends the watches and connections. It reports whether this
// is the first call.
func (l *Lifetime) Close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	l.end()
	return true
}

// Wait returns when all requests are over. It must be called after Close.
func (l *Lifetime) Wait() { l.requests.Wait() }
