package quota

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Ledger keeps the statuses of quotas. What a write asks for is counted in
// the statuses of its quotas before it is made, by compare-and-swap: so servers over one
// store see what others took. The writes of one namespace that wait are settled together,
// with one write of each status.
//
// Who counts what is used forgets what was taken for a write that was not made, and cannot
// tell it from one that is still to come. So each write rests on the fence of its namespace
// as it was before anything was taken for it, and who forgets raises the fence and then looks
// at what is there: what was taken before the fence was raised is there, or never will be.
type Ledger struct {
	client  client.Client // reads what is there by now, and writes statuses also while others wait to be admitted
	served  func(meta.GroupResource) *registry.Type
	terms   terms
	limited []Limited
	book    *client.Index[book]
	ask     func(namespace string, after time.Duration) // that what is used is counted

	fence, raise func(ctx context.Context, namespace string) (storage.Revision, error) // see admission.Env; nil: nobody else counts

	mu        sync.Mutex           // guards what follows, and what accounts say is theirs
	accounts  map[string]*account  // by namespace; those that somebody uses
	standings map[string]*standing // by namespace; those that have quotas
}

// NewLedger returns the Ledger of a server, which runs its controller. Objects of limited resources need a quota.
func NewLedger(env admission.Env, limited []Limited) *Ledger {
	c := env.Admitted
	if c == nil {
		c = env.Client
	}
	l := &Ledger{
		client: c, served: env.Type, terms: newTerms(env.Names, env.Features), limited: limited, accounts: map[string]*account{}, standings: map[string]*standing{},
		fence: env.Fence, raise: env.RaiseFence,
	}
	l.book = client.NewIndex(env.Client, []meta.GroupResource{quotas}, func() book { return book{} }, func(b book, e client.Event) {
		if b.apply(&l.terms, e); len(b[e.Key.Namespace]) == 0 {
			l.forget(e.Key.Namespace)
		}
	})
	l.ask = func(string, time.Duration) {}
	if env.Control != nil {
		l.ask = env.Control(l.controller())
	}
	return l
}

// account is what is under way in one namespace.
type account struct {
	ledger    *Ledger
	namespace string
	turn      chan struct{} // holds one token: of who settles

	// Guarded by Ledger.mu.
	users    int // writes and counts that have not ended
	waiting  []*task
	underWay map[*charge]bool // those that were taken and have not ended
}

// charge is what one write takes of the quotas of its namespace.
type charge struct {
	resource    meta.GroupResource
	key         meta.Key
	object, old *meta.Object // old is nil if the object is new
	dryRun      bool
	again       bool             // was admitted before, in vain: maybe since another server raised the fence
	fence       storage.Revision // that the write rests on; known before anything is taken

	ended bool // guarded by Ledger.mu

	held map[string]hold // what the statuses hold for it, by uids of quotas; of who settles
}

// hold is what a status holds for a charge.
type hold struct {
	amounts Amounts
	taken   storage.Revision // of the quota that held it first
}

// task is what somebody waits for.
type task struct {
	charge *charge // nil: what is used is counted anew
	back   bool    // the charge is given back
	done   chan struct{}
	err    error
	again  time.Duration // of a count that is not the last word: when the next one is due
}

func newTask(c *charge, back bool) *task {
	return &task{charge: c, back: back, done: make(chan struct{}), err: errBroken}
}

// errBroken is the error of a task that nobody finished.
var errBroken = errors.New("the quotas of the namespace could not be settled")

// of returns the quotas of a namespace.
func (l *Ledger) of(namespace string) (list []*bounds) {
	if l.served(quotas) != nil {
		l.book.Read(func(b book) { list = b.of(namespace) })
	}
	return list
}

// concerned reports whether a quota of a namespace counts objects of a resource.
func (l *Ledger) concerned(namespace string, r meta.GroupResource) (any bool) {
	if l.served(quotas) == nil {
		return false
	}
	l.book.Read(func(b book) {
		for _, q := range b[namespace] {
			any = any || len(q.names[r]) > 0
		}
	})
	return any
}

