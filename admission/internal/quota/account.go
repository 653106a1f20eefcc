package quota

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"orch.io/controlplane/storage"
)

// account is the state of one namespace in this server. It is dropped when it is neither used nor knows anything.
type account struct {
	ledger    *Ledger
	namespace string
	turn      chan struct{} // has room for one token: that of the goroutine that settles

	// Guarded by Ledger.mu.
	users    int // writes and counts in progress
	waiting  []*task
	underWay map[*charge]bool // reserved, and their writes have not ended
	standing standing
}

// standing is what the server knows about a namespace with quotas.
type standing struct {
	stale   bool             // status.used may be too high
	counted time.Time        // when this server last counted the objects
	looked  bool             // fence is known
	fence   storage.Revision // of the namespace, as this server last read it
	raised  storage.Revision // of the fence, when this server last raised it; doubted: reservations since then are not known
}

// doubted is older than any revision of a fence, so that status.used is not lowered before the fence is raised.
const doubted = -1

// account returns the account of a namespace; Ledger.mu is held.
func (l *Ledger) account(namespace string) *account {
	a := l.accounts[namespace]
	if a == nil {
		a = &account{ledger: l, namespace: namespace, turn: make(chan struct{}, 1), underWay: map[*charge]bool{}}
		l.accounts[namespace] = a
	}
	return a
}

// open returns the account of a namespace for a use that ends with close.
func (l *Ledger) open(namespace string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(namespace)
	a.users++
	return a
}

func (a *account) close() {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.users--
	a.drop()
}

// drop removes the account if nothing needs it; Ledger.mu is held.
func (a *account) drop() {
	if a.users == 0 && a.standing == (standing{}) {
		delete(a.ledger.accounts, a.namespace)
	}
}

// know returns the standing, after change has changed it.
func (a *account) know(change func(*standing)) standing {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if change != nil {
		change(&a.standing)
	}
	return a.standing
}

// forget clears the standing of a namespace that has no quotas any more.
func (l *Ledger) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[namespace]; a != nil {
		a.standing = standing{}
		a.drop()
	}
}

// count has the objects of a namespace counted, once for many calls, and before the next write is refused.
func (l *Ledger) count(namespace string) {
	l.mu.Lock()
	l.account(namespace).standing.stale = true
	l.mu.Unlock()
	l.enqueue(namespace, countDelay)
}

// stale reports whether the objects of a namespace wait to be counted.
func (l *Ledger) stale(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[namespace]
	return a != nil && a.standing.stale
}

// doubtful reports whether objects have to be counted before a write is refused: a server that was killed may have
// left the usage of a write that it did not commit.
func (a *account) doubtful() bool {
	s := a.know(nil)
	return s.stale || time.Since(s.counted) > writeTime
}

// readFence reads the fence of the namespace.
func (a *account) readFence(ctx context.Context) error {
	if a.ledger.fence == nil {
		return nil
	}
	fence, err := a.ledger.fence(ctx, a.namespace)
	if err == nil {
		a.know(func(s *standing) { s.fence, s.looked = fence, true })
	}
	return err
}

// raiseFence raises the fence of the namespace. Without fences no other server reserves anything.
func (a *account) raiseFence(ctx context.Context) error {
	if a.ledger.raise == nil {
		a.know(func(s *standing) { s.fence, s.raised, s.looked = 0, math.MaxInt64, false })
		return nil
	}
	fence, err := a.ledger.raise(ctx, a.namespace)
	if err == nil {
		a.know(func(s *standing) { s.fence, s.raised, s.looked = fence, fence, true })
	}
	return err
}

// task is a charge to reserve or to give back, or a count, for which a goroutine waits.
type task struct {
	charge *charge // nil: count the objects
	back   bool    // give the charge back
	done   chan struct{}
	err    error
	again  time.Duration // after a count: when to count again, because writes are under way
}

func newTask(c *charge, back bool) *task {
	return &task{charge: c, back: back, done: make(chan struct{}), err: errUnsettled}
}

// raises reports whether a task reserves a charge.
func (t *task) raises() bool { return t.charge != nil && !t.back }

// errUnsettled is the error of a task that was not completed.
var errUnsettled = errors.New("the usage of the quotas of the namespace could not be updated")

// do completes a task: the goroutine that settles next does it, which may be this one.
func (a *account) do(ctx context.Context, t *task) error {
	a.ledger.mu.Lock()
	a.waiting = append(a.waiting, t)
	a.ledger.mu.Unlock()
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ctx.Err() // a charge that is reserved nevertheless is given back when its write has ended
	case a.turn <- struct{}{}:
	}
	a.settle(ctx)
	<-t.done // completed by settle, or by the goroutine that settled before
	return t.err
}

