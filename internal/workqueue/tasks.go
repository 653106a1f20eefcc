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
	working map[*task]bool       // the others
}

// task is a key that is due at some time, or being worked on.
type task struct {
	key     string
	due     time.Time     // zero: nobody asked for it since work on it began
	pause   time.Duration // before the last attempt, if the one before it failed
	begun   time.Time     // of the work on it
	running bool
}

func newTasks(workers int) tasks {
	earlier := func(a, b *task) bool { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key, b.key)) < 0 }
	return tasks{workers, map[string]*task{}, btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true}), map[*task]bool{}}
}

// ask makes a key due at a time at the latest, since something changed: earlier failures
// do not count any more. It reports whether nobody had asked for it.
func (q *tasks) ask(key string, at time.Time) (fresh bool) {
	t := q.byKey[key]
	if t == nil {
		t = &task{key: key}
		q.byKey[key] = t
	}
	t.pause = 0
	if !t.due.IsZero() && !t.due.After(at) {
		return false // it keeps its place
	}
	fresh = t.due.IsZero()
	q.waiting.Delete(t)
	t.due = at
	if !t.running {
		q.waiting.Set(t)
	}
	return fresh
}

// take returns a key that is due, for work to begin, and for how long it was, or nil and
// when the next one is due, zero if no time will make one so: none waits, or as many as may
// run at a time do.
func (q *tasks) take(now time.Time) (t *task, waited time.Duration, next time.Time) {
	t, ok := q.waiting.Min()
	switch {
	case !ok || len(q.working) == q.workers:
		return nil, 0, time.Time{}
	case t.due.After(now):
		return nil, 0, t.due
	}
	q.waiting.Delete(t)
	waited = now.Sub(t.due)
	t.running, t.begun, t.due = true, now, time.Time{}
	q.working[t] = true
	return t, waited, time.Time{}
}

// done ends the work on a key, which is due again at a time, zero for none, or
// earlier if it was asked for meanwhile.
func (q *tasks) done(t *task, again time.Time) {
	t.running = false
	delete(q.working, t)
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
	return len(q.working) == 0 && (!ok || t.due.After(until))
}
