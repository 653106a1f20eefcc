package documents

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// packages maps the package names that code in documents may use without an import to their paths.
var packages = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "os": "os", "testing": "testing", "time": "time",

	"admission": "orch.io/controlplane/admission", "auth": "orch.io/controlplane/auth", "client": "orch.io/controlplane/client",
	"meta": "orch.io/controlplane/api/meta", "names": "orch.io/controlplane/api/names", "registry": "orch.io/controlplane/registry", "server": "orch.io/controlplane/server",
	"servertest": "orch.io/controlplane/server/servertest", "backup": "orch.io/controlplane/storage/backup",
	"badgerstore": "orch.io/controlplane/storage/badgerstore",

	"kubernetes": "k8s.io/client-go/kubernetes", "rest": "k8s.io/client-go/rest", "runtime": "k8s.io/apimachinery/pkg/runtime",
	"fake": "sigs.k8s.io/controller-runtime/pkg/client/fake", "envtest": "sigs.k8s.io/controller-runtime/pkg/envtest",
}

// given maps the variables that code in documents may use without a declaration to their types.
var given = map[string]string{
	"ctx": "context.Context", "t": "*testing.T", "dir": "string", "scheme": "*runtime.Scheme",
	"widget": "*registry.Kind", "testEnv": "*envtest.Environment", "fleet": "*Fleet",
}

// Module selects the Go blocks that a module compiles.
type Module struct {
	Dir        string            // relative to the root of the repository
	Kubernetes bool              // select blocks that use packages of Kubernetes, instead of the other blocks
	Packages   map[string]string // overrides of packages, by name
	Dot        string            // a package that is imported with a dot
}

// Compile type-checks the Go blocks of documents that belong to the module, and returns their number.
func (m Module) Compile(root string, all []Block) (int, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return 0, err
	}
	work, err := os.MkdirTemp("", "documents-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	overlay := map[string]map[string]string{"Replace": {}}
	var dirs []string
	n := 0
	for _, program := range m.programs(all) {
		n++
		file := filepath.Join(work, fmt.Sprint(n, ".go"))
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			return n, err
		}
		dir := fmt.Sprint("documented", n)
		overlay["Replace"][filepath.Join(root, m.Dir, dir, "shown.go")] = file
		dirs = append(dirs, "./"+dir)
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return n, err
	}
	files := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(files, list, 0o600); err != nil {
		return n, err
	}
	check := exec.Command("go", slices.Concat([]string{"build", "-buildvcs=false", "-overlay", files}, dirs)...)
	check.Dir = filepath.Join(root, m.Dir)
	if out, err := check.CombinedOutput(); err != nil {
		return n, fmt.Errorf("%w\n%s", err, out)
	}
	return n, nil
}

// Count returns the number of Go blocks that belong to the module, without blocks that continue another
// block.
func (m Module) Count(all []Block) int { return len(m.programs(all)) }

// programs returns a program for each Go block that belongs to the module.
func (m Module) programs(all []Block) (list []string) {
	for i, b := range all {
		if b.Lang != "go" || b.Note == "continues" {
			continue
		}
		shown := []Block{b}
		for _, next := range all[i+1:] {
			if next.File != b.File || next.Lang == "go" && next.Note != "continues" {
				break
			}
			if next.Lang == "go" {
				shown = append(shown, next)
			}
		}
		if program, kubernetes := m.program(shown); kubernetes == m.Kubernetes {
			list = append(list, program)
		}
	}
	return list
}

var (
	qualified = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
	declared  = regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) := `)
	word      = regexp.MustCompile(`\w+`)
)

// program combines blocks into a file: their declarations become declarations of the package, their
// statements the body of a function that uses each variable.
func (m Module) program(shown []Block) (file string, kubernetes bool) {
	var text, declarations, statements string
	for _, b := range shown {
		text += b.Text
		d, s := split(b)
		declarations, statements = declarations+d, statements+s
	}
	for _, list := range declared.FindAllStringSubmatch(statements, -1) {
		for _, name := range word.FindAllString(list[1], -1) {
			if name != "_" {
				statements += "_ = " + name + "\n"
			}
		}
	}
	var variables string
	for name, kind := range given {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			variables += "var " + name + " " + kind + "\n"
		}
	}
	var imports strings.Builder
	seen := map[string]bool{}
	for _, used := range qualified.FindAllStringSubmatch(text+variables, -1) {
		path := packages[used[1]]
		if own := m.Packages[used[1]]; own != "" && strings.Contains(text, "rest.Config") {
			path = own
		}
		if path == "" || seen[path] {
			continue
		}
		seen[path] = true
		fmt.Fprintf(&imports, "import %q\n", path)
		kubernetes = kubernetes || strings.Contains(path, "k8s.io/")
	}
	if m.Dot != "" && kubernetes {
		fmt.Fprintf(&imports, "import . %q\nvar _ = Webhooks\n", m.Dot)
	}
	return "package documented\n" + imports.String() + variables + declarations + "func _() {\n" + statements + "}\n", kubernetes
}

// split divides a block into declarations and statements. A declaration begins with its keyword at the
// beginning of a line and ends with the first line that begins with a closing brace.
func split(b Block) (declarations, statements string) {
	to := &statements
	statements = fmt.Sprintf("//line %s\n", b)
	number := b.Line
	for line := range strings.Lines(b.Text) {
		begins := strings.HasPrefix(line, "type ") || strings.HasPrefix(line, "func ")
		if begins {
			to = &declarations
			declarations += fmt.Sprintf("//line %s:%d\n", b.File, number)
		}
		*to += line
		number++
		if to == &declarations && (strings.HasPrefix(line, "}") || begins && !strings.HasSuffix(strings.TrimSpace(line), "{")) {
			to = &statements
			statements += fmt.Sprintf("//line %s:%d\n", b.File, number)
		}
	}
	return declarations, statements
}