// ended keeps or gives back the charge of a task, whose write has ended.
func (a *account) ended(ctx context.Context, t *task, written, certain bool) {
	a.ledger.mu.Lock()
	t.charge.ended = true
	a.ledger.mu.Unlock()
	completed := false
	select {
	case <-t.done:
		completed = true
	default:
	}
	switch {
	case completed && (t.err != nil || t.charge.dryRun): // nothing is reserved
	case written || !certain && a.ledger.stored(ctx, t.charge):
		a.keep(t.charge)
	case !certain: // the object may be stored until the fence is raised
		a.keep(t.charge)
		a.know(func(s *standing) { s.raised = doubted })
		a.ledger.count(a.namespace)
	default:
		_ = a.do(ctx, newTask(t.charge, true)) // after an error the next count corrects the usage
	}
}

// keep leaves the usage of a charge in the quotas.
func (a *account) keep(c *charge) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	delete(a.underWay, c)
}

// settleTime bounds settle; a healthy store needs less.
const settleTime = 10 * time.Second

// settle completes all waiting tasks. The caller has put its token into turn, which settle takes out.
func (a *account) settle(ctx context.Context) {
	defer func() {
		if len(a.ledger.of(a.namespace)) == 0 { // the last quota was deleted meanwhile
			a.ledger.forget(a.namespace)
		}
		<-a.turn
	}()
	tasks, underWay := a.begin()
	if len(tasks) == 0 {
		return
	}
	defer a.finish(tasks)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime) // the tasks of other writers must not end with this one
	defer cancel()
	// Decreases and increases are written separately, so that other servers see how much was added, see increase.
	lower, raise := split(tasks)
	a.lower(ctx, lower, underWay)
	if !a.rounds(ctx, raise, underWay) {
		return
	}
	var refused []*task
	for _, t := range raise {
		if t.err != nil {
			refused = append(refused, t)
		} else if !t.charge.dryRun {
			underWay[t.charge] = true
		}
	}
	if len(refused) > 0 && a.doubtful() {
		a.lower(ctx, []*task{newTask(nil, false)}, underWay)
		a.rounds(ctx, refused, underWay)
	}
}

// begin returns the waiting tasks and the charges that are under way. It completes tasks whose writers are gone.
func (a *account) begin() (tasks []*task, underWay map[*charge]bool) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	for _, t := range a.waiting {
		if t.raises() && t.charge.ended {
			close(t.done)
			continue
		}
		tasks = append(tasks, t)
	}
	a.waiting = nil
	return tasks, maps.Clone(a.underWay)
}

// lower completes tasks that count or give back.
func (a *account) lower(ctx context.Context, tasks []*task, underWay map[*charge]bool) {
	if slices.ContainsFunc(tasks, func(t *task) bool { return t.charge == nil }) {
		a.know(func(s *standing) { s.stale, s.counted = false, time.Now() }) // what changes from now on makes it stale again
	}
	a.rounds(ctx, tasks, underWay)
	for _, t := range tasks {
		delete(underWay, t.charge)
	}
}

func split(tasks []*task) (lower, raise []*task) {
	for _, t := range tasks {
		if t.raises() {
			raise = append(raise, t)
		} else {
			lower = append(lower, t)
		}
	}
	return lower, raise
}

// rounds tries to complete tasks until no other server interferes. It returns false after an error of the store: no
// task is decided then, and none is refused.
func (a *account) rounds(ctx context.Context, tasks []*task, underWay map[*charge]bool) bool {
	for len(tasks) > 0 {
		r := &round{account: a, tasks: tasks, underWay: underWay}
		err := r.run(ctx)
		if err == nil {
			return true
		}
		if errors.Is(err, errChanged) && ctx.Err() == nil {
			continue
		}
		if errors.Is(err, errChanged) {
			err = errUnsettled
		}
		for _, t := range tasks {
			t.err = err
		}
		a.ledger.count(a.namespace) // the statuses may hold charges of this round
		return false
	}
	return true
}

// finish wakes the goroutines that wait for tasks. Reserved charges are under way from now on, those that were given
// back are not any more.
func (a *account) finish(tasks []*task) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	for _, t := range tasks {
		switch {
		case t.charge == nil:
		case t.back:
			delete(a.underWay, t.charge)
		case t.err == nil && !t.charge.dryRun:
			a.underWay[t.charge] = true
		}
		close(t.done)
	}
}
