package fairqueue

import (
	"context"
	"slices"
	"sync"

	"orch.io/controlplane/server/flowcontrol"
)

// Pool is an amount of something of which callers hold parts. Each priority level
// keeps some of it for itself, as it does of the seats; the rest, at least half,
// is for everybody. A quarter of each of these is for first parts: who has nothing
// yet may take all that his level may, but who has some leaves the quarters, and
// of the rest may have as much as is free there. So none gets half of a pool in
// parts, and n get 1/(n+1) each of three quarters; and to crowd out who has
// nothing takes as many holders as there are first parts in a quarter. However
// many they are, they never get what other levels keep.
type Pool struct {
	size int64

	mu      sync.Mutex // guards the rest
	shared  int64      // what no level keeps
	kept    map[string]int64
	used    map[string]int64 // by level
	free    int64            // neither used nor kept; less than nothing if levels keep what others still hold
	held    map[Holder]int64
	waiting []*claim // oldest first
}

// Holder is who holds parts of a pool: somebody within a priority level. A level
// that is not there keeps nothing.
type Holder struct{ Level, Name string }

// Part is what a holder has of a pool. The zero Part is none.
type Part struct {
	pool   *Pool // nil: nothing is held
	holder Holder
	n      int64
}

// claim is somebody who waits for a part to become so large.
type claim struct {
	Part
	size, whole int64 // now, and in the end
	granted     chan struct{}
}

// NewPool makes a pool of a size, of which no level keeps anything yet.
func NewPool(size int64) *Pool {
	return &Pool{size: size, shared: size, used: map[string]int64{}, free: size, held: map[Holder]int64{}}
}

// SetLevels makes the levels of a configuration, which is valid, keep their parts.
// What is held stays so. What a level keeps it has at once; until others gave
// back what they held of it, more than the pool's size may be held, by as much.
func (p *Pool) SetLevels(levels []flowcontrol.PriorityLevel) {
	shares, keep := 0.0, 0.0
	for i := range levels {
		if l := &levels[i]; !l.Exempt {
			shares += float64(l.Shares)
			keep += keeps(l)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept, p.shared = map[string]int64{}, p.size
	for i := range levels {
		if l := &levels[i]; !l.Exempt && l.Shares > 0 {
			p.kept[l.Name] = int64(float64(p.size) * keeps(l) / max(shares, 2*keep))
			p.shared -= p.kept[l.Name]
		}
	}
	p.free = p.shared
	for level, used := range p.used {
		p.free -= max(0, used-p.kept[level])
	}
	p.grant()
}

// keeps is how many shares a level does not lend.
func keeps(l *flowcontrol.PriorityLevel) float64 {
	return float64(l.Shares) * float64(100-l.Lendable) / 100
}

// Take takes n if the holder may have that much more; of more than his level may
// ever have, that. Nothing can be taken by who has more than he may have: that
// tells whether he has too much.
func (p *Pool) Take(h Holder, n int64) (Part, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = p.bound(h, n)
	if n > p.room(h) || p.exceeds(h, 0, n) {
		return Part{}, false
	}
	p.take(h, n)
	return Part{p, h, n}, true
}

// Wait takes n, or what the holder's level may have at most, of what will be whole
// in the end, as soon as the holder may have all of that. Those who wait come in
// order, but nobody waits for a holder who has too much, and no level for another
// where it has room of its own. It fails with the context's error.
func (p *Pool) Wait(ctx context.Context, h Holder, n, whole int64) (Part, error) {
	c := &claim{Part{p, h, 0}, n, whole, make(chan struct{})}
	err := p.wait(ctx, c)
	return c.Part, err
}

// Grow makes a part, which must be held, as large as n, or as its level may have
// at most, as soon as its holder may have that. Those who wait for that come before
// all who have nothing yet. If it fails, with the context's error, the part is
// given back: of parts that wait for each other, the first that fails lets
// another grow.
func (part *Part) Grow(ctx context.Context, n int64) error {
	c := &claim{*part, n, n, make(chan struct{})}
	err := part.pool.wait(ctx, c)
	*part = c.Part
	return err
}

func (p *Pool) wait(ctx context.Context, c *claim) error {
	p.mu.Lock()
	at := len(p.waiting)
	if i := slices.IndexFunc(p.waiting, func(w *claim) bool { return w.n == 0 }); i >= 0 && c.n > 0 {
		at = i
	}
	p.waiting = slices.Insert(p.waiting, at, c)
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
	p.take(c.holder, -c.n)
	c.Part = Part{}
	p.grant() // those behind it may fit
	return ctx.Err()
}

// Held reports whether it is anything.
func (part *Part) Held() bool { return part.pool != nil }

// Give gives the part back. Only the first call counts; calls must not run at
// the same time.
func (part *Part) Give() {
	p, h := part.pool, part.holder
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(h, -part.n)
	p.grant()
	*part = Part{}
}

// bound returns n, or as much as the holder's level may have if nobody else has
// anything.
func (p *Pool) bound(h Holder, n int64) int64 {
	most := p.size
	for level, kept := range p.kept {
		if level != h.Level {
			most -= kept
		}
	}
	return min(n, max(1, most))
}

// own is how much of what the holder's level keeps is free.
func (p *Pool) own(h Holder) int64 { return max(0, p.kept[h.Level]-p.used[h.Level]) }

// room is how much the holder's level may take.
func (p *Pool) room(h Holder) int64 { return p.own(h) + max(0, p.free) }

// take makes the holder have n more.
func (p *Pool) take(h Holder, n int64) {
	kept, before := p.kept[h.Level], p.used[h.Level]
	p.free -= max(before+n, kept) - max(before, kept)
	add(p.used, h.Level, n)
	add(p.held, h, n)
}

func add[K comparable](m map[K]int64, key K, n int64) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}

// exceeds reports whether n more than he has would be too much for the holder,
// whatever is free. A part that grows to that is his first if he has no other.
func (p *Pool) exceeds(h Holder, part, n int64) bool {
	held := p.held[h]
	return held > part && held+n > p.spare(h)-n
}

// spare is how much of its room the holder's level need not leave for first parts.
func (p *Pool) spare(h Holder) int64 {
	return max(0, p.own(h)-p.kept[h.Level]/4) + max(0, p.free-p.shared/4)
}

// grant serves the claims that fit, in order. A holder who has too much is
// passed over, with all his claims. Behind a claim that does not fit its level
// waits, and the others take no more than they keep.
func (p *Pool) grant() {
	var over []Holder
	var full []string
	for i := 0; i < len(p.waiting); {
		c := p.waiting[i]
		size := max(c.n, p.bound(c.holder, c.size))
		lacks := max(size, p.bound(c.holder, c.whole)) - c.n
		room := p.room(c.holder)
		if len(full) > 0 {
			room = p.own(c.holder)
		}
		switch {
		case lacks > 0 && (slices.Contains(over, c.holder) || slices.Contains(full, c.holder.Level)):
			i++
		case lacks > 0 && p.exceeds(c.holder, c.n, lacks):
			over = append(over, c.holder)
			i++
		case lacks > room:
			full = append(full, c.holder.Level)
			i++
		default:
			p.take(c.holder, size-c.n)
			c.n = size
			close(c.granted)
			p.waiting = slices.Delete(p.waiting, i, i+1)
		}
	}
}
