package views

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"

	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
)

// yield lets other goroutines run after every 64th step of a loop over many objects.
func yield(i int) {
	if i%64 == 63 {
		runtime.Gosched()
	}
}

// SendList responds with a page of a list.
func (enc *Encoder) SendList(ctx context.Context, w *exchange.Response, r *exchange.Request, p *objects.Page) error {
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
	enc.recordList(r, p.Entries, lm)
	if m.Format == codec.JSON && m.View != media.Table && !m.Pretty {
		return enc.streamList(ctx, w, r, p.Entries, p.Whole, lm)
	}
	// Reserve before encoding, so that a refused response costs little.
	if err := r.Usage.ReserveAnswer(minSize(p.Entries, m)); err != nil {
		return err
	}
	var body []byte
	switch {
	case m.View == media.Table:
		t, terr := enc.NewTable(r)
		if terr != nil {
			return terr
		}
		body, err = t.Entries(ctx, p.Entries, lm)
	case m.Format == codec.Protobuf:
		body, err = enc.protobufList(ctx, p.Entries, r.Version, m, lm)
	default:
		body, err = enc.wholeList(ctx, p.Entries, r.Version, m, lm)
	}
	if err != nil {
		return err
	}
	w.Send(m, http.StatusOK, body)
	return nil
}

// recordList records the list of the response for the audit.
func (enc *Encoder) recordList(r *exchange.Request, entries []*objectcache.Entry, lm codec.ListMeta) {
	if r.Audit.Trail != nil {
		r.Audit.AnsweredBytes(func() []byte {
			body, _ := enc.wholeList(r.HTTP.Context(), entries, r.Version, media.Type{}, lm)
			return body
		})
	}
}

// minSize returns a lower estimate of the size of an encoded list, in bytes.
func minSize(entries []*objectcache.Entry, m media.Type) int {
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

// protobufList returns the encoding of a list in protobuf.
func (enc *Encoder) protobufList(ctx context.Context, entries []*objectcache.Entry, v *resource.Version, m media.Type, lm codec.ListMeta) ([]byte, error) {
	messages := make([][]byte, len(entries))
	for i, e := range entries {
		yield(i)
		message, err := message(ctx, e, v)
		if err != nil {
			return nil, err
		}
		if m.View == media.PartialList {
			message = codec.ProtoPartial(message)
		}
		messages[i] = message
	}
	if m.View == media.PartialList {
		return codec.ProtoList(nil, enc.Names.Group(wellknown.GroupMeta)+"/"+m.ViewVersion, "PartialObjectMetadataList", lm, slices.Values(messages)), nil
	}
	return codec.ProtoList(nil, v.ListGVK().APIVersion(), v.ListKind, lm, slices.Values(messages)), nil
}

// listHead returns the JSON of a list before its items.
func (enc *Encoder) listHead(v *resource.Version, m media.Type, lm codec.ListMeta) []byte {
	if m.View == media.PartialList {
		return codec.PartialListHead(nil, enc.Names, m.ViewVersion, lm)
	}
	return codec.ListHead(nil, v.ListGVK().APIVersion(), v.ListKind, lm)
}

// itemMedia returns the media type of the items of a JSON list.
func itemMedia(m media.Type) media.Type {
	if m.View == media.PartialList {
		m.View = media.Partial
	}
	m.Format = codec.JSON
	return m
}

// items are the items of a JSON list, with the commas between them.
type items struct {
	parts [][]byte
	own   int // bytes that belong to this list; the others are cached by the entries and shared with other lists
}

// items returns the items of a JSON list. The items of a kind that is a Go struct have no
// apiVersion and kind, because the list has them. whole is set if the entries are a complete range
// of the cache.
func (enc *Encoder) items(ctx context.Context, entries []*objectcache.Entry, v *resource.Version, m media.Type, whole bool) (items, error) {
	item := itemMedia(m)
	if AsStored(v, item) {
		parts, own := objectcache.JoinJSON(entries, whole)
		return items{parts, own}, nil
	}
	comma, brace := []byte(","), []byte("{")
	l := items{parts: make([][]byte, 0, 3*len(entries))}
	for i, e := range entries {
		yield(i)
		body, err := enc.Entry(ctx, e, v, item)
		if err != nil {
			return items{}, err
		}
		if item.View != media.Full || !objects.AsStored(ctx, e, v) {
			l.own += len(body) // the entry may drop this encoding for a newer one
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

// streamList writes a JSON list part by part, without a copy of the whole list in memory.
func (enc *Encoder) streamList(ctx context.Context, w *exchange.Response, r *exchange.Request, entries []*objectcache.Entry, whole bool, lm codec.ListMeta) error {
	m := r.Media
	items, err := enc.items(ctx, entries, r.Version, m, whole)
	if err != nil {
		return err
	}
	head := enc.listHead(r.Version, m, lm)
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

// Parts shorter than long are collected in a buffer of chunk bytes before they are written.
const (
	chunk    = 128 << 10
	long     = capacity.LongAnswer
	partSize = 24 // bytes of a slice header
)

// writeParts writes head, parts and tail, size bytes in total, and stops at the first error.
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

// wholeList returns a list as a single slice, for YAML and for indented JSON.
func (enc *Encoder) wholeList(ctx context.Context, entries []*objectcache.Entry, v *resource.Version, m media.Type, lm codec.ListMeta) ([]byte, error) {
	items, err := enc.items(ctx, entries, v, m, false)
	if err != nil {
		return nil, err
	}
	body := bytes.Join(append(append([][]byte{enc.listHead(v, m, lm)}, items.parts...), []byte(codec.ListTail)), nil)
	if m.Format == codec.YAML {
		return codec.EncodeYAML(body)
	}
	return body, nil
}
