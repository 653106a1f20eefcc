package objects

import (
	"slices"
	"sync"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/watch"
)

// allocator knows which values the objects of a kind with a registry.Pool hold:
// those in the cache, which the feed tells of, and those of writes under way here. A
// value that looks free is chosen by it; that it is, the commit decides, see
// Store.reservations.
type allocator struct {
	*registry.Pool
	sync.Mutex
	feed     *watch.Feed
	held     map[string]int // by how many objects
	reserved map[string]int // by how many writes
}

func newAllocator(hub *watch.Hub, t *registry.Type) *allocator {
	return &allocator{Pool: t.Pool, feed: hub.Feed(t.GroupResource()), held: map[string]int{}, reserved: map[string]int{}}
}

// allot lets the kind give obj what it lacks. What obj holds then is reserved
// until release is called, which must be after the write is through.
func (p *allocator) allot(obj, live *meta.Object) (release func(), causes []meta.Cause, err error) {
	p.Lock()
	defer p.Unlock()
	p.catchUp()
	var own []string
	if live != nil {
		own = p.Held(live)
	}
	causes, err = p.Allot(obj, live, func(v string) bool {
		return slices.Contains(own, v) || p.held[v] == 0 && p.reserved[v] == 0
	})
	if err != nil || len(causes) > 0 {
		return func() {}, causes, err
	}
	values := p.Held(obj)
	count(p.reserved, values, 1)
	return func() {
		p.Lock()
		defer p.Unlock()
		count(p.reserved, values, -1)
	}, nil, nil
}

// taken reports whether an object that the cache shows holds a value.
func (p *allocator) taken(value string) bool {
	p.Lock()
	defer p.Unlock()
	p.catchUp()
	return p.held[value] > 0
}

// catchUp takes in what changed since the last call.
func (p *allocator) catchUp() {
	changes, reset := p.feed.Changes()
	if reset {
		clear(p.held)
	}
	for c := range changes {
		if c.Old != nil {
			count(p.held, p.Held(c.Old), -1)
		}
		if c.Object != nil {
			count(p.held, p.Held(c.Object), 1)
		}
	}
}

func count(in map[string]int, values []string, n int) {
	for _, v := range values {
		if in[v] += n; in[v] == 0 {
			delete(in, v)
		}
	}
}
