package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
)

// record is a stored object.
type record struct {
	t       *resource.Type    // with the versions that it is of, if any has them
	version *resource.Version // of what it says, once that was fitted
	says    *meta.Object      // what it says itself, without the forms
	whole   *meta.Object      // that with what is not shown, once it was fitted
	hash    string            // of what it says
	forms   []form            // of hubs that the type has, the newest first
	others  []any             // forms of hubs that it does not have, as they stand in the record
	unshown resource.Unshown  // of what it says, and of the forms
}

// holdsMore reports whether a record that was fitted holds more than the type shows.
func (rec *record) holdsMore() bool { return rec.unshown.Any() || len(rec.others) > 0 }

// form is an object as a hub had it when it was stored, with the metadata that it has now.
type form struct {
	object *meta.Object
	of     string       // hash of what the record said then
	whole  *meta.Object // with what is not shown, once it was fitted
	more   bool         // the form holds more than the type shows, once it was fitted
	stored any          // as it stands in the record
}

// reading is what is read of a record.
type reading struct {
	object  []byte           // of the hub
	unshown resource.Unshown // of what the record holds
	more    bool             // the record holds more than the type shows
	own     bool             // it is signed with the kind's shape
}

// read returns the object of the hub that a record holds. It is fitted unless the record is
// the kind's own.
func (k *kind) read(ctx context.Context, stored []byte, own bool) (reading, error) {
	converts := k.t.Converts() || k.t.Releases()
	if own && (!converts || codec.ScalarText(codec.FindField(stored, "apiVersion")) == k.t.Hub.GVK().APIVersion()) {
		return reading{object: stored, own: true}, nil
	}
	none := reading{own: own}
	rec, err := k.decode(stored)
	if err != nil {
		return none, err
	}
	object := rec.object
	if !own {
		err, object = rec.fit(), rec.shown
	}
	if err != nil {
		return none, err
	}
	obj, err := object(ctx)
	if err != nil {
		return none, err
	}
	return reading{encoded(obj), rec.unshown, rec.holdsMore(), own}, nil
}

func encoded(obj *meta.Object) []byte { return bytes.Clone(codec.EncodeStored(nil, obj.Tree())) }

func (k *kind) decode(stored []byte) (*record, error) {
	obj, err := decoded(stored)
	if err != nil {
		return nil, err
	}
	rec := &record{says: obj}
	if rec.t, err = k.t.Reading(obj.APIVersion()); err != nil {
		return nil, err
	}
	if rec.t.Converts() { // else the form of a hub is nothing that it understands, and stays
		rec.hash = hashOf(obj)
		err = rec.takeForms()
	}
	return rec, err
}

func decoded(text []byte) (*meta.Object, error) {
	tree, _, err := codec.DecodeJSON(text, codec.Limits{})
	return meta.NewObject(tree), err
}

// takeForms takes the forms of hubs out of a record.
func (rec *record) takeForms() error {
	name := rec.t.Names.Wire(wellknown.HubForm)
	for _, stored := range storedForms(rec.says, name) {
		entry, _ := stored.(map[string]any)
		tree, _ := entry["hub"].(map[string]any)
		of, _ := entry["of"].(string)
		if tree == nil {
			continue
		}
		object := meta.NewObject(maps.Clone(tree))
		t, err := rec.t.Reading(object.APIVersion())
		if err != nil {
			return err
		}
		if t.ByAPIVersion(object.APIVersion()) == nil {
			rec.others = append(rec.others, stored)
			continue
		}
		rec.t = t
		rec.forms = append(rec.forms, form{object: object, of: of, stored: stored})
	}
	dropAnnotation(rec.says, name)
	for _, f := range rec.forms {
		f.object.Tree()["metadata"] = rec.says.Tree()["metadata"]
	}
	return nil
}

// storedForms returns the forms in the annotation of a record. The others are within the
// first one.
func storedForms(obj *meta.Object, name string) []any {
	first, _, err := codec.DecodeJSON([]byte(obj.Annotation(name)), codec.Limits{})
	if err != nil {
		return nil
	}
	others, _ := first["others"].([]any)
	delete(first, "others")
	return append([]any{first}, others...)
}

// putForms replaces the forms in the annotation of a record, which changes.
func putForms(obj *meta.Object, name string, forms []any) {
	if len(forms) == 0 {
		dropAnnotation(obj, name)
		return
	}
	first, _ := forms[0].(map[string]any)
	if len(forms) > 1 {
		first = maps.Clone(first)
		first["others"] = forms[1:]
	}
	obj.Set(string(codec.EncodeJSON(nil, first)), "metadata", "annotations", name)
}

