package schema

import (
	"io/fs"
	"reflect"
	"strings"
	"sync"

	"orch.io/controlplane/api/internal/comments"
)

// Docs finds the documentation of Go structs and their fields in the comments of
// their source files, which are parsed when something in them is asked for the
// first time. The types of this library are always known; nil knows no others. A
// Docs is safe for concurrent use.
type Docs struct {
	packages map[string]func() map[string]comments.Type // by import path
}

// NewDocs returns the documentation in the Go files of one package; nil files are
// none.
func NewDocs(importPath string, files fs.FS) *Docs {
	if files == nil {
		return nil
	}
	return &Docs{map[string]func() map[string]comments.Type{
		importPath: sync.OnceValue(func() map[string]comments.Type { return comments.Parse(files) }),
	}}
}

// JoinDocs returns what any of the docs knows; of two that know a package, the
// first tells.
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

// Struct returns the documentation of a struct: its own text, or its comment.
func (d *Docs) Struct(s *Struct) string {
	if s == nil || s.Doc != "" || s.Go == nil {
		if s == nil {
			return ""
		}
		return s.Doc
	}
	return d.typeOf(s.Go).Text
}

// Field returns the documentation of a field of s: its own text, or its comment. The
// standard metadata needs none.
func (d *Docs) Field(s *Struct, f *Field) string {
	if f.Schema.Doc != "" || s.Go == nil || f.GoName == "" {
		return f.Schema.Doc
	}
	t := s.Go
	for _, i := range f.Index[:max(len(f.Index)-1, 0)] {
		t = indirect(indirect(t).Field(i).Type) // of an inline struct
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
