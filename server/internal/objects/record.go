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

// record is a decoded stored object: the object in the version in which it was stored, and hub copies of it. See
// "Records" in the package comment for the terms.
type record struct {
	t       *resource.Type // Reading(apiVersion): includes the record's version, if the type ever had it
	primary *meta.Object   // the object in the record's version, without the hub copies
	hash    string         // of primary
	copies  []hubCopy      // in versions that t has, the newest first
	others  []any          // stored hub copies in versions that t does not have, unchanged

	// Set by fit, which replaces primary by its fitted form.
	version *resource.Version // of primary
	whole   *meta.Object      // primary with its unshown data
	unshown resource.Unshown  // of primary and of the copies
}

// hasUnshown reports whether a fitted record has unshown data, including hub copies in versions that the type does
// not have.
func (rec *record) hasUnshown() bool { return rec.unshown.Any() || len(rec.others) > 0 }

// hubCopy is a copy of an object in a hub version, as it was when the copy was stored, but with the present metadata
// of the record.
type hubCopy struct {
	object *meta.Object // fitted, after record.fit
	of     string       // hash of the primary object with which the copy was stored
	stored any          // the copy as it is stored

	// Set by record.fit.
	whole      *meta.Object // the copy with its unshown data
	hasUnshown bool
}

// reading is the result of reading a record.
type reading struct {
	object     []byte           // JSON in the hub version
	unshown    resource.Unshown // of the record
	hasUnshown bool             // see record.hasUnshown
	own        bool             // the record has the shape of the kind
}

// read returns the object of a record in the hub version. stored is the record without its signature; own reports
// whether the signature is the shape of the kind. If own is false, the object is fitted. The result may share stored.
func (k *kind) read(ctx context.Context, stored []byte, own bool) (reading, error) {
	converts := k.t.Converts() || k.t.HasOtherReleases()
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
	return reading{encoded(obj), rec.unshown, rec.hasUnshown(), own}, nil
}

func encoded(obj *meta.Object) []byte { return bytes.Clone(codec.EncodeStored(nil, obj.Tree())) }

// decode decodes a record without its signature. It does not fit the record.
func (k *kind) decode(stored []byte) (*record, error) {
	obj, err := decoded(stored)
	if err != nil {
		return nil, err
	}
	rec := &record{primary: obj}
	if rec.t, err = k.t.WithStoredVersions(obj.APIVersion()); err != nil {
		return nil, err
	}
	if rec.t.Converts() { // otherwise the annotation is kept like any other
		rec.hash = hashOf(obj)
		err = rec.takeCopies()
	}
	return rec, err
}

func decoded(text []byte) (*meta.Object, error) {
	tree, _, err := codec.DecodeJSON(text, codec.Limits{})
	return meta.NewObject(tree), err
}

// takeCopies moves the hub copies from the annotation of the record to copies and others.
func (rec *record) takeCopies() error {
	name := rec.t.Names.Wire(wellknown.HubForm)
	for _, stored := range storedCopies(rec.primary, name) {
		entry, _ := stored.(map[string]any)
		tree, _ := entry["hub"].(map[string]any)
		of, _ := entry["of"].(string)
		if tree == nil {
			continue
		}
		object := meta.NewObject(maps.Clone(tree))
		t, err := rec.t.WithStoredVersions(object.APIVersion())
		if err != nil {
			return err
		}
		if t.ByAPIVersion(object.APIVersion()) == nil {
			rec.others = append(rec.others, stored)
			continue
		}
		rec.t = t
		rec.copies = append(rec.copies, hubCopy{object: object, of: of, stored: stored})
	}
	dropAnnotation(rec.primary, name)
	for _, f := range rec.copies {
		f.object.Tree()["metadata"] = rec.primary.Tree()["metadata"]
	}
	return nil
}

