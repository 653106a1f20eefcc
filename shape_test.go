package controlplane_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// library returns the source files of the packages that programs can import.
func library(t *testing.T) []source {
	t.Helper()
	return slices.DeleteFunc(sources(t), func(s source) bool { return s.test() || strings.HasPrefix(s.path, "examples/") })
}

func TestFilesAndFunctionsAreSmall(t *testing.T) {
	const maxFile, maxFunction = 600, 60
	excused := except(nil)
	for _, s := range library(t) {
		if n := s.set.File(s.file.Pos()).LineCount(); n > maxFile && !excused.excuse(s.path) {
			t.Errorf("%s has %d lines, more than %d", s.path, n, maxFile)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
			if n > maxFunction && !excused.excuse(s.path+" "+f.Name.Name) {
				t.Errorf("%s: %s has %d lines, more than %d", s.where(f.Pos()), f.Name.Name, n, maxFunction)
			}
		}
	}
	excused.check(t)
}

// TestServerIsSmall bounds the number of fields and methods of server.Server. Code that serves
// requests belongs in a package below server/internal, which gets its dependencies as Options.
func TestServerIsSmall(t *testing.T) {
	const maxFields, maxMethods = 25, 40
	fields, methods := 0, 0
	for _, s := range library(t) {
		if s.dir() != "server" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if of, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Server" {
					fields = of.Fields.NumFields()
				}
			case *ast.FuncDecl:
				if n.Recv != nil && receiver(n) == "Server" {
					methods++
				}
			}
			return true
		})
	}
	t.Logf("%d fields, %d methods", fields, methods)
	if fields == 0 || fields > maxFields {
		t.Errorf("server.Server has %d fields, more than %d", fields, maxFields)
	}
	if methods == 0 || methods > maxMethods {
		t.Errorf("server.Server has %d methods, more than %d", methods, maxMethods)
	}
}

// constant lists the functions whose result a package variable may hold, because the result
// never changes.
var constant = map[string]string{
	"errors.New":          "a sentinel error",
	"fmt.Errorf":          "a sentinel error",
	"regexp.MustCompile":  "a compiled pattern",
	"strings.NewReplacer": "a compiled replacement",
	"reflect.TypeFor":     "a type",
	"crc32.MakeTable":     "a table",
	"sync.OnceValue":      "made when first needed, the same for everybody",
}

// TestPackageVariablesAreConstants checks that there is no mutable package state: each package
// variable is a sentinel error, an embedded file, a compiled pattern or a table, and no code
// assigns to it or takes its address.
func TestPackageVariablesAreConstants(t *testing.T) {
	calls := except(constant)
	excused := except(map[string]string{
		"auth DenyAll":                       "a function as an authorizer, which holds nothing",
		"server/internal/exchange ErrNoPath": "a sentinel error that is a Status",
	})
	variables := map[string]map[string]bool{} // by package
	for _, s := range library(t) {
		for name, v := range packageVariables(s) {
			if variables[s.dir()] == nil {
				variables[s.dir()] = map[string]bool{}
			}
			variables[s.dir()][name] = true
			if !isConstant(v, name, calls) && !excused.excuse(s.dir()+" "+name) {
				t.Errorf("%s: the package variable %s has a value of no form that is known to stay as it is", s.where(v.Pos()), name)
			}
		}
	}
	for _, s := range library(t) {
		for _, w := range writtenNames(s) {
			if variables[w.dir][w.name] {
				t.Errorf("%s: the package variable %s is written, or could be", s.where(w.at), w.name)
			}
		}
	}
	calls.check(t)
	excused.check(t)
}

func packageVariables(s source) map[string]*ast.ValueSpec {
	out := map[string]*ast.ValueSpec{}
	for _, d := range s.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if name.Name != "_" {
						out[name.Name] = spec.(*ast.ValueSpec)
					}
				}
			}
		}
	}
	return out
}

