package client

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Scope is implemented by Objects of every type, and by no other type.
type Scope interface {
	untyped() *Objects[meta.Object]
}

// untyped implements Scope.
func (o *Objects[T]) untyped() *Objects[meta.Object] {
	return &Objects[meta.Object]{
		conn: o.conn, group: o.group, version: o.version, kind: o.kind, plural: o.plural, namespaced: o.namespaced,
		namespace: o.namespace, labels: o.labels, fields: o.fields, err: o.err,
	}
}

// New returns a Client for the kinds of the given objects, over their connections. Its feeds cover
// only the namespaces and selectors of the objects; reads and writes cover the whole kind. If kinds
// are invalid, the error joins their errors.
func New(objects ...Scope) (Client, error) {
	r := &remote{}
	var errs []error
	for _, s := range objects {
		o := s.untyped()
		r.scopes = append(r.scopes, o)
		errs = append(errs, o.err)
	}
	return r, errors.Join(errs...)
}

// remote is a Client over HTTP.
type remote struct {
	scopes []*Objects[meta.Object]
}

// objectsIn returns the objects of a resource in a namespace, without selectors.
func (c *remote) objectsIn(r meta.GroupResource, namespace string) (*Objects[meta.Object], error) {
	for _, o := range c.scopes {
		if o.resource() == r {
			all := *o
			all.namespace, all.labels, all.fields = "", "", ""
			return all.In(namespace), nil
		}
	}
	return nil, meta.NoSuchResource()
}

// Get implements Client.
func (c *remote) Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	o, err := c.objectsIn(r, key.Namespace)
	if err != nil {
		return nil, err
	}
	return o.Get(ctx, key.Name)
}

// List implements Client.
func (c *remote) List(ctx context.Context, r meta.GroupResource, namespace string) (list []*meta.Object, err error) {
	o, err := c.objectsIn(r, namespace)
	if err != nil {
		return nil, err
	}
	for obj, err := range o.All(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, obj)
	}
	return list, nil
}

// Create implements Client.
func (c *remote) Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	o, err := c.objectsIn(r, obj.Namespace())
	if err != nil {
		return nil, err
	}
	return o.Create(ctx, obj)
}

// Update implements Client.
func (c *remote) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	o, err := c.objectsIn(r, key.Namespace)
	if err != nil {
		return nil, err
	}
	return o.Subresource(subresource).Modify(ctx, key.Name, change)
}

// Delete implements Client.
func (c *remote) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, opts registry.DeleteOptions) error {
	o, err := c.objectsIn(r, key.Namespace)
	if err != nil {
		return err
	}
	return o.Delete(ctx, key.Name, opts)
}

// Types implements Client.
func (c *remote) Types() (list []*registry.Type) {
	for _, o := range c.scopes {
		gv := meta.GroupVersion{Group: o.group, Version: o.version}
		list = append(list, &registry.Type{
			Group: o.group, Kind: o.kind, ListKind: o.kind + "List", Plural: o.plural, Namespaced: o.namespaced,
			AllVersions: []meta.GroupVersion{gv}, ServedVersions: []meta.GroupVersion{gv}, HubVersion: o.version,
		})
	}
	return list
}

// Feed implements Client. The feed has a cache, and a goroutine that watches, for each scope.
func (c *remote) Feed(resources ...meta.GroupResource) Feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &remoteFeed{cancel: cancel, woken: make(chan struct{}, 1)}
	for _, o := range c.scopes {
		if len(resources) > 0 && !slices.Contains(resources, o.resource()) {
			continue
		}
		cache, resource := o.Cache(), o.resource()
		cache.onChange(func(key meta.Key, old, now *meta.Object) {
			f.add(Event{Resource: resource, Key: key, Old: old, Object: now, Revision: revisionOf(now, old)})
		})
		f.unsynced.Add(1)
		f.watches.Go(func() { _ = cache.Run(ctx) }) // it retries until the context ends
		f.watches.Go(func() {
			if cache.Wait(ctx) == nil {
				f.unsynced.Add(-1)
				f.wake()
			}
		})
	}
	return f
}

// revisionOf returns the revision of the newer of two versions of an object.
func revisionOf(objects ...*meta.Object) storage.Revision {
	for _, o := range objects {
		if o != nil {
			n, _ := strconv.ParseInt(o.ResourceVersion(), 10, 64)
			return storage.Revision(n)
		}
	}
	return 0
}

// remoteFeed is a Feed over the caches of some scopes. It holds changes back until all caches
// have synced, so that a controller starts with the whole state.
type remoteFeed struct {
	cancel   context.CancelFunc
	watches  sync.WaitGroup
	unsynced atomic.Int32  // caches
	woken    chan struct{} // has a token if a change or sync happened since the last Wait

	mu       sync.Mutex // guards the rest
	pending  []Event
	newest   storage.Revision
	returned storage.Revision
}

func (f *remoteFeed) add(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, e)
	f.newest = max(f.newest, e.Revision)
	f.wake()
}

func (f *remoteFeed) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// Changes implements Feed.
func (f *remoteFeed) Changes() (changes iter.Seq[Event], reset bool) {
	if f.unsynced.Load() > 0 {
		return slices.Values[[]Event](nil), false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.pending
	f.pending, f.returned = nil, f.newest
	return slices.Values(list), false
}

// Wait implements Feed.
func (f *remoteFeed) Wait(ctx context.Context) error {
	for {
		f.mu.Lock()
		ready := len(f.pending) > 0 && f.unsynced.Load() == 0
		f.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-f.woken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Revision implements Feed.
func (f *remoteFeed) Revision() storage.Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.returned
}

// Newest implements Feed.
func (f *remoteFeed) Newest() storage.Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}

// Close implements Feed. It waits for the goroutines of the feed.
func (f *remoteFeed) Close() {
	f.cancel()
	f.watches.Wait()
}
