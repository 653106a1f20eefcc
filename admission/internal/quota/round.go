package quota

import (
	"context"
	"errors"
	"maps"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/controller"
)

// round is one try to do what waits in a namespace. It decides over the quotas as they
// are, and writes what they become; if one has changed by then nothing is decided yet.
type round struct {
	*account
	tasks    []*task
	underWay map[*charge]bool
	pages    []*page
}

// page is a quota in a round.
type page struct {
	*bounds
	used Amounts
	held map[*charge]Amounts // what used holds for the charges of the round
}

// errMoved says that a quota is not what the round made of it any more.
var errMoved = errors.New("the quota has changed")

func (r *round) run(ctx context.Context) error {
	for _, q := range r.ledger.of(r.namespace) {
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

// page opens a quota: with what it holds for charges that are under way, and without
// what it holds for those that are given back, or that an earlier try of this turn took.
func (r *round) page(ctx context.Context, q *bounds) (*page, error) {
	p := &page{bounds: q, used: maps.Clone(q.used), held: map[*charge]Amounts{}}
	for c := range r.underWay {
		p.held[c] = c.held[q.uid]
	}
	counts := !q.complete
	for _, t := range r.tasks {
		if t.charge == nil {
			counts = true
		} else {
			p.held[t.charge] = t.charge.held[q.uid]
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
// there yet, and, if another server just raised it, by what it may have under way.
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
			if c.old == nil && now != nil || c.old != nil && (now == nil || now.ResourceVersion() != c.old.ResourceVersion()) {
				delete(p.held, c)
				continue
			}
			p.take(c, p.demand(c))
			r.again(soon)
		}
	}
	if !p.complete { // what is under way since before there was a quota was not taken
		r.again(soon)
		return nil
	}
	for name, n := range p.others(r.ledger.own()) {
		low, most := p.used[name], p.used[name].Add(n)
		if told := p.bounds.used[name]; told.Cmp(most) < 0 {
			most = told
		}
		if low.Cmp(most) < 0 {
			p.used[name] = most
			r.again(flight)
		}
	}
	return nil
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
	var damaged *controller.UnreadableError
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
		r.ledger.wrote(written.ResourceVersion())
	case meta.IsNotFound(err):
		if _, gone := r.ledger.client.Get(ctx, quotas, p.key); meta.IsNotFound(gone) {
			return errMoved
		}
	}
	return err
}

// keep remembers what the status of a quota holds for charges.
func (r *round) keep(p *page) {
	for c := range r.underWay {
		c.hold(p)
	}
	for _, t := range r.tasks {
		if t.charge != nil {
			t.charge.hold(p)
		}
	}
}

func (c *charge) hold(p *page) {
	if c.held[p.uid] = p.held[c]; c.held[p.uid] == nil {
		delete(c.held, p.uid)
	}
}
