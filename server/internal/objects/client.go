package objects

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Client is the client.Client of the server's own components. It has the rights of the server. The zero Client can be
// handed out before the Store exists; its calls fail until Open. It is safe for concurrent use.
type Client struct {
	store atomic.Pointer[Store] // nil until Open
}

// Open sets the Store of the client.
func (c *Client) Open(s *Store) { c.store.Store(s) }

// of returns the Store and the hub version of a type.
func (c *Client) of(r meta.GroupResource) (*Store, *resource.Version, error) {
	s := c.store.Load()
	if s == nil {
		return nil, nil, meta.Unavailable("the server is not built yet")
	}
	t := s.o.Types().Type(r)
	if t == nil {
		return nil, nil, meta.NoSuchResource()
	}
	return s, t.Hub, nil
}

// ownWrite returns a Write of the server itself, with a context that ends after RequestTime. The user is the user of
// actor.With, or else the server. The caller must call the returned CancelFunc.
func (s *Store) ownWrite(ctx context.Context, v *resource.Version, key meta.Key, sub *resource.Subresource, options string) (context.Context, context.CancelFunc, *Write) {
	manager := s.o.Names.Wire(wellknown.ServerManager)
	o := meta.NewObject(map[string]any{})
	if options != "DeleteOptions" {
		o.Set(manager, "fieldManager")
	}
	o.SetGVK(meta.GroupVersionKind{Group: s.o.Names.Group(wellknown.GroupMeta), Version: "v1", Kind: options})
	ctx, cancel := context.WithTimeout(ctx, s.o.RequestTime)
	w := &Write{
		Caller:  Caller{User: actor.From(ctx), Notes: discardNotes{}},
		Version: v, Key: key, Sub: sub, Options: o, Own: Owner(v, sub, manager),
	}
	switch {
	case w.User == nil:
		w.User = &auth.User{Name: auth.ServerUser, Groups: []string{auth.Masters, auth.Authenticated}}
	case s.o.Audit != nil:
		w.Notes, w.audit = s.o.Audit(w)
	}
	return ctx, cancel, w
}

// Audited is the outcome of a write of a built-in controller, for the audit.
type Audited struct {
	Verb  string
	Sent  *meta.Object       // the body of a request for the same write
	Entry *objectcache.Entry // the object after the write, or its last state; nil after an error
	Err   error
}

// audited audits a write of a built-in controller and returns the error to return to it.
func (s *Store) audited(w *Write, verb string, sent *meta.Object, res *Result, err error) error {
	if err != nil {
		err = s.refusal(err)
	}
	if w.audit == nil {
		return err
	}
	end := Audited{Verb: verb, Sent: sent, Err: err}
	if res != nil {
		end.Entry = res.Entry
	}
	w.audit(end)
	return err
}

// discardNotes implements Notes and discards everything.
type discardNotes struct{}

func (discardNotes) Warn(string)             {}
func (discardNotes) Annotate(string, string) {}

func (discardNotes) AnnotateExternal(string, string) bool { return true }

// refusal returns the error that a Client returns for an error of the Store.
func (s *Store) refusal(err error) error {
	if damaged := (*client.UnreadableError)(nil); errors.As(err, &damaged) {
		return damaged
	}
	if st := Status(err); st != nil {
		return st
	}
	s.o.Log.Error("internal write failed", "error", err)
	return meta.Internal(errors.New("the store failed"))
}

// Get implements client.Client.
func (c *Client) Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	s, v, err := c.of(r)
	if err != nil {
		return nil, err
	}
	entry, err := s.Live(ctx, v.Type, key)
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return nil, meta.NotFound(r, key.Name)
	}
	return Object(ctx, entry, v)
}

// List implements client.Client.
func (c *Client) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	s, v, err := c.of(r)
	if err != nil {
		return nil, err
	}
	return s.ownList(ctx, v, namespace)
}

// ownList returns the objects of a namespace, for a Client.
func (s *Store) ownList(ctx context.Context, v *resource.Version, namespace string) ([]*meta.Object, error) {
	all := &Selection{Namespace: namespace}
	page, err := s.entries(ctx, s.o.Hub.Cache(v.GroupResource()), objectcache.Query{Namespace: namespace}, all)
	if err != nil {
		return nil, err
	}
	unreadable := s.AllReadable(v.Type, all)
	entries, err := InVersion(ctx, page.Entries, v)
	if err != nil {
		return nil, err
	}
	list := make([]*meta.Object, len(entries))
	for i, e := range entries {
		if list[i], err = Object(ctx, e, v); err != nil {
			return nil, err
		}
	}
	return list, unreadable
}

