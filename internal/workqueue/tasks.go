package workqueue

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"
)

// tasks holds the keys of a queue. A key waits until it is due, is then worked on by one call at a
// time, and is removed when it is not due again. The caller synchronizes access.
type tasks struct {
	workers int
	byKey   map[string]*task
	waiting *btree.BTreeG[*task] // tasks that are not being worked on, ordered by due time
	working map[*task]bool       // tasks that are being worked on
}

// task is a key that is due at some time, or being worked on.
type task struct {
	key     string
	due     time.Time     // zero: not asked for since the current work began
	pause   time.Duration // the pause before the last attempt, if the attempt before it failed
	begun   time.Time     // when the current work began
	running bool
}

func newTasks(workers int) tasks {
	earlier := func(a, b *task) bool { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key, b.key)) < 0 }
	return tasks{workers, map[string]*task{}, btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true}), map[*task]bool{}}
}

// ask makes a key due at a time, or earlier if it is due earlier already, and resets the pause of
// earlier failures. It reports whether the key was not due before.
func (q *tasks) ask(key string, at time.Time) (fresh bool) {
	t := q.byKey[key]
	if t == nil {
		t = &task{key: key}
		q.byKey[key] = t
	}
	t.pause = 0
	if !t.due.IsZero() && !t.due.After(at) {
		return false // the key keeps its place
	}
	fresh = t.due.IsZero()
	q.waiting.Delete(t)
	t.due = at
	if !t.running {
		q.waiting.Set(t)
	}
	return fresh
}

// take removes the first key that is due, for work on it to begin, and returns for how long it was
// due. If there is none, t is nil and next is the time when the next key is due, or zero if no key
// will become due by time alone: none is waiting, or all workers are busy.
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

// done ends the work on a task. Its key is due again at the given time, zero for not at all, or
// earlier if ask set an earlier time during the work.
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

// idle reports whether no work is running and no key is due at the given time.
func (q *tasks) idle(until time.Time) bool {
	t, ok := q.waiting.Min()
	return len(q.working) == 0 && (!ok || t.due.After(until))
}
