package schema

import (
	"io/fs"
	"reflect"
	"strings"
	"sync"

	"orch.io/controlplane/api/internal/comments"
)

// Docs returns the documentation of Go structs and their fields from the comments in their
// source files. It parses a package when its documentation is first requested. The types of
// this library are always included, also in a nil Docs. A Docs is safe for concurrent use.
type Docs struct {
	packages map[string]func() map[string]comments.Type // by import path
}

// NewDocs returns the documentation of the Go package with the import path. files has the
// package's source files. NewDocs returns nil if files is nil.
func NewDocs(importPath string, files fs.FS) *Docs {
	if files == nil {
		return nil
	}
	return &Docs{map[string]func() map[string]comments.Type{
		importPath: sync.OnceValue(func() map[string]comments.Type { return comments.Parse(files) }),
	}}
}

// JoinDocs merges docs. If two of them have the same package, the first is used.
func JoinDocs(docs ...*Docs) *Docs {
	all := &Docs{packages: map[string]func() map[string]comments.Type{}}
	for _, d := range docs {
		if d == nil {
			continue
		}
		for path, load := range d.packages {
			if all.packages[path] == nil {
				all.packages[path] = load
			}
		}
	}
	return all
}

// Struct returns the documentation of a struct: Struct.Doc, or else the comment of its Go type.
func (d *Docs) Struct(s *Struct) string {
	if s == nil || s.Doc != "" || s.Go == nil {
		if s == nil {
			return ""
		}
		return s.Doc
	}
	return d.typeOf(s.Go).Text
}

// Field returns the documentation of field f of s: Schema.Doc, or else the comment of the Go
// field. A field with the standard object metadata has a default text.
func (d *Docs) Field(s *Struct, f *Field) string {
	if f.Schema.Doc != "" || s.Go == nil || f.GoName == "" {
		return f.Schema.Doc
	}
	t := s.Go
	for _, i := range f.Index[:max(len(f.Index)-1, 0)] {
		t = indirect(indirect(t).Field(i).Type) // a struct that is inlined
	}
	text := d.typeOf(indirect(t)).Fields[f.GoName]
	if text == "" && f.Schema.Struct != nil && f.Schema.Struct.Go == objectMeta {
		return "Standard object's metadata."
	}
	return text
}

func (d *Docs) typeOf(t reflect.Type) comments.Type {
	name, _, _ := strings.Cut(t.Name(), "[")
	if d != nil {
		if load := d.packages[t.PkgPath()]; load != nil {
			return load()[name]
		}
	}
	return comments.Library(t.PkgPath())[name]
}
