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

// account is the state of a namespace in this server. It is removed when it has no users and its state is zero.
type account struct {
	ledger    *Ledger
	namespace string
	lock      chan struct{} // a mutex as a channel of capacity 1, for use in select; held by process

	// Guarded by Ledger.mu.
	users    int // writes and counts in progress
	waiting  []*task
	underWay map[*charge]bool // reserved charges of writes that have not ended
	state    namespaceState
}

// namespaceState is the server's knowledge of a namespace with quotas.
type namespaceState struct {
	stale   bool             // status.used may be too high: the objects must be counted
	counted time.Time        // time of this server's last count
	looked  bool             // fence is valid
	fence   storage.Revision // of the namespace, as last read
	raised  storage.Revision // of the fence when this server last raised it; or unknownReservations
}

// unknownReservations is a value of raised below each revision of a fence. It prevents status.used from being lowered
// before the fence is raised again, because the server does not know all reservations since the last time.
const unknownReservations = -1

// account returns the account of a namespace, and creates it if necessary. Ledger.mu is held.
func (l *Ledger) account(namespace string) *account {
	a := l.accounts[namespace]
	if a == nil {
		a = &account{ledger: l, namespace: namespace, lock: make(chan struct{}, 1), underWay: map[*charge]bool{}}
		l.accounts[namespace] = a
	}
	return a
}

// open returns the account of a namespace and adds a user to it. The caller must call close.
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

// drop removes the account if it is unused and its state is zero. Ledger.mu is held.
func (a *account) drop() {
	if a.users == 0 && a.state == (namespaceState{}) {
		delete(a.ledger.accounts, a.namespace)
	}
}

// updateState calls change, which may be nil, with Ledger.mu held, and returns a copy of the state.
func (a *account) updateState(change func(*namespaceState)) namespaceState {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if change != nil {
		change(&a.state)
	}
	return a.state
}

// forget clears the state of a namespace after its last quota was deleted.
func (l *Ledger) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[namespace]; a != nil {
		a.state = namespaceState{}
		a.drop()
	}
}

// count schedules a count of the objects of a namespace. The count serves all calls until it starts. A write that
// would be refused counts first.
func (l *Ledger) count(namespace string) {
	l.mu.Lock()
	l.account(namespace).state.stale = true
	l.mu.Unlock()
	l.enqueue(namespace, countDelay)
}

// stale reports whether a count of the namespace is scheduled.
func (l *Ledger) stale(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[namespace]
	return a != nil && a.state.stale
}

// mustCount reports whether a write may be refused only after a count. status.used may be too high because objects were
// deleted, or because a server that was killed left the usage of a write that it did not commit.
func (a *account) mustCount() bool {
	s := a.updateState(nil)
	return s.stale || time.Since(s.counted) > writeTime
}

// readFence updates namespaceState.fence from the store.
func (a *account) readFence(ctx context.Context) error {
	if a.ledger.fence == nil {
		return nil
	}
	fence, err := a.ledger.fence(ctx, a.namespace)
	if err == nil {
		a.updateState(func(s *namespaceState) { s.fence, s.looked = fence, true })
	}
	return err
}

// raiseFence raises the fence of the namespace. If the Ledger has no fences, no other server reserves usage, so all
// reservations are known.
func (a *account) raiseFence(ctx context.Context) error {
	if a.ledger.raise == nil {
		a.updateState(func(s *namespaceState) { s.fence, s.raised, s.looked = 0, math.MaxInt64, false })
		return nil
	}
	fence, err := a.ledger.raise(ctx, a.namespace)
	if err == nil {
		a.updateState(func(s *namespaceState) { s.fence, s.raised, s.looked = fence, fence, true })
	}
	return err
}

// task reserves a charge, releases a charge, or counts the objects. A goroutine waits for it.
type task struct {
	charge *charge // nil for a count
	back   bool    // release the charge
	done   chan struct{}
	err    error         // result, valid after done is closed
	again  time.Duration // after a count: the time until the next count, because writes are under way; else zero
}

func newTask(c *charge, back bool) *task {
	return &task{charge: c, back: back, done: make(chan struct{}), err: errNotUpdated}
}