// Admit lets a write pass that the quotas of its namespace allow, and has them counted if
// it frees some of what is used.
func (l *Ledger) Admit(ctx context.Context, r *admission.Request) error {
	if r.Type != nil && r.Type.Virtual {
		return nil
	}
	if !r.DryRun && l.lowers(r) {
		r.After(func(committed bool) {
			if committed {
				l.count(r.Namespace)
			}
		})
	}
	if r.Operation == admission.Create || r.Operation == admission.Update && mayGrow(r) {
		return l.take(ctx, r)
	}
	return nil
}

// mayGrow reports whether an update can raise what an object uses. What goes is let go, but
// does not grow before.
func mayGrow(r *admission.Request) bool {
	switch resource := r.Resource.GroupResource(); {
	case r.Old.Terminating() && meta.Equal(r.Old.Map("spec"), r.Object.Map("spec")):
		return false
	case resource == pods:
		// With a deadline it counts in other quotas; what else scopes look at does not change.
		return r.Subresource == "resize" ||
			r.Subresource == "" && ends(meta.NewObject(r.Old.Map("spec"))) != ends(meta.NewObject(r.Object.Map("spec")))
	default:
		return (resource == services || resource == claims) && r.Subresource == ""
	}
}

// take counts what a write asks for, until it has ended, or returns why it may not have
// that. Of several quotas that one object counts in all take it or none does.
func (l *Ledger) take(ctx context.Context, r *admission.Request) error {
	resource := r.Resource.GroupResource()
	limited := l.limits(resource)
	if !limited && !l.concerned(r.Namespace, resource) {
		return nil
	}
	c := &charge{
		resource: resource, key: meta.Key{Namespace: r.Namespace, Name: r.Name}, object: r.Object, old: r.Old, dryRun: r.DryRun, again: r.Attempt > 0, held: map[string]hold{},
	}
	all := l.of(r.Namespace)
	if limited {
		if err := l.uncovered(c, all); err != nil {
			return err
		}
	}
	if !c.asks(all) {
		return nil
	}
	c.object = l.terms.extract(resource, r.Object) // others look at it when the writer goes on
	t, a := newTask(c, false), l.open(r.Namespace)
	r.After(func(committed bool) {
		defer l.close(a)
		a.ended(context.WithoutCancel(ctx), t, committed, r.Uncertain)
	})
	switch err := a.do(ctx, t); {
	case errors.Is(err, errBroken):
		return meta.Internal(errBroken) // no refusal: nobody knows what is used
	case err != nil:
		return err
	}
	if l.fence != nil && (r.Fence == nil || c.fence < *r.Fence) { // the oldest one holds for all who say so
		r.Fence = &c.fence
	}
	return nil
}

// asks reports whether the write may raise what is used of a quota, or be refused by one.
func (c *charge) asks(all []*bounds) bool {
	for _, q := range all {
		if q.matches(c.resource, c.object) && (len(q.demand(c)) > 0 || q.unsaid(c.resource, c.object) != nil) {
			return true
		}
	}
	return false
}

func (l *Ledger) open(namespace string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[namespace]
	if a == nil {
		a = &account{ledger: l, namespace: namespace, turn: make(chan struct{}, 1), underWay: map[*charge]bool{}}
		l.accounts[namespace] = a
	}
	a.users++
	return a
}

func (l *Ledger) close(a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(l.accounts, a.namespace)
	}
}

// do has a task done: by whoever settles next, maybe the caller himself.
func (a *account) do(ctx context.Context, t *task) error {
	a.ledger.mu.Lock()
	a.waiting = append(a.waiting, t)
	a.ledger.mu.Unlock()
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ctx.Err() // what may be taken nevertheless is given back when the write has ended
	case a.turn <- struct{}{}:
	}
	a.settle(ctx)
	<-t.done // by this turn or one before
	return t.err
}

// ended is told that the write of a task has ended, and whether it was made or that is uncertain.
func (a *account) ended(ctx context.Context, t *task, committed, uncertain bool) {
	a.ledger.mu.Lock()
	t.charge.ended = true
	a.ledger.mu.Unlock()
	decided := false
	select {
	case <-t.done:
		decided = true
	default:
	}
	switch {
	case decided && (t.err != nil || t.charge.dryRun): // nothing was taken
	case committed || uncertain && a.ledger.stored(ctx, t.charge):
		a.leave(t.charge)
	case uncertain: // it may be made until the fence is raised
		a.leave(t.charge)
		a.ledger.doubt(a.namespace)
		a.ledger.count(a.namespace)
	default:
		_ = a.do(ctx, newTask(t.charge, true)) // else it is counted anew some time
	}
}

