package fairqueue

import (
	"errors"
	"slices"

	"orch.io/controlplane/server/flowcontrol"
)

// widthPercent is how much of a level's seats one request may take, and
// MaxSeats the most in any.
const (
	widthPercent = 15
	MaxSeats     = 10
)

// Check returns what is wrong with a configuration.
func Check(config flowcontrol.Config) error {
	if len(config.Schemas) == 0 {
		return errors.New("flow control without schemas")
	}
	return config.Validate()
}

// SetConfig replaces the configuration. Requests that hold seats keep them,
// those that wait are sorted anew in the order in which they came.
func (c *Controller) SetConfig(config flowcontrol.Config) error {
	if err := Check(config); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.clear()
	c.setLevels(config.Levels)
	p := compile(config, c.byName, c.counts)
	if old := c.plan.Swap(p); old != nil {
		c.counts.forgetSchemas(old, p)
	}
	for _, w := range waiting {
		c.again(p, w)
		c.dispatch()
	}
	return nil
}

// clear takes all who wait out of their queues.
func (c *Controller) clear() (all []*waiter) {
	for _, l := range c.levels {
		for w := l.next(); w != nil; w = l.next() {
			c.leave(w)
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b *waiter) int { return a.number - b.number })
	return all
}

// again lets a request wait under a new plan.
func (c *Controller) again(p *plan, w *waiter) {
	w.flow = p.classify(w.flow.action)
	l := w.flow.schema.level
	w.seats = max(1, min(w.seats, l.widest))
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

// setLevels makes the levels of a configuration; one of the same name goes on
// with the seats that are in use.
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
		l.set(config, c.total, shares)
		c.capacity += l.nominal
		c.byName[config.Name] = l
		c.levels = append(c.levels, l)
	}
	for _, l := range c.levels {
		l.limit(c.capacity)
		c.counts.level(l)
	}
	for _, l := range old {
		if c.byName[l.config.Name] != l {
			c.counts.forget(l)
			if l.config = (flowcontrol.PriorityLevel{}); l.inUse > 0 { // what it still has is given back in time
				l.set(l.config, 0, 0)
				c.levels = append(c.levels, l)
			}
		}
	}
	c.taken = 0
	for _, l := range c.levels {
		c.taken += max(l.inUse, l.kept)
	}
}

// set gives a level its part of so many seats in so many shares.
func (l *level) set(config flowcontrol.PriorityLevel, seats, shares int) {
	*l = level{config: config, inUse: l.inUse}
	if config.Exempt {
		return
	}
	l.nominal = ceil(seats*config.Shares, max(1, shares))
	l.kept = l.nominal - (l.nominal*config.Lendable+50)/100
	l.widest = max(1, min(MaxSeats, ceil(l.nominal*widthPercent, 100)))
	if q := config.Queuing; q != nil {
		l.queues = make([]queue, q.Queues)
	}
}

// limit bounds what a level uses, of so many seats in all.
func (l *level) limit(capacity int) {
	l.most = capacity
	if b := l.config.Borrowing; b != nil {
		l.most = min(capacity, l.nominal+(l.nominal*min(*b, 1<<20)+50)/100)
	}
}

func ceil(n, d int) int { return (n + d - 1) / d }
