package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"

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
	entry, err := s.lookUp(r.version.Type, r.key())
	if err != nil {
		return err
	}
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
	s.widen(r, o)
	if err := s.takeSeat(ctx, r); err != nil {
		return err
	}
	page, err := s.page(ctx, r, o)
	if err != nil {
		return err
	}
	if err := s.takeMaker(ctx, r); err != nil {
		return err
	}
	return s.respondList(w, r, page)
}

// listPage is one page of a list, ready to be written.
type listPage struct {
	watch.Page
	token     string
	remaining int64 // -1: not told
	whole     bool  // nothing was left out by selectors
}

// page reads what a list asks for, and says how it goes on.
func (s *Server) page(ctx context.Context, r *request, o *listOptions) (*listPage, error) {
	p, err := s.entries(ctx, r, o)
	if err == nil {
		err = s.allReadable(r)
	}
	if err != nil {
		return nil, err
	}
	page := &listPage{Page: p, remaining: -1, whole: r.name == "" && o.labels.Empty() && o.fields.Empty()}
	if p.Next != "" {
		page.token = continueToken{Revision: p.Revision, Start: p.Next}.String()
		if page.whole {
			page.remaining = p.Remaining
		}
	}
	return page, nil
}

// entries reads the entries that a list asks for: at the version of its continue
// token, at one exact version, or the newest (conventions, Resource version
// semantics, list).
func (s *Server) entries(ctx context.Context, r *request, o *listOptions) (watch.Page, error) {
	cache, q, limit := s.hub.Cache(r.version.GroupResource()), query(r, o), int(max(o.limit, 0))
	switch {
	case o.token != "":
		if o.version != "" && o.version != "0" {
			return watch.Page{}, meta.BadRequest("specifying resource version is not allowed when using continue")
		}
		token, err := parseToken(o.token)
		if err != nil {
			return watch.Page{}, err
		}
		if token.Revision == anyState {
			if err := s.catchUp(ctx); err != nil {
				return watch.Page{}, err
			}
			return cache.List(q, token.Start, limit), nil
		}
		if err := s.atLeast(ctx, "", token.Revision); err != nil {
			return watch.Page{}, err // of a server that is ahead of this one, or made up
		}
		p, err := cache.ListAt(ctx, token.Revision, q, token.Start, limit)
		return p, goneToken(err, token.Start)
	case o.match == "Exact", o.match == "" && o.limit > 0 && o.revision > 0:
		if err := s.atLeast(ctx, "", o.revision); err != nil {
			return watch.Page{}, err
		}
		p, err := cache.ListAt(ctx, o.revision, q, "", limit)
		return p, expired(err)
	}
	if err := s.atLeast(ctx, o.version, o.revision); err != nil {
		return watch.Page{}, err
	}
	return cache.List(q, "", limit), nil
}

// query makes what the cache is asked for.
func query(r *request, o *listOptions) watch.Query {
	t := r.version.Type
	return watch.Query{Namespace: r.namespace, Name: r.name, Labels: o.labels, Fields: o.fields, Field: func(e *watch.Entry, field string) string {
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

// anyState in a token goes on at the newest state: with it who was too slow for
// one consistent list gets the rest.
const anyState storage.Revision = -1

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
	if err != nil || t.Revision <= 0 && t.Revision != anyState || t.Start == "" {
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

// goneToken is the 410 for a page whose history is gone. It carries a token for
// the rest of the list as it is now.
func goneToken(err error, start string) error {
	if !errors.Is(err, watch.ErrGone) {
		return err
	}
	st := meta.Failure(http.StatusGone, meta.ReasonExpired,
		"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, "+
			"or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an "+
			"inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	st.Continue = continueToken{Revision: anyState, Start: start}.String()
	return st
}

func expired(err error) error {
	if !errors.Is(err, watch.ErrGone) {
		return err
	}
	return meta.Failure(http.StatusGone, meta.ReasonExpired, "The resourceVersion for the provided list is too old.")
}
