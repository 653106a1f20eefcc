package controlplane_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "orch.io/controlplane"

// source is one Go file of the root module.
type source struct {
	path string // slash-separated, from the root
	file *ast.File
	set  *token.FileSet
}

func (s source) dir() string { return path.Dir(s.path) }
func (s source) test() bool {
	return strings.HasSuffix(s.path, "_test.go") || s.dir() == "server/internal/apitest" // which only tests import
}

func (s source) where(p token.Pos) string {
	at := s.set.Position(p)
	return s.path + ":" + strconv.Itoa(at.Line)
}

// sources are the Go files of the root module, not those of nested modules.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parsed()
	require.NoError(t, err)
	require.Greater(t, len(list), 100)
	return slices.Clone(list)
}

var parsed = sync.OnceValues(func() (list []source, err error) {
	set := token.NewFileSet()
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && p != "." || strings.HasPrefix(d.Name(), ".") && p != "." || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, p, nil, parser.ParseComments)
		list = append(list, source{filepath.ToSlash(p), f, set})
		return err
	})
	return list, err
})

// layers lists the level of each package; a package may import only packages of a lower
// level. Packages below storage, auth and admission, and the built-in kinds, implement
// interfaces of other packages: only programs and tests import them. Packages below
// internal are shared by implementations.
var layers = []struct {
	prefix string
	level  int
}{
	{"server/internal/apitest", 24},
	{"server/servertest", 23},
	{"server/access", 22},
	{"server/serving", 22},
	{"server", 21},
	{"server/internal/verbs", 17},
	{"server/internal/watchstream", 16},
	{"server/internal/door", 15},
	{"server/internal/proxy", 15},
	{"server/internal/discovery", 14},
	{"server/internal/requestmetrics", 14},
	{"server/internal/views", 14},
	{"server/internal/exchange", 13},
	{"server/internal/health", 13},
	{"server/internal/migration", 13},
	{"server/internal/serviceresolver", 13},
	{"server/internal/aggregator", 12},
	{"server/internal/capacity", 12},
	{"server/internal/definitions", 12},
	{"server/internal/manager", 12},
	{"server/internal/controllers", 11},
	{"server/internal/fairqueue", 11},
	{"server/internal/objects", 11},
	{"server/internal/telemetry", 11},
	{"admission", 10},
	{"registry/convert", 10},
	{"registry/internal/kindtest", 10},
	{"registry/registrytest", 10},
	{"server/flowcontrol", 10},
	{"server/internal/conversion", 10},
	{"server/internal/impersonate", 10},
	{"server/internal/media", 10},
	{"server/internal/metered", 10},
	{"server/internal/objectcache", 10},
	{"server/internal/openapi", 10},
	{"server/internal/requestinfo", 10},
	{"server/nodeagent", 10},
	{"client", 9},
	{"internal/resource", 9},
	{"registry", 8},
	{"apply", 7},
	{"internal/cel", 7},
	{"internal/manifests", 7},
	{"apply/internal/ownership", 6},
	{"internal/cel/library", 6},
	{"internal/codec", 6},
	{"internal/jsonpath", 6},
	{"internal/webhookclient", 6},
	{"api/schema", 5},
	{"client/kubeconfig", 5},
	{"api/check", 4},
	{"api/internal/comments", 4},
	{"auth", 4},
	{"client/internal/execcredential", 4},
	{"internal/compat", 4},
	{"internal/inprocess", 4},
	{"internal/reconcile", 4},
	{"watch", 4},
	{"api/internal/wording", 3},
	{"internal/actor", 3},
	{"internal/consistency", 3},
	{"internal/election", 3},
	{"internal/eventlog", 3},
	{"internal/faultinject", 3},
	{"internal/podspec", 3},
	{"internal/scale", 3},
	{"internal/workqueue", 3},
	{"api/features", 2},
	{"api/meta", 2},
	{"internal/metrics", 2},
	{"server/internal/errorlog", 2},
	{"storage", 2},
	{"api/names", 1},
	{"internal/duration", 1},
	{"internal/extras", 1},
	{"internal/number", 1},
	{"internal/pki", 1},
	{"internal/release", 1},
	{"internal/services", 1},
	{"internal/suggest", 1},
	{"internal/wellknown", 0},
}

