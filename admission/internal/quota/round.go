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

// round is one try to do what waits in a namespace. It decides over the quotas as they
// are, and writes what they become; if one has changed by then nothing is decided yet.
type round struct {
	*account
	tasks    []*task
	underWay map[*charge]bool
	fence    storage.Revision // of the namespace
	pages    []*page
}

// page is a quota in a round.
type page struct {
	*bounds
	used Amounts
	held map[*charge]Amounts // what used holds for the charges of the round
	made storage.Revision    // of the quota, when used is written
}

// errMoved says that a quota is not what the round made of it any more, or that the fence was
// raised.
var errMoved = errors.New("the quota has changed")

func (r *round) run(ctx context.Context) error {
	quotas := r.ledger.of(r.namespace)
	if err := r.rest(ctx); err != nil {
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
		if t.charge != nil && !t.back {
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

// rest has the charges that are to be taken rest on the fence as it is.
func (r *round) rest(ctx context.Context) error {
	s := r.ledger.stands(r.namespace)
	if !s.looked || slices.ContainsFunc(r.tasks, func(t *task) bool { return t.charge != nil && (t.charge.again || len(t.charge.held) > 0) }) {
		if err := r.ledger.look(ctx, r.namespace); err != nil {
			return err
		}
		s = r.ledger.stands(r.namespace)
	}
	r.fence = s.fence
	for _, t := range r.tasks {
		if t.charge != nil && !t.back {
			t.charge.fence = r.fence
		}
	}
	return nil
}

// page opens a quota: with what it holds for charges that are under way, and without
// what it holds for those that are given back, or that an earlier try of this turn took.
func (r *round) page(ctx context.Context, q *bounds) (*page, error) {
	p := &page{bounds: q, used: maps.Clone(q.used), held: map[*charge]Amounts{}, made: q.revision}
	for c := range r.underWay {
		r.hold(p, c)
	}
	counts := !q.complete
	for _, t := range r.tasks {
		if t.charge == nil {
			counts = true
		} else if !r.hold(p, t.charge) && t.back {
			r.ledger.count(r.namespace) // the status may hold it all the same
		}
	}
	if counts {
		if err := r.count(ctx, p); err != nil {
			return nil, err
		}
	}
	for _, t := range r.tasks {
		if t.charge != nil {
			p.give(t.charge)
		}
	}
	return p, nil
}

// hold notes what a quota holds for a charge, and reports whether that is known: what was taken
// before the fence was raised is not, since who raised it may have counted without it. Where
// something may be given back the fence is read after the quotas, so that it is not what another
// server gave away already.
func (r *round) hold(p *page, c *charge) (known bool) {
	h, held := c.held[p.uid]
	if held && h.taken < r.fence {
		return false
	}
	p.held[c] = h.amounts
	return true
}

// give takes what is held for a charge off what is used.
func (p *page) give(c *charge) {
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

// take adds what a charge demands to what is used.
func (p *page) take(c *charge, demand Amounts) {
	for name, n := range demand {
		p.used[name] = p.used[name].Add(n)
	}
	p.held[c] = demand
}

// decide takes what a charge demands of every quota, or returns why it may not.
func (r *round) decide(c *charge) error {
	for _, p := range r.pages {
		if p.matches(c.resource, c.object) {
			if err := p.unsaid(c.resource, c.object); err != nil {
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
			p.take(c, demands[i])
		}
	}
	return nil
}

// count finds what is used: by the objects that are there, by what is under way and not
// there yet, and by what other servers may have under way.
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
				delete(p.held, c) // its object is counted, or not stored any more
				continue
			}
			p.take(c, p.demand(c))
			r.again(soon)
		}
	}
	raised := r.ledger.stands(r.namespace).raised
	if !p.complete { // what is under way since before there was a quota was not taken
		r.again(soon)
		if raised > p.revision {
			return nil
		}
		return r.raise(ctx)
	}
	return r.countOthers(ctx, p, raised)
}

// countOthers adds what other servers may have under way, but counts no more than is told.
// While all that is told may be under way since lately, that stays. Less is told only if it is
// known what was taken since the fence was raised.
func (r *round) countOthers(ctx context.Context, p *page, raised storage.Revision) error {
	since, lately, known := p.others(raised)
	for name, low := range p.used {
		told, most := p.bounds.used[name], low.Add(lately[name])
		switch {
		case low.Cmp(told) >= 0:
			continue
		case most.Cmp(told) >= 0:
			most = told
		case !known || since[name].Cmp(lately[name]) > 0:
			return r.raise(ctx)
		default:
			most = low.Add(since[name])
		}
		if p.used[name] = most; low.Cmp(most) < 0 {
			r.again(flight)
		}
	}
	return nil
}

// raise raises the fence, after which the round begins anew.
func (r *round) raise(ctx context.Context) error {
	if err := r.ledger.raiseFence(ctx, r.namespace); err != nil {
		return err
	}
	return errMoved
}

// again has what is counted counted again after some time.
func (r *round) again(after time.Duration) {
	for _, t := range r.tasks {
		t.again = max(t.again, after)
	}
}

// countObjects adds what the objects of a resource use, and returns how to find one.
func (r *round) countObjects(ctx context.Context, p *page, of meta.GroupResource) (find func(meta.Key) *meta.Object, err error) {
	there := map[string]*meta.Object{}
	find = func(k meta.Key) *meta.Object { return there[k.Name] }
	if t := r.ledger.served(of); t == nil || t.Virtual {
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
	if damaged != nil { // they count, whatever they are
		for _, key := range damaged.Keys {
			list = append(list, meta.NewObject(nil))
			there[key.Name] = meta.NewObject(nil)
		}
	}
	if r.ledger.terms.alike(of) && len(p.selectors) == 0 {
		for _, name := range p.names[of] {
			p.used[name] = number(int64(len(list)))
		}
		return find, nil
	}
	for _, o := range list {
		for name, n := range p.use(of, o) {
			p.used[name] = p.used[name].Add(n)
		}
	}
	return find, nil
}

// write makes what is used the status of a quota, if nobody changed that meanwhile.
func (r *round) write(ctx context.Context, p *page) error {
	if p.complete && maps.EqualFunc(p.used, p.bounds.used, meta.Quantity.Equal) {
		return nil
	}
	written, err := r.ledger.client.Update(ctx, quotas, p.key, "status", func(o *meta.Object) error {
		if now := newBounds(p.terms, o); now.version != p.version || now.uid != p.uid || !p.same(now) {
			return errMoved
		}
		if !p.complete {
			o.Set(meta.Clone(o.Map("spec", "hard")), "status", "hard")
			o.Delete("status", "used")
		}
		for name, n := range p.used {
			if !p.complete || !n.Equal(p.bounds.used[name]) {
				o.Set(n.String(), "status", "used", name)
			}
		}
		return nil
	})
	switch {
	case err == nil:
		return p.wrote(written)
	case meta.IsNotFound(err):
		if _, gone := r.ledger.client.Get(ctx, quotas, p.key); meta.IsNotFound(gone) {
			return errMoved
		}
	}
	return err
}

// wrote notes the state of a quota that a round made.
func (p *page) wrote(q *meta.Object) error {
	revision, err := strconv.ParseInt(q.ResourceVersion(), 10, 64)
	if err != nil {
		return err
	}
	p.made = storage.Revision(revision)
	before := p.bounds.used
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

// keep remembers what the status of a quota holds for charges.
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
	h, held := c.held[p.uid]
	void := held && h.taken < r.fence
	switch amounts := p.held[c]; {
	case len(amounts) > 0 && held && !void:
		c.held[p.uid] = hold{amounts, h.taken}
	case len(amounts) > 0:
		c.held[p.uid] = hold{amounts, p.made}
	case !void: // else it is to be known when it comes back
		delete(c.held, p.uid)
	}
}
