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

// AtLeast waits until the caches show what a resourceVersion, as it was sent and
// as a number, asks for: the newest commit if it is unset, anything if it is 0,
// else that version.
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

// ErrListTimeout is the cause of a context that ends because the timeoutSeconds of a list
// passed.
var ErrListTimeout = errors.New("timeoutSeconds of the list passed")

// awaitFuture gives a revision that this server has not seen a short time to
// arrive. The error is a Status with the cause ResourceVersionTooLarge if that time passes, or
// the timeoutSeconds of the list. If the request itself times out, the error says so.
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

func tooLarge(asked, current storage.Revision) *meta.Status {
	st := meta.Timeout("Timeout: Too large resource version: %d, current: %d", asked, current)
	st.Details = &meta.StatusDetails{RetryAfterSeconds: 1, Causes: []meta.StatusCause{{
		Reason: meta.CauseTooLargeRV, Message: "Too large resource version",
	}}}
	return st
}

// Entry returns the entry of an object as the cache shows it, nil if there is none.
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

// Live returns the newest entry of an object, or nil.
func (s *Store) Live(ctx context.Context, t *resource.Type, key meta.Key) (*objectcache.Entry, error) {
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	return s.Entry(t, key)
}

// Object decodes an entry for a version of its type. The object may be shared:
// it must not be modified. An object that cannot be shown in the version is a
// *resource.ConversionError, or what the converter of the type says.
func Object(ctx context.Context, e *objectcache.Entry, v *resource.Version) (*meta.Object, error) {
	if asks(e, v) {
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

// Shows reports whether a version can show an entry.
func Shows(ctx context.Context, e *objectcache.Entry, v *resource.Version) bool {
	if v == v.Working() && !asks(e, v) {
		return true
	}
	_, err := Object(ctx, e, v)
	return err == nil
}

// AsStored reports whether a version shows an entry as it is stored.
func AsStored(ctx context.Context, e *objectcache.Entry, v *resource.Version) bool {
	if !v.AsStored() && v == v.Hub && !asks(e, v) && !e.Conforms(v.SchemaMark()) {
		_, _ = Object(ctx, e, v) // finds out
	}
	return v.AsStored() || e.Conforms(v.SchemaMark())
}

// Selection says which objects of a type a list, a watch or a deletecollection is
// about, and at which version.
type Selection struct {
	Namespace string // empty: all
	Name      string // empty: all
	Labels    meta.Selector
	Fields    meta.FieldSelector

	Version  string // resourceVersion as sent
	Revision storage.Revision
	Match    string // resourceVersionMatch
	Limit    int64
	Continue string
}

// Page is one page of a list.
type Page struct {
	objectcache.Page
	Continue  string
	Remaining int64 // -1: not told
	Whole     bool  // nothing was left out by selectors
}

// List reads what a selection in a version asks for, and says how it goes on. It fails if
// one of the objects cannot be read.
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

// entries reads the entries that a list asks for: at the version of its continue
// token, at one exact version, or the newest.
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
			return objectcache.Page{}, err // of a server that is ahead of this one, or made up
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

// AllReadable fails if an object that a list or the start of a watch would show
// cannot be read: what is missing in an answer without a word counts as deleted.
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

// FormatRevision writes a resourceVersion.
func FormatRevision(r storage.Revision) string { return strconv.FormatInt(int64(r), 10) }

// ParseRevision reads a resourceVersion; empty gives 0.
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

func expired(err error) error {
	if !errors.Is(err, storage.ErrCompacted) {
		return err
	}
	return meta.Expired("%s", "The resourceVersion for the provided list is too old.")
}
