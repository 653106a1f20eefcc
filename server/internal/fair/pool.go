package fair

import (
	"context"
	"slices"
	"sync"
)

// Pool is an amount of something of which callers hold parts. A holder may have
// as much as is still free, so that none has more than half of it, n have
// 1/(n+1) each, and there is always something left for one more. Who has nothing
// yet may take all that is free.
type Pool struct {
	mu      sync.Mutex // guards the rest
	free    int64
	held    map[string]int64
	waiting []*claim // oldest first
}

type claim struct {
	holder  string
	n       int64
	granted chan struct{}
}

// NewPool makes a pool of a size.
func NewPool(size int64) *Pool { return &Pool{free: size, held: map[string]int64{}} }

// Take takes n if the holder may have that much more. Nothing can be taken by
// who has more than is free: that tells whether he has too much.
func (p *Pool) Take(holder string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.free || p.exceeds(holder, n) {
		return false
	}
	p.take(holder, n)
	return true
}

// Wait takes n as soon as the holder may have that much more. Those who wait
// come in order, but nobody waits for a holder who has too much. It fails with
// the context's error.
func (p *Pool) Wait(ctx context.Context, holder string, n int64) error {
	c := &claim{holder, n, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, c)
	p.grant()
	p.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, c)
	if i < 0 { // granted at the last moment
		return nil
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.grant() // those behind it may fit
	return ctx.Err()
}

// Give returns n of what the holder took.
func (p *Pool) Give(holder string, n int64) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += n
	if left := p.held[holder] - n; left > 0 {
		p.held[holder] = left
	} else {
		delete(p.held, holder)
	}
	p.grant()
}

func (p *Pool) take(holder string, n int64) {
	if n == 0 {
		return
	}
	p.free -= n
	p.held[holder] += n
}

// exceeds reports whether n would be too much for the holder, whatever is free.
func (p *Pool) exceeds(holder string, n int64) bool {
	held := p.held[holder]
	return held > 0 && held+n > p.free-n
}

// grant serves the claims that fit, in order. A holder who has too much is
// passed over, with all his claims.
func (p *Pool) grant() {
	var over []string
	for i := 0; i < len(p.waiting); {
		c := p.waiting[i]
		switch {
		case slices.Contains(over, c.holder):
			i++
		case p.exceeds(c.holder, c.n):
			over = append(over, c.holder)
			i++
		case c.n > p.free:
			return
		default:
			p.take(c.holder, c.n)
			close(c.granted)
			p.waiting = slices.Delete(p.waiting, i, i+1)
		}
	}
}