// leave leaves what was taken for a charge counted as it is.
func (a *account) leave(c *charge) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	delete(a.underWay, c)
}

// stored reports whether a new object is there, whatever its writer was told.
func (l *Ledger) stored(ctx context.Context, c *charge) bool {
	if c.old != nil {
		return false
	}
	obj, err := l.client.Get(ctx, c.resource, c.key)
	return err == nil && obj.UID() == c.object.UID()
}

// settleTime bounds one turn, and is longer than any store should need.
const settleTime = 10 * time.Second

// settle does what waits; the caller has the turn, which ends.
func (a *account) settle(ctx context.Context) {
	defer func() {
		if len(a.ledger.of(a.namespace)) == 0 { // the last quota went meanwhile
			a.ledger.forget(a.namespace)
		}
		<-a.turn
	}()
	a.ledger.mu.Lock()
	var tasks []*task
	for _, t := range a.waiting {
		if t.charge != nil && t.charge.ended && !t.back { // nobody waits any more
			close(t.done)
			continue
		}
		tasks = append(tasks, t)
	}
	underWay := maps.Clone(a.underWay)
	a.waiting = nil
	a.ledger.mu.Unlock()
	if len(tasks) == 0 {
		return
	}
	defer a.finish(tasks)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime) // others wait, too
	defer cancel()
	// What lowers and what raises is written apart, so that others see by how much: see rise.
	lower, raise := split(tasks)
	a.lower(ctx, lower, underWay)
	if !a.rounds(ctx, raise, underWay) {
		return // nobody is refused: the store fails
	}
	var refused []*task
	for _, t := range raise {
		if t.err != nil {
			refused = append(refused, t)
		} else if !t.charge.dryRun {
			underWay[t.charge] = true
		}
	}
	if len(refused) > 0 && a.ledger.doubtful(a.namespace) {
		a.lower(ctx, []*task{newTask(nil, false)}, underWay)
		a.rounds(ctx, refused, underWay)
	}
}

// lower does tasks that count or give back.
func (a *account) lower(ctx context.Context, tasks []*task, underWay map[*charge]bool) {
	if slices.ContainsFunc(tasks, func(t *task) bool { return t.charge == nil }) {
		a.ledger.fresh(a.namespace)
	}
	a.rounds(ctx, tasks, underWay)
	for _, t := range tasks {
		delete(underWay, t.charge)
	}
}

func split(tasks []*task) (lower, raise []*task) {
	for _, t := range tasks {
		if t.charge == nil || t.back {
			lower = append(lower, t)
		} else {
			raise = append(raise, t)
		}
	}
	return lower, raise
}

// rounds does tasks in as many rounds as it takes until no other server comes between. It
// reports whether they are decided; else all have an error that is no refusal.
func (a *account) rounds(ctx context.Context, tasks []*task, underWay map[*charge]bool) bool {
	for len(tasks) > 0 {
		r := &round{account: a, tasks: tasks, underWay: underWay}
		err := r.run(ctx)
		if err == nil {
			return true
		}
		if errors.Is(err, errMoved) && ctx.Err() == nil {
			continue
		}
		if errors.Is(err, errMoved) {
			err = errBroken
		}
		for _, t := range tasks {
			t.err = err
		}
		a.ledger.count(a.namespace) // what statuses hold by now is not known
		return false
	}
	return true
}

// finish tells all who wait. What was taken is under way from here on, what was given
// back no more.
func (a *account) finish(tasks []*task) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	for _, t := range tasks {
		if t.charge != nil && t.back {
			delete(a.underWay, t.charge)
		}
		if t.charge != nil && !t.back && t.err == nil && !t.charge.dryRun {
			a.underWay[t.charge] = true
		}
		close(t.done)
	}
}

// Close ends following quotas.
func (l *Ledger) Close() { l.book.Close() }
