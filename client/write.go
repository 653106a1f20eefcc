package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
)

// Create stores an object and returns it as stored. A field that the server does not know
// is refused, here and in all writes.
func (o *Objects[T]) Create(ctx context.Context, obj *T) (*T, error) {
	tree, key, err := o.tree(obj)
	if err != nil {
		return nil, err
	}
	path, err := o.collection(key.Namespace)
	switch {
	case err != nil:
		return nil, err
	case key.Namespace == "" && o.namespaced:
		return nil, meta.BadRequest("%s are in namespaces: none is named", o.resource())
	}
	return o.write(ctx, http.MethodPost, path, jsonType, codec.EncodeJSON(nil, tree.Tree()), nil)
}

// Update replaces an object and returns it as stored: what T has no fields for goes. With the resourceVersion that it was
// read with it is refused if somebody else changed the object since (meta.IsConflict),
// which Modify spares; without one it overwrites what is there.
func (o *Objects[T]) Update(ctx context.Context, obj *T) (*T, error) {
	tree, key, err := o.tree(obj)
	if err != nil {
		return nil, err
	}
	return o.replace(ctx, key, codec.EncodeJSON(nil, tree.Tree()))
}

// UpdateStatus is Update of the sub-resource status.
func (o *Objects[T]) UpdateStatus(ctx context.Context, obj *T) (*T, error) {
	return o.Subresource("status").Update(ctx, obj)
}

func (o *Objects[T]) replace(ctx context.Context, key meta.Key, body []byte) (*T, error) {
	path, err := o.item(key)
	if err != nil {
		return nil, err
	}
	return o.write(ctx, http.MethodPut, path, jsonType, body, nil)
}

// How often Modify finds somebody faster before it gives up.
const (
	mostConflicts   = 30
	longestConflict = 2 * time.Second // pause after one
)

// Modify reads an object, lets change alter it and updates it, again if somebody else was
// faster, until the context ends; after half a minute of that it gives up with the conflict
// (meta.IsConflict). It returns the object as stored. What T has no fields for stays as it is
// at the server, except in the items of a list that changes. A change that alters nothing
// writes nothing; an error of change ends the call.
func (o *Objects[T]) Modify(ctx context.Context, name string, change func(obj *T) error) (*T, error) {
	path, err := o.item(meta.Key{Namespace: o.namespace, Name: name})
	if err != nil {
		return nil, err
	}
	wait := firstPause / 8
	for try := 1; ; try++ {
		text, err := o.conn.call(ctx, request{method: http.MethodGet, path: path})
		if err != nil {
			return nil, err
		}
		tree, err := o.parse(text)
		if err != nil {
			return nil, err
		}
		obj, altered, err := o.alter(tree, change)
		if err != nil {
			return nil, err
		}
		if !altered {
			return obj, nil
		}
		stored, err := o.write(ctx, http.MethodPut, path, jsonType, codec.EncodeJSON(nil, tree), nil)
		if !meta.IsConflict(err) || try == mostConflicts {
			return stored, err
		}
		if err := pause(ctx, jitter(wait)); err != nil {
			return nil, err
		}
		wait = min(2*wait, longestConflict)
	}
}

// alter lets change alter a tree as a value, and reports whether it did.
func (o *Objects[T]) alter(tree map[string]any, change func(obj *T) error) (*T, bool, error) {
	obj, err := o.value(tree)
	if err != nil {
		return nil, false, err
	}
	before, err := o.from(obj)
	if err != nil {
		return nil, false, err
	}
	if err := change(obj); err != nil {
		return nil, false, err
	}
	after, err := o.from(obj)
	if err != nil {
		return nil, false, err
	}
	return obj, carry(tree, before, after), nil
}

// carry makes the difference between two trees in a third, which may have more, and reports
// whether there is one.
func carry(tree, before, after map[string]any) (differ bool) {
	for name, now := range after {
		was, had := before[name]
		if had && meta.Equal(was, now) {
			continue
		}
		differ = true
		in, _ := tree[name].(map[string]any)
		if fields, ok := now.(map[string]any); ok && in != nil {
			known, _ := was.(map[string]any)
			carry(in, known, fields)
			continue
		}
		tree[name] = now
	}
	for name := range before {
		if _, still := after[name]; !still {
			differ = true
			delete(tree, name)
		}
	}
	return differ
}

// Patch is a change of an object, by one of the usual patch formats: MergePatch, JSONPatch
// or StrategicPatch.
type Patch struct {
	media string
	body  any
}

// MergePatch is a JSON merge patch: an object with what changes, null for what goes. doc
// is what json.Marshal takes, a json.RawMessage for one that is JSON already.
func MergePatch(doc any) Patch { return Patch{"application/merge-patch+json", doc} }

// StrategicPatch is a merge patch that knows the keys of lists. Kinds of
// CustomResourceDefinitions do not take it.
func StrategicPatch(doc any) Patch { return Patch{"application/strategic-merge-patch+json", doc} }

