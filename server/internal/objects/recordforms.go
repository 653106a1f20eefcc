package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
)

// looks reports whether records of the kind are not simply the objects.
func (k *kind) looks() bool { return k.t.Converts() || k.t.Releases() || k.mixed.Load() }

// inHub returns a stored object as one of the hub, and what of it the hub does not show. It
// is lifted if it may be of another shape.
func (k *kind) inHub(ctx context.Context, stored []byte, lift bool) ([]byte, resource.Unshown, error) {
	if !lift && codec.ScalarText(codec.FindField(stored, "apiVersion")) == k.t.Hub.GVK().APIVersion() {
		return stored, resource.Unshown{}, nil
	}
	rec, err := k.decode(stored)
	if err == nil && lift {
		err = rec.lift()
	}
	if err != nil {
		return nil, resource.Unshown{}, err
	}
	obj, err := rec.object(ctx)
	if err != nil {
		return nil, resource.Unshown{}, err
	}
	if lift {
		obj, _ = k.t.Hub.FitStored(obj)
		obj.SetGVK(k.t.Hub.GVK()) // a kind may have got another name
	}
	return bytes.Clone(codec.EncodeStored(nil, obj.Tree())), rec.unshown, nil
}

// record is a stored object.
type record struct {
	t    *resource.Type // with the version that it is of, if any has
	says *meta.Object   // what it says itself, without the hub's form
	form *meta.Object   // the hub's form, or nil
	same bool           // it says what it said when it got the form

	// Of one that was lifted:
	was     *meta.Object      // what it says, with what is not shown
	version *resource.Version // it is of
	formWas *meta.Object      // the form, with what is not shown
	unshown resource.Unshown  // of what it says, and of the form
}

func (k *kind) decode(stored []byte) (*record, error) {
	tree, _, err := codec.DecodeJSON(stored, codec.Limits{})
	if err != nil {
		return nil, err
	}
	rec := &record{says: meta.NewObject(tree)}
	if rec.t, err = k.t.Reading(rec.says.APIVersion()); err != nil {
		return nil, err
	}
	if !rec.t.Converts() { // the form of a hub is nothing that it understands, and stays
		return rec, nil
	}
	var says string
	if rec.form, says = takeHubForm(rec.t, rec.says); rec.form != nil {
		rec.same = says == hashOf(rec.says)
	}
	return rec, nil
}

// lift makes what was stored with types of another shape fit those of today.
func (rec *record) lift() (err error) {
	if rec.was, rec.version, err = rec.t.UpgradeStored(rec.says); err != nil {
		return err
	}
	rec.says, rec.unshown = rec.version.FitStored(rec.was)
	if rec.form == nil {
		return nil
	}
	var version *resource.Version
	if rec.formWas, version, err = rec.t.UpgradeStored(rec.form); err != nil {
		return err
	}
	var unshown resource.Unshown
	rec.form, unshown = version.FitStored(rec.formWas)
	rec.unshown.Unknown = append(rec.unshown.Unknown, unshown.Unknown...)
	rec.unshown.Misfits = append(rec.unshown.Misfits, unshown.Misfits...)
	return nil
}

// object returns the object of the hub.
func (rec *record) object(ctx context.Context) (*meta.Object, error) {
	t := rec.t
	switch {
	case !t.Converts():
		obj := rec.says.Clone()
		obj.SetGVK(t.Hub.GVK())
		return obj, nil
	case rec.form == nil:
		return t.Hub.Convert(ctx, rec.says)
	}
	form, err := fitted(ctx, t, rec.form)
	if err != nil || rec.same {
		return form, err
	}
	version := t.ByAPIVersion(rec.says.APIVersion())
	if version == nil {
		return t.Hub.Convert(ctx, rec.says) // says so
	}
	before, err := version.Convert(ctx, form)
	if err != nil {
		return nil, err
	}
	return t.Hub.Merge(ctx, form, before, rec.says)
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

// inRecord returns what is stored of an object of the hub where now is, if that is of
// another shape.
func (k *kind) inRecord(ctx context.Context, value, now []byte) ([]byte, error) {
	t, version := k.t, k.t.Storage
	var was *record
	if now != nil && k.mixed.Load() {
		var err error
		if was, err = k.decode(now); err == nil {
			err = was.lift()
		}
		if err != nil || !was.unshown.Any() {
			was = nil // what cannot be read shows nothing that could be kept
		} else {
			version = was.version
		}
	}
	if version == t.Hub && was == nil {
		return value, nil
	}
	tree, _, err := codec.DecodeJSON(value, codec.Limits{})
	if err != nil {
		return nil, err
	}
	obj := meta.NewObject(tree)
	dropAnnotation(obj, t.Names.Wire(names.HubForm))
	stored, err := k.inVersion(ctx, version, obj, was)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(codec.EncodeStored(nil, stored.Tree())), nil
}

// inVersion returns an object of the hub in the version that it is stored in, with what
// was there and is not shown.
func (k *kind) inVersion(ctx context.Context, version *resource.Version, obj *meta.Object, was *record) (*meta.Object, error) {
	t := k.t
	if was != nil {
		t = was.t // which has the version
	}
	stored, err := version.Convert(ctx, obj)
	if err != nil {
		return nil, err
	}
	form := obj
	back := obj
	if version != t.Hub { // of what fits: a conversion would stumble over the rest
		if back, err = t.Hub.Convert(ctx, stored); err != nil {
			return nil, err
		}
	}
	if was != nil {
		stored = version.KeepUnshown(was.says, stored, was.was)
	}
	if version == t.Hub {
		return stored, nil
	}
	if was != nil && was.form != nil {
		form = t.Hub.KeepUnshown(was.form, obj, was.formWas)
	}
	if !meta.Equal(back.Tree(), form.Tree()) {
		kept := map[string]any{"of": hashOf(stored), "hub": withoutMetadata(form)}
		stored = stored.Clone()
		stored.Set(string(codec.EncodeJSON(nil, kept)), "metadata", "annotations", t.Names.Wire(names.HubForm))
	}
	return stored, nil
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