// reserves reports whether a task reserves a charge.
func (t *task) reserves() bool { return t.charge != nil && !t.back }

// errNotUpdated is the error of a task that was not completed.
var errNotUpdated = errors.New("the usage of the quotas of the namespace could not be updated")

// do adds a task to the waiting tasks and returns its result. The goroutine that gets the lock next processes all
// waiting tasks together.
func (a *account) do(ctx context.Context, t *task) error {
	a.ledger.mu.Lock()
	a.waiting = append(a.waiting, t)
	a.ledger.mu.Unlock()
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ctx.Err() // if the charge is reserved later, writeEnded releases it
	case a.lock <- struct{}{}:
	}
	a.process(ctx)
	<-t.done // closed by process, or by the previous holder of the lock
	return t.err
}

// writeEnded keeps or releases the charge of a task after the end of its write. written reports whether the object was
// stored; if certain is false, that is not known.
func (a *account) writeEnded(ctx context.Context, t *task, written, certain bool) {
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
	case completed && (t.err != nil || t.charge.dryRun): // no reservation
	case written || !certain && a.ledger.stored(ctx, t.charge):
		a.keep(t.charge)
	case !certain: // the object may still be stored until the fence is raised
		a.keep(t.charge)
		a.updateState(func(s *namespaceState) { s.raised = unknownReservations })
		a.ledger.count(a.namespace)
	default:
		_ = a.do(ctx, newTask(t.charge, true)) // if this fails, the next count corrects the usage
	}
}

// keep ends the tracking of a charge. Its usage stays in the quotas.
func (a *account) keep(c *charge) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	delete(a.underWay, c)
}

// processTimeout bounds process; a healthy store needs less.
const processTimeout = 10 * time.Second

// process completes all waiting tasks. The caller holds the lock, and process releases it.
func (a *account) process(ctx context.Context) {
	defer func() {
		if len(a.ledger.of(a.namespace)) == 0 { // the last quota was deleted meanwhile
			a.ledger.forget(a.namespace)
		}
		<-a.lock
	}()
	tasks, underWay := a.begin()
	if len(tasks) == 0 {
		return
	}
	defer a.finish(tasks)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), processTimeout) // other writers' tasks must not fail with this writer's context
	defer cancel()
	// Write decreases and increases separately, so that other servers see how much was added, see increase.
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
	if len(refused) > 0 && a.mustCount() {
		a.lower(ctx, []*task{newTask(nil, false)}, underWay)
		a.rounds(ctx, refused, underWay)
	}
}

// begin removes and returns the waiting tasks, and returns a copy of the charges that are under way. It closes the tasks of
// writes that have already ended.
func (a *account) begin() (tasks []*task, underWay map[*charge]bool) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	for _, t := range a.waiting {
		if t.reserves() && t.charge.ended {
			close(t.done)
			continue
		}
		tasks = append(tasks, t)
	}
	a.waiting = nil
	return tasks, maps.Clone(a.underWay)
}

// lower completes counts and releases. It removes released charges from underWay.
func (a *account) lower(ctx context.Context, tasks []*task, underWay map[*charge]bool) {
	if slices.ContainsFunc(tasks, func(t *task) bool { return t.charge == nil }) {
		a.updateState(func(s *namespaceState) { s.stale, s.counted = false, time.Now() }) // before the count, so that a later change sets stale again
	}
	a.rounds(ctx, tasks, underWay)
	for _, t := range tasks {
		delete(underWay, t.charge)
	}
}

// split separates the tasks that reserve charges from the others.
func split(tasks []*task) (lower, raise []*task) {
	for _, t := range tasks {
		if t.reserves() {
			raise = append(raise, t)
		} else {
			lower = append(lower, t)
		}
	}
	return lower, raise
}

// rounds runs rounds until a round completes the tasks without interference of another server. After an error of the
// store it sets the error of all tasks, schedules a count and returns false.
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
			err = errNotUpdated
		}
		for _, t := range tasks {
			t.err = err
		}
		a.ledger.count(a.namespace) // the statuses may contain charges of this round
		return false
	}
	return true
}

// finish adds reserved charges to underWay, removes released charges, and wakes the goroutines that wait for the tasks.
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
