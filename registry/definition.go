package registry

import (
	"cmp"
	"io/fs"
	"reflect"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
)

// Definition declares a kind by a Go struct T. The json tags of T name the fields of the object. T
// must embed meta.TypeMeta inline and have the metadata as a field; structs that were written for
// other libraries work if their JSON has this form. schema.Go describes the other tags.
//
// If the kind has several versions, T is the hub: hooks, admission, controllers and clients in the
// process see objects only in this version, paths lead into it, and objects are validated in it.
// Versions lists the other versions, which have Go structs of their own.
type Definition[T any] struct {
	Group, Version, Kind string // Kind defaults to the name of T; an empty Group is the core group
	Plural               string // default: Kind in lower case, followed by s
	Singular             string // default: Kind in lower case
	ListKind             string // default: Kind followed by List
	ShortNames           []string
	Categories           []string
	Scope                Scope

	Versions []VersionOf[T] // the other versions, each a Spoke
	// Storage is the version in which objects are stored, with its group if that differs from
	// Group. The default is the hub. An older version allows going back to a release of the program
	// that does not know the newer versions.
	//
	// If the storage version cannot represent all of an object, the record also holds the rest.
	// This can add up to twice the size of the hub object to the record, and the Limits of a server
	// do not count it. An object that cannot be converted to the storage version at all is stored
	// in the hub version. Objects that were stored in another version can still be read, and the
	// next write stores them in the storage version.
	Storage string

	Status       bool   // the status subresource exists; spec and status are written separately
	Scale        *Scale // the scale subresource, or nil
	Subresources []Subresource
	Columns      []Column
	Fields       []SelectableField

	// ValidateName returns the violations of a name, or with prefix of a generateName. If it is
	// nil, names must be DNS subdomains.
	ValidateName func(name string, prefix bool) []string
	// Default sets defaults that the schema cannot express. It runs on every write, after the
	// defaults of the schema.
	Default func(w *Change[T])
	// Prepare readies an object for the write: it clears fields that clients may not set and merges
	// convenience fields. It does not run for subresources.
	Prepare func(w *Change[T])
	// Validate adds the violations that the schema does not find to w.
	Validate func(w *Change[T])
	// Warn returns warnings about a valid object for the client that writes it.
	Warn func(w *Change[T]) []string

	// Allocator allocates values that are unique among the objects of the kind, such as addresses. It
	// may be nil.
	Allocator *Allocator

	Lifetime    Lifetime              // the releases that serve the version
	Deprecated  string                // warning for clients; empty: not deprecated, or derived from Lifetime
	Replacement meta.GroupVersionKind // what clients should use instead of a deprecated kind, for the warning; spec names

	// Behavior holds hooks on untyped objects, which are faster than typed hooks, and hooks that
	// few kinds need. Typed hooks run after the hook of the same name in Behavior.
	Behavior Behavior

	// Source holds the Go files of T's package, embedded by that package. Their comments become the
	// documentation of the fields; they are parsed when a client first asks for it. Without Source,
	// fields are documented by their doc tags. Types of this library need no Source.
	Source fs.FS

	// Reference lists the exceptional behaviors of kube-apiserver that a built-in kind follows.
	Reference *compat.Reference
}

// Of returns the kind that d declares. Errors of the declaration are kept in the kind, see
// Kind.Err, and reported when a server is built.
func Of[T any](d Definition[T]) *Kind {
	k := &Kind{
		Group: d.Group, Kind: d.Kind, ListKind: d.ListKind, Plural: d.Plural, Singular: d.Singular,
		ShortNames: d.ShortNames, Categories: d.Categories, Scope: d.Scope,
		Features: Features{Status: d.Status, Scale: d.Scale, Subresources: d.Subresources, Fields: d.Fields, ValidateName: d.ValidateName, Allocator: d.Allocator},
		Behavior: d.Behavior, Reference: d.Reference, goType: reflect.TypeFor[T](),
	}
	k.addGo(KindVersion{
		Name: d.Version, Served: true, Lifetime: d.Lifetime, Deprecated: d.Deprecated, Replacement: d.Replacement, Columns: d.Columns, goType: k.goType,
	}, d.Source)
	for _, v := range d.Versions {
		k.addGo(v.versionOf(nil))
	}
	k.finish(cmp.Or(d.Storage, d.Version), &hooks{hookOf(d.Default), hookOf(d.Prepare), hookOf(d.Validate), warningOf(d.Warn)})
	return k
}

// addGo adds a version of a Go struct. source holds the embedded Go files of its package, or is
// nil.
func (k *Kind) addGo(v KindVersion, source fs.FS) {
	v.Schema = func(p names.Profile) (*schema.Schema, error) { return schema.Go(v.goType, p) }
	k.Versions = append(k.Versions, v)
	if docs := schema.NewDocs(v.goType.PkgPath(), source); k.Docs == nil {
		k.Docs = docs
	} else if docs != nil {
		k.Docs = schema.JoinDocs(k.Docs, docs)
	}
}

// finish sets the storage version and the typed hooks, and records errors of the declaration.
func (k *Kind) finish(storage string, h *hooks) {
	k.Kind = cmp.Or(k.Kind, k.goType.Name())
	if h.setDefaults != nil || h.prepare != nil || h.validate != nil || h.warn != nil {
		of := k.goType
		k.hooks = func(b *Behavior, s *schema.Schema, p names.Profile) { h.appendTo(b, newTyped(of, s, p)) }
	}
	if k.goType.Kind() == reflect.Pointer {
		k.errorf("T must be the struct %s, not a pointer to it", k.goType.Elem())
	}
	for i := range k.Versions {
		k.Versions[i].Storage = k.Versions[i].String() == storage
	}
	if !slices.ContainsFunc(k.Versions, func(v KindVersion) bool { return v.Storage }) {
		k.errorf("Storage %q is not a version of the kind", storage)
	}
}
