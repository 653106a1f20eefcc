// Package fairqueue shares what a server has among its callers, so that none of them
// can hold all of it: seats for requests that are worked on, and pools.
package fairqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/server/flowcontrol"
)

// Reason says why a request got no seat.
type Reason string

// The reasons, as metrics tell them.
const (
	QueueFull        Reason = "queue-full"
	ConcurrencyLimit Reason = "concurrency-limit" // of a level without queues
	TimeOut          Reason = "time-out"
	Cancelled        Reason = "cancelled"
)

func (r Reason) Error() string { return "no seat: " + string(r) }

// Controller gives out the seats of a server. Each priority level has a part of
// them. What it does not use it lends, except for what it keeps; so there is
// always room for a level up to what it keeps, and what was lent comes back as
// soon as the borrowers' requests end: who uses least of his own goes first.
type Controller struct {
	total   int
	maxWait time.Duration
	counts  *counts
	plan    atomic.Pointer[plan]

	mu       sync.Mutex // guards the rest and all levels
	byName   map[string]*level
	levels   []*level // those of the plan, and those gone whose seats are not all back
	capacity int      // the seats of all levels
	taken    int      // seats in use or kept by levels for themselves
	waiting  int
	arrivals int // that had to wait
}

// Options are the parts of a controller that do not change.
type Options struct {
	Seats   int           // in all; every level with a share has at least one, so that it may be a few more
	MaxWait time.Duration // for a seat
	Metrics prometheus.Registerer
}

// New makes a controller. A fault of the configuration is returned, and what metrics could
// not be registered.
func New(o Options, config flowcontrol.Config) (*Controller, error) {
	c := &Controller{total: o.Seats, maxWait: o.MaxWait, byName: map[string]*level{}}
	set := metrics.For(o.Metrics)
	c.counts = newCounts(set, c.free)
	if err := set.Err(); err != nil {
		return nil, err
	}
	return c, c.SetConfig(config)
}

// Acquire waits for seats, at most as many as a request of the level may have.
// It fails with a Reason, and a Seat that tells no more than how long it was waited for.
// Release gives them back.
func (c *Controller) Acquire(ctx context.Context, f Flow, seats int) (Seat, error) {
	if f.schema.exempt {
		return exempt(f), nil
	}
	c.mu.Lock()
	if p := c.plan.Load(); p != f.plan {
		f = p.classify(f.action)
	}
	l := f.schema.level
	seats = max(1, min(seats, l.widest))
	switch {
	case f.schema.exempt:
		c.mu.Unlock()
		return exempt(f), nil
	case l.waiting == 0 && (l.inUse+seats <= l.kept || c.waiting == 0 && c.fits(l, seats)):
		c.use(l, seats)
		c.mu.Unlock()
		f.schema.counters().begin(seats, 0)
		return Seat{controller: c, schema: f.schema, seats: seats, watch: f.watches(), begun: time.Now()}, nil
	case l.queues == nil:
		c.mu.Unlock()
		return Seat{}, f.schema.counters().refuse(ConcurrencyLimit, 0)
	}
	c.arrivals++
	w := &waiter{flow: f, number: c.arrivals, seats: seats, arrived: time.Now(), decided: make(chan struct{})}
	if !c.enqueue(w) {
		c.mu.Unlock()
		return Seat{}, f.schema.counters().refuse(QueueFull, 0)
	}
	c.dispatch()
	c.mu.Unlock()
	return c.wait(ctx, w)
}

func (c *Controller) wait(ctx context.Context, w *waiter) (Seat, error) {
	timer := time.NewTimer(c.maxWait)
	defer timer.Stop()
	reason := Cancelled
	select {
	case <-w.decided:
	case <-timer.C:
		reason = TimeOut
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			reason = TimeOut
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.decided: // maybe at the last moment
		if w.err != nil {
			return Seat{}, w.err
		}
		return Seat{controller: c, schema: w.flow.schema, seats: w.seats, queue: w.queue, watch: w.flow.watches(), waited: time.Since(w.arrived), begun: time.Now()}, nil
	default:
	}
	c.leave(w)
	c.dispatch() // there may be room for the one behind
	waited := time.Since(w.arrived)
	return Seat{waited: waited}, w.flow.schema.counters().refuse(reason, waited)
}

// enqueue lets a request wait, if its level has room. The lock is held, as in
// all that follow.
func (c *Controller) enqueue(w *waiter) bool {
	if !w.flow.schema.level.enqueue(w) {
		return false
	}
	c.waiting++
	w.flow.schema.counters().wait(w)
	return true
}

func (c *Controller) leave(w *waiter) {
	w.flow.schema.level.leave(w)
	c.waiting--
	w.flow.schema.counters().leave(w)
}

// fits reports whether a level may use so many seats more.
func (c *Controller) fits(l *level, seats int) bool {
	return l.inUse+seats <= l.most && c.taken+l.growth(seats) <= c.capacity
}

// growth is how much more is taken if the level uses so many seats more: those
// that it keeps for itself are taken anyway.
func (l *level) growth(seats int) int { return max(l.inUse+seats, l.kept) - max(l.inUse, l.kept) }

func (c *Controller) use(l *level, seats int) {
	c.taken += l.growth(seats)
	l.inUse += seats
}

// dispatch gives seats to those who wait, as long as there are any.
func (c *Controller) dispatch() {
	for c.waiting > 0 {
		w := c.choose()
		if w == nil {
			return
		}
		c.leave(w)
		c.grant(w)
		w.flow.schema.level.begin(w)
	}
}

// choose returns the request to serve next. The level that uses least of its own
// comes first; while its request does not fit, nobody borrows.
func (c *Controller) choose() *waiter {
	slices.SortFunc(c.levels, func(a, b *level) int { return a.inUse*max(1, b.nominal) - b.inUse*max(1, a.nominal) })
	scarce := false
	for _, l := range c.levels {
		w := l.next()
		switch {
		case w == nil || l.inUse+w.seats > l.most:
		case l.inUse+w.seats <= l.kept || !scarce && c.fits(l, w.seats):
			return w
		default:
			scarce = true
		}
	}
	return nil
}

// grant gives a request its seats.
func (c *Controller) grant(w *waiter) {
	c.use(w.flow.schema.level, w.seats)
	w.flow.schema.counters().begin(w.seats, time.Since(w.arrived))
	close(w.decided)
}

// Seat is what a request holds while it is worked on. The zero Seat is none.
type Seat struct {
	controller *Controller // nil: of an exempt level
	schema     *schema
	seats      int
	queue      *queue // that it waited in, if it did
	watch      bool
	waited     time.Duration
	begun      time.Time
}

// Waited returns how long the seat was waited for.
func (s *Seat) Waited() time.Duration { return s.waited }

func exempt(f Flow) Seat {
	f.schema.counters().begin(0, 0)
	return Seat{schema: f.schema, watch: f.watches(), begun: time.Now()}
}

// Release gives the seat back. Only the first call counts; calls must not run
// at the same time.
func (s *Seat) Release() {
	if s.schema == nil {
		return
	}
	took := time.Since(s.begun)
	s.schema.counters().end(s.seats, s.watch, took)
	if c := s.controller; c != nil {
		c.mu.Lock()
		c.use(s.schema.level, -s.seats)
		if s.queue != nil {
			s.queue.virtual += float64(s.seats) * (took.Seconds() - estimate)
		}
		c.dispatch()
		c.mu.Unlock()
	}
	*s = Seat{}
}
