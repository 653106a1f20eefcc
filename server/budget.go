package server

import (
	"context"
	"slices"
	"sync"
)

// budget is a number of bytes that many share. Who comes first is served first,
// so that large shares are not starved by small ones.
type budget struct {
	mu      sync.Mutex
	free    int64
	waiting []*claim
}

type claim struct {
	bytes   int64
	granted chan struct{}
}

// take waits until n bytes are free and takes them. It fails with the context's
// error.
func (b *budget) take(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.waiting) == 0 && n <= b.free {
		b.free -= n
		b.mu.Unlock()
		return nil
	}
	c := &claim{n, make(chan struct{})}
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, c)
	if i < 0 { // granted at the last moment
		return nil
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	b.grant() // those behind it may fit
	return ctx.Err()
}

// give returns what take took.
func (b *budget) give(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.grant()
}

// grant serves the claims that fit, in order; the caller holds the lock.
func (b *budget) grant() {
	for len(b.waiting) > 0 && b.waiting[0].bytes <= b.free {
		b.free -= b.waiting[0].bytes
		close(b.waiting[0].granted)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}
