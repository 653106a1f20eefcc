package watch

import (
	"strings"
	"time"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/eventlog"
)

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

// era is the time from one call of Hub.Drop to the next. The cursors that began
// in one that is over read the log up to its end. The cache's lock guards it.
type era struct {
	over bool
	end  storage.Revision
}

// endWatches ends all cursors that there are, at what the log holds now.
func (c *Cache) endWatches() {
	c.mu.Lock()
	*c.era, c.era = era{true, c.log.Newest()}, new(era)
	woken := c.wakeAll()
	c.mu.Unlock()
	woken.Release()
}

// wakeAll takes all parked cursors for release; the caller holds the lock.
func (c *Cache) wakeAll() (woken eventlog.Woken) {
	for i := range c.parked {
		woken = c.parked.Wake(woken, i, c.log.Newest())
	}
	return woken
}

// publish appends a commit to the log and takes those whom it can interest out of
// the parked ones; the caller holds the lock.
func (c *Cache) publish(now time.Time, cm commit) (woken eventlog.Woken) {
	c.log.Append(now, cm)
	c.newest.Store(int64(cm.Revision))
	quiet := cm.Revision - 1
	for i := range cm.Events {
		if len(c.parked) == 0 {
			break
		}
		r := &cm.Events[i]
		namespace, name, _ := strings.Cut(r.key(), "/")
		woken = c.parked.Wake(woken, interest{}, quiet)
		woken = c.parked.Wake(woken, interest{inNamespace, namespace, ""}, quiet)
		woken = c.parked.Wake(woken, interest{withName, namespace, name}, quiet)
		woken = c.parked.Wake(woken, interest{withName, "", name}, quiet)
		for _, e := range [...]*Entry{r.old, r.new} {
			if e != nil && len(c.index) > 0 && len(c.parked) > 0 {
				woken = c.wakeByFields(woken, e, quiet)
			}
		}
	}
	return woken
}

// wakeByFields takes those for release who demand a field that an object has, or may have;
// the caller holds the lock.
func (c *Cache) wakeByFields(woken eventlog.Woken, e *Entry, quiet storage.Revision) eventlog.Woken {
	if c.unsure != nil && c.unsure(e) {
		for i := range c.parked {
			if i.kind == withField {
				woken = c.parked.Wake(woken, i, quiet)
			}
		}
		return woken
	}
	for i := range c.index {
		f := &c.index[i]
		woken = c.parked.Wake(woken, interest{withField, f.Name, e.Selectable(f)}, quiet)
	}
	return woken
}