// JSONPatch is a list of operations such as
// map[string]any{"op": "replace", "path": "/spec/size", "value": 3}.
func JSONPatch(operations any) Patch { return Patch{"application/json-patch+json", operations} }

// Patch changes an object and returns it as stored.
func (o *Objects[T]) Patch(ctx context.Context, name string, p Patch) (*T, error) {
	path, err := o.item(meta.Key{Namespace: o.namespace, Name: name})
	if err != nil {
		return nil, err
	}
	if p.media == "" {
		return nil, meta.BadRequest("a patch of no format")
	}
	body, err := json.Marshal(p.body)
	if err != nil {
		return nil, fmt.Errorf("a patch of %s %q: %w", o.resource(), name, err)
	}
	return o.write(ctx, http.MethodPatch, path, p.media, body, nil)
}

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	// Force takes fields over that other managers set to other values; without it they are
	// a conflict, which names them.
	Force bool
}

// Apply makes the fields that config has those of the object, which it creates if it is
// not there, and lets go of those that the same manager applied before and that are not in
// it any more. config is a *T, all of whose fields count that JSON shows, or anything else
// that json.Marshal takes, such as a map or a struct with fewer fields. It needs a name in
// its metadata, and Manager of the Conn.
func (o *Objects[T]) Apply(ctx context.Context, config any, opts ApplyOptions) (*T, error) {
	obj, err := o.config(config)
	if err != nil {
		return nil, err
	}
	key, err := o.identify(obj)
	if err != nil {
		return nil, err
	}
	path, err := o.item(key)
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	if opts.Force {
		q.Set("force", "true")
	}
	return o.write(ctx, http.MethodPatch, path, "application/apply-patch+yaml", codec.EncodeJSON(nil, obj.Tree()), q)
}

// config returns what is to be applied as an object.
func (o *Objects[T]) config(config any) (*meta.Object, error) {
	if o.err != nil {
		return nil, o.err
	}
	if v, ok := config.(*T); ok {
		obj, _, err := o.tree(v)
		if err == nil {
			obj.Delete("metadata", "managedFields")
		}
		return obj, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("what is to be applied as %s: %w", o.resource(), err)
	}
	tree, _, err := codec.DecodeJSON(text, codec.Limits{})
	if err != nil {
		return nil, fmt.Errorf("what is to be applied as %s: %w", o.resource(), err)
	}
	return meta.NewObject(tree), nil
}

// write sends a body and returns the object that the server answers with.
func (o *Objects[T]) write(ctx context.Context, method, path, media string, body []byte, q url.Values) (*T, error) {
	if q == nil {
		q = url.Values{}
	}
	q.Set("fieldValidation", "Strict")
	if o.conn.Manager != "" {
		q.Set("fieldManager", o.conn.Manager)
	}
	if o.conn.DryRun {
		q.Set("dryRun", "All")
	}
	text, err := o.conn.call(ctx, request{method: method, path: path, query: q, media: media, body: body})
	if err != nil {
		return nil, err
	}
	return o.decode(text)
}

// Delete asks for an object to be deleted. It may be there for a while after that, until
// its finalizers are gone.
func (o *Objects[T]) Delete(ctx context.Context, name string, opts registry.DeleteOptions) error {
	path, err := o.item(meta.Key{Namespace: o.namespace, Name: name})
	if err != nil {
		return err
	}
	_, err = o.conn.call(ctx, request{method: http.MethodDelete, path: path, media: jsonType, body: o.deletion(opts)})
	return err
}

// DeleteAll asks for all objects of a namespace, or of a kind without namespaces, to be
// deleted that the selectors select.
func (o *Objects[T]) DeleteAll(ctx context.Context, opts registry.DeleteOptions) error {
	path, err := o.collection(o.namespace)
	switch {
	case err != nil:
		return err
	case o.namespace == "" && o.namespaced:
		return meta.BadRequest("%s are in namespaces: none is named", o.resource())
	}
	_, err = o.conn.call(ctx, request{method: http.MethodDelete, path: path, query: o.selection(), media: jsonType, body: o.deletion(opts)})
	return err
}

// deletion is the body of a delete.
func (o *Objects[T]) deletion(opts registry.DeleteOptions) []byte {
	tree := meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"})
	if opts.UID != "" {
		tree.Set(opts.UID, "preconditions", "uid")
	}
	if opts.Version != "" {
		tree.Set(opts.Version, "preconditions", "resourceVersion")
	}
	if opts.Propagation != "" {
		tree.Set(opts.Propagation, "propagationPolicy")
	}
	if opts.GraceSeconds != nil {
		tree.Set(*opts.GraceSeconds, "gracePeriodSeconds")
	}
	if o.conn.DryRun {
		tree.Set([]any{"All"}, "dryRun")
	}
	return codec.EncodeJSON(nil, tree.Tree())
}
