// Package fairqueue divides the capacity of a server among users, so that no user can occupy all of
// it. A Controller divides seats, which bound the requests that run concurrently, by the queues and
// priority levels of API priority and fairness. A Pool divides other amounts, such as bytes of
// request bodies.
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

// Reason is the error of a request that got no seat.
type Reason string

// The reasons, with the values of the metrics' label.
const (
	QueueFull        Reason = "queue-full"
	ConcurrencyLimit Reason = "concurrency-limit" // no seat is free, and the level has no queues
	Timeout          Reason = "time-out"
	Cancelled        Reason = "cancelled"
)

// Error implements error.
func (r Reason) Error() string { return "no seat: " + string(r) }

// Controller divides the seats of a server among priority levels. Each level owns a number of
// seats. It lends seats that it does not use, except a part that it keeps, which is always
// available to it. A borrowed seat returns when the borrower's request ends; free seats are given
// first to the level that uses the smallest part of its own seats. The methods are safe for
// concurrent use.
type Controller struct {
	total   int
	maxWait time.Duration
	counts  *counts
	plan    atomic.Pointer[plan]

	mu       sync.Mutex // guards the fields below and all levels
	byName   map[string]*level
	levels   []*level // levels of the plan, and removed levels that still have seats in use
	capacity int      // total seats of all levels
	reserved int      // seats that are in use or kept by their level
	waiting  int      // requests in the queues of all levels
	arrivals int      // number of the newest request that had to wait
}

// Options configures a Controller, in addition to its Config.
type Options struct {
	Seats   int           // total; may be exceeded slightly, because every level with a share has at least one seat
	MaxWait time.Duration // longest wait for a seat
	Metrics prometheus.Registerer
}

// New returns a Controller. It fails if the configuration is invalid or a metric is registered
// already.
func New(o Options, config flowcontrol.Config) (*Controller, error) {
	c := &Controller{total: o.Seats, maxWait: o.MaxWait, byName: map[string]*level{}}
	set := metrics.For(o.Metrics)
	c.counts = newCounts(set, c.emitCurrentLimits)
	if err := set.Err(); err != nil {
		return nil, err
	}
	return c, c.SetConfig(config)
}

// Acquire waits for seats for a request of the flow, reduced to the number that a request of its
// level may have. The caller releases the Seat. If Acquire fails, the error is a Reason, and the
// Seat only has the time that was waited.
func (c *Controller) Acquire(ctx context.Context, f Flow, seats int) (Seat, error) {
	if f.schema.exempt {
		return exemptSeat(f), nil
	}
	c.mu.Lock()
	if p := c.plan.Load(); p != f.plan {
		f = p.classify(f.action)
	}
	l := f.schema.level
	seats = max(1, min(seats, l.maxWidth))
	switch {
	case f.schema.exempt:
		c.mu.Unlock()
		return exemptSeat(f), nil
	case l.waiting == 0 && (l.inUse+seats <= l.kept || c.waiting == 0 && c.fits(l, seats)):
		c.addInUse(l, seats)
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

// wait waits until w is decided, the context ends or maxWait has passed.
func (c *Controller) wait(ctx context.Context, w *waiter) (Seat, error) {
	timer := time.NewTimer(c.maxWait)
	defer timer.Stop()
	reason := Cancelled
	select {
	case <-w.decided:
	case <-timer.C:
		reason = Timeout
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			reason = Timeout
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.decided: // decided after the wait ended
		if w.err != nil {
			return Seat{}, w.err
		}
		return Seat{controller: c, schema: w.flow.schema, seats: w.seats, queue: w.queue, watch: w.flow.watches(), waited: time.Since(w.arrived), begun: time.Now()}, nil
	default:
	}
	c.leave(w)
	c.dispatch() // the next request in the queue may need fewer seats
	waited := time.Since(w.arrived)
	return Seat{waited: waited}, w.flow.schema.counters().refuse(reason, waited)
}

// enqueue queues a request and reports whether its level has room. c.mu must be held for enqueue
// and all functions below that do not lock it.
func (c *Controller) enqueue(w *waiter) bool {
	if !w.flow.schema.level.enqueue(w) {
		return false
	}
	c.waiting++
	w.flow.schema.counters().wait(w)
	return true
}

// leave removes a request from its queue.
func (c *Controller) leave(w *waiter) {
	w.flow.schema.level.leave(w)
	c.waiting--
	w.flow.schema.counters().leave(w)
}

// fits reports whether a level may use additional seats.
func (c *Controller) fits(l *level, seats int) bool {
	return l.inUse+seats <= l.maxInUse && c.reserved+l.growth(seats) <= c.capacity
}

// growth returns the increase of c.reserved if the level uses additional seats. Seats that the
// level keeps are reserved already.
func (l *level) growth(seats int) int { return max(l.inUse+seats, l.kept) - max(l.inUse, l.kept) }

// addInUse counts additional seats of a level, which may be negative.
func (c *Controller) addInUse(l *level, seats int) {
	c.reserved += l.growth(seats)
	l.inUse += seats
}

// dispatch gives seats to waiting requests while there are enough.
func (c *Controller) dispatch() {
	for c.waiting > 0 {
		w := c.choose()
		if w == nil {
			return
		}
		c.leave(w)
		c.grant(w)
		w.flow.schema.level.charge(w)
	}
}

// choose returns the request to serve next, or nil. Levels are considered in the order of the part
// of their own seats that they use. If the request of a level does not fit, later levels may not
// borrow, so that seats become free for it.
func (c *Controller) choose() *waiter {
	slices.SortFunc(c.levels, func(a, b *level) int { return a.inUse*max(1, b.nominal) - b.inUse*max(1, a.nominal) })
	scarce := false
	for _, l := range c.levels {
		w := l.next()
		switch {
		case w == nil || l.inUse+w.seats > l.maxInUse:
		case l.inUse+w.seats <= l.kept || !scarce && c.fits(l, w.seats):
			return w
		default:
			scarce = true
		}
	}
	return nil
}

// grant gives a request its seats and wakes it.
func (c *Controller) grant(w *waiter) {
	c.addInUse(w.flow.schema.level, w.seats)
	w.flow.schema.counters().begin(w.seats, time.Since(w.arrived))
	close(w.decided)
}

// Seat is the right of a request to run; it may consist of several seats of its level. The zero
// Seat is none.
type Seat struct {
	controller *Controller // nil if the level is exempt
	schema     *schema
	seats      int
	queue      *queue // in which the request waited; nil if it did not wait
	watch      bool
	waited     time.Duration
	begun      time.Time
}

// Waited returns how long the request waited.
func (s *Seat) Waited() time.Duration { return s.waited }

// exemptSeat returns the Seat of a request that needs no seats.
func exemptSeat(f Flow) Seat {
	f.schema.counters().begin(0, 0)
	return Seat{schema: f.schema, watch: f.watches(), begun: time.Now()}
}

// Release releases the seats. Only the first call has an effect. Calls must not be concurrent.
func (s *Seat) Release() {
	if s.schema == nil {
		return
	}
	took := time.Since(s.begun)
	s.schema.counters().end(s.seats, s.watch, took)
	if c := s.controller; c != nil {
		c.mu.Lock()
		c.addInUse(s.schema.level, -s.seats)
		if s.queue != nil {
			s.queue.virtual += float64(s.seats) * (took.Seconds() - estimate)
		}
		c.dispatch()
		c.mu.Unlock()
	}
	*s = Seat{}
}