// fit makes what was stored with types of another shape fit those of today.
func (rec *record) fit() (err error) {
	if rec.whole, rec.version, err = rec.t.UpgradeStored(rec.says); err != nil {
		return err
	}
	rec.says, rec.unshown = rec.version.FitStored(rec.whole)
	for i := range rec.forms {
		f := &rec.forms[i]
		var version *resource.Version
		if f.whole, version, err = rec.t.UpgradeStored(f.object); err != nil {
			return err
		}
		var unshown resource.Unshown
		f.object, unshown = version.FitStored(f.whole)
		f.more = unshown.Any()
		rec.unshown.Unknown = append(rec.unshown.Unknown, unshown.Unknown...)
		rec.unshown.Misfits = append(rec.unshown.Misfits, unshown.Misfits...)
	}
	return nil
}

// shown is object for a record that was fitted.
func (rec *record) shown(ctx context.Context) (*meta.Object, error) {
	obj, err := rec.object(ctx)
	if err != nil {
		return nil, err
	}
	obj, _ = rec.t.Hub.FitStored(obj)
	obj.SetGVK(rec.t.Hub.GVK()) // a kind may have got another name
	return obj, nil
}

// object returns the object of the hub. The newest form is the object if the record says what
// it said then. Each of the others is of a release that saw more of the object than those
// that wrote later: what they changed is taken over into it.
func (rec *record) object(ctx context.Context) (*meta.Object, error) {
	hub := rec.t.Hub
	if !rec.t.Converts() {
		obj := rec.says.Clone()
		obj.SetGVK(hub.GVK())
		return obj, nil
	}
	if len(rec.forms) == 0 {
		return hub.Convert(ctx, rec.says)
	}
	obj := rec.says
	for i, f := range rec.forms {
		version := rec.t.ByAPIVersion(f.object.APIVersion())
		var err error
		if i == 0 && f.of == rec.hash {
			obj = f.object
		} else if obj, err = rec.merged(ctx, f, obj); err == nil && i+1 < len(rec.forms) {
			obj, err = version.Convert(ctx, obj)
		}
		if err != nil {
			return nil, err
		}
	}
	return fitted(ctx, hub, obj)
}

// merged returns a form, as the hub has it, with what an object says otherwise than it did
// when it was made of that form: by a release that does not know the form, and saw what the
// version of the record says of it.
func (rec *record) merged(ctx context.Context, f form, obj *meta.Object) (*meta.Object, error) {
	hub := rec.t.Hub
	says, version := rec.t.ByAPIVersion(rec.says.APIVersion()), rec.t.ByAPIVersion(obj.APIVersion())
	if says == nil || version == nil {
		return hub.Convert(ctx, rec.says) // says so
	}
	was, err := fitted(ctx, hub, f.object)
	if err != nil {
		return nil, err
	}
	before, err := says.Convert(ctx, was)
	if err == nil {
		before, err = version.Convert(ctx, before)
	}
	if err != nil {
		return nil, err
	}
	return hub.Merge(ctx, was, before, obj)
}

// fitted makes the form of a hub, which may have been another, one of today's.
func fitted(ctx context.Context, hub *resource.Version, form *meta.Object) (*meta.Object, error) {
	form, err := hub.Convert(ctx, form)
	if err != nil {
		return nil, err
	}
	if _, faults := hub.Normalize(form); len(faults) > 0 {
		return nil, hub.DecodeError(faults)
	}
	return form, nil
}

// write returns the record of an object of the hub in place of another one, nil if there is
// none. What that holds and the type does not show stays: such a record is not signed, and
// is of the version that it was of. What this cannot say is refused with a *meta.Status.
//
// Otherwise an object that the storage version cannot say is stored as the hub has it, and
// asHub says why: it must still be written, to end its deletion for one, and harm no write
// that is committed with it.
func (k *kind) write(ctx context.Context, object, now []byte) (stored []byte, asHub, err error) {
	was := k.holding(now)
	if was == nil && k.t.Storage == k.t.Hub {
		return sign(object, k.shape), nil, nil
	}
	obj, err := decoded(object)
	if err != nil {
		return nil, nil, err
	}
	if was != nil {
		return was.replaced(ctx, obj, now)
	}
	says, back, err := said(ctx, k.t, k.t.Storage, obj)
	if err != nil {
		return sign(object, k.shape), err, nil
	}
	return sign(encoded(withForms(k.t, says, back, obj, nil)), k.shape), nil, nil
}

// holding decodes and fits a record, if it holds more than the type shows. What cannot be
// read holds nothing that could be kept.
func (k *kind) holding(now []byte) *record {
	stored, shape := unsign(now)
	if now == nil || string(shape) == k.shape {
		return nil
	}
	rec, err := k.decode(stored)
	if err == nil {
		err = rec.fit()
	}
	if err != nil || !rec.holdsMore() {
		return nil
	}
	return rec
}