// implementation reports whether a package may import every package below the server, and
// may be imported only by programs, tests and other implementations. A package with its
// own entry in layers is not an implementation.
func implementation(pkg string) bool {
	if i := layer(pkg); i >= 0 && layers[i].prefix == pkg {
		return false
	}
	return slices.ContainsFunc(implementations, func(of string) bool { return strings.HasPrefix(pkg, of) })
}

var implementations = []string{"storage/", "auth/", "admission/", "registry/builtin", "internal/"}

// exceptions lists exceptions to a rule with their reasons. An exception that is not needed
// fails the test.
type exceptions struct {
	reasons map[string]string
	needed  map[string]bool
}

func except(reasons map[string]string) *exceptions {
	return &exceptions{reasons, map[string]bool{}}
}

// excuse reports whether a violation of the rule is listed as an exception.
func (e *exceptions) excuse(what string) bool {
	_, ok := e.reasons[what]
	e.needed[what] = true
	return ok
}

func (e *exceptions) check(t *testing.T) {
	t.Helper()
	for what := range e.reasons {
		if !e.needed[what] {
			t.Errorf("the exception %q is not needed", what)
		}
	}
}

// wanted lists the intended exceptions to the order of layers.
var wanted = map[string]string{
	"server storage/memstore":  "the store of a server that names none",
	"server admission/plugins": "the plugins of every server",
	"server/access":            "puts the implementations together",
	"server/servertest":        "a server with everything in it",
}

func level(pkg string) int {
	if i := layer(pkg); i >= 0 {
		return layers[i].level
	}
	return -1
}

func layer(pkg string) int {
	found := -1
	for i, l := range layers {
		if (pkg == l.prefix || strings.HasPrefix(pkg, l.prefix+"/")) && (found < 0 || len(l.prefix) > len(layers[found].prefix)) {
			found = i
		}
	}
	return found
}

func TestLayersHavePackages(t *testing.T) {
	found, below := map[int]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		found[layer(s.dir())] = true
		for _, of := range implementations {
			below[of] = below[of] || strings.HasPrefix(s.dir(), of)
		}
	}
	for _, of := range implementations {
		if !below[of] {
			t.Errorf("no package is below %s", of)
		}
	}
	for i, l := range layers {
		if !found[i] {
			t.Errorf("no package is in the layer of %s", l.prefix)
		}
	}
}

func TestImportsGoOneWay(t *testing.T) {
	excused := except(wanted)
	for _, s := range sources(t) {
		if s.test() || strings.HasPrefix(s.path, "examples/") || !strings.Contains(s.path, "/") {
			continue
		}
		for _, imp := range s.file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			if strings.HasPrefix(name, "k8s.io/") {
				t.Errorf("%s imports %s", s.where(imp.Pos()), name)
			}
			to, ok := strings.CutPrefix(name, module+"/")
			if !ok {
				continue
			}
			fault := importFault(s.dir(), to)
			if fault != "" && !excused.excuse(s.dir()+" "+to) && !excused.excuse(s.dir()) {
				t.Errorf("%s: %s", s.where(imp.Pos()), fault)
			}
		}
	}
	excused.check(t)
}

// importFault returns the reason why an import is not allowed, or "".
func importFault(from, to string) string {
	switch {
	case strings.HasPrefix(from, "auth/") && strings.HasPrefix(to, "admission"):
		return "access control, which is below admission, imports " + to
	case implementation(from):
		if to == "server" || strings.HasPrefix(to, "server/") {
			return "an implementation imports " + to
		}
	case implementation(to):
		return from + " imports the implementation " + to
	case level(from) < 0 || level(to) < 0:
		return from + " or " + to + " has no place in the layers"
	case level(to) >= level(from) && !strings.HasPrefix(from, to+"/"):
		return from + " imports " + to + ", which is not below it"
	}
	return ""
}

