package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// get answers GET on an item or a sub-resource (conventions, Resource version
// semantics, get).
func (s *Server) get(ctx context.Context, w *response, r *request) error {
	if r.sub != nil && r.sub.Act != nil {
		answer, err := s.call(ctx, r, &writeOptions{}, nil)
		if err != nil {
			return err
		}
		return s.respondObject(w, r, http.StatusOK, answer)
	}
	version := r.query.Get("resourceVersion")
	rev, err := parseRevision(version)
	if err != nil {
		return err
	}
	if err := s.atLeast(ctx, version, rev); err != nil {
		return err
	}
	entry := s.hub.Cache(r.version.GroupResource()).Get(r.key())
	if entry == nil {
		return meta.NotFound(r.version.GroupResource(), r.name)
	}
	return s.respondEntry(w, r, http.StatusOK, entry)
}

// atLeast waits until the caches show what a resourceVersion asks for: the
// newest commit if it is unset, anything if it is 0, else that version.
func (s *Server) atLeast(ctx context.Context, version string, rev storage.Revision) error {
	switch {
	case version == "0":
		return nil
	case rev == 0:
		return s.catchUp(ctx)
	case rev <= s.hub.Revision():
		return nil
	}
	return s.awaitFuture(ctx, rev)
}

// awaitFuture gives a revision that this server has not seen a short time to
// arrive.
func (s *Server) awaitFuture(ctx context.Context, rev storage.Revision) error {
	short, cancel := context.WithTimeout(ctx, s.limits.FutureWait)
	defer cancel()
	if err := s.hub.Wait(short, rev); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return tooLarge(rev, s.hub.Revision())
		}
		return err
	}
	return nil
}

func tooLarge(asked, current storage.Revision) *meta.Status {
	st := meta.Failure(http.StatusGatewayTimeout, meta.ReasonTimeout,
		"Timeout: Too large resource version: %d, current: %d", asked, current)
	st.Details = &meta.Details{RetryAfterSeconds: 1, Causes: []meta.Cause{{
		Reason: meta.CauseTooLargeRV, Message: "Too large resource version",
	}}}
	return st
}

// list answers GET on a collection.
func (s *Server) list(ctx context.Context, w *response, r *request) error {
	o, err := parseListOptions(r.query, r.version.Type, false)
	if err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	page, err := s.page(ctx, r, o)
	if err != nil {
		return err
	}
	return s.respondList(w, r, page)
}

// listPage is one page of a list, ready to be written.
type listPage struct {
	watch.Page
	token     string
	remaining int64 // -1: not told
}

// page reads the objects that a list asks for (conventions, Resource version
// semantics, list).
func (s *Server) page(ctx context.Context, r *request, o *listOptions) (*listPage, error) {
	cache := s.hub.Cache(r.version.GroupResource())
	q := s.listQuery(r, o)
	var p watch.Page
	var err error
	switch {
	case o.token != "":
		if o.version != "" && o.version != "0" {
			return nil, meta.BadRequest("specifying resource version is not allowed when using continue")
		}
		token, err := parseToken(o.token)
		if err != nil {
			return nil, err
		}
		if err := s.atLeast(ctx, "", token.Revision); err != nil {
			return nil, err // of a server that is ahead of this one, or made up
		}
		p, err = cache.ListAt(ctx, token.Revision, q, token.Start, int(max(o.limit, 0)))
		if err != nil {
			return nil, s.goneToken(err)
		}
	case o.match == "Exact", o.match == "" && o.limit > 0 && o.revision > 0:
		if err := s.atLeast(ctx, "", o.revision); err != nil {
			return nil, err
		}
		if p, err = cache.ListAt(ctx, o.revision, q, "", int(max(o.limit, 0))); err != nil {
			return nil, s.expired(err, o.revision)
		}
	default:
		if err := s.atLeast(ctx, o.version, o.revision); err != nil {
			return nil, err
		}
		p = cache.List(q, "", int(max(o.limit, 0)))
	}
	page := &listPage{Page: p, remaining: -1}
	if p.Next != "" {
		page.token = continueToken{Revision: p.Revision, Start: p.Next}.String()
		if o.labels.Empty() && o.fields.Empty() {
			page.remaining = p.Remaining
		}
	}
	return page, nil
}

func (s *Server) listQuery(r *request, o *listOptions) watch.Query {
	return query(r.version.Type, r.namespace, r.name, o)
}

// query makes what the cache is asked for.
func query(t *registry.Type, namespace, name string, o *listOptions) watch.Query {
	return watch.Query{Namespace: namespace, Name: name, Labels: o.labels, Fields: o.fields, Field: func(e *watch.Entry, field string) string {
		f := t.SelectableField(field)
		if v := e.Field(f.Path...); v != "" {
			return v
		}
		return f.Absent
	}}
}

// continueToken says where the next page of a list begins, and at which
// revision all of its pages are.
type continueToken struct {
	Revision storage.Revision `json:"rv"`
	Start    string           `json:"start"`
}

func (t continueToken) String() string {
	b, _ := json.Marshal(t) // two plain fields cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseToken(s string) (continueToken, error) {
	var t continueToken
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = errors.Join(d.Decode(&t), trailing(d))
	}
	if err != nil || t.Revision <= 0 || t.Start == "" {
		return t, meta.BadRequest("continue key is not valid")
	}
	return t, nil
}

// trailing is an error unless the decoder is at its end.
func trailing(d *json.Decoder) error {
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows")
	}
	return nil
}

// goneToken is the 410 for a page whose history is gone.
func (s *Server) goneToken(err error) error {
	if !errors.Is(err, watch.ErrGone) {
		return err
	}
	return meta.Failure(http.StatusGone, meta.ReasonExpired,
		"The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.")
}

func (s *Server) expired(err error, rev storage.Revision) error {
	if !errors.Is(err, watch.ErrGone) {
		return err
	}
	return meta.Failure(http.StatusGone, meta.ReasonExpired, "The resourceVersion for the provided list is too old: %d", rev)
}

// deadline of a watch: what the caller asked for, or a random time between once
// and twice the limit so that clients do not come back all at once.
func (s *Server) watchTime(o *listOptions) time.Duration {
	if o.timeout > 0 {
		return o.timeout
	}
	base := s.limits.WatchTime
	if base == 0 {
		base = 30 * time.Minute
	}
	return base + jitter(base)
}
