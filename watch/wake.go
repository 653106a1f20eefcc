package watch

import (
	"strings"
	"time"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// Topic is a property of entries by which waiting cursors are woken, such as the value
// of an indexed field. The program chooses the names, which must not be empty, because the
// package itself uses topics without a name for keys and prefixes.
type Topic struct{ Name, Value string }

// SetTopics sets the function f that appends the topics of an entry to dst. If f is nil,
// entries have no topics. A cursor with a Topic in its query is woken only by events whose
// old or new entry has that topic. If f returns false, events of the entry wake all such
// cursors. f runs under the lock of the cache, so commits wait for it, and it must not call
// the cache.
func (c *Cache[V]) SetTopics(f func(dst []Topic, e V) (topics []Topic, known bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.topics = f
}

// topic returns the topic under which a cursor with the query waits. Every event that
// the query can select wakes it.
func (q *Query[V]) topic() Topic {
	switch {
	case q.Topic != Topic{}:
		return q.Topic
	case q.Key != "":
		return Topic{Value: q.Key}
	}
	return Topic{Value: q.Prefix[:strings.LastIndexByte(q.Prefix, '/')+1]}
}

// era is the time between two calls of EndWatches. Cursors that began in a past era read
// the log up to the end of that era. Cache.mu guards it.
type era struct {
	over bool
	end  storage.Revision
}

// EndWatches ends all cursors of the cache: Next returns the events up to the present
// revision and then fails with ErrEnded. Later cursors, and feeds, are not affected.
func (c *Cache[V]) EndWatches() {
	c.mu.Lock()
	*c.era, c.era = era{true, c.log.Newest()}, new(era)
	woken := c.wakeAll()
	c.mu.Unlock()
	woken.Release()
}

// wakeAll removes all waiting cursors for release; the caller holds the lock.
func (c *Cache[V]) wakeAll() (woken eventlog.Woken) {
	for t := range c.parked {
		woken = c.parked.Wake(woken, t, c.log.Newest())
	}
	return woken
}

// publish appends a commit to the log and removes the waiting cursors that it may
// concern, for release; the caller holds the lock.
func (c *Cache[V]) publish(now time.Time, cm commit[V]) (woken eventlog.Woken) {
	c.log.Append(now, cm)
	c.newest.Store(int64(cm.Revision))
	quiet := cm.Revision - 1
	for i := range cm.Events {
		if len(c.parked) == 0 {
			break
		}
		ev := &cm.Events[i]
		woken = c.wakeByKey(woken, ev.key(), quiet)
		if c.topics != nil && len(c.parked) > 0 {
			woken = c.wakeByTopics(woken, ev.Old, quiet)
			woken = c.wakeByTopics(woken, ev.New, quiet)
		}
	}
	return woken
}

// wakeByKey removes the cursors that wait for all keys, for the key, or for a prefix of it
// that ends with a slash; the caller holds the lock.
func (c *Cache[V]) wakeByKey(woken eventlog.Woken, key string, quiet storage.Revision) eventlog.Woken {
	woken = c.parked.Wake(woken, Topic{}, quiet)
	for i := range len(key) {
		if key[i] == '/' || i == len(key)-1 {
			woken = c.parked.Wake(woken, Topic{Value: key[:i+1]}, quiet)
		}
	}
	return woken
}

// wakeByTopics removes the cursors that wait for a topic that an entry has, or may have;
// the caller holds the lock.
func (c *Cache[V]) wakeByTopics(woken eventlog.Woken, e V, quiet storage.Revision) eventlog.Woken {
	var none V
	if e == none {
		return woken
	}
	var known bool
	c.scratch, known = c.topics(c.scratch[:0], e)
	for _, t := range c.scratch {
		woken = c.parked.Wake(woken, t, quiet)
	}
	clear(c.scratch)
	if known {
		return woken
	}
	for t := range c.parked {
		if t.Name != "" {
			woken = c.parked.Wake(woken, t, quiet)
		}
	}
	return woken
}