// folder returns the top-level folder of a package. The packages in internal, and
// registry/convert, which works with compiled kinds (internal/resource), are folders of
// their own. internal/eventlog is a part of storage that is in internal because watch
// shares it.
func folder(pkg string) string {
	switch pkg {
	case "registry/convert":
		return pkg
	case "internal/eventlog":
		return "storage"
	}
	top, rest, _ := strings.Cut(pkg, "/")
	if top == "internal" {
		below, _, _ := strings.Cut(rest, "/")
		return top + "/" + below
	}
	return top
}

// TestFoldersAreLayers checks that the imports between top-level folders have no cycle. Test
// kits do not count.
func TestFoldersAreLayers(t *testing.T) {
	needs := map[string]map[string]bool{}
	for _, s := range sources(t) {
		from := folder(s.dir())
		if s.test() || from == "." || strings.HasSuffix(s.dir(), "test") {
			continue
		}
		for _, imp := range s.file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			to, ok := strings.CutPrefix(name, module+"/")
			to = folder(to)
			if !ok || to == from {
				continue
			}
			if needs[from] == nil {
				needs[from] = map[string]bool{}
			}
			needs[from][to] = true
		}
	}
	require.Greater(t, len(needs), 5)
	for len(needs) > 0 {
		settled := false
		for folder, below := range needs {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(below)), func(to string) bool { return needs[to] != nil }) {
				delete(needs, folder)
				settled = true
			}
		}
		require.True(t, settled, "these folders need each other: %v", needs)
	}
}

// TestEngineKnowsNoHTTP checks that package objects does not import net/http: requests,
// in-process clients and controllers all use it.
func TestEngineKnowsNoHTTP(t *testing.T) {
	found := false
	for _, s := range sources(t) {
		if s.dir() != "server/internal/objects" {
			continue
		}
		found = true
		for _, imp := range s.file.Imports {
			if imp.Path.Value == `"net/http"` {
				t.Errorf("%s imports net/http", s.where(imp.Pos()))
			}
		}
	}
	require.True(t, found)
}

var wireName = regexp.MustCompile(`orch\.io|k8s\.io|kubernetes\.io|x-kubernetes|x-orch|vnd\.kubernetes|vnd\.orch|^kube-|^orch-|^kubernetes_|^orch_|KUBERNETES_|ORCH_`)

func TestWireNamesStandInOnePlace(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.dir() == "api/names" || s.dir() == "internal/wellknown" || strings.HasPrefix(s.path, "examples/") {
			continue
		}
		imports := map[ast.Node]bool{}
		for _, i := range s.file.Imports {
			imports[i.Path] = true
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || imports[lit] {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			if wireName.MatchString(strings.ReplaceAll(text, module, "")) {
				t.Errorf("%s: %s belongs in internal/wellknown", s.where(lit.Pos()), lit.Value)
			}
			return true
		})
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		documented[s.dir()] = documented[s.dir()] || s.file.Doc != nil && strings.TrimSpace(s.file.Doc.Text()) != ""
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no documentation", dir)
		}
	}
}

// TestLibraryHasNoHiddenState keeps init functions, panics and reads of the
// environment out of the library.
func TestLibraryHasNoHiddenState(t *testing.T) {
	forbidden := []string{"os.Getenv", "os.LookupEnv", "os.Environ", "os.Exit", "log.Fatal", "panic"}
	excused := except(map[string]string{
		"server/internal/door panic":     "http.ErrAbortHandler goes on to net/http",
		"server/internal/exchange panic": "http.ErrAbortHandler goes on to net/http",
		"server/internal/proxy panic":    "http.ErrAbortHandler goes on to net/http",
		"server/servertest panic":        "http.ErrAbortHandler is how a connection is cut",
		"server/internal/objects panic":  "that of another goroutine goes on to the request",
	})
	for _, s := range sources(t) {
		if s.test() || strings.HasPrefix(s.path, "examples/") || strings.HasPrefix(s.path, "storage/storagetest") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && f.Name.Name == "init" && f.Recv == nil {
				t.Errorf("%s: an init function", s.where(f.Pos()))
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := called(call)
			if slices.Contains(forbidden, name) && !excused.excuse(s.dir()+" "+name) {
				t.Errorf("%s: the library calls %s", s.where(call.Pos()), name)
			}
			return true
		})
	}
	excused.check(t)
}

func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}
