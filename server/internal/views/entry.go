// Package views encodes entries and objects in the requested version, format and view (such as a
// Table): single objects, lists, and events of watches.
package views

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
)

// Encoder encodes entries and objects with the names of a profile. It is safe for concurrent use.
type Encoder struct{ Names names.Profile }

// AsStored reports whether the stored bytes of an entry are the response to a request for a
// version.
func AsStored(v *resource.Version, m media.Type) bool {
	return v.AsStored() && m.Format == codec.JSON && m.View == media.Full
}

// EncodingKey returns the key under which an entry caches its encoding in a version and media type.
func EncodingKey(v *resource.Version, m media.Type) objectcache.EncodingKey {
	view := uint8(m.View) << 1
	if m.ViewVersion == "v1beta1" {
		view |= 1
	}
	return objectcache.EncodingKey{Version: v.FormName(), Media: uint8(m.Format), View: view}
}

// Entry returns the encoding of an entry that objects.InVersion returned for the version. The entry
// caches the encoding; the caller must not modify it. m must not be a Table.
func (enc *Encoder) Entry(ctx context.Context, e *objectcache.Entry, v *resource.Version, m media.Type) ([]byte, error) {
	if m.Format == codec.JSON && m.View == media.Full && objects.AsStored(ctx, e, v) {
		return e.JSON(), nil
	}
	if m.Format == codec.Protobuf {
		message, err := message(ctx, e, v)
		if err != nil {
			return nil, err
		}
		return enc.envelope(message, v, m), nil
	}
	return e.Encoded(EncodingKey(v, m), func() ([]byte, error) {
		if m.Format == codec.JSON && m.View == media.Partial && objects.AsStored(ctx, e, v) {
			return codec.AppendPartial(nil, e.JSON(), enc.Names, m.ViewVersion), nil
		}
		obj, err := objects.Object(ctx, e, v)
		if err != nil {
			return nil, err
		}
		return enc.Object(obj, v, m)
	})
}

// protoOf returns the protobuf encoding of a version. A version without protobuf encoding has the
// encoding of PartialObjectMetadata, because only metadata of such objects can be requested in
// protobuf.
func protoOf(v *resource.Version) *codec.Proto {
	if p := v.Proto(); p != nil {
		return p
	}
	return codec.Metas().Partial
}

// message returns the protobuf message of an entry, without envelope. The entry caches it.
func message(ctx context.Context, e *objectcache.Entry, v *resource.Version) ([]byte, error) {
	return e.Encoded(objectcache.EncodingKey{Version: v.FormName(), Media: uint8(codec.Protobuf)}, func() ([]byte, error) {
		obj, err := objects.Object(ctx, e, v)
		if err != nil {
			return nil, err
		}
		return protoOf(v).Append(nil, obj.Tree()), nil
	})
}

// envelope returns the protobuf message of an object in its envelope, reduced to its metadata if m
// is Partial.
func (enc *Encoder) envelope(message []byte, v *resource.Version, m media.Type) []byte {
	if m.View == media.Partial {
		return codec.Envelope(nil, enc.Names.Group(wellknown.GroupMeta)+"/"+m.ViewVersion, "PartialObjectMetadata", codec.ProtoPartial(message))
	}
	return codec.Envelope(nil, v.GVK().APIVersion(), v.Kind, message)
}

// Object returns the encoding of an object.
func (enc *Encoder) Object(obj *meta.Object, v *resource.Version, m media.Type) ([]byte, error) {
	if m.Format == codec.Protobuf {
		return enc.envelope(protoOf(v).Append(nil, obj.Tree()), v, m), nil
	}
	body := codec.EncodeJSON(nil, obj.Tree())
	if m.View == media.Partial {
		body = codec.AppendPartial(nil, body, enc.Names, m.ViewVersion)
	}
	if m.Format == codec.YAML {
		return codec.EncodeYAML(body)
	}
	return body, nil
}

// SendEntry responds with an entry, or with the object that the requested subresource derives from
// it.
func (enc *Encoder) SendEntry(ctx context.Context, w *exchange.Response, r *exchange.Request, code int, e *objectcache.Entry) error {
	item := r.Version.ItemVersion(r.Sub)
	e, err := objects.EntryIn(ctx, e, item)
	if err != nil {
		return err
	}
	enc.recordEntry(r, e)
	if r.Sub != nil && r.Sub.Show != nil {
		obj, err := objects.Object(ctx, e, item)
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
		return enc.SendObject(w, r, code, obj)
	}
	body, err := enc.response(ctx, r, e)
	if err != nil {
		return err
	}
	w.Send(r.Media, code, body)
	return nil
}

// response returns the body of a response with an entry.
func (enc *Encoder) response(ctx context.Context, r *exchange.Request, e *objectcache.Entry) ([]byte, error) {
	if r.Media.View != media.Table {
		return enc.Entry(ctx, e, r.Version, r.Media)
	}
	t, err := enc.NewTable(r)
	if err != nil {
		return nil, err
	}
	return t.Entries(ctx, []*objectcache.Entry{e}, codec.ListMeta{ResourceVersion: objects.FormatRevision(e.Revision())})
}

// SendObject responds with an object that has no entry.
func (enc *Encoder) SendObject(w *exchange.Response, r *exchange.Request, code int, obj *meta.Object) error {
	r.Audit.Answered(obj)
	if r.Media.View == media.Table {
		t, err := enc.NewTable(r)
		if err != nil {
			return err
		}
		w.Send(r.Media, code, t.object(obj))
		return nil
	}
	body, err := enc.Object(obj, r.BodyVersion(), r.Media)
	if err != nil {
		return err
	}
	w.Send(r.Media, code, body)
	return nil
}

// recordEntry records the entry of the response for the audit.
func (enc *Encoder) recordEntry(r *exchange.Request, e *objectcache.Entry) {
	if r.Audit.Trail != nil {
		r.Audit.AnsweredBytes(func() []byte {
			body, _ := enc.Entry(r.HTTP.Context(), e, r.Version, media.Type{})
			return body
		})
	}
}

// Frame returns an encoded object framed as a watch event of the given type.
func Frame(m media.Type, eventType string, object []byte) []byte {
	if m.Format == codec.Protobuf {
		return codec.ProtoFrame(nil, eventType, object)
	}
	return codec.Frame(nil, eventType, object)
}