// storedCopies returns the hub copies in the annotation of a record, the newest first. The annotation is the JSON of
// the newest copy; the older copies are in its field "others".
func storedCopies(obj *meta.Object, name string) []any {
	first, _, err := codec.DecodeJSON([]byte(obj.Annotation(name)), codec.Limits{})
	if err != nil {
		return nil
	}
	others, _ := first["others"].([]any)
	delete(first, "others")
	return append([]any{first}, others...)
}

// putCopies stores hub copies in the annotation of obj, or removes the annotation if there are none. It modifies obj,
// but not the copies.
func putCopies(obj *meta.Object, name string, copies []any) {
	if len(copies) == 0 {
		dropAnnotation(obj, name)
		return
	}
	first, _ := copies[0].(map[string]any)
	if len(copies) > 1 {
		first = maps.Clone(first)
		first["others"] = copies[1:]
	}
	obj.Set(string(codec.EncodeJSON(nil, first)), "metadata", "annotations", name)
}

// fit upgrades the primary object and the hub copies with the kind's Upgrade, and removes fields and values that the
// type cannot show. The removed data stays in whole and is listed in unshown.
func (rec *record) fit() (err error) {
	if rec.whole, rec.version, err = rec.t.UpgradeStored(rec.primary); err != nil {
		return err
	}
	rec.primary, rec.unshown = rec.version.FitStored(rec.whole)
	for i := range rec.copies {
		c := &rec.copies[i]
		var version *resource.Version
		if c.whole, version, err = rec.t.UpgradeStored(c.object); err != nil {
			return err
		}
		var unshown resource.Unshown
		c.object, unshown = version.FitStored(c.whole)
		c.hasUnshown = unshown.Any()
		rec.unshown.Unknown = append(rec.unshown.Unknown, unshown.Unknown...)
		rec.unshown.Misfits = append(rec.unshown.Misfits, unshown.Misfits...)
	}
	return nil
}

// shown is like object, for a fitted record.
func (rec *record) shown(ctx context.Context) (*meta.Object, error) {
	obj, err := rec.object(ctx)
	if err != nil {
		return nil, err
	}
	obj, _ = rec.t.Hub.FitStored(obj)
	obj.SetGVK(rec.t.Hub.GVK()) // the kind may have been renamed
	return obj, nil
}

// object returns the object in the hub version. If the newest hub copy was stored with the present primary object,
// the copy is the object. If not, or if there are older copies, the changes are merged step by step: each older copy
// was stored by a release whose hub represents more of the object than the versions that were written later, so each
// copy takes over the changes that were made after it.
func (rec *record) object(ctx context.Context) (*meta.Object, error) {
	hub := rec.t.Hub
	if !rec.t.Converts() {
		obj := rec.primary.Clone()
		obj.SetGVK(hub.GVK())
		return obj, nil
	}
	if len(rec.copies) == 0 {
		return hub.Convert(ctx, rec.primary)
	}
	obj := rec.primary
	for i, c := range rec.copies {
		version := rec.t.ByAPIVersion(c.object.APIVersion())
		var err error
		if i == 0 && c.of == rec.hash {
			obj = c.object
		} else if obj, err = rec.merged(ctx, c, obj); err == nil && i+1 < len(rec.copies) {
			obj, err = version.Convert(ctx, obj)
		}
		if err != nil {
			return nil, err
		}
	}
	return toCurrentHub(ctx, hub, obj)
}

// merged returns a hub copy, in the current hub version, with the changes that other releases have made since it was
// stored. obj is the object after these changes. Those releases saw the copy only as the record's version represents
// it, so the changes are the difference between that representation and obj.
func (rec *record) merged(ctx context.Context, c hubCopy, obj *meta.Object) (*meta.Object, error) {
	hub := rec.t.Hub
	stored, version := rec.t.ByAPIVersion(rec.primary.APIVersion()), rec.t.ByAPIVersion(obj.APIVersion())
	if stored == nil || version == nil {
		return hub.Convert(ctx, rec.primary) // fails, because the version is unknown
	}
	was, err := toCurrentHub(ctx, hub, c.object)
	if err != nil {
		return nil, err
	}
	before, err := stored.Convert(ctx, was)
	if err == nil {
		before, err = version.Convert(ctx, before)
	}
	if err != nil {
		return nil, err
	}
	return hub.Merge(ctx, was, before, obj)
}