// replaced returns the record of an object in place of one that holds more, which stands
// there as now.
func (rec *record) replaced(ctx context.Context, obj *meta.Object, now []byte) (stored []byte, asHub, err error) {
	t, others := rec.t, rec.others
	says, back, err := said(ctx, t, rec.version, obj)
	switch {
	case err == nil:
		says = rec.version.KeepUnshown(rec.says, says, rec.whole)
	case !rec.unshown.Any():
		says, back, asHub = obj, obj, err
	default:
		if was, fault := rec.shown(ctx); fault != nil || hashOf(was) != hashOf(obj) {
			return nil, nil, rec.refusal(obj, err)
		}
		stored, err = rec.withMetadata(obj, now)
		return stored, nil, err
	}
	if !t.Converts() {
		return encoded(says), asHub, nil
	}
	object := obj
	for _, f := range rec.forms {
		switch {
		case f.whole.APIVersion() == t.Hub.GVK().APIVersion():
			object = t.Hub.KeepUnshown(f.object, obj, f.whole)
		case f.more: // else the hub's form says all of it
			others = append(slices.Clip(others), f.replaced(ctx, t, obj, says))
		}
	}
	if rec.version == t.Hub {
		back = object // says is all
	}
	return encoded(withForms(t, says, back, object, others)), asHub, nil
}

// replaced returns what is stored of an object of the hub, of which a record says that, in
// place of a form of another hub, which holds more.
func (f *form) replaced(ctx context.Context, t *resource.Type, obj, says *meta.Object) any {
	version := t.ByAPIVersion(f.whole.APIVersion())
	now, err := version.Convert(ctx, obj)
	if err != nil {
		return f.stored // what it holds more is worth more than that it is of today
	}
	return storedForm(says, version.KeepUnshown(f.object, now, f.whole))
}

// storedForm returns what is stored of a form of an object of which a record says that.
func storedForm(says, object *meta.Object) map[string]any {
	return map[string]any{"of": hashOf(says), "hub": withoutMetadata(object)}
}

// said returns what a version says of an object of the hub, and what the hub makes of that.
func said(ctx context.Context, t *resource.Type, version *resource.Version, obj *meta.Object) (says, back *meta.Object, err error) {
	if says, err = version.Convert(ctx, obj); err != nil || version == t.Hub {
		return says, obj, err
	}
	back, err = t.Hub.Convert(ctx, says)
	return says, back, err
}

// withForms returns what is stored of an object of the hub of which a record says that, and
// the hub makes back of it: with the object as a form, if it is another or there are others,
// which are older.
func withForms(t *resource.Type, says, back, object *meta.Object, others []any) *meta.Object {
	says = says.Clone()
	forms := others
	if len(others) > 0 || hashOf(back) != hashOf(object) {
		forms = append([]any{storedForm(says, object)}, others...)
	}
	putForms(says, t.Names.Wire(wellknown.HubForm), forms)
	return says
}

// withMetadata returns a record, which stands there as now, with the metadata of an object
// alone.
func (rec *record) withMetadata(obj *meta.Object, now []byte) ([]byte, error) {
	stored, _ := unsign(now)
	is, err := decoded(stored)
	if err != nil {
		return nil, err
	}
	name := rec.t.Names.Wire(wellknown.HubForm)
	forms, had := is.Get("metadata", "annotations", name)
	dropAnnotation(is, name)
	is.Tree()["metadata"] = rec.version.KeepUnshown(metadataOf(rec.says), metadataOf(obj), metadataOf(is)).Tree()["metadata"]
	if had {
		is.Set(forms, "metadata", "annotations", name)
	}
	return encoded(is), nil
}

// refusal says that an object cannot take the place of the record.
func (rec *record) refusal(obj *meta.Object, why error) *meta.Status {
	var unshown []string
	for _, path := range rec.unshown.Unknown {
		unshown = append(unshown, fmt.Sprintf("%q", anyItem(path)))
	}
	for _, misfit := range rec.unshown.Misfits {
		unshown = append(unshown, fmt.Sprintf("%q", anyItem(misfit.Field)))
	}
	slices.Sort(unshown)
	unshown = slices.Compact(unshown)
	if len(unshown) > maxUnshown {
		unshown = append(unshown[:maxUnshown], "...")
	}
	return meta.Invalid(rec.t.GroupKind(), obj.Name(), []meta.StatusCause{{Reason: meta.CauseForbidden, Message: fmt.Sprintf(
		"Forbidden: the object is stored in version %s with what another release wrote and this one does not know (%s), and that version cannot hold the change: %s",
		rec.version.GVK().APIVersion(), strings.Join(unshown, ", "), reason(why))}})
}

// maxUnshown bounds how much a caller is told of what is not shown.
const maxUnshown = 10

// hashOf returns a hash of what an object says beside its metadata.
func hashOf(obj *meta.Object) string {
	sum := sha256.Sum256(codec.EncodeJSON(nil, withoutMetadata(obj)))
	return hex.EncodeToString(sum[:])
}

func metadataOf(obj *meta.Object) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": obj.Tree()["metadata"]})
}

func withoutMetadata(obj *meta.Object) map[string]any {
	tree := maps.Clone(obj.Tree())
	delete(tree, "metadata")
	return tree
}

// keepHubForm leaves the hub's form, if an object has it, as the store has it: nobody
// writes it through the server. One whose release does not know the hub has it still.
func keepHubForm(t *resource.Type, obj, live *meta.Object) {
	name := t.Names.Wire(wellknown.HubForm)
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
