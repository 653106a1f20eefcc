package registry

import (
	"context"
	"io/fs"
	"reflect"
	"strings"

	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
	"orch.io/controlplane/registry/schema"
)

// Definition declares a kind by a Go struct T. T has the object's fields as its
// json tags name them, with TypeMeta inline and metadata as a field; types
// written for other ecosystems work through their json shape. The tags that say
// more are those of schema.Go.
type Definition[T any] struct {
	Group, Version, Kind string // Kind: by default the name of T
	Plural               string // default: lower-case kind and s
	Singular             string // default: lower-case kind
	ListKind             string // default: Kind and List
	ShortNames           []string
	Categories           []string
	Scope                Scope
	Status               bool // the sub-resource status exists
	Columns              []Column
	Deprecated           string // warning text for callers; empty: not deprecated

	// Default fills in a new or changed object, after the schema's defaults.
	Default func(obj *T)
	// Validate returns the faults beyond the schema's; old is nil on create.
	Validate func(ctx context.Context, old, new *T) []meta.Cause

	// Behavior holds what few kinds need. The typed Default and Validate run
	// after its own.
	Behavior Behavior

	// Source holds the Go files of T's package, as embedded by it; their comments
	// become field documentation, read only when a client asks. Sources holds
	// those of other packages, by import path. Without them fields have the text
	// of their doc tag.
	Source  fs.FS
	Sources map[string]fs.FS
}

// Of makes a kind from its definition. What is wrong with the definition is
// kept for Compile, and so for the Build of the server.
func Of[T any](d Definition[T]) *Kind {
	t := reflect.TypeFor[T]()
	if d.Kind == "" {
		d.Kind = t.Name()
	}
	k := &Kind{
		Group: d.Group, Kind: d.Kind, ListKind: d.ListKind, Plural: d.Plural, Singular: d.Singular,
		ShortNames: d.ShortNames, Categories: d.Categories, Scope: d.Scope,
		Versions: []KindVersion{{
			Name: d.Version, Storage: true, Served: true, Deprecated: d.Deprecated, Columns: d.Columns,
			Schema: func(p names.Profile) (*schema.Schema, error) { return schema.Go(t, p) },
		}},
		Behavior: d.Behavior,
		goType:   t,
	}
	k.Status = k.Status || d.Status
	k.Strategic = true
	sources := map[string]fs.FS{t.PkgPath(): d.Source}
	for path, files := range d.Sources {
		sources[path] = files
	}
	k.Docs = schema.NewDocs(sources)
	if d.Default != nil || d.Validate != nil {
		k.hooks = func(b *Behavior, s *schema.Schema, p names.Profile) error { return typedHooks(d, b, s, p) }
	}
	return k
}

// typedHooks puts the hooks of a definition behind those of the behavior. A
// typed view is made only here, once for a hook that runs.
func typedHooks[T any](d Definition[T], b *Behavior, s *schema.Schema, p names.Profile) error {
	view, err := schema.NewView(reflect.TypeFor[T](), p)
	if err != nil {
		return err
	}
	if first := b.Default; d.Default != nil {
		b.Default = func(obj *meta.Object) {
			if first != nil {
				first(obj)
			}
			var v T
			if view.Into(obj.Tree(), &v) != nil {
				return // Validate says what does not fit
			}
			d.Default(&v)
			if tree, err := view.From(&v); err == nil {
				s.Update(obj.Tree(), tree)
			}
		}
	}
	if first := b.Validate; d.Validate != nil {
		b.Validate = func(ctx context.Context, obj, old *meta.Object) (causes []meta.Cause) {
			if first != nil {
				causes = first(ctx, obj, old)
			}
			now, err := typed[T](view, obj)
			if err != nil {
				return append(causes, misfit(err))
			}
			before, err := typed[T](view, old)
			if err != nil {
				before = new(T) // stored by an older definition
			}
			return append(causes, d.Validate(ctx, before, now)...)
		}
	}
	return nil
}

func typed[T any](view *schema.View, obj *meta.Object) (*T, error) {
	if obj == nil {
		return nil, nil
	}
	v := new(T)
	return v, view.Into(obj.Tree(), v)
}

func misfit(err error) meta.Cause {
	field, why, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		field, why = "", err.Error()
	}
	return meta.Cause{Reason: meta.CauseTypeInvalid, Field: field, Message: why}
}