// Create implements client.Client.
func (c *Client) Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	s, v, err := c.of(r)
	if err != nil {
		return nil, err
	}
	obj = obj.Clone()
	obj.SetResourceVersion("") // obj may be a copy of an object that was read
	if err := CheckKind(obj, v); err != nil {
		return nil, err
	}
	if err := s.conform(v, obj); err != nil {
		return nil, err
	}
	ctx, cancel, w := s.ownWrite(ctx, v, meta.Key{Namespace: obj.Namespace()}, nil, "CreateOptions")
	defer cancel()
	res, err := s.Create(ctx, w, obj)
	if err := s.audited(w, "create", obj, res, err); err != nil {
		return nil, err
	}
	return s.shown(ctx, res.Entry, v)
}

// shown returns the object of an entry that was just written. It uses the entry of the cache if that has the same
// revision, because the decoded object is then shared with other readers. The object must not be modified.
func (s *Store) shown(ctx context.Context, e *objectcache.Entry, v *resource.Version) (*meta.Object, error) {
	if kept := s.o.Hub.Cache(v.GroupResource()).Get(e.Key()); kept != nil && kept.Revision() == e.Revision() {
		e = kept
	}
	return Object(ctx, e, v)
}

// Update implements client.Client.
func (c *Client) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	return c.update(ctx, r, key, subresource, change, func(*Write) {})
}

// UpdateSerially is like Update, as the next write of a sequence, see Write.Sequence. change may read other objects
// from the caches. Objects that only this sequence writes are then still current when the object is stored.
func (c *Client) UpdateSerially(ctx context.Context, serial string, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	return c.update(ctx, r, key, subresource, change, func(w *Write) { w.Sequence = resource.SerialKey(serial) })
}

// AdmittedClient is the Client for updates that are part of admitted writes, and that therefore skip admission. An update
// may serve several writes. So it does not depend on the LeaderFence of any of them, and its reads are as new as the
// call, not as the request of one of the writes.
type AdmittedClient struct{ *Client }

func (c AdmittedClient) withFreshReads(ctx context.Context) context.Context {
	if s := c.store.Load(); s != nil {
		return s.withFreshReads(ctx)
	}
	return ctx
}

// Get implements client.Client.
func (c AdmittedClient) Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error) {
	return c.Client.Get(c.withFreshReads(ctx), r, key)
}

// List implements client.Client.
func (c AdmittedClient) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	return c.Client.List(c.withFreshReads(ctx), r, namespace)
}

// Update implements client.Client.
func (c AdmittedClient) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	return c.update(consistency.WithLeaderFence(ctx, nil), r, key, subresource, change, func(w *Write) { w.Admitted = true })
}

// ActClient is the Client of an acting subresource. Admission has admitted the body of the request, and does not run again
// for the changes that the subresource makes to the object.
type ActClient struct{ *Client }

// Update implements registry.Client.
func (c ActClient) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	_, v, err := c.of(r)
	if err != nil {
		return nil, err
	}
	sub := v.Type.Subresource(subresource)
	return c.update(ctx, r, key, subresource, change, func(w *Write) { w.Admitted = sub != nil && sub.Act != nil })
}

// Delete implements registry.Client. It also skips admission, because it is part of the admitted request.
func (c ActClient) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	return c.Client.Delete(Unadmitted(ctx), r, key, o)
}

func (c *Client) update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error, set func(*Write)) (*meta.Object, error) {
	s, v, err := c.of(r)
	if err != nil {
		return nil, err
	}
	var sub *resource.Subresource
	if subresource != "" {
		if sub = v.Type.Subresource(subresource); sub == nil || sub.Merge == nil {
			return nil, meta.NoSuchResource()
		}
	}
	ctx, cancel, w := s.ownWrite(ctx, v, key, sub, "UpdateOptions")
	defer cancel()
	set(w)
	if sub != nil && sub.Act != nil { // the update changes the item; there is no body
		item := *sub
		item.Act, item.Body = nil, nil
		w.Sub, w.Own = &item, nil
	}
	var refused error // the error of change
	var seen string   // the resourceVersion of the live object
	var sent *meta.Object
	w.Mutate = func(live *meta.Object) (*meta.Object, error) {
		in := live.Clone()
		seen, sent = live.ResourceVersion(), in
		if refused = change(in); refused != nil {
			return nil, refused
		}
		return in, s.conform(v, in)
	}
	res, err := s.Write(ctx, w)
	switch {
	case refused != nil && errors.Is(err, refused):
		return nil, refused
	case meta.IsNotFound(err), err == nil && FormatRevision(res.Entry.Revision()) == seen:
		w.audit = nil // no request would have been sent
	}
	if err := s.audited(w, "update", sent, res, err); err != nil {
		return nil, err
	}
	return s.shown(ctx, res.Entry, v)
}

