package objects

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
	"orch.io/controlplane/storage"
)

// records is a backend whose records of kinds with conversions hold objects of the
// hub, whatever version they are stored in: which one that is, nothing above it
// knows. Every record names its version, and is read from that.
//
// A record always gives back the object of the hub as it was. Where the storage
// version cannot say all of it, the record has the object in the hub's form, too, in
// an annotation that nobody sees. It is read as any change that was made in a version
// that says less, see registry.Version.Merge: so a release that knows nothing of the
// hub may have changed the rest meanwhile.
type records struct {
	storage.Backend
	types map[meta.GroupResource]*registry.Type // that convert
}

// historic is records over a store that is a storage.Historian.
type historic struct {
	*records
	storage.Historian
}

// Records returns a backend that stores objects of the hubs of their kinds in
// storage versions, or b itself if no type converts. A record that cannot be
// converted is damaged.
func Records(b storage.Backend, types []*registry.Type) storage.Backend {
	r := &records{b, map[meta.GroupResource]*registry.Type{}}
	for _, t := range types {
		if t.Converts() {
			r.types[t.GroupResource()] = t
		}
	}
	if len(r.types) == 0 {
		return b
	}
	if h, ok := b.(storage.Historian); ok {
		return &historic{r, h}
	}
	return r
}

// of returns the type whose object a key leads to, or nil.
func (r *records) of(key string) *registry.Type {
	resource, _, ok := registry.ParseStorageKey(key)
	if !ok {
		return nil
	}
	return r.types[resource]
}

// read makes a stored record one of the hub.
func (r *records) read(ctx context.Context, rec storage.Record) (storage.Record, error) {
	t := r.of(rec.Key)
	if t == nil || rec.Value == nil {
		return rec, nil
	}
	value, err := hubForm(ctx, t, rec.Value)
	if err != nil {
		rec.Value = nil
		return rec, &storage.DamagedError{Key: rec.Key, Revision: rec.Revision, Err: err}
	}
	rec.Value = value
	return rec, nil
}

// hubForm returns a stored object in the form of the hub.
func hubForm(ctx context.Context, t *registry.Type, stored []byte) ([]byte, error) {
	if codec.ScalarText(codec.FindField(stored, "apiVersion")) == t.Hub.GVK().APIVersion() {
		return stored, nil
	}
	tree, _, err := codec.DecodeJSON(stored, codec.Limits{})
	if err != nil {
		return nil, err
	}
	obj := meta.NewObject(tree)
	whole, err := takeWhole(t, obj)
	if err != nil {
		return nil, err
	}
	if whole == nil {
		obj, err = t.Hub.Convert(ctx, obj)
	} else {
		obj, err = mergeWhole(ctx, t, whole, obj)
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(codec.EncodeStored(nil, obj.Tree())), nil
}

// takeWhole takes what a record has beside the object out of it: the object as the
// hub had it when it was stored, or nil.
func takeWhole(t *registry.Type, obj *meta.Object) (*meta.Object, error) {
	name := t.Names.Wire(names.HubForm)
	text := obj.Annotation(name)
	dropAnnotation(obj, name)
	if text == "" {
		return nil, nil
	}
	tree, _, err := codec.DecodeJSON([]byte(text), codec.Limits{})
	if err != nil {
		return nil, fmt.Errorf("the form of the hub: %w", err)
	}
	return meta.NewObject(tree), nil
}

// mergeWhole takes over into the object as it was stored what became of it since.
func mergeWhole(ctx context.Context, t *registry.Type, whole, obj *meta.Object) (*meta.Object, error) {
	whole, err := t.Hub.Convert(ctx, whole) // the hub may have been another
	if err != nil {
		return nil, err
	}
	if _, faults := t.Hub.Conform(whole); len(faults) > 0 {
		return nil, t.Hub.DecodeError(faults)
	}
	version := t.ByAPIVersion(obj.APIVersion())
	if version == nil {
		return t.Hub.Convert(ctx, obj) // says so
	}
	before, err := version.Convert(ctx, whole)
	if err != nil {
		return nil, err
	}
	return t.Hub.Merge(ctx, whole, before, obj)
}

// write makes an object of the hub a record of the storage version.
func (r *records) write(ctx context.Context, w storage.Write) (storage.Write, error) {
	value, err := r.storedForm(ctx, w.Key, w.Value)
	w.Value = value
	return w, err
}

func (r *records) storedForm(ctx context.Context, key string, value []byte) ([]byte, error) {
	t := r.of(key)
	if t == nil || value == nil || t.Storage == t.Hub {
		return value, nil
	}
	tree, _, err := codec.DecodeJSON(value, codec.Limits{})
	if err != nil {
		return nil, err
	}
	obj := meta.NewObject(tree)
	name := t.Names.Wire(names.HubForm)
	dropAnnotation(obj, name)
	stored, err := t.Storage.Convert(ctx, obj)
	if err != nil {
		return nil, err
	}
	back, err := t.Hub.Convert(ctx, stored)
	if err != nil {
		return nil, err
	}
	if !meta.Equal(back.Tree(), obj.Tree()) {
		whole := maps.Clone(obj.Tree())
		delete(whole, "metadata") // is that of the object
		stored = stored.Clone()
		stored.Set(string(codec.EncodeJSON(nil, whole)), "metadata", "annotations", name)
	}
	return bytes.Clone(codec.EncodeStored(nil, stored.Tree())), nil
}

func dropAnnotation(obj *meta.Object, name string) {
	obj.Delete("metadata", "annotations", name)
	if m := obj.Map("metadata", "annotations"); m != nil && len(m) == 0 {
		obj.Delete("metadata", "annotations")
	}
}

// Get implements storage.Backend.
func (r *records) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	rec, err := r.Backend.Get(ctx, key, at)
	if err != nil {
		return rec, err
	}
	return r.read(ctx, rec)
}

