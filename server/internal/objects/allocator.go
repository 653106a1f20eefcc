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

// allocator tracks which unique values the objects of a type hold: those of its registry.Allocator and those of its unique
// fields. It follows the cache by a feed, and also knows the values of the writes under way in this server, so that
// no two of these writes choose the same value. It only avoids conflicts: the commit decides which object gets a
// value, see Store.reserve.
//
// A claim is a string that identifies a value and the pool or field to which it belongs. The mutex guards all fields
// except t.
type allocator struct {
	t *resource.Type
	sync.Mutex
	feed     *objectcache.Feed
	held     map[string][]meta.Key // by claim: the objects that hold the value
	underWay map[string]int        // by claim: the number of writes under way
}

// newAllocator returns the allocator of a type, or nil if the type has no unique values.
func newAllocator(hub *objectcache.Set, t *resource.Type) *allocator {
	if t.Pool == nil && !t.Hub.Schema().HasUnique() {
		return nil
	}
	return &allocator{t: t, feed: hub.Feed(t.GroupResource()), held: map[string][]meta.Key{}, underWay: map[string]int{}}
}

// claims returns the claims of obj, sorted and without duplicates. obj is in the hub version, or nil. It returns nil
// for a nil allocator.
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

// poolClaims returns the claims of obj, in the hub version, to values of the pool. They are not sorted.
func (p *allocator) poolClaims(obj *meta.Object) (claims []string) {
	if p.t.Pool == nil {
		return nil
	}
	for _, value := range p.t.Pool.Values(obj) {
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

// allocate lets the kind set the values of the pool that obj lacks, and claims the values of obj for a. sources are the
// objects that define the pool. Values that other objects hold are not chosen. If the only free value, or the value
// that obj requests, is claimed by a write under way, the error is a *storage.ConflictError. The next attempt then
// competes for the value, because the other write may fail.
func (p *allocator) allocate(a *attempt, obj, live *meta.Object, sources []*meta.Object) ([]meta.StatusCause, error) {
	p.Lock()
	defer p.Unlock()
	p.catchUp()
	missed := false
	causes, err := p.t.Pool.Allocate(&registry.Allocation{Object: obj, Old: live, Sources: sources, Free: func(v string) bool {
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
		p.underWayOf(a, difference(p.poolClaims(obj), a.held))
	}
	return causes, nil
}

// claim replaces the claims of an attempt. Other writes do not choose claimed values. The caller drops the claims of
// an attempt, by claim(a, nil), after the cache shows the object or the write has failed.
func (p *allocator) claim(a *attempt, claims []string) {
	if len(claims)+len(a.underWay) == 0 {
		return
	}
	p.Lock()
	defer p.Unlock()
	p.underWayOf(a, claims)
}

// underWayOf is claim, with the lock held. A dry run claims nothing.
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

// heldByOthers reports whether the cache has an object, other than that of key, that holds the value of a claim.
func (p *allocator) heldByOthers(claim string, key meta.Key) bool {
	p.Lock()
	defer p.Unlock()
	p.catchUp()
	return slices.ContainsFunc(p.held[claim], func(k meta.Key) bool { return k != key })
}

// catchUp applies the changes of the cache since its last call. The lock must be held.
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

// duplicates returns a cause for each unique value of obj that another object holds. It does not check values that
// the live object already holds.
func (s *Store) duplicates(ctx context.Context, a *attempt, obj *meta.Object) (causes []meta.StatusCause, err error) {
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
			if err := s.CatchUp(ctx); err != nil { // another server may have released the value
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
