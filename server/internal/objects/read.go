package objects

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// AtLeast waits until the caches show the state that a resourceVersion requests: the newest commit if it is unset,
// any state if it is "0", and otherwise that revision. version is the resourceVersion as it was sent, rev its number.
func (s *Store) AtLeast(ctx context.Context, version string, rev storage.Revision) error {
	switch {
	case version == "0":
		return nil
	case rev == 0:
		return s.CatchUp(ctx)
	case rev <= s.o.Hub.Revision():
		return nil
	}
	return s.awaitFuture(ctx, rev)
}

// ErrListTimeout is the cause with which the context of a list ends when its timeoutSeconds have passed.
var ErrListTimeout = errors.New("timeoutSeconds of the list passed")

// awaitFuture waits up to Options.FutureWait for a revision that this server has not seen. If that time, or the
// timeoutSeconds of the list, passes, the error is a Status with the cause ResourceVersionTooLarge. If the request
// itself times out, awaitFuture returns the error of its context.
func (s *Store) awaitFuture(ctx context.Context, rev storage.Revision) error {
	short, cancel := context.WithTimeout(ctx, s.o.FutureWait)
	defer cancel()
	if err := s.wait(short, rev); err != nil {
		waited := ctx.Err() == nil || context.Cause(ctx) == ErrListTimeout
		if waited && errors.Is(err, context.DeadlineExceeded) {
			return tooLarge(rev, s.o.Hub.Revision())
		}
		return err
	}
	return nil
}

// tooLarge returns the 504 for a resourceVersion that the store has not reached.
func tooLarge(requested, current storage.Revision) *meta.Status {
	st := meta.Timeout("Timeout: Too large resource version: %d, current: %d", requested, current)
	st.Details = &meta.StatusDetails{RetryAfterSeconds: 1, Causes: []meta.StatusCause{{
		Reason: meta.CauseTooLargeRV, Message: "Too large resource version",
	}}}
	return st
}

// Entry returns the entry of an object in the cache, or nil if there is none. If the object cannot be read, the error
// is a *client.UnreadableError.
func (s *Store) Entry(t *resource.Type, key meta.Key) (*objectcache.Entry, error) {
	cache := s.o.Hub.Cache(t.GroupResource())
	if e := cache.Get(key); e != nil {
		return e, nil
	}
	if rev, ok := cache.DamagedAt(key); ok {
		return nil, &client.UnreadableError{Resource: t.GroupResource(), Keys: []meta.Key{key}, Revision: rev}
	}
	return nil, nil
}

// Live returns the newest entry of an object, or nil if it does not exist. It catches up first, and otherwise behaves
// like Entry.
func (s *Store) Live(ctx context.Context, t *resource.Type, key meta.Key) (*objectcache.Entry, error) {
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	return s.Entry(t, key)
}

// Object returns the object of an entry in a version of its type. The object may be shared and must not be modified.
// If the object cannot be converted, the error is a *resource.ConversionError or the error of the type's converter.
func Object(ctx context.Context, e *objectcache.Entry, v *resource.Version) (*meta.Object, error) {
	if needsConverter(e, v) {
		var err error
		if e, err = EntryIn(ctx, e, v); err != nil {
			return nil, err
		}
	}
	obj := e.Object()
	if v.AsStored() || e.Conforms(v.SchemaMark()) {
		return obj, nil
	}
	shown, err := v.Convert(ctx, obj)
	if err == nil && v == v.Hub && meta.Equal(shown.Tree(), obj.Tree()) {
		e.MarkConforming(v.SchemaMark())
	}
	return shown, err
}

// Shows reports whether an entry can be shown in a version.
func Shows(ctx context.Context, e *objectcache.Entry, v *resource.Version) bool {
	if v == v.Working() && !needsConverter(e, v) {
		return true
	}
	_, err := Object(ctx, e, v)
	return err == nil
}

// AsStored reports whether an entry is shown in a version exactly as the cache holds it.
func AsStored(ctx context.Context, e *objectcache.Entry, v *resource.Version) bool {
	if !v.AsStored() && v == v.Hub && !needsConverter(e, v) && !e.Conforms(v.SchemaMark()) {
		_, _ = Object(ctx, e, v) // marks the entry if it conforms
	}
	return v.AsStored() || e.Conforms(v.SchemaMark())
}

// Selection selects the objects of a type for a list, a watch or a deletecollection, and the resourceVersion to read
// at.
type Selection struct {
	Namespace string // "": all
	Name      string // "": all
	Labels    meta.Selector
	Fields    meta.FieldSelector

	Version  string           // resourceVersion as it was sent
	Revision storage.Revision // its number; 0: unset or "0"
	Match    string           // resourceVersionMatch
	Limit    int64
	Continue string
}

// Page is one page of a list.
type Page struct {
	objectcache.Page
	Continue  string
	Remaining int64 // number of objects after the page; -1: unknown
	Whole     bool  // the list has no name, label or field selector
}

