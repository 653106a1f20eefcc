package controlplane_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExportedHasAnExample checks that an example uses each exported function and type, by
// its name or through a value of the type. Wire types need no example: structs whose fields
// all have tags, and the types of such fields.
func TestExportedHasAnExample(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles every package")
	}
	excused := except(map[string]string{
		"registry.Conversion": "what a Spoke becomes for who compiles kinds",
	})
	used := uses{}
	packages := map[string][]source{} // those of tests beside a package apart
	for _, s := range sources(t) {
		packages[s.dir()+" "+s.file.Name.Name] = append(packages[s.dir()+" "+s.file.Name.Name], s)
	}
	imports := compiled(t)
	for _, files := range packages {
		info := resolve(files, imports)
		for _, s := range files {
			if s.test() {
				used.addExamples(s, info)
			}
		}
	}
	require.Greater(t, len(used), 300)
	wire := map[string]bool{}
	for _, s := range library(t) {
		addWireForms(s, wire)
	}
	for _, s := range library(t) {
		if !public(s.dir()) {
			continue
		}
		for _, id := range functionsAndTypes(s.file) {
			if name := s.dir() + "." + id.Name; !used[name] && !wire[name] && !excused.excuse(name) {
				t.Errorf("%s: no example uses %s", s.where(id.Pos()), name)
			}
		}
	}
	excused.check(t)
}

// functionsAndTypes returns the functions and types that a file exports.
func functionsAndTypes(f *ast.File) (ids []*ast.Ident) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Recv == nil {
				ids = append(ids, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					ids = append(ids, spec.Name)
				}
			}
		}
	}
	return ids
}

// addWireForms adds the structs of a file whose fields all have a tag, and the types of
// their fields.
func addWireForms(s source, wire map[string]bool) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok || len(st.Fields.List) == 0 || slices.ContainsFunc(st.Fields.List, func(f *ast.Field) bool { return f.Tag == nil }) {
			return true
		}
		wire[s.dir()+"."+spec.Name.Name] = true
		for _, f := range st.Fields.List {
			ast.Inspect(f.Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					wire[s.dir()+"."+id.Name] = true
				}
				return true
			})
		}
		return true
	})
}

// compiled returns an importer that reads the export data of compiled packages.
func compiled(t *testing.T) types.Importer {
	t.Helper()
	list, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...").Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(list)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[pkg] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(pkg string) (io.ReadCloser, error) {
		if files[pkg] == "" {
			return nil, fmt.Errorf("%s is not compiled", pkg)
		}
		text, err := os.ReadFile(files[pkg])
		return io.NopCloser(bytes.NewReader(text)), err
	})
}

// resolve type-checks a package. Names that only test files of other packages export stay
// unresolved.
func resolve(files []source, imports types.Importer) *types.Info {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	var asts []*ast.File
	for _, s := range files {
		asts = append(asts, s.file)
	}
	config := types.Config{Importer: imports, Error: func(error) {}}
	_, _ = config.Check(module+"/"+files[0].dir(), files[0].set, asts, info)
	return info
}

// uses is the set of functions and types that examples use, as "folder.Name".
type uses map[string]bool

// addExamples adds the functions and types that the examples of a file use, directly or
// through other declarations of the file.
func (u uses) addExamples(s source, info *types.Info) {
	examples := map[string]bool{}
	for _, e := range doc.Examples(s.file) {
		examples["Example"+e.Name] = e.Output != "" || e.EmptyOutput
	}
	declared := map[types.Object][]ast.Node{}
	declare := func(id *ast.Ident, n ast.Node) { declared[info.Defs[id]] = append(declared[info.Defs[id]], n) }
	var open []ast.Node
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case examples[d.Name.Name]:
				open = append(open, d)
			case d.Recv == nil:
				declare(d.Name, d)
			default: // belongs to its type
				ast.Inspect(d.Recv, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok && info.Uses[id] != nil {
						declared[info.Uses[id]] = append(declared[info.Uses[id]], d)
					}
					return true
				})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					declare(spec.Name, spec)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						declare(id, spec)
					}
				}
			}
		}
	}
	delete(declared, nil)
	for len(open) > 0 {
		var next []ast.Node
		for _, root := range open {
			ast.Inspect(root, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && info.Uses[id] != nil {
					u.add(info.Uses[id])
					next = append(next, declared[info.Uses[id]]...)
					delete(declared, info.Uses[id])
				}
				if e, ok := n.(ast.Expr); ok {
					u.addType(info.Types[e].Type)
				}
				return true
			})
		}
		open = next
	}
}

func (u uses) add(o types.Object) {
	if o.Pkg() == nil {
		return
	}
	name := strings.TrimPrefix(o.Pkg().Path(), module+"/") + "." + o.Name()
	switch o := o.(type) {
	case *types.TypeName:
		u[name] = true
	case *types.Var:
		u.addType(o.Type())
	case *types.Func:
		if o.Signature().Recv() == nil {
			u[name] = true
		}
		u.addType(o.Signature().Params())
		u.addType(o.Signature().Results())
	}
}

// addType adds a type and its component types.
func (u uses) addType(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		u.add(t.Obj())
		u.addType(types.Unalias(t))
	case *types.Named:
		u.add(t.Obj())
		for a := range t.TypeArgs().Types() {
			u.addType(a)
		}
	case *types.Pointer:
		u.addType(t.Elem())
	case *types.Slice:
		u.addType(t.Elem())
	case *types.Map:
		u.addType(t.Key())
		u.addType(t.Elem())
	case *types.Chan:
		u.addType(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			u.addType(v.Type())
		}
	}
}
