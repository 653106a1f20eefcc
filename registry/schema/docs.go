package schema

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"strings"
	"sync"

	"orch.io/controlplane/registry/meta"
)

// Docs finds the documentation of Go structs and their fields in the comments
// of their source files. A package is parsed when something of it is asked for
// the first time. A nil Docs knows nothing; a Docs is safe for concurrent use.
type Docs struct {
	packages map[string]func() map[string]typeDoc // by import path
}

// typeDoc is the documentation of one Go type.
type typeDoc struct {
	text   string
	fields map[string]string // by Go name
}

// NewDocs returns the documentation in Go files by import path; the package of
// the standard metadata is always known. Entries without files are left out.
func NewDocs(sources map[string]fs.FS) *Docs {
	d := &Docs{packages: map[string]func() map[string]typeDoc{}}
	d.add(reflect.TypeFor[meta.ObjectMeta]().PkgPath(), meta.Source())
	for path, files := range sources {
		if files != nil {
			d.add(path, files)
		}
	}
	return d
}

func (d *Docs) add(path string, files fs.FS) {
	d.packages[path] = sync.OnceValue(func() map[string]typeDoc { return parsePackage(files) })
}

// Struct returns the documentation of a struct: its own text, or its comment.
func (d *Docs) Struct(s *Struct) string {
	if s == nil || s.Doc != "" || s.Go == nil {
		if s == nil {
			return ""
		}
		return s.Doc
	}
	return d.typeOf(s.Go).text
}

// Field returns the documentation of a field of s: its own text, or its comment.
func (d *Docs) Field(s *Struct, f *Field) string {
	if f.Schema.Doc != "" || s.Go == nil || f.GoName == "" {
		return f.Schema.Doc
	}
	t := s.Go
	for _, i := range f.Index[:max(len(f.Index)-1, 0)] {
		t = indirect(indirect(t).Field(i).Type) // of an inline struct
	}
	return d.typeOf(indirect(t)).fields[f.GoName]
}

func (d *Docs) typeOf(t reflect.Type) typeDoc {
	if d == nil {
		return typeDoc{}
	}
	load := d.packages[t.PkgPath()]
	if load == nil {
		return typeDoc{}
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	return load()[name]
}

// parsePackage reads the comments of the struct types in the Go files of one
// folder. Files that do not parse give what they can.
func parsePackage(files fs.FS) map[string]typeDoc {
	out := map[string]typeDoc{}
	paths, _ := fs.Glob(files, "*.go")
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(files, path)
		if err != nil {
			continue
		}
		const mode = parser.ParseComments | parser.SkipObjectResolution
		file, err := parser.ParseFile(token.NewFileSet(), path, withoutFunctions(src), mode)
		if err != nil {
			file, _ = parser.ParseFile(token.NewFileSet(), path, src, mode)
		}
		if file == nil {
			continue
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				readTypes(g, out)
			}
		}
	}
	return out
}

// withoutFunctions leaves out the functions of a formatted file: they are most
// of it, and nothing in them is asked for.
func withoutFunctions(src []byte) []byte {
	out := make([]byte, 0, len(src))
	for {
		before, rest, found := bytes.Cut(src, []byte("\nfunc "))
		out = append(append(out, before...), '\n')
		if !found {
			return out
		}
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		end := len(line)
		if !bytes.HasSuffix(line, []byte("}")) {
			if _, after, ok := bytes.Cut(rest, []byte("\n}\n")); ok {
				end = len(rest) - len(after) - 1
			}
		}
		src = rest[end:]
	}
}

func readTypes(g *ast.GenDecl, out map[string]typeDoc) {
	for _, spec := range g.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		comment := t.Doc
		if comment == nil && len(g.Specs) == 1 {
			comment = g.Doc
		}
		doc := typeDoc{text: paragraph(comment), fields: map[string]string{}}
		if st, ok := t.Type.(*ast.StructType); ok {
			readFields(st, doc.fields)
		}
		out[t.Name.Name] = doc
	}
}

func readFields(st *ast.StructType, out map[string]string) {
	for _, f := range st.Fields.List {
		text := paragraph(f.Doc)
		if text == "" {
			text = paragraph(f.Comment)
		}
		for _, n := range f.Names {
			out[n.Name] = text
		}
		if len(f.Names) == 0 {
			out[embeddedName(f.Type)] = text
		}
	}
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

// paragraph returns a comment as one line per paragraph, directives left out.
func paragraph(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	var parts []string
	for p := range strings.SplitSeq(strings.TrimSpace(c.Text()), "\n\n") {
		parts = append(parts, strings.Join(strings.Fields(p), " "))
	}
	return strings.Join(parts, "\n")
}

// JoinDocs returns what any of the docs knows; of two that know a package, the
// first tells.
func JoinDocs(docs ...*Docs) *Docs {
	all := &Docs{packages: map[string]func() map[string]typeDoc{}}
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
