package objects

import (
	"bytes"
	"context"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
)

// convertedView is the FormKey.View of what a converter makes of an entry: the text of
// another version, without resourceVersion.
const convertedView = 0xff

// conversionAge is how long the answer of a converter is used. A new release of the webhook may convert
// differently, and the definition does not change then.
const conversionAge = time.Minute

func convertedForm(v *resource.Version) objectcache.EncodingKey {
	return objectcache.EncodingKey{Version: v.FormName(), View: convertedView, MaxAge: conversionAge}
}

// InVersion returns entries as a version shows them. If a converter has to be asked, it is asked about
// many entries at a time, and its answers are kept with the entries for conversionAge.
func InVersion(ctx context.Context, entries []*objectcache.Entry, v *resource.Version) ([]*objectcache.Entry, error) {
	if v.Converter == nil {
		return entries, nil
	}
	var about []int
	var some []*objectcache.Entry
	for i, e := range entries {
		if asks(e, v) {
			about, some = append(about, i), append(some, e)
		}
	}
	if len(about) == 0 {
		return entries, nil
	}
	texts, err := objectcache.Encode(ctx, some, convertedForm(v), func(some []*objectcache.Entry) ([][]byte, error) { return convert(ctx, some, v) })
	if err != nil {
		return nil, err
	}
	out := slices.Clone(entries)
	for n, i := range about {
		out[i] = objectcache.NewEntry(some[n].Key(), some[n].Revision(), texts[n])
		out[i].MarkConforming(v.SchemaMark())
	}
	return out, nil
}

// EntryIn is InVersion for one entry.
func EntryIn(ctx context.Context, e *objectcache.Entry, v *resource.Version) (*objectcache.Entry, error) {
	out, err := InVersion(ctx, []*objectcache.Entry{e}, v)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// asks reports whether a converter has to be asked to show an entry in a version.
func asks(e *objectcache.Entry, v *resource.Version) bool { return v.Asks(e.Field("apiVersion")) }

// convert returns the texts that a version has of entries.
func convert(ctx context.Context, entries []*objectcache.Entry, v *resource.Version) ([][]byte, error) {
	objs := make([]*meta.Object, len(entries))
	for i, e := range entries {
		objs[i] = e.Object()
	}
	objs, err := v.ConvertAll(ctx, objs...)
	if err != nil {
		return nil, err
	}
	texts := make([][]byte, len(objs))
	for i, obj := range objs {
		texts[i] = textOf(obj)
	}
	return texts, nil
}

// textOf returns the JSON of an object without resourceVersion, no longer than it has to be.
func textOf(obj *meta.Object) []byte { return bytes.Clone(codec.EncodeStored(nil, obj.Tree())) }

// toHub makes the object that is stored of one that was written in its caller's version:
// what the hub does not know of a definition cannot be kept. Where a converter says what
// that is, it says too what the caller is shown of it, so that nothing is written that
// he cannot be shown.
func (w *Write) toHub(ctx context.Context, obj *meta.Object) (*meta.Object, error) {
	stored, err := w.Version.Hub.Convert(ctx, obj)
	if err != nil || !w.Version.Asks(stored.APIVersion()) {
		return stored, err
	}
	shown, err := w.Version.Convert(ctx, stored)
	if err != nil {
		return nil, err
	}
	w.shown = textOf(shown)
	return stored, nil
}
