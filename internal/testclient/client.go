// Package testclient has a client.Client with objects in memory, for tests with objects that a
// server would not store, such as damaged objects. It has neither admission nor schemas.
package testclient

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Client holds objects in memory. The zero value is empty and ready to use. It is safe for
// concurrent use.
type Client struct {
	mu      sync.Mutex // guards the fields below
	objects map[meta.GroupResource]map[meta.Key]*meta.Object
	log     []client.Event
	wake    chan struct{}
	writes  int
	err     error // returned by every read, if not nil
}

var _ client.Client = (*Client)(nil)

// Writes returns the number of writes that changed an object.
func (c *Client) Writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// Fail makes every read fail with err, until it is called with nil.
func (c *Client) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Put stores an object of the core group with its own uid. It replaces an existing object.
func (c *Client) Put(resource string, tree map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	obj := meta.NewObject(tree).Clone()
	c.put(meta.GroupResource{Resource: resource}, meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}, obj)
}

// Get returns a copy of an object.
func (c *Client) Get(_ context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	o := c.objects[r][key]
	if o == nil {
		return nil, meta.NotFound(r, key.Name)
	}
	return o.Clone(), nil
}

// List returns copies of the objects, sorted by key.
func (c *Client) List(_ context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	var out []*meta.Object
	for k, o := range c.objects[r] {
		if namespace == "" || k.Namespace == namespace {
			out = append(out, o.Clone())
		}
	}
	slices.SortFunc(out, func(a, b *meta.Object) int {
		return strings.Compare(a.Namespace()+"/"+a.Name(), b.Namespace()+"/"+b.Name())
	})
	return out, nil
}

// Create stores a copy of obj with a new uid.
func (c *Client) Create(_ context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}
	if c.objects[r][k] != nil {
		return nil, meta.AlreadyExists(r, k.Name)
	}
	obj = obj.Clone()
	obj.SetUID(fmt.Sprintf("uid-%d", len(c.log)+1))
	if obj.CreationTimestamp().IsZero() {
		obj.SetTime(time.Now(), "metadata", "creationTimestamp")
	}
	c.put(r, k, obj)
	return obj.Clone(), nil
}

// Update calls change with a copy of the object and stores the copy if it differs.
func (c *Client) Update(_ context.Context, r meta.GroupResource, key meta.Key, _ string, change func(*meta.Object) error) (*meta.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.objects[r][key]
	if old == nil {
		return nil, meta.NotFound(r, key.Name)
	}
	obj := old.Clone()
	if err := change(obj); err != nil {
		return nil, err
	}
	if !meta.Equal(old.Tree(), obj.Tree()) {
		c.put(r, key, obj)
	}
	return obj.Clone(), nil
}

// Delete removes an object. It checks the preconditions of o and ignores its other fields.
func (c *Client) Delete(_ context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.objects[r][key]
	if old == nil {
		return meta.NotFound(r, key.Name)
	}
	if o.UID != "" && o.UID != old.UID() || o.Version != "" && o.Version != old.ResourceVersion() {
		return meta.Conflict(r, key.Name, "precondition failed")
	}
	c.put(r, key, nil)
	return nil
}

// put stores obj, or deletes the object if obj is nil, and records the event. c.mu is held.
func (c *Client) put(r meta.GroupResource, k meta.Key, obj *meta.Object) {
	if c.objects == nil {
		c.objects = map[meta.GroupResource]map[meta.Key]*meta.Object{}
	}
	if c.objects[r] == nil {
		c.objects[r] = map[meta.Key]*meta.Object{}
	}
	old := c.objects[r][k]
	rev := storage.Revision(len(c.log) + 1)
	if obj == nil {
		delete(c.objects[r], k)
	} else {
		obj.SetResourceVersion(fmt.Sprint(rev))
		c.objects[r][k] = obj
	}
	c.writes++
	c.log = append(c.log, client.Event{Resource: r, Key: k, Object: obj, Old: old, Revision: rev})
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// Types returns nil.
func (c *Client) Types() []*registry.Type { return nil }

// Feed returns a Feed that starts with the existing objects.
func (c *Client) Feed(r ...meta.GroupResource) client.Feed { return &feed{c: c, types: r, at: -1} }

type feed struct {
	c     *Client
	types []meta.GroupResource
	at    int // number of events of c.log that were returned; -1: the existing objects were not returned yet
}

func (f *feed) wants(r meta.GroupResource) bool {
	return len(f.types) == 0 || slices.Contains(f.types, r)
}

// Changes implements client.Feed.
func (f *feed) Changes() (iter.Seq[client.Event], bool) { return slices.Values(f.pull()), false }

func (f *feed) pull() (changes []client.Event) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.at < 0 {
		for r, objects := range f.c.objects {
			for k, o := range objects {
				if f.wants(r) {
					changes = append(changes, client.Event{Resource: r, Key: k, Object: o})
				}
			}
		}
		f.at = len(f.c.log)
		return changes
	}
	for _, e := range f.c.log[f.at:] {
		if f.wants(e.Resource) {
			changes = append(changes, e)
		}
	}
	f.at = len(f.c.log)
	return changes
}

func (f *feed) Wait(ctx context.Context) error {
	for {
		f.c.mu.Lock()
		ready := f.at < len(f.c.log)
		if f.c.wake == nil {
			f.c.wake = make(chan struct{})
		}
		wake := f.c.wake
		f.c.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *feed) Revision() storage.Revision { return storage.Revision(max(f.at, 0)) }

func (f *feed) Newest() storage.Revision {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return storage.Revision(len(f.c.log))
}

func (f *feed) Close() {}
