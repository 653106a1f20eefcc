package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"orch.io/controlplane/api/meta"
)

// Get returns an object. Here and in all other calls, an error of the server is a *meta.Status;
// meta.IsNotFound reports whether the object does not exist.
func (o *Objects[T]) Get(ctx context.Context, name string) (*T, error) {
	path, err := o.item(meta.Key{Namespace: o.namespace, Name: name})
	if err != nil {
		return nil, err
	}
	text, err := o.conn.call(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	return o.decode(text)
}

// ListOptions selects a part of a list. The zero ListOptions selects the whole list.
type ListOptions struct {
	Limit    int64  // maximum number of objects; 0 means all
	Continue string // Continue of the previous Page
}

// Page is a list or a part of it.
type Page[T any] struct {
	Items     []*T
	Version   string // resourceVersion of the list, from which a Watch can continue
	Continue  string // for the next page; empty on the last page
	Remaining *int64 // number of objects after this page; nil if unknown
}

// List returns the objects, or a page of them.
func (o *Objects[T]) List(ctx context.Context, opts ListOptions) (*Page[T], error) {
	trees, page, err := o.list(ctx, opts)
	if err != nil {
		return nil, err
	}
	page.Items = make([]*T, len(trees))
	for i, t := range trees {
		if page.Items[i], err = o.value(t.Tree()); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// pageSize is the number of objects that All requests at a time.
const pageSize = 500

// All iterates over the objects as of one resourceVersion and fetches them in pages. It ends with
// the first error. If the iteration takes so long that the server has compacted the
// resourceVersion, the error has the reason meta.ReasonExpired.
func (o *Objects[T]) All(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		opts := ListOptions{Limit: pageSize}
		for {
			page, err := o.List(ctx, opts)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Continue == "" {
				return
			}
			opts.Continue = page.Continue
		}
	}
}

// list returns the objects of a page, and the Page without Items.
func (o *Objects[T]) list(ctx context.Context, opts ListOptions) ([]*meta.Object, *Page[T], error) {
	path, err := o.collection(o.namespace)
	if err != nil {
		return nil, nil, err
	}
	q := o.selection()
	if opts.Limit > 0 {
		q.Set("limit", strconv.FormatInt(opts.Limit, 10))
	}
	if opts.Continue != "" {
		q.Set("continue", opts.Continue)
	}
	text, err := o.conn.call(ctx, request{method: http.MethodGet, path: path, query: q})
	if err != nil {
		return nil, nil, err
	}
	tree, err := o.parse(text)
	if err != nil {
		return nil, nil, err
	}
	list := meta.NewObject(tree)
	page := &Page[T]{Version: list.ResourceVersion(), Continue: list.String("metadata", "continue")}
	if n, ok := list.Get("metadata", "remainingItemCount"); ok && n != nil {
		left := list.Int("metadata", "remainingItemCount")
		page.Remaining = &left
	}
	items := list.Objects("items")
	for _, item := range items {
		o.setType(item)
	}
	return items, page, nil
}

// setType sets apiVersion and kind of a list item: servers may omit them.
func (o *Objects[T]) setType(item *meta.Object) {
	if item.Kind() == "" {
		item.SetGVK(o.gvk())
	}
}

// selection returns the selectors as query parameters.
func (o *Objects[T]) selection() url.Values {
	q := url.Values{}
	if o.labels != "" {
		q.Set("labelSelector", o.labels)
	}
	if o.fields != "" {
		q.Set("fieldSelector", o.fields)
	}
	return q
}
