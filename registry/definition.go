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

// Definition declares a kind by a Go struct T. T has the object's fields as its
// json tags name them, with TypeMeta inline and metadata as a field; types
// written for other ecosystems work through their json shape. The tags that say
// more are those of schema.Go.
//
// Where a kind has several versions, T is its hub: hooks, admission, controllers and
// clients in the process see objects in this form alone, paths lead into it, and
// objects are checked in it. The others are Versions, of structs of their own.
type Definition[T any] struct {
	Group, Version, Kind string // Kind: by default the name of T; an empty Group is the core group
	Plural               string // default: lower-case kind and s
	Singular             string // default: lower-case kind
	ListKind             string // default: Kind and List
	ShortNames           []string
	Categories           []string
	Scope                Scope

	Versions []VersionOf[T] // the others: each a Spoke
	// Storage is the version that objects are stored in, with its group if that is
	// another; by default the hub's. An
	// older one is for those who may go back to a release that knows nothing newer.
	// What it cannot say is stored beside it: a record has up to twice the bytes of
	// the hub's object more, which Limits of a server do not count. An object that the
	// version cannot say at all is stored as the hub has it. Objects that were stored in another one
	// of the versions are read as well, and stored anew by their next write.
	Storage string

	Status       bool   // the sub-resource status exists; spec and status are written apart
	Scale        *Scale // the sub-resource scale, or nil
	Subresources []Subresource
	Columns      []Column
	Fields       []SelectableField

	// ValidateName returns what is wrong with a name (or, with prefix, a
	// generateName). nil: a DNS subdomain.
	ValidateName func(name string, prefix bool) []string
	// Default fills in a new or changed object, after the schema's defaults.
	Default func(w *Change[T])
	// Prepare fits the object that is to be written: clears what callers may not
	// set, merges convenience fields. It does not run for sub-resources.
	Prepare func(w *Change[T])
	// Validate adds the faults beyond the schema's to w.
	Validate func(w *Change[T])
	// Warn returns warnings for the caller who wrote a valid object.
	Warn func(w *Change[T]) []string

	// Allocator gives objects values that no other object of the kind may hold, such
	// as addresses; nil: none.
	Allocator *Allocator

	Lifetime    Lifetime              // the releases that serve the version
	Deprecated  string                // warning text for callers; empty: not deprecated, or as Lifetime says
	Replacement meta.GroupVersionKind // what they should use instead of a deprecated kind, as the warning says; spec names

	// Behavior holds what few kinds need, and hooks that work on the tree, which
	// is faster. The typed hooks run after those.
	Behavior Behavior

	// Source holds the Go files of T's package, as embedded by it; their comments
	// become field documentation, read only when a client asks. Without it, fields
	// have the text of their doc tag. Types of this library are documented anyway.
	Source fs.FS

	// Reference is for built-in kinds: what they imitate.
	Reference *compat.Reference
}

// Of makes a kind from its definition. What is wrong with the definition is
// kept in it, see Err, for the Build of the server.
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
	k.declared(cmp.Or(d.Storage, d.Version), &hooks{hookOf(d.Default), hookOf(d.Prepare), hookOf(d.Validate), warningOf(d.Warn)})
	return k
}

// addGo adds a version that is a Go struct, whose package has files that may be embedded.
func (k *Kind) addGo(v KindVersion, source fs.FS) {
	v.Schema = func(p names.Profile) (*schema.Schema, error) { return schema.Go(v.goType, p) }
	k.Versions = append(k.Versions, v)
	if docs := schema.NewDocs(v.goType.PkgPath(), source); k.Docs == nil {
		k.Docs = docs
	} else if docs != nil {
		k.Docs = schema.JoinDocs(k.Docs, docs)
	}
}

// declared notes which version objects are stored in, the typed hooks, and what is wrong.
func (k *Kind) declared(storage string, h *hooks) {
	k.Kind = cmp.Or(k.Kind, k.goType.Name())
	if h.setDefaults != nil || h.prepare != nil || h.validate != nil || h.warn != nil {
		of := k.goType
		k.hooks = func(b *Behavior, s *schema.Schema, p names.Profile) { h.behind(b, newTyped(of, s, p)) }
	}
	if k.goType.Kind() == reflect.Pointer {
		k.fault("the definition is of a pointer: take the struct, %s", k.goType.Elem())
	}
	for i := range k.Versions {
		k.Versions[i].Storage = k.Versions[i].String() == storage
	}
	if !slices.ContainsFunc(k.Versions, func(v KindVersion) bool { return v.Storage }) {
		k.fault("Storage %q is none of the versions", storage)
	}
}
