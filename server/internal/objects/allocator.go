package objects

import (
	"context"
	"slices"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/watch"
)

// allocator knows which values the objects of a type hold of which each is one
// object's alone: those of its registry.Pool and of its unique fields. It knows of
// the objects in the cache, which the feed tells of, and of writes under way here. A
// value that looks free is chosen by it; that it is, the commit decides, see
// Store.reservations.
//
// A value is known by its claim: what it is of, and the value.
type allocator struct {
	t *registry.Type
	sync.Mutex
	feed     *watch.Feed
	held     map[string][]meta.Key // by whom
	reserved map[string]int        // by how many writes
}

// newAllocator returns the allocator of a type, nil if it needs none.
func newAllocator(hub *watch.Hub, t *registry.Type) *allocator {
	if t.Pool == nil && !t.Hub.Schema.HasUnique() {
		return nil
	}
	return &allocator{t: t, feed: hub.Feed(t.GroupResource()), held: map[string][]meta.Key{}, reserved: map[string]int{}}
}

// claims returns what an object of the hub, or nil, holds, each once and
// in order.
func (p *allocator) claims(obj *meta.Object) []string {
	if obj == nil {
		return nil
	}
	claims := p.pooled(obj)
	for _, v := range p.t.Hub.Schema.UniqueValues(obj.Tree()) {
		claims = append(claims, uniqueClaim(obj, v))
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// pooled returns the claims of an object to values of the pool.
func (p *allocator) pooled(obj *meta.Object) (claims []string) {
	if p.t.Pool == nil {
		return nil
	}
	for _, value := range p.t.Pool.Held(obj) {
		claims = append(claims, registry.PoolClaim(value))
	}
	return claims
}

func uniqueClaim(obj *meta.Object, v schema.UniqueValue) string {
	namespace := obj.Namespace()
	if v.Scope == schema.UniqueInCluster {
		namespace = ""
	}
	return "unique/" + namespace + "/" + v.Field + v.Text
}

// allot lets the kind give obj what it lacks of the pool, and nothing that was found
// to be another's. What obj holds then is reserved until release is called, which must be
// after the write is through.
func (p *allocator) allot(obj, live *meta.Object, refused []string) (release func(), causes []meta.Cause, err error) {
	p.Lock()
	defer p.Unlock()
	p.catchUp()
	var own []string
	if live != nil {
		own = p.pooled(live)
	}
	causes, err = p.t.Pool.Allot(obj, live, func(v string) bool {
		claim := registry.PoolClaim(v)
		return slices.Contains(own, claim) || len(p.held[claim]) == 0 && p.reserved[claim] == 0 && !slices.Contains(refused, claim)
	})
	if err != nil || len(causes) > 0 {
		return func() {}, causes, err
	}
	claims := p.pooled(obj)
	p.reserve(claims, 1)
	return func() {
		p.Lock()
		defer p.Unlock()
		p.reserve(claims, -1)
	}, nil, nil
}

func (p *allocator) reserve(claims []string, n int) {
	for _, c := range claims {
		if p.reserved[c] += n; p.reserved[c] == 0 {
			delete(p.reserved, c)
		}
	}
}

// heldByOthers reports whether objects hold a value that the cache shows, but the
// one of a key.
func (p *allocator) heldByOthers(claim string, key meta.Key) bool {
	p.Lock()
	defer p.Unlock()
	p.catchUp()
	return slices.ContainsFunc(p.held[claim], func(k meta.Key) bool { return k != key })
}

// catchUp takes in what changed since the last call.
func (p *allocator) catchUp() {
	changes, reset := p.feed.Changes()
	if reset {
		clear(p.held)
	}
	for c := range changes {
		for _, claim := range p.claims(c.Old) {
			keys := slices.DeleteFunc(p.held[claim], func(k meta.Key) bool { return k == c.Key })
			if p.held[claim] = keys; len(keys) == 0 {
				delete(p.held, claim)
			}
		}
		for _, claim := range p.claims(c.Object) {
			p.held[claim] = append(p.held[claim], c.Key)
		}
	}
}

// duplicates returns a cause for each unique value of obj that another object holds.
// Those that live holds already it keeps.
func (s *Store) duplicates(ctx context.Context, w *Write, obj, live *meta.Object) ([]meta.Cause, error) {
	p := s.allocators[w.Version.GroupResource()]
	values := w.Version.Hub.Schema.UniqueValues(obj.Tree())
	if p == nil || len(values) == 0 {
		return nil, nil
	}
	var causes []meta.Cause
	kept := p.claims(live)
	for _, v := range values {
		claim := uniqueClaim(obj, v)
		if _, found := slices.BinarySearch(kept, claim); found {
			continue
		}
		other := slices.Contains(w.refusedClaims, claim)
		if !other && p.heldByOthers(claim, w.Key) {
			// Another server may have freed the value.
			newest, err := s.o.Backend.Revision(ctx)
			if err == nil {
				err = s.o.Hub.Wait(ctx, newest)
			}
			if err != nil {
				return nil, err
			}
			other = p.heldByOthers(claim, w.Key)
		}
		if other {
			causes = append(causes, v.Duplicate())
		}
	}
	return causes, nil
}
