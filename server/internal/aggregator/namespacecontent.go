package aggregator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/controllers"
)

// Limits for the objects of extension servers.
const (
	contentTime = 15 * time.Second // limit for a collection in a namespace
	contentPage = 500              // objects in a page
	maxContent  = 32 << 20         // bytes of a page
	maxHead     = 10_000           // values in the metadata of an object
)

// collection is a namespaced resource of an extension server. It implements controllers.Collection.
type collection struct {
	meta.GroupResource
	aggregator *Aggregator
	version    *Version
	verbs      []string
}

// Collections returns the namespaced resources of extension servers that support list and delete, each in the
// preferred version of its group. unknown has an error for each version without known resources. A nil Aggregator has
// no collections.
func (a *Aggregator) Collections() (list []controllers.Collection, unknown []error) {
	if a == nil {
		return nil, nil
	}
	all := slices.Clone(a.Table().AllRemote())
	slices.SortStableFunc(all, func(a, b *Version) int { return cmp.Compare(b.Priority.Version, a.Priority.Version) })
	seen := map[meta.GroupResource]bool{}
	for _, v := range all {
		if !v.Available || v.Documents.Stale {
			unknown = append(unknown, fmt.Errorf("%s: stale GroupVersion discovery: %s", v.GroupVersion, v.GroupVersion))
		}
		for _, r := range v.Documents.List() {
			doc := meta.NewObject(treeOf(r))
			c := collection{meta.GroupResource{Group: v.Group, Resource: doc.String("resource")}, a, v, doc.Strings("verbs")}
			if doc.String("scope") == "Namespaced" && v.Available && !seen[c.GroupResource] && c.does("list") && (c.does("delete") || c.does("deletecollection")) {
				seen[c.GroupResource] = true
				list = append(list, c)
			}
		}
	}
	return list, unknown
}

func treeOf(v any) map[string]any {
	tree, _ := v.(map[string]any)
	return tree
}

func (c collection) does(verb string) bool { return slices.Contains(c.verbs, verb) }

func (c collection) path(namespace, name string) string {
	path := "/apis/" + c.version.Group + "/" + c.version.Version + "/namespaces/" + namespace + "/" + c.Resource
	if name != "" {
		path += "/" + name
	}
	return path
}

// Delete deletes the objects in a namespace that are not being deleted yet. If the server does not support
// deletecollection, it deletes the objects of the first page.
func (c collection) Delete(ctx context.Context, namespace string) error {
	if err := c.deleteAll(ctx, namespace); err != nil {
		return fmt.Errorf("deleting %s in %s: %w", c.GroupResource, namespace, err)
	}
	return nil
}

func (c collection) deleteAll(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, contentTime)
	defer cancel()
	if c.does("deletecollection") {
		err := c.delete(ctx, c.path(namespace, ""), "")
		if !errors.Is(err, badStatus(http.StatusMethodNotAllowed)) || !c.does("delete") {
			return err
		}
	}
	items, _, err := c.list(ctx, namespace)
	if err != nil {
		return err
	}
	for _, o := range items {
		if name := o.Name(); !o.Terminating() && name != "" && name == url.PathEscape(name) && name != "." && name != ".." {
			if err := c.delete(ctx, c.path(namespace, name), o.UID()); err != nil {
				return err
			}
		}
	}
	return nil
}

// delete sends a DELETE request for a path, with uid as a precondition if it is not empty.
func (c collection) delete(ctx context.Context, path, uid string) error {
	options := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
	if uid != "" {
		options["preconditions"] = map[string]any{"uid": uid}
	}
	res, err := c.aggregator.send(ctx, c.version, http.MethodDelete, path, "", codec.EncodeValue(nil, options))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxContent)) // so that the connection can be reused
	switch {
	case res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusConflict || res.StatusCode >= 200 && res.StatusCode <= 299:
		return nil
	}
	return badStatus(res.StatusCode)
}

// Remaining returns the number of objects in a namespace, and the finalizers of the first page.
func (c collection) Remaining(ctx context.Context, namespace string) (controllers.Remaining, error) {
	ctx, cancel := context.WithTimeout(ctx, contentTime)
	defer cancel()
	items, more, err := c.list(ctx, namespace)
	finalizers := map[string]int{}
	for _, o := range items {
		for _, f := range o.Finalizers() {
			if len(f) <= maxName {
				finalizers[f]++
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("listing %s in %s: %w", c.GroupResource, namespace, err)
	}
	return controllers.Remaining{Resource: c.GroupResource, Objects: len(items) + more, Finalizers: finalizers}, err
}

// list returns the first objects in a namespace, with their metadata only, and a lower bound of the number of further
// objects.
func (c collection) list(ctx context.Context, namespace string) (items []*meta.Object, more int, err error) {
	res, err := c.aggregator.send(ctx, c.version, http.MethodGet, c.path(namespace, ""), fmt.Sprintf("limit=%d", contentPage), nil)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusMethodNotAllowed {
		return nil, 0, nil // the server does not have the resource after all
	}
	if res.StatusCode != http.StatusOK {
		return nil, 0, badStatus(res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxContent+1))
	if err != nil {
		return nil, 0, err
	}
	if len(text) > maxContent {
		return nil, 0, fmt.Errorf("list has more than %d bytes", maxContent)
	}
	all := codec.FindField(text, "items")
	if !codec.IsObject(text, maxDepth) || all == nil {
		return nil, 0, errors.New("response is not a list")
	}
	for item := range codec.Items(all) { // decode only the metadata; not all servers omit the rest
		about := codec.FindField(item, "metadata")
		if codec.CountValues(about) > maxHead {
			return nil, 0, fmt.Errorf("metadata has more than %d values", maxHead)
		}
		tree, err := codec.DecodeWithout(about, "managedFields")
		if err != nil {
			return nil, 0, err
		}
		items = append(items, meta.NewObject(map[string]any{"metadata": tree}))
	}
	if codec.ScalarText(codec.FindField(text, "metadata", "continue")) != "" {
		more = 1
	}
	return items, more, nil
}

// send sends a request to an extension server, as the user of this server itself.
func (a *Aggregator) send(ctx context.Context, v *Version, method, path, query string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, v.URL(path, query).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	a.setHeaders(r)
	if body == nil {
		r.Body, r.ContentLength = http.NoBody, 0
		r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g="+a.o.Names.Group(wellknown.GroupMeta)+", application/json")
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	return v.transport.RoundTrip(r)
}
