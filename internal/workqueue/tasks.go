package workqueue

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"
)

// tasks holds the keys of a queue. A key waits until it is due, is worked on
// by one call at a time, and is forgotten when nobody asks for it any more.
type tasks struct {
	workers int
	byKey   map[string]*task
	waiting *btree.BTreeG[*task] // those that nobody works on, by the time when they are due
	running int                  // the others
}

// task is a key that is due at some time, or being worked on.
type task struct {
	key     string
	due     time.Time     // zero: nobody asked for it since work on it began
	pause   time.Duration // before the last attempt, if the one before it failed
	running bool
}

func newTasks(workers int) tasks {
	earlier := func(a, b *task) bool { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key, b.key)) < 0 }
	return tasks{workers, map[string]*task{}, btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true}), 0}
}

// ask makes a key due at a time at the latest, since something changed: earlier failures
// do not count any more.
func (q *tasks) ask(key string, at time.Time) {
	t := q.byKey[key]
	if t == nil {
		t = &task{key: key}
		q.byKey[key] = t
	}
	t.pause = 0
	if !t.due.IsZero() && !t.due.After(at) {
		return // it keeps its place
	}
	q.waiting.Delete(t)
	t.due = at
	if !t.running {
		q.waiting.Set(t)
	}
}

// take returns a key that is due, for work to begin, or nil and when the next
// one is due, zero if no time will make one so: none waits, or as many as may
// run at a time do.
func (q *tasks) take(now time.Time) (t *task, next time.Time) {
	t, ok := q.waiting.Min()
	switch {
	case !ok || q.running == q.workers:
		return nil, time.Time{}
	case t.due.After(now):
		return nil, t.due
	}
	q.waiting.Delete(t)
	t.running, t.due = true, time.Time{}
	q.running++
	return t, time.Time{}
}

// done ends the work on a key, which is due again at a time, zero for none, or
// earlier if it was asked for meanwhile.
func (q *tasks) done(t *task, again time.Time) {
	t.running = false
	q.running--
	if t.due.IsZero() || !again.IsZero() && again.Before(t.due) {
		t.due = again
	}
	if t.due.IsZero() {
		delete(q.byKey, t.key)
		return
	}
	q.waiting.Set(t)
}

// idle reports whether nothing runs and nothing is due before a time.
func (q *tasks) idle(until time.Time) bool {
	t, ok := q.waiting.Min()
	return q.running == 0 && (!ok || t.due.After(until))
}