// List returns a page of the objects that sel selects in a version, with the continue token of the next page. It
// fails if one of the objects cannot be read.
func (s *Store) List(ctx context.Context, v *resource.Version, sel *Selection) (*Page, error) {
	cache, selector := s.o.Hub.Cache(v.GroupResource()), NewSelector(v, sel)
	p, err := s.entries(ctx, cache, selector.Query, sel)
	if err == nil {
		p, err = selector.fill(ctx, cache, p, int(max(sel.Limit, 0)))
	}
	if err == nil {
		err = s.AllReadable(v.Type, sel)
	}
	if err != nil {
		return nil, err
	}
	page := &Page{Page: p, Remaining: -1, Whole: sel.Name == "" && sel.Labels.Empty() && sel.Fields.Empty()}
	if p.Next != "" {
		page.Continue = continueToken{Revision: p.Revision, Start: p.Next}.String()
		if page.Whole {
			page.Remaining = p.Remaining
		}
	}
	return page, nil
}

// entries returns the entries for a list: at the revision of its continue token, at the exact revision that it
// requests, or the newest.
func (s *Store) entries(ctx context.Context, cache *objectcache.Cache, q objectcache.Query, sel *Selection) (objectcache.Page, error) {
	limit := int(max(sel.Limit, 0))
	switch {
	case sel.Continue != "":
		if sel.Version != "" && sel.Version != "0" {
			return objectcache.Page{}, meta.BadRequest("specifying resource version is not allowed when using continue")
		}
		token, err := parseToken(sel.Continue)
		if err != nil {
			return objectcache.Page{}, err
		}
		if token.Revision == anyState {
			if err := s.CatchUp(ctx); err != nil {
				return objectcache.Page{}, err
			}
			return cache.List(q, token.Start, limit), nil
		}
		if err := s.AtLeast(ctx, "", token.Revision); err != nil {
			return objectcache.Page{}, err // the token is from a server that is ahead of this one, or forged
		}
		p, err := cache.ListAt(ctx, token.Revision, q, token.Start, limit)
		return p, goneToken(err, token.Start)
	case sel.Match == "Exact", sel.Match == "" && sel.Limit > 0 && sel.Revision > 0:
		if err := s.AtLeast(ctx, "", sel.Revision); err != nil {
			return objectcache.Page{}, err
		}
		p, err := cache.ListAt(ctx, sel.Revision, q, "", limit)
		return p, expired(err)
	}
	if err := s.AtLeast(ctx, sel.Version, sel.Revision); err != nil {
		return objectcache.Page{}, err
	}
	return cache.List(q, "", limit), nil
}

// AllReadable returns a *client.UnreadableError if an object that a list or the start of a watch would include cannot
// be read. Clients take an object that is missing in a list for deleted, so the list must fail.
func (s *Store) AllReadable(t *resource.Type, sel *Selection) error {
	damaged := s.o.Hub.Cache(t.GroupResource()).Damaged(sel.Namespace)
	if len(damaged) == 0 {
		return nil
	}
	name := sel.Name
	if selected, ok := sel.Fields.Value("metadata.name"); ok && name == "" {
		name = selected
	}
	if name != "" {
		damaged = slices.DeleteFunc(damaged, func(k meta.Key) bool { return k.Name != name })
	}
	if len(damaged) == 0 {
		return nil
	}
	return &client.UnreadableError{Resource: t.GroupResource(), Keys: damaged}
}

// FormatRevision returns the resourceVersion of a revision.
func FormatRevision(r storage.Revision) string { return strconv.FormatInt(int64(r), 10) }

// ParseRevision returns the revision of a resourceVersion. It returns 0 for "".
func ParseRevision(s string) (storage.Revision, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, meta.BadRequest("Invalid value: %q: resourceVersion must be an unsigned integer", s)
	}
	return storage.Revision(n), nil
}

// continueToken is the position of the next page of a list, and the revision of all of its pages.
type continueToken struct {
	Revision storage.Revision `json:"rv"`
	Start    string           `json:"start"`
}

// anyState, as the revision of a token, continues the list at the newest state. It is for a client that was so slow
// that the revision of its list has been compacted.
const anyState storage.Revision = -1

func (t continueToken) String() string {
	b, _ := json.Marshal(t) // cannot fail
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

// trailing returns an error unless the decoder is at the end of its input.
func trailing(d *json.Decoder) error {
	if _, err := d.Token(); err != io.EOF {
		return errors.New("trailing data")
	}
	return nil
}

// goneToken returns the 410 for a continue token with a compacted revision, if err is ErrCompacted, and err
// otherwise. The Status has a token for the rest of the list at the newest state.
func goneToken(err error, start string) error {
	if !errors.Is(err, storage.ErrCompacted) {
		return err
	}
	st := meta.Expired("%s",
		"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, "+
			"or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an "+
			"inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	st.Continue = continueToken{Revision: anyState, Start: start}.String()
	return st
}

// expired returns the 410 for a list at a compacted revision, if err is ErrCompacted, and err otherwise.
func expired(err error) error {
	if !errors.Is(err, storage.ErrCompacted) {
		return err
	}
	return meta.Expired("%s", "The resourceVersion for the provided list is too old.")
}
