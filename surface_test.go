package controlplane_test

import (
	"go/ast"
	"go/doc"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits on the number of public packages and exported names, without the structs of
// built-in kinds. A commit that raises a limit states the reason; a commit that removes
// names lowers it.
const (
	maxPackages = 40
	maxNames    = 1080
)

func TestSurfaceDoesNotGrow(t *testing.T) {
	packages, names := map[string]bool{}, 0
	for _, s := range library(t) {
		if !public(s.dir()) || strings.HasPrefix(s.dir(), "registry/builtin/") {
			continue
		}
		packages[s.dir()] = true
		names += len(exported(s.file))
	}
	t.Logf("%d public packages with %d names", len(packages), names)
	if len(packages) > maxPackages {
		t.Errorf("%d public packages, more than %d", len(packages), maxPackages)
	}
	if names > maxNames {
		t.Errorf("%d exported functions, types, methods, constants and variables, more than %d", names, maxNames)
	}
}

func TestEveryPackageHasAnExample(t *testing.T) {
	excused := except(map[string]string{})
	packages, shown := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		if !public(s.dir()) {
			continue
		}
		packages[s.dir()] = packages[s.dir()] || !s.test()
		shown[s.dir()] = shown[s.dir()] || s.test() && slices.ContainsFunc(doc.Examples(s.file), func(e *doc.Example) bool {
			return e.Output != "" || e.EmptyOutput
		})
	}
	for dir, library := range packages {
		if library && !shown[dir] && !excused.excuse(dir) {
			t.Errorf("package %s has no example that runs", dir)
		}
	}
	excused.check(t)
}

// TestHowTosAreOfExamples checks that each line of code in the section "How to" of doc.go
// also occurs in an example that runs.
func TestHowTosAreOfExamples(t *testing.T) {
	shown := map[string]bool{}
	for _, file := range []string{"registry/example_test.go", "admission/example_test.go", "client/controller_example_test.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			shown[strings.TrimSpace(line)] = true
		}
	}
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, howTo, found := strings.Cut(string(text), "// # How to\n")
	require.True(t, found)
	howTo, _, _ = strings.Cut(howTo, "// # ")
	code := 0
	for line := range strings.Lines(howTo) {
		if line, ok := strings.CutPrefix(line, "//\t"); ok {
			code++
			if !shown[strings.TrimSpace(line)] {
				t.Errorf("doc.go shows what no example does: %s", line)
			}
		}
	}
	require.Greater(t, code, 30)
}

// public reports whether programs can import a package; the root holds no code.
func public(dir string) bool {
	return dir != "." && !strings.HasPrefix(dir, "examples") && !slices.Contains(strings.Split(dir, "/"), "internal")
}

// exported returns what a file exports: functions, types, constants, variables,
// and the methods of its exported types.
func exported(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				names = append(names, exportedSpecs(d)...)
			}
		}
	}
	return names
}

func exportedSpecs(d *ast.GenDecl) (names []string) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				names = append(names, spec.Name.Name)
			}
		case *ast.ValueSpec:
			for _, id := range spec.Names {
				if id.IsExported() {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}

// receiver returns the name of the receiver type of a method.
func receiver(d *ast.FuncDecl) string {
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
