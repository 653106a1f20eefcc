package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// records is a backend whose records of kinds with conversions hold objects of the
// hub, whatever version they are stored in: which one that is, nothing above it
// knows. Every record names its version, and is read from that.
//
// A record always gives back the object of the hub as it was. Where the storage
// version cannot say all of it, the record has the hub's form, too, in an annotation
// that nobody sees, with a hash of what the record says beside it. As long as that is
// what it says, the hub's form is the object. Else a release that knows nothing of the
// hub has written since, and what it changed is taken over, see resource.Version.Merge.
// An object that the storage version cannot say at all is stored as it is.
type records struct {
	storage.Backend
	types map[meta.GroupResource]*resource.Type // that convert
	log   *slog.Logger
}

// historic is records over a store that is a storage.Historian.
type historic struct {
	*records
	storage.Historian
}

// Records returns a backend that stores objects of the hubs of their kinds in
// storage versions, or b itself if no type converts. A record that cannot be
// converted is damaged.
func Records(b storage.Backend, types []*resource.Type, log *slog.Logger) storage.Backend {
	r := &records{b, map[meta.GroupResource]*resource.Type{}, log}
	for _, t := range types {
		if t.Converts() || t.Releases() {
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

// typeOf returns the type whose object a key leads to, or nil.
func (r *records) typeOf(key string) *resource.Type {
	of, _, ok := resource.ParseStorageKey(key)
	if !ok {
		return nil
	}
	return r.types[of]
}

// read makes a stored record one of the hub.
func (r *records) read(ctx context.Context, rec storage.Record) (storage.Record, error) {
	t := r.typeOf(rec.Key)
	if t == nil || rec.Value == nil {
		return rec, nil
	}
	value, err := inHub(ctx, t, rec.Value)
	if err != nil {
		if stack := stackOf(err); stack != "" {
			r.log.Error("the conversion of a record panicked", "key", rec.Key, "error", err, "stack", stack)
		}
		rec.Value = nil
		return rec, &storage.DamagedError{Key: rec.Key, Revision: rec.Revision, Err: err}
	}
	rec.Value = value
	return rec, nil
}

// stackOf returns where a conversion panicked, empty if none did.
func stackOf(err error) string {
	var conversion *resource.ConversionError
	if !errors.As(err, &conversion) {
		return ""
	}
	return string(conversion.Stack())
}

// inHub returns a stored object as one of the hub.
func inHub(ctx context.Context, t *resource.Type, stored []byte) ([]byte, error) {
	apiVersion := codec.ScalarText(codec.FindField(stored, "apiVersion"))
	if apiVersion == t.Hub.GVK().APIVersion() {
		return stored, nil
	}
	t, err := t.Reading(apiVersion)
	if err != nil {
		return nil, err
	}
	tree, _, err := codec.DecodeJSON(stored, codec.Limits{})
	if err != nil {
		return nil, err
	}
	obj := meta.NewObject(tree)
	form, says := takeHubForm(t, obj)
	switch {
	case form == nil:
		obj, err = t.Hub.Convert(ctx, obj)
	case says == hashOf(obj):
		obj, err = fitted(ctx, t, form)
	default:
		obj, err = mergeHubForm(ctx, t, form, obj)
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(codec.EncodeStored(nil, obj.Tree())), nil
}

// takeHubForm takes out of a record the object as the hub had it when it was stored,
// with the metadata that it has now, and the hash of what the record said then. What
// cannot be read, as by a release that does not know the version, is as if it were not
// there.
func takeHubForm(t *resource.Type, obj *meta.Object) (form *meta.Object, says string) {
	name := t.Names.Wire(names.HubForm)
	tree, _, err := codec.DecodeJSON([]byte(obj.Annotation(name)), codec.Limits{})
	dropAnnotation(obj, name)
	hub, _ := tree["hub"].(map[string]any)
	says, _ = tree["of"].(string)
	if err != nil || hub == nil {
		return nil, ""
	}
	hub["metadata"] = obj.Tree()["metadata"]
	if form = meta.NewObject(hub); t.ByAPIVersion(form.APIVersion()) == nil {
		return nil, ""
	}
	return form, says
}

// hashOf returns a hash of what an object says beside its metadata.
func hashOf(obj *meta.Object) string {
	sum := sha256.Sum256(codec.EncodeJSON(nil, withoutMetadata(obj)))
	return hex.EncodeToString(sum[:])
}

func withoutMetadata(obj *meta.Object) map[string]any {
	tree := maps.Clone(obj.Tree())
	delete(tree, "metadata")
	return tree
}

// fitted makes the form of a hub, which may have been another, one of today's.
func fitted(ctx context.Context, t *resource.Type, form *meta.Object) (*meta.Object, error) {
	form, err := t.Hub.Convert(ctx, form)
	if err != nil {
		return nil, err
	}
	if _, faults := t.Hub.Conform(form); len(faults) > 0 {
		return nil, t.Hub.DecodeError(faults)
	}
	return form, nil
}

// mergeHubForm takes over into the object as it was stored what became of it since.
func mergeHubForm(ctx context.Context, t *resource.Type, form, obj *meta.Object) (*meta.Object, error) {
	form, err := fitted(ctx, t, form)
	if err != nil {
		return nil, err
	}
	version := t.ByAPIVersion(obj.APIVersion())
	if version == nil {
		return t.Hub.Convert(ctx, obj) // says so
	}
	before, err := version.Convert(ctx, form)
	if err != nil {
		return nil, err
	}
	return t.Hub.Merge(ctx, form, before, obj)
}

// write makes an object of the hub a record of the storage version.
func (r *records) write(ctx context.Context, w storage.Write) storage.Write {
	w.Value = r.storedForm(ctx, w.Key, w.Value)
	return w
}

// storedForm cannot fail: an object that its storage version cannot say must still be
// written, to end its deletion for one, and harm no write that is committed with it.
func (r *records) storedForm(ctx context.Context, key string, value []byte) []byte {
	t := r.typeOf(key)
	if t == nil || value == nil || t.Storage == t.Hub {
		return value
	}
	stored, err := inStorage(ctx, t, value)
	if err != nil {
		r.log.Warn("an object is stored as the hub has it, since the storage version cannot say it", "key", key, "error", err, "stack", stackOf(err))
		return value
	}
	return stored
}

func inStorage(ctx context.Context, t *resource.Type, value []byte) ([]byte, error) {
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
		form := map[string]any{"of": hashOf(stored), "hub": withoutMetadata(obj)}
		stored = stored.Clone()
		stored.Set(string(codec.EncodeJSON(nil, form)), "metadata", "annotations", name)
	}
	return bytes.Clone(codec.EncodeStored(nil, stored.Tree())), nil
}

// keepHubForm leaves the hub's form, if an object has it, as the store has it: nobody
// writes it through the server. One whose release does not know the hub has it still.
func keepHubForm(t *resource.Type, obj, live *meta.Object) {
	name := t.Names.Wire(names.HubForm)
	dropAnnotation(obj, name)
	if live == nil {
		return
	}
	if form, ok := live.Get("metadata", "annotations", name); ok {
		obj.Set(form, "metadata", "annotations", name)
	}
}

func dropAnnotation(obj *meta.Object, name string) {
	if _, ok := obj.Get("metadata", "annotations", name); !ok {
		return
	}
	obj.Delete("metadata", "annotations", name)
	if len(obj.Map("metadata", "annotations")) == 0 {
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
		out[i] = r.write(ctx, w)
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
	first = r.write(ctx, first)
	values, size := make([][]byte, len(then)), len(first.Value)
	for i, value := range then {
		values[i] = r.storedForm(ctx, first.Key, value)
		size += len(values[i])
	}
	if size > storage.SequenceBytes { // as they are stored: one by one
		return storage.CommitSequence(ctx, struct{ storage.Backend }{r.Backend}, first, values...)
	}
	return storage.CommitSequence(ctx, r.Backend, first, values...)
}

// Watch implements storage.Backend. The event of a record that cannot be converted
// says so.
func (r *records) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return r.events(ctx, r.Backend.Watch(ctx, prefix, after), true)
}

// Follow is Watch of all keys for one who does not ask what was there before: no
// Event.Prev has a value.
func (r *records) Follow(ctx context.Context, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return r.events(ctx, r.Backend.Watch(ctx, "", after), false)
}

// History implements storage.Historian.
func (h *historic) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return h.events(ctx, h.Historian.History(ctx, prefix, after, last), true)
}

func (r *records) events(ctx context.Context, commits iter.Seq2[[]storage.Event, error], previous bool) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for commit, err := range commits {
			if err == nil {
				commit = r.commit(ctx, commit, previous)
			}
			if !yield(commit, err) || err != nil {
				return
			}
		}
	}
}

// commit makes the events of a stored commit those of the hubs, with what they
// replaced or without the values of that.
func (r *records) commit(ctx context.Context, stored []storage.Event, previous bool) []storage.Event {
	out := slices.Clone(stored)
	for i := range out {
		ev := &out[i]
		if previous {
			ev.Prev, _ = r.read(ctx, ev.Prev) // without a value, as of what is damaged
		} else {
			ev.Prev.Value = nil
		}
		var err error
		ev.Record, err = r.read(ctx, ev.Record)
		errors.As(err, &ev.Damaged)
	}
	return out
}
