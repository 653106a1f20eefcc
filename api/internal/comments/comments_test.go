package comments

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "writes the library anew")

const root = "../../.."

func TestLibraryIsCurrent(t *testing.T) {
	want := generate(t)
	if *update {
		require.NoError(t, os.RemoveAll("library"))
		for path, text := range want {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	got := map[string]string{}
	require.NoError(t, filepath.WalkDir("library", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		got[path] = string(text)
		return err
	}))
	if !maps.Equal(want, got) {
		t.Error("the comments of kinds changed: run go generate ./api/internal/comments")
	}
}

// generate returns the files of the library for the current source of the packages with kinds.
func generate(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, top := range []string{"api", "registry", "registry/builtin/internal", "internal/scale", "server/internal/openapi"} {
		top = filepath.Join(root, top)
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == "internal" && path != top {
				return filepath.SkipDir
			}
			types := Parse(os.DirFS(path))
			shown := wireTypes(t, path)
			for name, c := range types {
				if !shown[name] || c.Text == "" && len(c.Fields) == 0 {
					delete(types, name)
				}
			}
			if len(types) > 0 {
				dir, err := filepath.Rel(root, path)
				require.NoError(t, err)
				all[filepath.Join("library", dir+".json")] = encoded(t, types)
			}
			return nil
		})
		require.NoError(t, err)
	}
	return all
}

func encoded(t *testing.T, types map[string]Type) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	require.NoError(t, encoder.Encode(types))
	return b.String()
}

// wireTypes returns the structs of a folder that are parts of objects: each of their fields has
// a tag.
func wireTypes(t *testing.T, dir string) map[string]bool {
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
	m := Library(module + "/api/meta")["ObjectMeta"]
	assert.Contains(t, m.Fields["UID"], "UID distinguishes the object")
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
