package fairqueue

import (
	"errors"
	"slices"

	"orch.io/controlplane/server/flowcontrol"
)

// widthPercent is the part of a level's seats that a request may take, in percent. MaxSeats bounds
// the seats of a request in any level.
const (
	widthPercent = 15
	MaxSeats     = 10
)

// Check returns an error if a configuration is invalid.
func Check(config flowcontrol.Config) error {
	if len(config.Schemas) == 0 {
		return errors.New("flow control has no schemas")
	}
	return config.Validate()
}

// SetConfig replaces the configuration. Requests that hold seats keep them. Waiting requests are
// classified again and queued in the order of their arrival; they may be refused if their new queue
// is full. If the configuration is invalid, SetConfig returns an error and changes nothing.
func (c *Controller) SetConfig(config flowcontrol.Config) error {
	if err := Check(config); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.clearQueues()
	c.setLevels(config.Levels)
	p := compile(config, c.byName, c.counts)
	if old := c.plan.Swap(p); old != nil {
		c.counts.forgetSchemas(old, p)
	}
	for _, w := range waiting {
		c.requeue(p, w)
		c.dispatch()
	}
	return nil
}

// clearQueues removes all waiting requests from their queues and returns them in the order of
// arrival.
func (c *Controller) clearQueues() (all []*waiter) {
	for _, l := range c.levels {
		for w := l.next(); w != nil; w = l.next() {
			c.leave(w)
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b *waiter) int { return a.number - b.number })
	return all
}

// requeue classifies a waiting request under a new plan, and queues, serves or refuses it.
func (c *Controller) requeue(p *plan, w *waiter) {
	w.flow = p.classify(w.flow.action)
	l := w.flow.schema.level
	w.seats = max(1, min(w.seats, l.maxWidth))
	switch {
	case w.flow.schema.exempt:
		w.queue, w.seats = nil, 0
		c.grant(w)
	case l.queues != nil && c.enqueue(w):
	case l.queues == nil && c.fits(l, w.seats):
		w.queue = nil
		c.grant(w)
	default:
		w.err = w.flow.schema.counters().refuse(QueueFull, 0)
		close(w.decided)
	}
}

// setLevels configures the levels. A level that exists already keeps its seats in use. A removed
// level stays in c.levels, without a name, until its seats are released.
func (c *Controller) setLevels(configs []flowcontrol.PriorityLevel) {
	shares := 0
	for _, l := range configs {
		if !l.Exempt {
			shares += l.Shares
		}
	}
	old := c.levels
	c.byName, c.levels, c.capacity = map[string]*level{}, nil, 0
	for _, config := range configs {
		l := &level{}
		if i := slices.IndexFunc(old, func(l *level) bool { return l.config.Name == config.Name }); i >= 0 {
			l = old[i]
		}
		l.configure(config, c.total, shares)
		c.capacity += l.nominal
		c.byName[config.Name] = l
		c.levels = append(c.levels, l)
	}
	for _, l := range c.levels {
		l.setMaxInUse(c.capacity)
		c.counts.level(l)
	}
	for _, l := range old {
		if c.byName[l.config.Name] != l {
			c.counts.forget(l)
			if l.config = (flowcontrol.PriorityLevel{}); l.inUse > 0 { // until its requests end
				l.configure(l.config, 0, 0)
				c.levels = append(c.levels, l)
			}
		}
	}
	c.reserved = 0
	for _, l := range c.levels {
		c.reserved += max(l.inUse, l.kept)
	}
}

// configure sets a level to its configuration. seats and shares are the totals of all levels.
func (l *level) configure(config flowcontrol.PriorityLevel, seats, shares int) {
	*l = level{config: config, inUse: l.inUse}
	if config.Exempt {
		return
	}
	l.nominal = ceil(seats*config.Shares, max(1, shares))
	l.kept = l.nominal - (l.nominal*config.Lendable+50)/100
	l.maxWidth = max(1, min(MaxSeats, ceil(l.nominal*widthPercent, 100)))
	if q := config.Queuing; q != nil {
		l.queues = make([]queue, q.Queues)
	}
}

// setMaxInUse sets the maximum of seats that the level may use, including borrowed seats. capacity
// is the total of all levels.
func (l *level) setMaxInUse(capacity int) {
	l.maxInUse = capacity
	if b := l.config.Borrowing; b != nil {
		l.maxInUse = min(capacity, l.nominal+(l.nominal*min(*b, 1<<20)+50)/100)
	}
}

// ceil returns n/d, rounded up.
func ceil(n, d int) int { return (n + d - 1) / d }
