package comments

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "writes library.json anew")

const (
	root   = "../../.."
	module = "orch.io/controlplane"
)

func TestLibraryIsCurrent(t *testing.T) {
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	require.NoError(t, encoder.Encode(written(t)))
	if *update {
		require.NoError(t, os.WriteFile("library.json", want.Bytes(), 0o644))
	}
	got, err := os.ReadFile("library.json")
	require.NoError(t, err)
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("the comments of kinds changed: run go generate ./api/internal/comments")
	}
}

// written returns the comments of the packages with kinds, as they stand in the
// source.
func written(t *testing.T) map[string]map[string]Type {
	all := map[string]map[string]Type{}
	for _, top := range []string{"api", "registry", "registry/builtin/internal", "internal/resource", "server/internal/openapi"} {
		top = filepath.Join(root, top)
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == "internal" && path != top {
				return filepath.SkipDir
			}
			types := Parse(os.DirFS(path))
			shown := onWire(t, path)
			for name, c := range types {
				if !shown[name] || c.Text == "" && len(c.Fields) == 0 {
					delete(types, name)
				}
			}
			if len(types) > 0 {
				dir, err := filepath.Rel(root, path)
				require.NoError(t, err)
				all[module+"/"+filepath.ToSlash(dir)] = types
			}
			return nil
		})
		require.NoError(t, err)
	}
	return all
}

// onWire returns the structs of a folder that are parts of objects: each field has
// a tag.
func onWire(t *testing.T, dir string) map[string]bool {
	names := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if st, ok := spec.Type.(*ast.StructType); ok && tagged(st) {
					names[spec.Name.Name] = true
				}
			}
			return true
		})
	}
	return names
}

func tagged(st *ast.StructType) bool {
	for _, f := range st.Fields.List {
		if f.Tag == nil {
			return false
		}
	}
	return true
}

func TestLibraryIsRead(t *testing.T) {
	m := Library()[module+"/api/meta"]["ObjectMeta"]
	assert.Contains(t, m.Fields["UID"], "UID tells this object")
}

func TestParse(t *testing.T) {
	got := Parse(fstest.MapFS{"a.go": {Data: []byte(`package x

// Box holds things.
//
// With a second paragraph.
//
//lint:ignore X y
type Box[T any] struct {
	// Size says how large
	// it is.
	Size int

	Color, Shade string // Color and Shade.
	Bare int

	// In an inline struct.
	*other.Part[T]
}

// Time is no struct.
type Time int64

func f() { type local struct{} }
`)}, "broken.go": {Data: []byte("package x\n// Half is read.\ntype Half struct{}\nfunc {")},
		"a_test.go": {Data: []byte("package x\n// Fake is for tests.\ntype Fake struct{}\n")}})
	assert.Equal(t, map[string]Type{
		"Box": {Text: "Box holds things.\nWith a second paragraph.", Fields: map[string]string{
			"Size": "Size says how large it is.", "Color": "Color and Shade.", "Shade": "Color and Shade.", "Part": "In an inline struct."}},
		"Time": {Text: "Time is no struct."},
		"Half": {Text: "Half is read.", Fields: map[string]string{}},
	}, got)
}