// toCurrentHub converts an object, which may be in the version of a former hub, to the current hub, and normalizes
// it.
func toCurrentHub(ctx context.Context, hub *resource.Version, obj *meta.Object) (*meta.Object, error) {
	obj, err := hub.Convert(ctx, obj)
	if err != nil {
		return nil, err
	}
	if _, faults := hub.Normalize(obj); len(faults) > 0 {
		return nil, hub.DecodeError(faults)
	}
	return obj, nil
}

// write returns the record for an object in the hub version. now is the record that it replaces, or nil. If now has
// unshown data, the new record keeps it, stays in the version of now, and is not signed. If that version cannot
// represent the object, the error is a *meta.Status.
//
// If there is no unshown data and the storage version cannot represent the object, the object is stored in the hub
// version, and asHub is the reason. It is not refused, because the write may complete a deletion, and because a
// refusal would fail other writes in the same commit.
func (k *kind) write(ctx context.Context, object, now []byte) (stored []byte, asHub, err error) {
	was := k.decodeUnshown(now)
	if was == nil && k.t.Storage == k.t.Hub {
		return sign(object, k.shape), nil, nil
	}
	obj, err := decoded(object)
	if err != nil {
		return nil, nil, err
	}
	if was != nil {
		return was.replacement(ctx, obj, now)
	}
	primary, back, err := roundTrip(ctx, k.t, k.t.Storage, obj)
	if err != nil {
		return sign(object, k.shape), err, nil
	}
	return sign(encoded(withHubCopies(k.t, primary, back, obj, nil)), k.shape), nil, nil
}

// decodeUnshown decodes and fits a record, and returns it if it has unshown data. It returns nil for a record that
// cannot be read.
func (k *kind) decodeUnshown(now []byte) *record {
	stored, shape := unsign(now)
	if now == nil || string(shape) == k.shape {
		return nil
	}
	rec, err := k.decode(stored)
	if err == nil {
		err = rec.fit()
	}
	if err != nil || !rec.hasUnshown() {
		return nil
	}
	return rec
}

// replacement returns the record for obj, in the hub version, in place of rec, which has unshown data. now is rec as
// it is stored.
func (rec *record) replacement(ctx context.Context, obj *meta.Object, now []byte) (stored []byte, asHub, err error) {
	t, others := rec.t, rec.others
	primary, back, err := roundTrip(ctx, t, rec.version, obj)
	switch {
	case err == nil:
		primary = rec.version.KeepUnshown(rec.primary, primary, rec.whole)
	case !rec.unshown.Any():
		primary, back, asHub = obj, obj, err
	default:
		if was, fault := rec.shown(ctx); fault != nil || hashOf(was) != hashOf(obj) {
			return nil, nil, rec.refusal(obj, err)
		}
		stored, err = rec.withMetadata(obj, now)
		return stored, nil, err
	}
	if !t.Converts() {
		return encoded(primary), asHub, nil
	}
	object := obj
	for _, c := range rec.copies {
		switch {
		case c.whole.APIVersion() == t.Hub.GVK().APIVersion():
			object = t.Hub.KeepUnshown(c.object, obj, c.whole)
		case c.hasUnshown: // otherwise the current hub represents all of the copy
			others = append(slices.Clip(others), c.replacement(ctx, t, obj, primary))
		}
	}
	if rec.version == t.Hub {
		back = object // the record is in the hub version: no copy is needed
	}
	return encoded(withHubCopies(t, primary, back, object, others)), asHub, nil
}

