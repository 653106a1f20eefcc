package fairqueue

import (
	"context"
	"slices"
	"sync"

	"orch.io/controlplane/server/flowcontrol"
)

// Pool is a limited amount, such as bytes or slots, of which holders hold parts. It is safe for
// concurrent use.
//
// Each priority level keeps a part of the pool, as it keeps a part of its seats. The rest, at least
// half of the pool, is shared by all levels. A quarter of each of these parts is reserved for first
// parts. A holder that holds nothing may take everything that is available to its level. A holder
// that holds something must leave the quarters, and of the remainder it may hold at most as much as
// it leaves free. So a single holder that takes many parts gets at most half of the remaining three
// quarters, and n holders get 1/(n+1) of them each. To lock out holders that hold nothing, others
// would have to fill a quarter with first parts. Levels never get the part that another level
// keeps.
type Pool struct {
	size int64

	mu      sync.Mutex       // guards the fields below
	shared  int64            // amount that no level keeps
	kept    map[string]int64 // by level
	used    map[string]int64 // by level
	free    int64            // amount that is neither used nor kept; negative if a level keeps an amount that others still hold
	held    map[Holder]int64
	waiting []*claim // claims of held parts, then the others, both oldest first
}

// Holder identifies a holder within a priority level. An unknown level keeps nothing.
type Holder struct{ Level, Name string }

// Part is an amount that a holder holds. The zero Part is none. Only one copy of a Part may be grown
// or given back.
type Part struct {
	pool   *Pool // nil if nothing is held
	holder Holder
	n      int64
}

// claim is a part that waits to grow to a size.
type claim struct {
	Part
	size, whole int64 // size to grow to, and the size that must be available before that
	granted     chan struct{}
}

// NewPool returns a pool of the given size, of which no level keeps anything.
func NewPool(size int64) *Pool {
	return &Pool{size: size, shared: size, used: map[string]int64{}, free: size, held: map[Holder]int64{}}
}

// SetLevels sets the amounts that levels keep, from the levels of a valid configuration. Held parts
// are not affected. An amount that a level keeps is available to it at once: until other holders
// give it back, more than the size of the pool may be held.
func (p *Pool) SetLevels(levels []flowcontrol.PriorityLevel) {
	shares, keep := 0.0, 0.0
	for i := range levels {
		if l := &levels[i]; !l.Exempt {
			shares += float64(l.Shares)
			keep += keptShares(l)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept, p.shared = map[string]int64{}, p.size
	for i := range levels {
		if l := &levels[i]; !l.Exempt && l.Shares > 0 {
			p.kept[l.Name] = int64(float64(p.size) * keptShares(l) / max(shares, 2*keep))
			p.shared -= p.kept[l.Name]
		}
	}
	p.free = p.shared
	for level, used := range p.used {
		p.free -= max(0, used-p.kept[level])
	}
	p.grant()
}

// keptShares returns the shares that a level does not lend.
func keptShares(l *flowcontrol.PriorityLevel) float64 {
	return float64(l.Shares) * float64(100-l.Lendable) / 100
}

// Acquire takes n, or the maximum of the holder's level if that is less. It fails if the holder may
// not hold that much more. Take of 0 fails only if the holder already holds more than it may.
func (p *Pool) Acquire(h Holder, n int64) (Part, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = p.limitToLevel(h, n)
	if n > p.room(h) || p.exceeds(h, 0, n) {
		return Part{}, false
	}
	p.adjust(h, n)
	return Part{p, h, n}, true
}

// Wait takes n, or the maximum of the holder's level if that is less, as soon as the holder may
// hold whole, the size to which the part will grow later. Waiting claims are served in order,
// except that a holder which holds too much does not block other holders, and a level does not wait
// for other levels while it has room of its own. If the context ends first, Wait returns its error.
func (p *Pool) Wait(ctx context.Context, h Holder, n, whole int64) (Part, error) {
	c := &claim{Part{p, h, 0}, n, whole, make(chan struct{})}
	err := p.wait(ctx, c)
	return c.Part, err
}

// Grow grows a held part to n, or to the maximum of its level if that is less, as soon as the
// holder may hold that much. It comes before claims of holders without a part. If the context ends
// first, Grow gives the part back and returns the context's error: if parts wait for each other,
// the first that fails makes room for another.
func (part *Part) Grow(ctx context.Context, n int64) error {
	c := &claim{*part, n, n, make(chan struct{})}
	err := part.pool.wait(ctx, c)
	*part = c.Part
	return err
}

// wait queues a claim and waits until it is granted or the context ends.
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
	if i < 0 { // granted meanwhile
		return nil
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.adjust(c.holder, -c.n)
	c.Part = Part{}
	p.grant() // later claims may fit
	return ctx.Err()
}

// Held reports whether the part is held.
func (part *Part) Held() bool { return part.pool != nil }

// Release gives the part back. Only the first call has an effect. Calls must not be concurrent.
func (part *Part) Release() {
	p, h := part.pool, part.holder
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adjust(h, -part.n)
	p.grant()
	*part = Part{}
}

// limitToLevel returns n, or the amount that the holder's level could have if nothing were held, if
// that is less. As all functions below, it needs p.mu.
func (p *Pool) limitToLevel(h Holder, n int64) int64 {
	most := p.size
	for level, kept := range p.kept {
		if level != h.Level {
			most -= kept
		}
	}
	return min(n, max(1, most))
}

// ownFree returns the free amount that the holder's level keeps.
func (p *Pool) ownFree(h Holder) int64 { return max(0, p.kept[h.Level]-p.used[h.Level]) }

// room returns the amount that the holder's level may take.
func (p *Pool) room(h Holder) int64 { return p.ownFree(h) + max(0, p.free) }

// adjust changes the amount of a holder by n, which may be negative.
func (p *Pool) adjust(h Holder, n int64) {
	kept, before := p.kept[h.Level], p.used[h.Level]
	p.free -= max(before+n, kept) - max(before, kept)
	add(p.used, h.Level, n)
	add(p.held, h, n)
}

// add adds n to an entry and removes the entry if it becomes zero.
func add[K comparable](m map[K]int64, key K, n int64) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}

// exceeds reports whether the holder would hold too much with n more, regardless of the free
// amount. part is the size of the part that grows: if the holder has no other part, it counts as a
// first part.
func (p *Pool) exceeds(h Holder, part, n int64) bool {
	held := p.held[h]
	return held > part && held+n > p.spareRoom(h)-n
}

// spareRoom returns the room of the holder's level without the quarters reserved for first parts.
func (p *Pool) spareRoom(h Holder) int64 {
	return max(0, p.ownFree(h)-p.kept[h.Level]/4) + max(0, p.free-p.shared/4)
}

// grant serves the claims that fit, in order. All claims of a holder that holds too much are
// skipped. After a claim that does not fit, the other claims of its level wait, and claims of other
// levels may use only the amount that their level keeps.
func (p *Pool) grant() {
	var over []Holder
	var full []string
	for i := 0; i < len(p.waiting); {
		c := p.waiting[i]
		size := max(c.n, p.limitToLevel(c.holder, c.size))
		lacks := max(size, p.limitToLevel(c.holder, c.whole)) - c.n
		room := p.room(c.holder)
		if len(full) > 0 {
			room = p.ownFree(c.holder)
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
			p.adjust(c.holder, size-c.n)
			c.n = size
			close(c.granted)
			p.waiting = slices.Delete(p.waiting, i, i+1)
		}
	}
}
