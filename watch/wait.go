package watch

import "strings"

// interest is what a parked cursor waits for: changes of one object, of one
// namespace, of objects with a field's value, or of any object. Everything that
// the cursor's query can match is under its interest.
type interest struct {
	kind interestKind
	a, b string
}

type interestKind uint8

const (
	anyObject   interestKind = iota
	inNamespace              // a: namespace
	withName                 // a: namespace ("" for any), b: name
	withField                // a: field, b: value
)

// group is the parked cursors of one interest. They are woken together.
type group struct {
	woken   chan struct{}
	members int
	pos     uint64 // of the record that woke them; set before woken is closed
}

// interest returns the narrowest interest of a query.
func (m *matcher) interest() interest {
	if m.Name != "" {
		return interest{withName, m.Namespace, m.Name}
	}
	for _, f := range m.index {
		if v, ok := m.Fields.Value(f.Name); ok {
			return interest{withField, f.Name, v}
		}
	}
	if m.Namespace != "" {
		return interest{kind: inNamespace, a: m.Namespace}
	}
	return interest{}
}

// park returns the group to wait in; the caller holds the lock.
func (c *Cache) park(i interest) *group {
	g := c.parked[i]
	if g == nil {
		g = &group{woken: make(chan struct{})}
		c.parked[i] = g
	}
	g.members++
	return g
}

// leave takes a cursor out of the group that it waited in and reports whether
// the group was not woken; the caller holds the lock.
func (c *Cache) leave(i interest, g *group) bool {
	if c.parked[i] != g {
		return false
	}
	if g.members--; g.members == 0 {
		delete(c.parked, i)
	}
	return true
}

// groups are woken groups that are to be released.
type groups []*group

func (gs groups) release() {
	for _, g := range gs {
		close(g.woken)
	}
}

// wake takes the group of an interest, if there is one, for release; the caller
// holds the lock.
func (c *Cache) wake(woken groups, i interest, pos uint64) groups {
	g := c.parked[i]
	if g == nil {
		return woken
	}
	delete(c.parked, i)
	g.pos = pos
	return append(woken, g)
}

// era is the time from one call of Hub.Drop to the next. The cursors that began
// in one that is over read the log up to its end. The cache's lock guards it.
type era struct {
	over bool
	end  uint64 // position in the log
}

// endWatches ends all cursors that there are, at what the log holds now.
func (c *Cache) endWatches() {
	c.mu.Lock()
	*c.era, c.era = era{true, c.log.next}, new(era)
	var woken groups
	for i := range c.parked {
		woken = c.wake(woken, i, c.log.next)
	}
	c.mu.Unlock()
	woken.release()
}

// publish appends a record and takes those whom it can interest out of the
// parked ones; the caller holds the lock.
func (c *Cache) publish(r *record) (woken groups) {
	pos := c.log.next
	c.log.add(r)
	if len(c.parked) == 0 {
		return nil
	}
	namespace, name, _ := strings.Cut(r.key(), "/")
	woken = c.wake(woken, interest{}, pos)
	woken = c.wake(woken, interest{inNamespace, namespace, ""}, pos)
	woken = c.wake(woken, interest{withName, namespace, name}, pos)
	woken = c.wake(woken, interest{withName, "", name}, pos)
	for i := range c.index {
		f := &c.index[i]
		for _, e := range [...]*Entry{r.old, r.new} {
			if e != nil && len(c.parked) > 0 {
				woken = c.wake(woken, interest{withField, f.Name, indexed(e, f)}, pos)
			}
		}
	}
	return woken
}
