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

// Create creates an object and returns it as stored. Like all writes, it fails if the object has
// fields that the server does not know.
func (o *Objects[T]) Create(ctx context.Context, obj *T) (*T, error) {
	tree, key, err := o.toObject(obj)
	if err != nil {
		return nil, err
	}
	path, err := o.collection(key.Namespace)
	switch {
	case err != nil:
		return nil, err
	case key.Namespace == "" && o.namespaced:
		return nil, meta.BadRequest("%s are namespaced: set a namespace with In or in the object", o.resource())
	}
	return o.write(ctx, http.MethodPost, path, jsonType, codec.EncodeJSON(nil, tree.Tree()), nil)
}

// Update replaces an object and returns it as stored. Fields that T lacks are removed. If obj has
// the resourceVersion with which it was read, Update fails with a conflict (meta.IsConflict) if the
// object was changed since; Modify retries in that case. Without a resourceVersion, Update
// overwrites the object.
func (o *Objects[T]) Update(ctx context.Context, obj *T) (*T, error) {
	tree, key, err := o.toObject(obj)
	if err != nil {
		return nil, err
	}
	return o.replace(ctx, key, codec.EncodeJSON(nil, tree.Tree()))
}

// UpdateStatus is Update of the subresource status.
func (o *Objects[T]) UpdateStatus(ctx context.Context, obj *T) (*T, error) {
	return o.Subresource("status").Update(ctx, obj)
}

// replace replaces an object by the encoded body.
func (o *Objects[T]) replace(ctx context.Context, key meta.Key, body []byte) (*T, error) {
	path, err := o.item(key)
	if err != nil {
		return nil, err
	}
	return o.write(ctx, http.MethodPut, path, jsonType, body, nil)
}

// The retries of Modify after conflicts.
const (
	maxConflicts     = 30
	maxConflictPause = 2 * time.Second // pause after a conflict
)

// Modify reads an object, calls change with it, and writes it if change altered it. It returns the
// object as stored. After a conflict it starts over; if conflicts continue for about half a minute,
// it returns the last conflict (meta.IsConflict). Fields that T lacks keep their values, except in
// the items of lists that change. An error of change ends the call and is returned.
func (o *Objects[T]) Modify(ctx context.Context, name string, change func(obj *T) error) (*T, error) {
	path, err := o.item(meta.Key{Namespace: o.namespace, Name: name})
	if err != nil {
		return nil, err
	}
	wait := minPause / 8
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
		if !meta.IsConflict(err) || try == maxConflicts {
			return stored, err
		}
		if err := pause(ctx, jitter(wait)); err != nil {
			return nil, err
		}
		wait = min(2*wait, maxConflictPause)
	}
}

// alter calls change with a tree as a T, applies the changes to the tree, and reports whether there
// are any.
func (o *Objects[T]) alter(tree map[string]any, change func(obj *T) error) (*T, bool, error) {
	obj, err := o.value(tree)
	if err != nil {
		return nil, false, err
	}
	before, err := o.encode(obj)
	if err != nil {
		return nil, false, err
	}
	if err := change(obj); err != nil {
		return nil, false, err
	}
	after, err := o.encode(obj)
	if err != nil {
		return nil, false, err
	}
	return obj, applyDiff(tree, before, after), nil
}

// applyDiff applies the difference between before and after to tree, which may have additional
// fields, and reports whether there is a difference.
func applyDiff(tree, before, after map[string]any) (differ bool) {
	for name, now := range after {
		was, had := before[name]
		if had && meta.Equal(was, now) {
			continue
		}
		differ = true
		in, _ := tree[name].(map[string]any)
		if fields, ok := now.(map[string]any); ok && in != nil {
			known, _ := was.(map[string]any)
			applyDiff(in, known, fields)
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

// Patch is a change in one of the standard patch formats; see MergePatch, StrategicPatch and
// JSONPatch.
type Patch struct {
	media string
	body  any
}

// MergePatch returns a JSON merge patch: an object with the changed fields, and null for removed
// fields. doc is encoded with json.Marshal; pass a json.RawMessage if it is JSON already.
func MergePatch(doc any) Patch { return Patch{"application/merge-patch+json", doc} }

// StrategicPatch returns a strategic merge patch, which merges lists by their keys. doc is encoded
// as by MergePatch. Kinds of CustomResourceDefinitions do not support strategic merge patches.
func StrategicPatch(doc any) Patch { return Patch{"application/strategic-merge-patch+json", doc} }

// JSONPatch returns a JSON patch: a list of operations such as map[string]any{"op": "replace",
// "path": "/spec/size", "value": 3}, encoded with json.Marshal.
func JSONPatch(operations any) Patch { return Patch{"application/json-patch+json", operations} }

// Patch patches an object and returns it as stored.
func (o *Objects[T]) Patch(ctx context.Context, name string, p Patch) (*T, error) {
	path, err := o.item(meta.Key{Namespace: o.namespace, Name: name})
	if err != nil {
		return nil, err
	}
	if p.media == "" {
		return nil, meta.BadRequest("patch has no format: use MergePatch, StrategicPatch or JSONPatch")
	}
	body, err := json.Marshal(p.body)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of %s %q: %w", o.resource(), name, err)
	}
	return o.write(ctx, http.MethodPatch, path, p.media, body, nil)
}

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	// Force takes over fields that other managers set to other values. Without Force, they cause a
	// conflict that names the fields.
	Force bool
}

// Apply is a server-side apply: it sets the fields of config, removes the fields that the same
// manager applied before and that config lacks, and creates the object if it does not exist. It
// returns the object as stored. config is a *T or another value that json.Marshal encodes, such as
// a map or a struct with fewer fields; a field belongs to it if its JSON has the field. config must
// have a name in its metadata, and Conn.Manager must be set.
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

// config converts the configuration of Apply to an object.
func (o *Objects[T]) config(config any) (*meta.Object, error) {
	if o.err != nil {
		return nil, o.err
	}
	if v, ok := config.(*T); ok {
		obj, _, err := o.toObject(v)
		if err == nil {
			obj.Delete("metadata", "managedFields")
		}
		return obj, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of %s: %w", o.resource(), err)
	}
	tree, _, err := codec.DecodeJSON(text, codec.Limits{})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of %s: %w", o.resource(), err)
	}
	return meta.NewObject(tree), nil
}

// write sends a request with a body and returns the object in the response.
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

// Delete deletes an object. If the object has finalizers, it still exists until they are removed.
func (o *Objects[T]) Delete(ctx context.Context, name string, opts registry.DeleteOptions) error {
	path, err := o.item(meta.Key{Namespace: o.namespace, Name: name})
	if err != nil {
		return err
	}
	_, err = o.conn.call(ctx, request{method: http.MethodDelete, path: path, media: jsonType, body: o.deletion(opts)})
	return err
}

// DeleteAll deletes all selected objects of a namespace, or of a kind that is not namespaced.
func (o *Objects[T]) DeleteAll(ctx context.Context, opts registry.DeleteOptions) error {
	path, err := o.collection(o.namespace)
	switch {
	case err != nil:
		return err
	case o.namespace == "" && o.namespaced:
		return meta.BadRequest("%s are namespaced: set a namespace with In or in the object", o.resource())
	}
	_, err = o.conn.call(ctx, request{method: http.MethodDelete, path: path, query: o.selection(), media: jsonType, body: o.deletion(opts)})
	return err
}

// deletion returns the body of a delete request.
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
