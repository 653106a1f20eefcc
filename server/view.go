package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/watch"
)

// yield lets other goroutines run now and then, within a loop over many objects.
func yield(i int) {
	if i%64 == 63 {
		runtime.Gosched()
	}
}

// plain reports whether an entry's own bytes are the answer.
func plain(v *resource.Version, m media.Type) bool {
	return v.AsStored() && m.Format == codec.JSON && m.View == media.Full
}

// formKey names what distinguishes the kept forms of one entry from each other.
func formKey(v *resource.Version, m media.Type) watch.FormKey {
	view := uint8(m.View) << 1
	if m.ViewVersion == "v1beta1" {
		view |= 1
	}
	return watch.FormKey{Version: v.FormName(), Media: uint8(m.Format), View: view}
}

// entryBytes returns an entry, which was through objects.InVersion, in the form that a
// caller gets, made once. Tables are not made here.
func (s *Server) entryBytes(ctx context.Context, e *watch.Entry, v *resource.Version, m media.Type) ([]byte, error) {
	if m.Format == codec.JSON && m.View == media.Full && objects.AsStored(ctx, e, v) {
		return e.JSON(), nil
	}
	if m.Format == codec.Protobuf {
		message, err := s.message(ctx, e, v)
		if err != nil {
			return nil, err
		}
		return s.envelope(message, v, m), nil
	}
	return e.Form(formKey(v, m), func() ([]byte, error) {
		if m.Format == codec.JSON && m.View == media.Partial && objects.AsStored(ctx, e, v) {
			return codec.AppendPartial(nil, e.JSON(), s.names, m.ViewVersion), nil
		}
		obj, err := objects.Object(ctx, e, v)
		if err != nil {
			return nil, err
		}
		return s.objectBytes(obj, v, m)
	})
}

// protoOf returns the protobuf encoding of a version. A version without one returns the encoding of
// PartialObjectMetadata, because callers can get only its metadata in protobuf.
func protoOf(v *resource.Version) *codec.Proto {
	if p := v.Proto(); p != nil {
		return p
	}
	return codec.Metas().Partial
}

// message returns an entry's protobuf message, without envelope, made once.
func (s *Server) message(ctx context.Context, e *watch.Entry, v *resource.Version) ([]byte, error) {
	return e.Form(watch.FormKey{Version: v.FormName(), Media: uint8(codec.Protobuf)}, func() ([]byte, error) {
		obj, err := objects.Object(ctx, e, v)
		if err != nil {
			return nil, err
		}
		return protoOf(v).Append(nil, obj.Tree()), nil
	})
}

// envelope puts what a caller gets of a message around it.
func (s *Server) envelope(message []byte, v *resource.Version, m media.Type) []byte {
	if m.View == media.Partial {
		return codec.Envelope(nil, s.names.Group(names.GroupMeta)+"/"+m.ViewVersion, "PartialObjectMetadata", codec.ProtoPartial(message))
	}
	return codec.Envelope(nil, v.GVK().APIVersion(), v.Kind, message)
}

// objectBytes encodes an object.
func (s *Server) objectBytes(obj *meta.Object, v *resource.Version, m media.Type) ([]byte, error) {
	if m.Format == codec.Protobuf {
		return s.envelope(protoOf(v).Append(nil, obj.Tree()), v, m), nil
	}
	body := codec.EncodeJSON(nil, obj.Tree())
	if m.View == media.Partial {
		body = codec.AppendPartial(nil, body, s.names, m.ViewVersion)
	}
	if m.Format == codec.YAML {
		return codec.EncodeYAML(body)
	}
	return body, nil
}

// protobufList puts a list of messages together.
func (s *Server) protobufList(ctx context.Context, entries []*watch.Entry, v *resource.Version, m media.Type, lm codec.ListMeta) ([]byte, error) {
	messages := make([][]byte, len(entries))
	for i, e := range entries {
		yield(i)
		message, err := s.message(ctx, e, v)
		if err != nil {
			return nil, err
		}
		if m.View == media.PartialList {
			message = codec.ProtoPartial(message)
		}
		messages[i] = message
	}
	if m.View == media.PartialList {
		return codec.ProtoList(nil, s.names.Group(names.GroupMeta)+"/"+m.ViewVersion, "PartialObjectMetadataList", lm, slices.Values(messages)), nil
	}
	return codec.ProtoList(nil, v.ListGVK().APIVersion(), v.ListKind, lm, slices.Values(messages)), nil
}