// replacement returns the stored hub copy for obj in place of c, which is in the version of another hub and has
// unshown data. primary is the new primary object of the record. If obj cannot be converted, the copy is kept as it
// is: its unshown data is worth more than a current copy.
func (c *hubCopy) replacement(ctx context.Context, t *resource.Type, obj, primary *meta.Object) any {
	version := t.ByAPIVersion(c.whole.APIVersion())
	now, err := version.Convert(ctx, obj)
	if err != nil {
		return c.stored
	}
	return storedCopy(primary, version.KeepUnshown(c.object, now, c.whole))
}

// storedCopy returns the stored hub copy of object, for a record with a primary object.
func storedCopy(primary, object *meta.Object) map[string]any {
	return map[string]any{"of": hashOf(primary), "hub": withoutMetadata(object)}
}

// roundTrip converts an object from the hub to a version and back.
func roundTrip(ctx context.Context, t *resource.Type, version *resource.Version, obj *meta.Object) (primary, back *meta.Object, err error) {
	if primary, err = version.Convert(ctx, obj); err != nil || version == t.Hub {
		return primary, obj, err
	}
	back, err = t.Hub.Convert(ctx, primary)
	return primary, back, err
}

// withHubCopies returns a copy of primary with hub copies in its annotation: a copy of object, unless primary
// represents all of it, and the older copies in others. back is primary converted to the hub.
func withHubCopies(t *resource.Type, primary, back, object *meta.Object, others []any) *meta.Object {
	primary = primary.Clone()
	copies := others
	if len(others) > 0 || hashOf(back) != hashOf(object) {
		copies = append([]any{storedCopy(primary, object)}, others...)
	}
	putCopies(primary, t.Names.Wire(wellknown.HubForm), copies)
	return primary
}

// withMetadata returns the record with the metadata of obj and everything else unchanged. now is the record as it is
// stored.
func (rec *record) withMetadata(obj *meta.Object, now []byte) ([]byte, error) {
	stored, _ := unsign(now)
	is, err := decoded(stored)
	if err != nil {
		return nil, err
	}
	name := rec.t.Names.Wire(wellknown.HubForm)
	copies, had := is.Get("metadata", "annotations", name)
	dropAnnotation(is, name)
	is.Tree()["metadata"] = rec.version.KeepUnshown(metadataOf(rec.primary), metadataOf(obj), metadataOf(is)).Tree()["metadata"]
	if had {
		is.Set(copies, "metadata", "annotations", name)
	}
	return encoded(is), nil
}

// refusal returns the Invalid error for a write that would lose unshown data of the record.
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
		"Forbidden: the object is stored in version %s with data of another release that this release does not know (%s), and that version cannot hold the change: %s",
		rec.version.GVK().APIVersion(), strings.Join(unshown, ", "), reason(why))}})
}

// maxUnshown bounds the number of unshown fields in the message of a refusal.
const maxUnshown = 10

// hashOf returns a hash of an object without its metadata.
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

// keepHubCopies sets the annotation with the hub copies in obj as it is in live, or removes it if live has none.
// Writers cannot change it through the server. Only a release that does not know the hub sees the annotation.
func keepHubCopies(t *resource.Type, obj, live *meta.Object) {
	name := t.Names.Wire(wellknown.HubForm)
	dropAnnotation(obj, name)
	if live == nil {
		return
	}
	if copies, ok := live.Get("metadata", "annotations", name); ok {
		obj.Set(copies, "metadata", "annotations", name)
	}
}

// dropAnnotation removes an annotation, and the map of annotations if it is then empty.
func dropAnnotation(obj *meta.Object, name string) {
	if _, ok := obj.Get("metadata", "annotations", name); !ok {
		return
	}
	obj.Delete("metadata", "annotations", name)
	if len(obj.Map("metadata", "annotations")) == 0 {
		obj.Delete("metadata", "annotations")
	}
}
