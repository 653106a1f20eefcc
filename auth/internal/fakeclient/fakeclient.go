// Package fakeclient is a registry.Client over a map, for the tests of
// authentication.
package fakeclient

import (
	"context"
	"sync"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

// Client holds objects. Only what authentication uses works: Get, List, Create
// and Delete; the rest is that of a nil registry.Client.
type Client struct {
	registry.Client
	mu      sync.Mutex // guards the rest
	objects map[meta.GroupResource]map[meta.Key]*meta.Object
	err     error
}

// New returns an empty Client.
func New() *Client {
	return &Client{objects: map[meta.GroupResource]map[meta.Key]*meta.Object{}}
}

// Fail makes every call fail with err; nil ends that.
func (c *Client) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Put stores an object of the core group, or replaces it.
func (c *Client) Put(resource string, tree map[string]any) {
	o := meta.NewObject(tree)
	_, _ = c.Create(context.Background(), meta.GroupResource{Resource: resource}, o)
}

// Get implements registry.Client.
func (c *Client) Get(_ context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if o := c.objects[r][key]; o != nil {
		return o.Clone(), nil
	}
	return nil, meta.NotFound(r, key.Name)
}

// Create implements registry.Client; what is there is replaced.
func (c *Client) Create(_ context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects[r] == nil {
		c.objects[r] = map[meta.Key]*meta.Object{}
	}
	c.objects[r][meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}] = obj.Clone()
	return obj, nil
}

// Delete implements registry.Client.
func (c *Client) Delete(_ context.Context, r meta.GroupResource, key meta.Key, _ registry.DeleteOptions) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects[r], key)
	return nil
}