// respondEntry answers with one object.
func (s *Server) respondEntry(ctx context.Context, w *exchange.Response, r *exchange.Request, code int, e *watch.Entry) error {
	e, err := objects.EntryIn(ctx, e, r.Version.ItemVersion(r.Sub))
	if err != nil {
		return err
	}
	s.answeredEntry(r, e)
	if r.Sub != nil && r.Sub.Show != nil {
		obj, err := objects.Object(ctx, e, r.Version.ItemVersion(r.Sub))
		if err != nil {
			return err
		}
		if r.Sub.Readable != nil {
			if err := r.Sub.Readable(obj); err != nil {
				return err
			}
		}
		if obj, err = r.Sub.Shown(ctx, obj); err != nil {
			return err
		}
		return s.respondObject(w, r, code, obj)
	}
	body, err := s.shownEntry(ctx, r, e)
	if err != nil {
		return err
	}
	w.Send(r.Media, code, body)
	return nil
}

func (s *Server) shownEntry(ctx context.Context, r *exchange.Request, e *watch.Entry) ([]byte, error) {
	if r.Media.View != media.Table {
		return s.entryBytes(ctx, e, r.Version, r.Media)
	}
	t, err := s.table(r)
	if err != nil {
		return nil, err
	}
	return t.ofEntries(ctx, []*watch.Entry{e}, codec.ListMeta{ResourceVersion: objects.FormatRevision(e.Revision())}, false)
}

// respondObject answers with an object that has no entry.
func (s *Server) respondObject(w *exchange.Response, r *exchange.Request, code int, obj *meta.Object) error {
	r.Audit.Answered(obj)
	if r.Media.View == media.Table {
		t, err := s.table(r)
		if err != nil {
			return err
		}
		w.Send(r.Media, code, t.ofObject(obj))
		return nil
	}
	body, err := s.objectBytes(obj, r.BodyVersion(), r.Media)
	if err != nil {
		return err
	}
	w.Send(r.Media, code, body)
	return nil
}

// respondList answers with a page.
func (s *Server) respondList(ctx context.Context, w *exchange.Response, r *exchange.Request, p *objects.Page) error {
	m := r.Media
	var err error
	if p.Entries, err = objects.InVersion(ctx, p.Entries, r.Version); err != nil {
		return err
	}
	lm := codec.ListMeta{ResourceVersion: objects.FormatRevision(p.Revision), Continue: p.Continue, KeepContinue: r.Version.ListContinue && m.View == media.Full}
	if r.Version.Virtual {
		lm.ResourceVersion = ""
	}
	if p.Remaining >= 0 {
		lm.Remaining = &p.Remaining
	}
	s.answeredList(r, p.Entries, lm)
	if m.Format == codec.JSON && m.View != media.Table && !m.Pretty {
		return s.streamList(ctx, w, r, p.Entries, p.Whole, m, lm)
	}
	// What there is no room for is not made first, to be refused then.
	if err := r.Usage.ReserveAnswer(leastSize(p.Entries, m)); err != nil {
		return err
	}
	var body []byte
	switch {
	case m.View == media.Table:
		t, terr := s.table(r)
		if terr != nil {
			return terr
		}
		body, err = t.ofEntries(ctx, p.Entries, lm, false)
	case m.Format == codec.Protobuf:
		body, err = s.protobufList(ctx, p.Entries, r.Version, m, lm)
	default:
		body, err = s.wholeList(ctx, p.Entries, r.Version, m, lm)
	}
	if err != nil {
		return err
	}
	w.Send(m, http.StatusOK, body)
	return nil
}

// leastSize is about how many bytes a list has in a form at the least.
func leastSize(entries []*watch.Entry, m media.Type) int {
	const metadata = 200
	if m.View != media.Full || m.Format == codec.Protobuf {
		return metadata * len(entries)
	}
	size := 0
	for _, e := range entries {
		size += int(e.StoredBytes())
	}
	return size
}

