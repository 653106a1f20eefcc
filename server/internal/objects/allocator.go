package objects

import (
	"context"
	"slices"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// allocator knows which values the objects of a type hold of which each is one
// object's alone: those of its registry.Pool and of its unique fields. It knows of
// the objects in the cache, which the feed tells of, and of the writes under way here,
// so that no two choose one value. Whose a value is, the commit decides, see
// Store.reservations.
//
// A value is known by its claim: what it is of, and the value.
type allocator struct {
	t *resource.Type
	sync.Mutex
	feed     *objectcache.Feed
	held     map[string][]meta.Key // by whom
	underWay map[string]int        // how many writes claim what
}

// newAllocator returns the allocator of a type, nil if it needs none.
func newAllocator(hub *objectcache.Set, t *resource.Type) *allocator {
	if t.Pool == nil && !t.Hub.Schema().HasUnique() {
		return nil
	}
	return &allocator{t: t, feed: hub.Feed(t.GroupResource()), held: map[string][]meta.Key{}, underWay: map[string]int{}}
}

// claims returns what an object of the hub, or nil, holds, each once and
// in order. A type without an allocator, nil, has nothing to hold.
func (p *allocator) claims(obj *meta.Object) (claims []string) {
	if p == nil || obj == nil {
		return nil
	}
	claims = p.poolClaims(obj)
	for _, v := range p.t.Hub.Schema().UniqueValues(obj.Tree()) {
		claims = append(claims, uniqueClaim(obj, v))
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// poolClaims returns what an object of the hub holds of the pool, if there is one.
func (p *allocator) poolClaims(obj *meta.Object) (claims []string) {
	if p.t.Pool == nil {
		return nil
	}
	for _, value := range p.t.Pool.Held(obj) {
		claims = append(claims, resource.PoolClaim(value))
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

// allot lets the kind give obj what it lacks of the pool, by what the sources of that
// say, and nothing that was found to be another's, and claims what obj holds then. What
// a write under way claims is not chosen; that it is all that is left, or that obj has a
// wish for it, is a *storage.ConflictError: the next attempt races for it, since the
// other write may yet be refused.
func (p *allocator) allot(a *attempt, obj, live *meta.Object, sources []*meta.Object) ([]meta.Cause, error) {
	p.Lock()
	defer p.Unlock()
	p.catchUp()
	missed := false
	causes, err := p.t.Pool.Allot(&registry.Allotment{Object: obj, Old: live, Sources: sources, Free: func(v string) bool {
		claim := resource.PoolClaim(v)
		if _, own := slices.BinarySearch(a.held, claim); own {
			return true
		}
		if len(p.held[claim]) > 0 || slices.Contains(a.unseenClaims, claim) {
			return false
		}
		if p.underWay[claim] == 0 || a.races {
			return true
		}
		missed = true
		return false
	}})
	if missed && (err != nil || len(causes) > 0) {
		a.races = true
		return nil, &storage.ConflictError{Key: p.t.StorageKey(a.Key)}
	}
	if err != nil {
		return nil, meta.Internal(err)
	}
	if len(causes) == 0 {
		p.underWayOf(a, without(p.poolClaims(obj), a.held))
	}
	return causes, nil
}

// claim keeps other writes from choosing what an attempt claims, in place of what it
// claimed before. It claims nothing when the cache shows the object or it has failed.
func (p *allocator) claim(a *attempt, claims []string) {
	if len(claims)+len(a.underWay) == 0 {
		return
	}
	p.Lock()
	defer p.Unlock()
	p.underWayOf(a, claims)
}

// underWayOf is claim with the lock held. What is not to be written claims nothing.
func (p *allocator) underWayOf(a *attempt, claims []string) {
	if a.DryRun {
		return
	}
	for _, c := range claims {
		p.underWay[c]++
	}
	for _, c := range a.underWay {
		if p.underWay[c]--; p.underWay[c] == 0 {
			delete(p.underWay, c)
		}
	}
	a.underWay = claims
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
func (s *Store) duplicates(ctx context.Context, a *attempt, obj *meta.Object) (causes []meta.Cause, err error) {
	claims := a.added()
	if len(claims) == 0 {
		return nil, nil
	}
	p := s.allocators[a.Version.GroupResource()]
	for _, v := range p.t.Hub.Schema().UniqueValues(obj.Tree()) {
		claim := uniqueClaim(obj, v)
		if _, found := slices.BinarySearch(claims, claim); !found {
			continue
		}
		other := slices.Contains(a.unseenClaims, claim)
		if !other && p.heldByOthers(claim, a.Key) {
			if err := s.CatchUp(ctx); err != nil { // another server may have freed the value
				return nil, err
			}
			other = p.heldByOthers(claim, a.Key)
		}
		if other {
			causes = append(causes, v.Duplicate())
		}
	}
	return causes, nil
}