// Delete implements client.Client.
func (c *Client) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	s, v, err := c.of(r)
	if err != nil {
		return err
	}
	return s.ownDelete(ctx, v, key, o)
}

// ownDelete deletes an object, for a Client.
func (s *Store) ownDelete(ctx context.Context, v *resource.Version, key meta.Key, o registry.DeleteOptions) error {
	ctx, cancel, w := s.ownWrite(ctx, v, key, nil, "DeleteOptions")
	defer cancel()
	w.Admitted, w.Options = unadmitted(ctx), deleteOptions(w.Options.APIVersion(), o)
	res, err := s.Delete(ctx, w, &Deletion{UID: optional(o.UID), Version: optional(o.Version), Propagation: optional(o.Propagation), Grace: o.GraceSeconds})
	return s.audited(w, "delete", w.Options, res, err)
}

// deleteOptions returns the options of a deletion for admission and the audit.
func deleteOptions(apiVersion string, o registry.DeleteOptions) *meta.Object {
	options := meta.NewObject(map[string]any{"apiVersion": apiVersion, "kind": "DeleteOptions"})
	if o.GraceSeconds != nil {
		options.Set(*o.GraceSeconds, "gracePeriodSeconds")
	}
	for _, text := range []struct {
		value string
		path  []string
	}{{o.UID, []string{"preconditions", "uid"}}, {o.Version, []string{"preconditions", "resourceVersion"}}, {o.Propagation, []string{"propagationPolicy"}}} {
		if text.value != "" {
			options.Set(text.value, text.path...)
		}
	}
	return options
}

// optional returns a pointer to s, or nil if s is empty.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Fence returns the fence of a namespace, see Store.Fence.
func (c *Client) Fence(ctx context.Context, namespace string) (storage.Revision, error) {
	return c.fence(ctx, namespace, (*Store).Fence)
}

// RaiseFence raises the fence of a namespace, see Store.RaiseFence.
func (c *Client) RaiseFence(ctx context.Context, namespace string) (storage.Revision, error) {
	return c.fence(ctx, namespace, (*Store).RaiseFence)
}

func (c *Client) fence(ctx context.Context, namespace string, do func(*Store, context.Context, string) (storage.Revision, error)) (storage.Revision, error) {
	s := c.store.Load()
	if s == nil {
		return 0, meta.Unavailable("the server is not built yet")
	}
	rev, err := do(s, ctx, namespace)
	if err != nil {
		return 0, s.refusal(err)
	}
	return rev, nil
}

// Feed implements client.Client. Before Open it returns nil.
func (c *Client) Feed(r ...meta.GroupResource) client.Feed {
	if s := c.store.Load(); s != nil {
		return s.o.Hub.Feed(r...)
	}
	return nil
}

// Type returns the served type with a wire group and plural, or nil.
func (c *Client) Type(r meta.GroupResource) *registry.Type {
	if s := c.store.Load(); s != nil {
		if t := s.o.Types().Type(r); t != nil {
			return &t.Type
		}
	}
	return nil
}

// Types implements client.Client. Before Open it returns nil.
func (c *Client) Types() []*registry.Type {
	if s := c.store.Load(); s != nil {
		return s.o.Types().Public()
	}
	return nil
}

// version returns the version of a kind if it is served, or nil.
func (c *Client) version(k meta.GroupVersionKind) *resource.Version {
	s := c.store.Load()
	if s == nil {
		return nil
	}
	t := s.o.Types().Kind(k.GroupKind())
	if t == nil {
		return nil
	}
	if v := t.VersionIn(meta.GroupVersion{Group: k.Group, Version: k.Version}); v != nil && v.Served {
		return v
	}
	return nil
}

// Schema returns the schema of a kind in a version if it is served, or nil.
func (c *Client) Schema(k meta.GroupVersionKind) *schema.Schema {
	if v := c.version(k); v != nil {
		return v.Schema()
	}
	return nil
}

// Convert returns an object converted to another version of its type.
func (c *Client) Convert(ctx context.Context, obj *meta.Object, version meta.GroupVersion) (*meta.Object, error) {
	v := c.version(meta.GroupVersionKind{Group: version.Group, Version: version.Version, Kind: obj.Kind()})
	if v == nil {
		return nil, fmt.Errorf("there is no version %s of %s", version, obj.Kind())
	}
	return v.Convert(ctx, obj)
}
