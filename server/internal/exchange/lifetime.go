package exchange

import (
	"context"
	"sync"
)

// Lifetime ends watches and connections when their server stops. The zero Lifetime has not
// ended. Its methods may be called concurrently.
type Lifetime struct {
	mu    sync.Mutex
	ended bool
	bound map[*context.CancelFunc]bool
}

// Bind has End call cancel, at once if the Lifetime has ended. The caller calls release when
// cancel is not needed any more.
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

// End ends the Lifetime.
func (l *Lifetime) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
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
