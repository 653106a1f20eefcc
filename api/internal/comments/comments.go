// Package comments provides the comments of Go types as the documentation of kinds and their
// fields.
package comments

import (
	"embed"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"sync"
)

// Type is the documentation of a Go type.
type Type struct {
	Text   string            `json:"text,omitempty"`
	Fields map[string]string `json:"fields,omitempty"` // of a struct, by Go field name
}

// library has the comments of the types of this library that are parts of objects: a JSON file
// for each package, by type name. TestLibraryIsCurrent keeps it up to date.
//
//go:generate go test -run TestLibraryIsCurrent -update
//go:embed library
var library embed.FS

// Library returns the comments of a package of this library, by type name, or nil if none of
// its types is part of an object. The package's file is read on the first call. The result is
// shared and must not be changed.
func Library(importPath string) map[string]Type {
	dir, ok := strings.CutPrefix(importPath, module+"/")
	if !ok || packages()[dir] == nil {
		return nil
	}
	return packages()[dir]()
}

const module = "orch.io/controlplane"

// packages has a function for each package in library that reads its comments.
var packages = sync.OnceValue(func() map[string]func() map[string]Type {
	all := map[string]func() map[string]Type{}
	_ = fs.WalkDir(library, "library", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			dir := strings.TrimSuffix(strings.TrimPrefix(path, "library/"), ".json")
			all[dir] = sync.OnceValue(func() (types map[string]Type) {
				text, _ := library.ReadFile(path)
				_ = json.Unmarshal(text, &types)
				return types
			})
		}
		return err
	})
	return all
})

// Parse returns the comments of all types in the Go files of a folder, by type name. Test files
// are ignored. A file with syntax errors contributes the declarations that could be parsed.
func Parse(files fs.FS) map[string]Type {
	types := map[string]Type{}
	paths, _ := fs.Glob(files, "*.go")
	for _, path := range paths {
		src, err := fs.ReadFile(files, path)
		if err != nil || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, _ := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments|parser.SkipObjectResolution)
		if file == nil {
			continue
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				read(g, types)
			}
		}
	}
	return types
}

func read(g *ast.GenDecl, types map[string]Type) {
	for _, spec := range g.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		comment := t.Doc
		if comment == nil && len(g.Specs) == 1 {
			comment = g.Doc
		}
		c := Type{Text: paragraphs(comment)}
		if st, ok := t.Type.(*ast.StructType); ok {
			c.Fields = fields(st)
		}
		types[t.Name.Name] = c
	}
}

func fields(st *ast.StructType) map[string]string {
	out := map[string]string{}
	for _, f := range st.Fields.List {
		text := paragraphs(f.Doc)
		if text == "" {
			text = paragraphs(f.Comment)
		}
		if text == "" {
			continue
		}
		for _, n := range f.Names {
			out[n.Name] = text
		}
		if len(f.Names) == 0 {
			out[embeddedName(f.Type)] = text
		}
	}
	return out
}

func embeddedName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embeddedName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return embeddedName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// paragraphs returns a comment as one line per paragraph, without directives.
func paragraphs(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	var parts []string
	for p := range strings.SplitSeq(strings.TrimSpace(c.Text()), "\n\n") {
		parts = append(parts, strings.Join(strings.Fields(p), " "))
	}
	return strings.Join(parts, "\n")
}
