package quota

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/storage"
)

// round is an attempt to complete tasks of a namespace. It decides on the tasks by the present quotas and then updates
// their statuses. If a quota has changed meanwhile, the round returns errChanged and its decisions are void.
type round struct {
	*account
	tasks    []*task
	underWay map[*charge]bool
	fence    storage.Revision // of the namespace
	pages    []*page
}

// page is a quota in a round.
type page struct {
	*snapshot
	used Amounts             // the new status.used
	held map[*charge]Amounts // the parts of used that belong to charges
	made storage.Revision    // of the quota after the update
}

// errChanged is the error of a round that must be repeated, because a quota has changed or the fence was raised.
var errChanged = errors.New("the quota has changed")

func (r *round) run(ctx context.Context) error {
	quotas := r.ledger.of(r.namespace)
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for _, q := range quotas {
		p, err := r.page(ctx, q)
		if err != nil {
			return err
		}
		r.pages = append(r.pages, p)
	}
	for _, t := range r.tasks {
		t.err = nil
		if t.reserves() {
			t.err = r.decide(t.charge)
		}
	}
	for _, p := range r.pages {
		if err := r.write(ctx, p); err != nil {
			return err
		}
		r.keep(p)
	}
	return nil
}

// prepare sets the precondition of the charges to reserve to the present fence. It reads the fence from the store if it
// is not known or may have been raised.
func (r *round) prepare(ctx context.Context) error {
	s := r.updateState(nil)
	if !s.looked || slices.ContainsFunc(r.tasks, func(t *task) bool { return t.charge != nil && (t.charge.retry || len(t.charge.reserved) > 0) }) {
		if err := r.readFence(ctx); err != nil {
			return err
		}
		s = r.updateState(nil)
	}
	r.fence = s.fence
	for _, t := range r.tasks {
		if t.reserves() {
			t.charge.fence = r.fence
		}
	}
	return nil
}

// page returns the page of a quota. Its usage includes the charges under way. It excludes the charges of the tasks,
// which the round releases or reserves again. The objects are counted if a task is a count or the status is incomplete.
func (r *round) page(ctx context.Context, q *snapshot) (*page, error) {
	p := &page{snapshot: q, used: maps.Clone(q.used), held: map[*charge]Amounts{}, made: q.revision}
	for c := range r.underWay {
		r.loadReservation(p, c)
	}
	counts := !q.complete
	for _, t := range r.tasks {
		if t.charge == nil {
			counts = true
		} else if !r.loadReservation(p, t.charge) && t.back {
			r.ledger.count(r.namespace) // the status may still contain the charge
		}
	}
	if counts {
		if err := r.count(ctx, p); err != nil {
			return nil, err
		}
	}
	for _, t := range r.tasks {
		if t.charge != nil {
			p.release(t.charge)
		}
	}
	return p, nil
}

// loadReservation adds the charge's reservation in a quota to the page and returns true. It returns false if the fence
// was raised after the reservation, because the server that raised it may have counted without the charge; then the
// charge's part of the usage is not known. When the round releases a charge, it has read the fence after the quotas, so
// that it does not release usage that another server has already removed.
func (r *round) loadReservation(p *page, c *charge) (known bool) {
	h, held := c.reserved[p.uid]
	if held && h.since < r.fence {
		return false
	}
	p.held[c] = h.amounts
	return true
}

// release subtracts a charge from the usage, at most to zero.
func (p *page) release(c *charge) {
	for name, n := range p.held[c] {
		if now, ok := p.used[name]; ok {
			p.used[name] = atLeastZero(now.Sub(n))
		}
	}
	delete(p.held, c)
}

func atLeastZero(n meta.Quantity) meta.Quantity {
	if n.Sign() < 0 {
		return number(0)
	}
	return n
}

// reserve adds the demand of a charge to the usage.
func (p *page) reserve(c *charge, demand Amounts) {
	for name, n := range demand {
		p.used[name] = p.used[name].Add(n)
	}
	p.held[c] = demand
}

// decide adds a charge to all quotas that count it. If a quota refuses it, decide changes no quota and returns the
// refusal. A dry run adds nothing.
func (r *round) decide(c *charge) error {
	for _, p := range r.pages {
		if p.matches(c.resource, c.object) {
			if err := p.unspecified(c.resource, c.object); err != nil {
				return err
			}
		}
	}
	demands := make([]Amounts, len(r.pages))
	for i, p := range r.pages {
		demands[i] = p.demand(c)
		if err := p.check(demands[i], p.used); err != nil {
			return err
		}
	}
	for i, p := range r.pages {
		if len(demands[i]) > 0 && !c.dryRun {
			p.reserve(c, demands[i])
		}
	}
	return nil
}

// count sets the usage to the sum of the stored objects, of this server's charges whose objects are not stored yet, and
// of the writes that other servers may have under way.
func (r *round) count(ctx context.Context, p *page) error {
	for name := range p.used {
		p.used[name] = number(0)
	}
	for of := range p.names {
		there, err := r.countObjects(ctx, p, of)
		if err != nil {
			return err
		}
		for c := range p.held {
			if c.resource != of {
				continue
			}
			now := there(c.key)
			if c.fence != r.fence || c.old == nil && now != nil || c.old != nil && (now == nil || now.ResourceVersion() != c.old.ResourceVersion()) {
				delete(p.held, c) // the object is counted, or can no longer be stored
				continue
			}
			p.reserve(c, p.demand(c))
			r.countAfter(underWayDelay)
		}
	}
	raised := r.updateState(nil).raised
	if !p.complete { // writes that began before the quota existed have no reservation
		r.countAfter(underWayDelay)
		if raised > p.revision {
			return nil
		}
		return r.raise(ctx)
	}
	return r.countOthers(ctx, p, raised)
}