// listHead is everything of a JSON list before its items.
func (s *Server) listHead(v *resource.Version, m media.Type, lm codec.ListMeta) []byte {
	if m.View == media.PartialList {
		return codec.PartialListHead(nil, s.names, m.ViewVersion, lm)
	}
	return codec.ListHead(nil, v.ListGVK().APIVersion(), v.ListKind, lm)
}

// itemMedia is the form of the items of a JSON list.
func itemMedia(m media.Type) media.Type {
	if m.View == media.PartialList {
		m.View = media.Partial
	}
	m.Format = codec.JSON
	return m
}

// listed are the items of a JSON list, commas among them.
type listed struct {
	parts [][]byte
	own   int // bytes made for this list; the rest the entries keep, and all lists share
}

// items returns a list's items. Those of kinds that are structs in Go tell no
// apiVersion and kind: the list does.
func (s *Server) items(ctx context.Context, entries []*watch.Entry, v *resource.Version, m media.Type, whole bool) (listed, error) {
	item := itemMedia(m)
	if plain(v, item) {
		parts, own := watch.Joined(entries, whole)
		return listed{parts, own}, nil
	}
	comma, brace := []byte(","), []byte("{")
	l := listed{parts: make([][]byte, 0, 3*len(entries))}
	for i, e := range entries {
		yield(i)
		body, err := s.entryBytes(ctx, e, v, item)
		if err != nil {
			return listed{}, err
		}
		if item.View != media.Full || !objects.AsStored(ctx, e, v) {
			l.own += len(body) // as the forms that entries keep are dropped for newer ones
		}
		if i > 0 {
			l.parts = append(l.parts, comma)
		}
		if !v.NamedItems && item.View == media.Full {
			_, body = codec.CutHead(body)
			l.parts = append(l.parts, brace)
		}
		l.parts = append(l.parts, body)
	}
	return l, nil
}

// streamList writes a list, head, items, tail, without putting it together
// first. whole says that the entries are all of a range.
func (s *Server) streamList(ctx context.Context, w *exchange.Response, r *exchange.Request, entries []*watch.Entry, whole bool, m media.Type, lm codec.ListMeta) error {
	items, err := s.items(ctx, entries, r.Version, m, whole)
	if err != nil {
		return err
	}
	head := s.listHead(r.Version, m, lm)
	size := len(head) + len(codec.ListTail) + 1
	for _, p := range items.parts {
		size += len(p)
	}
	if err := r.Usage.ReserveAnswer(min(chunk, size) + partSize*len(items.parts) + items.own); err != nil {
		return err
	}
	out := w.Start(m, http.StatusOK, size)
	writeParts(out, size, head, items.parts, codec.ListTail+"\n")
	_ = out.Close()
	return nil
}

// Parts of an answer that are shorter than long are put together in a buffer of
// chunk bytes before they are written.
const (
	chunk    = 128 << 10
	long     = capacity.LongAnswer
	partSize = 24 // bytes of what tells where a part is
)

// writeParts writes head, parts and tail, of size bytes. A caller who went away
// ends it early.
func writeParts(w io.Writer, size int, head []byte, parts [][]byte, tail string) {
	buf := append(make([]byte, 0, min(chunk, size)), head...)
	for _, p := range parts {
		if len(p) >= long || len(buf)+len(p) > chunk {
			if _, err := w.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
		if len(p) < long {
			buf = append(buf, p...)
		} else if _, err := w.Write(p); err != nil {
			return
		}
	}
	_, _ = w.Write(append(buf, tail...))
}

// wholeList puts a list together for the forms that need the whole: YAML, and
// JSON for people.
func (s *Server) wholeList(ctx context.Context, entries []*watch.Entry, v *resource.Version, m media.Type, lm codec.ListMeta) ([]byte, error) {
	items, err := s.items(ctx, entries, v, m, false)
	if err != nil {
		return nil, err
	}
	body := bytes.Join(append(append([][]byte{s.listHead(v, m, lm)}, items.parts...), []byte(codec.ListTail)), nil)
	if m.Format == codec.YAML {
		return codec.EncodeYAML(body)
	}
	return body, nil
}

// frameBytes frames an object as a watch event.
func (s *Server) frameBytes(m media.Type, kind string, object []byte) []byte {
	if m.Format == codec.Protobuf {
		return codec.ProtoFrame(nil, kind, object)
	}
	return codec.Frame(nil, kind, object)
}