func isConstant(v *ast.ValueSpec, name string, calls *exceptions) bool {
	if len(v.Values) == 0 {
		return selected(v.Type) == "embed.FS"
	}
	i := slices.IndexFunc(v.Names, func(id *ast.Ident) bool { return id.Name == name })
	switch x := v.Values[i].(type) {
	case *ast.CompositeLit:
		return true // a table
	case *ast.SelectorExpr:
		return strings.HasPrefix(x.Sel.Name, "Err") // a sentinel of another package
	case *ast.CallExpr:
		f := x.Fun
		if generic, ok := f.(*ast.IndexExpr); ok {
			f = generic.X
		}
		return calls.excuse(selected(f))
	}
	return false
}

// selected returns the text of an expression x.y, or "" for any other expression.
func selected(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// writers lists the functions that modify their first argument.
var writers = []string{"append", "clear", "copy", "delete", "maps.Copy", "maps.DeleteFunc", "slices.Delete", "slices.DeleteFunc", "slices.Insert",
	"slices.Reverse", "slices.Sort", "slices.SortFunc", "slices.SortStableFunc", "sort.Slice", "sort.Strings"}

// written is an assignment to a package variable.
type written struct {
	dir, name string
	at        token.Pos
}

// writtenNames returns the package variables that a file assigns to, completely or in part,
// whose address it takes, or that it passes to one of writers.
func writtenNames(s source) (names []written) {
	packages := map[string]string{}
	for _, i := range s.file.Imports {
		dir, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(dir)
		if i.Name != nil {
			name = i.Name.Name
		}
		packages[name] = strings.TrimPrefix(dir, module+"/")
	}
	add := func(e ast.Expr) {
		id, member := root(e)
		switch {
		case id == nil || id.Obj != nil && s.file.Scope.Lookup(id.Name) != id.Obj: // none, or a local one
		case packages[id.Name] != "":
			names = append(names, written{packages[id.Name], member, e.Pos()})
		default:
			names = append(names, written{s.dir(), id.Name, e.Pos()})
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				add(n.X)
			}
		case *ast.CallExpr:
			if name := called(n); slices.Contains(writers, name) && len(n.Args) > 0 {
				add(n.Args[0])
			}
		}
		return true
	})
	return names
}

// root returns the variable at the start of an expression, or nil, and the selected member.
func root(e ast.Expr) (id *ast.Ident, member string) {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x, member
		case *ast.SelectorExpr:
			e, member = x.X, x.Sel.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil, ""
		}
	}
}

// TestNoContextInStructs checks that no struct has a field of type context.Context. A context is passed as a
// parameter, so that it ends with the call.
func TestNoContextInStructs(t *testing.T) {
	excused := except(map[string]string{
		"registry/convert conversion.ctx":    "lasts for one call of Convert",
		"internal/cel scope.ctx":             "the CEL library passes no context to the variables of an expression",
		"registry Change.Context":            "a hook gets one argument, for the time of its call",
		"registry/registrytest run.ctx":      "lasts for one test",
		"storage/badgerstore request.ctx":    "travels with a commit to the committing goroutine",
		"storage/badgerstore inspection.ctx": "lasts for one inspection",
		"storage/storagetest load.ctx":       "lasts for one test",
		"storage/storagetest retained.ctx":   "lasts for one test",
		"storage/storagetest store.ctx":      "lasts for one test",
		"storage/storagetest watched.ctx":    "that of the consumer, to see how its watch must end",
	})
	for _, s := range library(t) {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				for _, field := range contextFields(spec.(*ast.TypeSpec)) {
					if !excused.excuse(s.dir() + " " + field) {
						t.Errorf("%s: the field %s keeps a context; pass it as a parameter", s.where(spec.Pos()), field)
					}
				}
			}
		}
	}
	excused.check(t)
}

// contextFields returns the named fields of a struct type that are a context.Context, as TYPE.FIELD. An embedded
// context makes the struct a context itself.
func contextFields(spec *ast.TypeSpec) (fields []string) {
	ast.Inspect(spec.Type, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range s.Fields.List {
			for _, name := range f.Names {
				if selected(f.Type) == "context.Context" {
					fields = append(fields, spec.Name.Name+"."+name.Name)
				}
			}
		}
		return true
	})
	return fields
}