// countOthers adds the usage that other servers may have under way to the counted usage, up to status.used. While
// recent reservations explain the difference, status.used does not change. It is lowered only if all reservations
// since the fence was raised are known and recent; otherwise countOthers raises the fence and returns errChanged.
func (r *round) countOthers(ctx context.Context, p *page, raised storage.Revision) error {
	since, lately, known := p.otherReservations(raised)
	for name, low := range p.used {
		stated, most := p.snapshot.used[name], low.Add(lately[name])
		switch {
		case low.Cmp(stated) >= 0:
			continue
		case most.Cmp(stated) >= 0:
			most = stated
		case !known || since[name].Cmp(lately[name]) > 0:
			return r.raise(ctx)
		default:
			most = low.Add(since[name])
		}
		if p.used[name] = most; low.Cmp(most) < 0 {
			r.countAfter(writeTime)
		}
	}
	return nil
}

// raise raises the fence and returns errChanged, so that another round begins.
func (r *round) raise(ctx context.Context) error {
	if err := r.raiseFence(ctx); err != nil {
		return err
	}
	return errChanged
}

// countAfter makes the tasks request another count after a time.
func (r *round) countAfter(after time.Duration) {
	for _, t := range r.tasks {
		t.again = max(t.again, after)
	}
}

// countObjects adds the usage of the objects of a resource to the page. find returns an object by its key, or nil.
func (r *round) countObjects(ctx context.Context, p *page, of meta.GroupResource) (find func(meta.Key) *meta.Object, err error) {
	there := map[string]*meta.Object{}
	find = func(k meta.Key) *meta.Object { return there[k.Name] }
	if t := r.ledger.typeOf(of); t == nil || t.Virtual {
		return find, nil
	}
	list, err := r.ledger.client.List(ctx, of, r.namespace)
	var damaged *client.UnreadableError
	if err != nil && !errors.As(err, &damaged) {
		return nil, err
	}
	for _, o := range list {
		there[o.Name()] = o
	}
	if damaged != nil { // an unreadable object counts as an empty object
		for _, key := range damaged.Keys {
			list = append(list, meta.NewObject(nil))
			there[key.Name] = meta.NewObject(nil)
		}
	}
	if r.ledger.naming.countsOnly(of) && len(p.selectors) == 0 {
		for _, name := range p.names[of] {
			p.used[name] = number(int64(len(list)))
		}
		return find, nil
	}
	for _, o := range list {
		for name, n := range p.usage(of, o) {
			p.used[name] = p.used[name].Add(n)
		}
	}
	return find, nil
}

// write updates the status of a quota. If the quota has changed since the snapshot, it returns errChanged.
func (r *round) write(ctx context.Context, p *page) error {
	if p.complete && maps.EqualFunc(p.used, p.snapshot.used, meta.Quantity.Equal) {
		return nil
	}
	written, err := r.ledger.client.Update(ctx, quotas, p.key, "status", func(o *meta.Object) error {
		if now := newSnapshot(p.naming, o); now.version != p.version || now.uid != p.uid || !p.same(now) {
			return errChanged
		}
		if !p.complete {
			o.Set(meta.Clone(o.Map("spec", "hard")), "status", "hard")
			o.Delete("status", "used")
		}
		for name, n := range p.used {
			if !p.complete || !n.Equal(p.snapshot.used[name]) {
				o.Set(n.String(), "status", "used", name)
			}
		}
		return nil
	})
	switch {
	case err == nil:
		return p.recordWrite(written)
	case meta.IsNotFound(err):
		if _, gone := r.ledger.client.Get(ctx, quotas, p.key); meta.IsNotFound(gone) {
			return errChanged
		}
	}
	return err
}

// recordWrite records the new revision of a quota. If the update raised the usage, it also records the version as this
// server's own.
func (p *page) recordWrite(q *meta.Object) error {
	revision, err := strconv.ParseInt(q.ResourceVersion(), 10, 64)
	if err != nil {
		return err
	}
	p.made = storage.Revision(revision)
	before := p.snapshot.used
	if !p.complete {
		before = nil
	}
	for name, n := range p.used {
		if n.Cmp(before[name]) > 0 {
			p.own.add(q.ResourceVersion())
			break
		}
	}
	return nil
}

// keep records the reservation of each charge in a quota.
func (r *round) keep(p *page) {
	for c := range r.underWay {
		r.keepCharge(p, c)
	}
	for _, t := range r.tasks {
		if t.charge != nil {
			r.keepCharge(p, t.charge)
		}
	}
}

func (r *round) keepCharge(p *page, c *charge) {
	h, held := c.reserved[p.uid]
	void := held && h.since < r.fence
	switch amounts := p.held[c]; {
	case len(amounts) > 0 && held && !void:
		c.reserved[p.uid] = reservation{amounts, h.since}
	case len(amounts) > 0:
		c.reserved[p.uid] = reservation{amounts, p.made}
	case !void: // a void reservation stays, so that a later release recognizes it
		delete(c.reserved, p.uid)
	}
}
