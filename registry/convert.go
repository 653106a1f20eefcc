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

// VersionOf is another version of the kind with the hub H. It is always a [Spoke].
type VersionOf[H any] interface {
	versionOf(hub *H) (KindVersion, fs.FS)
}

// Spoke is a version of a kind that has its own Go struct V. H is the struct of the Definition, the
// hub. Objects are converted between V and H; a conversion between two spokes goes through the hub.
//
// The library converts type and metadata itself, except for the Annotations that correspond to
// fields of the hub. V may lack fields of H: when a client of the version writes an object, these
// fields keep their values. V must not have information that H lacks, because it would be lost;
// registrytest.RoundTrip finds such fields.
//
// In a list, fields that V lacks stay with the item of the same key if the list has keys
// (listType=map). Without keys, they stay with the items that the client sends unchanged, provided
// that V shows all items of the list in the order of the hub. An item that the client changes
// counts as a new item.
//
// The rules in the tags of V apply to values that a client writes in this version, but not to
// values of the stored object that it leaves unchanged. Afterwards the rules of H apply to the
// whole object, with paths of the hub. Unique values must be declared in H.
//
// A version may be in another group. The objects, their names and watch events are the same there,
// but permissions are separate for each group.
type Spoke[V, H any] struct {
	Group   string // the group of the version; empty: the group of the Definition
	Version string

	// ToHub and FromHub may both be nil if V is the same type as H.

	// ToHub sets the fields of out, which is empty, from an object of the version. If it fails,
	// the client's object is rejected: a *check.Error, as Err of check.Violations returns it, becomes
	// a 422 that names fields of the version; any other error becomes a 400 with its text.
	//
	// If a value has several notations, such as 1024Mi and 1Gi, Default should set the notation
	// that FromHub returns. Otherwise clients read another notation than they wrote.
	ToHub func(in *V, out *H) error
	// FromHub sets the fields of out, which is empty, from an object of the hub. If it fails, the
	// object cannot be read in this version.
	FromHub func(in *H, out *V) error

	// Default sets fields that clients of the version left out, after the defaults of its schema
	// and before ToHub. Old is the stored object as the version shows it.
	Default func(w *Change[V])

	// Annotations lists, by spec names, the annotations by which the version shows hub fields that
	// V lacks: FromHub sets them in out, and ToHub reads them from in, under these names. Objects
	// of the hub do not have these annotations, except for those that ToHub sets in out, such as an
	// annotation that it cannot parse; FromHub then reads it from in.
	Annotations []string

	// HubAnnotations lists, by spec names, the annotations by which the hub shows fields of V that
	// H lacks: ToHub sets them in out, and FromHub reads them from in. Objects of the version do
	// not have these annotations, except for those that FromHub sets in out.
	HubAnnotations []string

	// Fields maps the version's names of selectable fields to the names in the hub. The values must
	// equal those in the hub, by whose values caches index objects. If Fields is nil, the names are
	// the same, and if the version has a scalar at the path of a field, the field has the version's
	// value.
	Fields map[string]string
	// OwnFields lists additional selectable fields. Their paths lead into objects of the version; to read
	// their values, stored objects must be converted.
	OwnFields []SelectableField

	Columns             []Column // nil: the columns of the hub, read from the hub object
	MissingSubresources []string // subresources of the kind that the version does not serve; a status without its subresource is written with the object
	Unserved            bool     // the version is only a storage version
	Lifetime            Lifetime // see Definition
	Deprecated          string   // see Definition
	Replacement         meta.GroupVersionKind

	// Source holds the embedded Go files of V's package, if it is not the package of H.
	Source fs.FS
}

func (s Spoke[V, H]) versionOf(*H) (KindVersion, fs.FS) {
	return KindVersion{
		Group: s.Group, Name: s.Version, Fields: s.Fields, OwnFields: s.OwnFields, Served: !s.Unserved, Lifetime: s.Lifetime, Deprecated: s.Deprecated, Replacement: s.Replacement, MissingSubresources: s.MissingSubresources, Columns: s.Columns,
		Conversion: s.untyped().conversion, goType: reflect.TypeFor[V](),
	}, s.Source
}

// spoke is a Spoke without type parameters, because the compiler copies generic code for each type.
type spoke struct {
	version, hub                reflect.Type
	toHub, fromHub              func(in, out any) error // in and out are pointers to these types
	setDefaults                 typedHook
	annotations, hubAnnotations []string
}

func (s Spoke[V, H]) untyped() spoke {
	return spoke{
		reflect.TypeFor[V](), reflect.TypeFor[H](), untypedConversion(s.ToHub), untypedConversion(s.FromHub), hookOf(s.Default), s.Annotations, s.HubAnnotations,
	}
}

// untypedConversion returns a conversion with arguments that must be pointers to A and B.
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

// Conversion converts trees between a version and the hub. The functions do not modify their
// arguments. They leave type and metadata to the caller, except for the Annotations and
// HubAnnotations that they set.
type Conversion struct {
	ToHub, FromHub func(tree map[string]any) (map[string]any, error)
	Default        func(w *Change[meta.Object]) // see Spoke; may be nil
	SameShape      bool                         // the version has the type of the hub, so the hub's Default hook runs for it, too, after this Default
	Annotations    []string                     // wire names, see Spoke
	HubAnnotations []string                     // wire names, see Spoke
}

// conversion returns the Conversion of the version under the naming profile p. own is the schema of
// the version.
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
	c.ToHub = withAnnotations(treeConversion(s.version, v, s.toHub, s.hub, h), annotations, p)
	c.FromHub = withAnnotations(treeConversion(s.hub, h, s.fromHub, s.version, v), annotations, p)
	return c, nil
}

// withAnnotations lets a conversion read and set annotations by their spec names, and no other
// metadata.
func withAnnotations(convert func(map[string]any) (map[string]any, error), annotations []string, p names.Profile) func(map[string]any) (map[string]any, error) {
	if len(annotations) == 0 {
		return convert
	}
	return func(tree map[string]any) (map[string]any, error) {
		in, shown := meta.NewObject(tree), map[string]any{}
		for _, name := range annotations {
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
		set, out := meta.NewObject(tree).Map("metadata", "annotations"), map[string]any{}
		for _, name := range annotations {
			if v, ok := set[name]; ok {
				out[p.Wire(name)] = v
			}
		}
		tree["metadata"] = map[string]any{"annotations": out}
		return tree, nil
	}
}

// treeConversion returns a conversion between Go types a and b as a conversion of trees.
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

// sameTree is the conversion between versions with the same Go type.
func sameTree(tree map[string]any) (map[string]any, error) {
	out := maps.Clone(tree)
	delete(out, "metadata") // shared with the argument, and not part of the conversion
	out, _ = meta.Clone(out).(map[string]any)
	if m, ok := tree["metadata"]; ok {
		out["metadata"] = m
	}
	return out, nil
}