// Scan implements storage.Backend.
func (r *records) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	rev, found, err := r.Backend.Scan(ctx, prefix, start, at)
	if err != nil {
		return rev, nil, err
	}
	return rev, func(yield func(storage.Record, error) bool) {
		for rec, err := range found {
			if err == nil {
				rec, err = r.read(ctx, rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, nil
}

// Commit implements storage.Backend.
func (r *records) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	out := make([]storage.Write, len(ws))
	for i, w := range ws {
		var err error
		if out[i], err = r.write(ctx, w); err != nil {
			return 0, err
		}
	}
	rev, err := r.Backend.Commit(ctx, out...)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		conflict.Current, _ = r.read(ctx, conflict.Current)
	}
	return rev, err
}

// CommitSequence implements storage.Sequencer.
func (r *records) CommitSequence(ctx context.Context, first storage.Write, then ...[]byte) ([]storage.Revision, error) {
	first, err := r.write(ctx, first)
	if err != nil {
		return nil, err
	}
	values, size := make([][]byte, 0, len(then)), len(first.Value)
	for _, value := range then {
		var stored []byte
		if stored, err = r.storedForm(ctx, first.Key, value); err != nil {
			break // those before it are good
		}
		values, size = append(values, stored), size+len(stored)
	}
	b := r.Backend
	if size > storage.SequenceBytes { // as they are stored: one by one
		b = struct{ storage.Backend }{b}
	}
	revisions, failed := storage.CommitSequence(ctx, b, first, values...)
	return revisions, cmp.Or(failed, err)
}

// Watch implements storage.Backend. A commit that cannot be converted is
// history that cannot be read.
func (r *records) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return r.events(ctx, r.Backend.Watch(ctx, prefix, after))
}

// History implements storage.Historian.
func (h *historic) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return h.events(ctx, h.Historian.History(ctx, prefix, after, last))
}

func (r *records) events(ctx context.Context, commits iter.Seq2[[]storage.Event, error]) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for commit, err := range commits {
			if err == nil {
				commit, err = r.commit(ctx, commit)
			}
			if !yield(commit, err) || err != nil {
				return
			}
		}
	}
}

// commit makes the events of a stored commit those of the hubs.
func (r *records) commit(ctx context.Context, stored []storage.Event) ([]storage.Event, error) {
	out := slices.Clone(stored)
	for i := range out {
		ev := &out[i]
		ev.Prev, _ = r.read(ctx, ev.Prev) // without a value, as of what is damaged
		var err error
		if ev.Record, err = r.read(ctx, ev.Record); err != nil {
			return nil, storage.ErrCompacted
		}
	}
	return out, nil
}
