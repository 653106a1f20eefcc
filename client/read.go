package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"orch.io/controlplane/api/meta"
)

// Get returns an object. Refusals of the server are *meta.Status here and in all calls:
// meta.IsNotFound tells one that is not there.
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

// ListOptions say which part of a list is wanted; zero is the whole.
type ListOptions struct {
	Limit    int64  // objects at most
	Continue string // that of the page before
}

// Page is a list, or a part of one.
type Page[T any] struct {
	Items     []*T
	Version   string // of the server's state that it shows: a watch goes on from there
	Continue  string // for the next page; empty: this is the last
	Remaining *int64 // objects after this page, if the server knows
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

// pageSize is how many objects All asks for at a time.
const pageSize = 500

// All returns the objects one by one, as of one moment, and asks for them in pages. It
// ends with the first error; that of a list that took so long that the server has
// forgotten the moment has the reason meta.ReasonExpired.
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

// list returns a page without its items, and these.
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
		o.typed(item)
	}
	return items, page, nil
}

// typed lets an item of a list say what it is: servers may leave that out.
func (o *Objects[T]) typed(item *meta.Object) {
	if item.Kind() == "" {
		item.SetGVK(o.gvk())
	}
}

// selection are the selectors as query parameters.
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
