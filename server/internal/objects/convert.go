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

// convertedView is the EncodingKey.View of an entry after conversion: its JSON in another version, without the
// resourceVersion.
const convertedView = 0xff

// conversionAge is how long the result of a converter is reused. It is bounded because a new release of a conversion
// webhook may convert differently while the definition stays the same.
const conversionAge = time.Minute

func convertedEncoding(v *resource.Version) objectcache.EncodingKey {
	return objectcache.EncodingKey{Version: v.FormName(), View: convertedView, MaxAge: conversionAge}
}

// InVersion returns entries in a version. If a converter is needed, it is called with many objects at a time, and its
// results are kept with the entries for conversionAge. The result may be entries itself. The entries may be shared
// and must not be modified.
func InVersion(ctx context.Context, entries []*objectcache.Entry, v *resource.Version) ([]*objectcache.Entry, error) {
	if v.Converter == nil {
		return entries, nil
	}
	var about []int
	var some []*objectcache.Entry
	for i, e := range entries {
		if needsConverter(e, v) {
			about, some = append(about, i), append(some, e)
		}
	}
	if len(about) == 0 {
		return entries, nil
	}
	texts, err := objectcache.Encode(ctx, some, convertedEncoding(v), func(some []*objectcache.Entry) ([][]byte, error) { return convert(ctx, some, v) })
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

// EntryIn is InVersion for a single entry.
func EntryIn(ctx context.Context, e *objectcache.Entry, v *resource.Version) (*objectcache.Entry, error) {
	out, err := InVersion(ctx, []*objectcache.Entry{e}, v)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// needsConverter reports whether an entry must be converted by the Converter to be shown in a version.
func needsConverter(e *objectcache.Entry, v *resource.Version) bool {
	return v.NeedsConverter(e.Field("apiVersion"))
}

// convert returns the JSON of entries in a version, in the order of entries.
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

// textOf returns the JSON of an object without its resourceVersion, in a slice without spare capacity.
func textOf(obj *meta.Object) []byte { return bytes.Clone(codec.EncodeStored(nil, obj.Tree())) }

// toHub converts an object of a definition from the caller's version to the hub, in which it is stored. Fields that
// the hub does not have are lost. If the type has a converter, toHub also converts the result back and keeps it in
// w.shown, so that a write fails if its result cannot be shown to the caller.
func (w *Write) toHub(ctx context.Context, obj *meta.Object) (*meta.Object, error) {
	stored, err := w.Version.Hub.Convert(ctx, obj)
	if err != nil || !w.Version.NeedsConverter(stored.APIVersion()) {
		return stored, err
	}
	shown, err := w.Version.Convert(ctx, stored)
	if err != nil {
		return nil, err
	}
	w.shown = textOf(shown)
	return stored, nil
}
