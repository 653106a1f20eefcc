package registry

import (
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

// VersionOf is a further version of the kind whose hub is H: a [Spoke].
type VersionOf[H any] interface {
	versionOf(hub *H) (KindVersion, fs.FS)
}

// Spoke is a further version of a kind, with a struct of its own: V is that struct,
// H the one of the Definition, the hub. Objects of the version are made of the hub's
// and become them; between two spokes they go through the hub.
//
// Type and metadata are carried over by the library, but for the Annotations that stand
// for fields of the hub. The version may say less than
// the hub: what it cannot say stays as it is when a client of the version writes an
// object. It may not say more, since that would be lost; registrytest.RoundTrip
// finds what is.
//
// What it cannot say of the items of a list stays with their keys, if the list has
// some (listType=map). Without keys it stays with the items that are sent as they are
// shown, if the version shows the list item by item, in the order of the hub; an item
// that is changed is a new one.
//
// The rules in the tags of V hold for what is written in the version, but for what it
// shows of an object that was there; after that those of the hub hold for all, with
// the hub's paths. What must be unique is said in the hub.
//
// A version may be in another group. Objects and their names are the same there, and so
// are events of watches; who may do what is said for each group apart.
type Spoke[V, H any] struct {
	Group   string // another group that the version is in; empty: the group of the Definition
	Version string

	// ToHub and FromHub may both be nil where V is H: the version has the shape of the hub.

	// ToHub fills out, which is empty, from an object of the version. Its error
	// tells a caller why his object cannot be taken: a *check.Error, of Err of
	// check.Violations, is a 422 that names the fields, which are those of the version;
	// any other is a 400 with its text.
	// Where values have several spellings, such as 1024Mi and 1Gi, Default writes
	// the one that FromHub gives, or they come back otherwise than they were sent.
	ToHub func(in *V, out *H) error
	// FromHub fills out, which is empty, from the hub. An object for which it fails
	// cannot be read in this version.
	FromHub func(in *H, out *V) error

	// Default fills in what callers of the version left out, after the defaults of
	// its schema and before ToHub. Old is the object as the version shows it.
	Default func(w *Change[V])

	// Annotations are those in which the version shows what it has no fields for, by their
	// spec names: FromHub sets them in out, and ToHub finds them in in, under these names.
	// The hub has none of them, but for those that ToHub leaves, such as one whose text it
	// cannot read: it sets them in out, too, and FromHub finds them in in.
	Annotations []string

	// HubAnnotations are those in which the hub shows what the version has fields for, by
	// their spec names: ToHub sets them in out, and FromHub finds them in in. The version
	// has none of them, but for those that FromHub leaves in the same way.
	HubAnnotations []string

	// Fields are the names that this version has for selectable fields of the hub, and the
	// hub's names for them. Their values are taken to be the hub's, by which caches find
	// objects at once. nil: the names are the same, and the values what the version shows at
	// the path that the field has in the hub, if there is one.
	Fields map[string]string
	// OwnFields are selectable fields beside those. Their paths lead in the version, and their
	// values are what that shows of an object, which is converted to find out.
	OwnFields []SelectableField

	Columns             []Column // nil: the hub's, of the hub's object
	MissingSubresources []string // sub-resources of the kind that this version does not serve; a status without one is written with the rest
	Unserved            bool     // it is only stored
	Lifetime            Lifetime // as in Definition
	Deprecated          string   // as in Definition
	Replacement         meta.GroupVersionKind

	// Source holds the Go files of V's package, if that is not the hub's.
	Source fs.FS
}

func (s Spoke[V, H]) versionOf(*H) (KindVersion, fs.FS) {
	return KindVersion{
		Group: s.Group, Name: s.Version, Fields: s.Fields, OwnFields: s.OwnFields, Served: !s.Unserved, Lifetime: s.Lifetime, Deprecated: s.Deprecated, Replacement: s.Replacement, MissingSubresources: s.MissingSubresources, Columns: s.Columns,
		Conversion: s.untyped().conversion, goType: reflect.TypeFor[V](),
	}, s.Source
}

// spoke is a Spoke without its types: there is a copy of what is generic for each of them.
type spoke struct {
	version, hub                reflect.Type
	toHub, fromHub              func(in, out any) error // pointers to these
	setDefaults                 typedHook
	annotations, hubAnnotations []string
}

func (s Spoke[V, H]) untyped() spoke {
	return spoke{
		reflect.TypeFor[V](), reflect.TypeFor[H](), untypedConversion(s.ToHub), untypedConversion(s.FromHub), hookOf(s.Default), s.Annotations, s.HubAnnotations,
	}
}

func untypedConversion[A, B any](convert func(*A, *B) error) func(in, out any) error {
	if convert == nil {
		return nil
	}
	return func(in, out any) error {
		a, _ := in.(*A)
		b, _ := out.(*B)
		return convert(a, b)
	}
}

// Conversion makes trees of a version trees of the hub and back. What goes in stays
// as it is; type and metadata are left to who calls, but for what both say of the
// Annotations and the HubAnnotations.
type Conversion struct {
	ToHub, FromHub func(tree map[string]any) (map[string]any, error)
	Default        func(w *Change[meta.Object]) // as that of a Spoke; nil: nothing
	SameShape      bool                         // as the hub: what fills that in fills in this version, after Default
	Annotations    []string                     // wire names of those of the version that the hub has as fields
	HubAnnotations []string                     // wire names of those of the hub that the version has as fields
}

func (s spoke) conversion(own *schema.Schema, p names.Profile) (*Conversion, error) {
	t := newTyped(s.version, own, p)
	c := &Conversion{ToHub: sameTree, FromHub: sameTree, Default: t.edit(nil, s.setDefaults), SameShape: true}
	if s.toHub == nil || s.fromHub == nil {
		if s.toHub != nil || s.fromHub != nil || s.version != s.hub {
			return nil, errors.New("a spoke needs ToHub and FromHub")
		}
		return c, nil
	}
	v, err := t.view()
	if err != nil {
		return nil, err
	}
	h, err := schema.NewView(s.hub, p)
	if err != nil {
		return nil, err
	}
	c.SameShape = false
	for _, name := range s.annotations {
		c.Annotations = append(c.Annotations, p.Wire(name))
	}
	for _, name := range s.hubAnnotations {
		c.HubAnnotations = append(c.HubAnnotations, p.Wire(name))
	}
	annotations := slices.Concat(s.annotations, s.hubAnnotations)
	c.ToHub = seeAnnotations(treeConversion(s.version, v, s.toHub, s.hub, h), annotations, p)
	c.FromHub = seeAnnotations(treeConversion(s.hub, h, s.fromHub, s.version, v), annotations, p)
	return c, nil
}

// seeAnnotations lets a conversion see and set some annotations by their spec names, and
// no other metadata.
func seeAnnotations(convert func(map[string]any) (map[string]any, error), some []string, p names.Profile) func(map[string]any) (map[string]any, error) {
	if len(some) == 0 {
		return convert
	}
	return func(tree map[string]any) (map[string]any, error) {
		in, shown := meta.NewObject(tree), map[string]any{}
		for _, name := range some {
			if v, ok := in.Get("metadata", "annotations", p.Wire(name)); ok {
				shown[name] = v
			}
		}
		tree = maps.Clone(tree)
		tree["metadata"] = map[string]any{"annotations": shown}
		tree, err := convert(tree)
		if err != nil {
			return nil, err
		}
		said, out := meta.NewObject(tree).Map("metadata", "annotations"), map[string]any{}
		for _, name := range some {
			if v, ok := said[name]; ok {
				out[p.Wire(name)] = v
			}
		}
		tree["metadata"] = map[string]any{"annotations": out}
		return tree, nil
	}
}

// treeConversion returns a conversion between two types as one of trees.
func treeConversion(a reflect.Type, from *schema.View, convert func(in, out any) error, b reflect.Type, to *schema.View) func(map[string]any) (map[string]any, error) {
	return func(tree map[string]any) (map[string]any, error) {
		in, out := reflect.New(a).Interface(), reflect.New(b).Interface()
		if err := from.Into(tree, in); err != nil {
			return nil, err
		}
		if err := convert(in, out); err != nil {
			return nil, err
		}
		return to.From(out)
	}
}

// sameTree is the conversion between versions of one shape.
func sameTree(tree map[string]any) (map[string]any, error) {
	out := maps.Clone(tree)
	delete(out, "metadata") // which is not the conversion's, and shared
	out, _ = meta.Clone(out).(map[string]any)
	if m, ok := tree["metadata"]; ok {
		out["metadata"] = m
	}
	return out, nil
}
