package server_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// kubectl runs the real kubectl against a server.
type kubectl struct {
	t    *testing.T
	path string
	dir  string
	url  string
}

func newKubectl(t *testing.T, configure ...func(*server.Builder)) *kubectl {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	t.Parallel()
	return &kubectl{t: t, path: path, dir: t.TempDir(), url: servertest.New(t, configure...).URL()}
}

// run runs a command line of words separated by spaces; it returns what was
// written to both outputs and whether the command succeeded.
func (k *kubectl) run(stdin, line string, env ...string) (string, bool) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.path, append([]string{"--server=" + k.url}, strings.Fields(line)...)...)
	cmd.Env = append([]string{"HOME=" + k.dir, "KUBECONFIG=" + filepath.Join(k.dir, "none"), "PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Dir = k.dir
	out, err := cmd.CombinedOutput()
	require.NoError(k.t, ctx.Err())
	return string(out), err == nil
}

// ok runs a command that must succeed and print all of want.
func (k *kubectl) ok(stdin, line string, want ...string) string {
	k.t.Helper()
	out, ok := k.run(stdin, line)
	assert.True(k.t, ok, "kubectl %s: %s", line, out)
	for _, w := range want {
		assert.Contains(k.t, out, w, "kubectl %s", line)
	}
	return out
}

// fails runs a command that must fail and print all of want.
func (k *kubectl) fails(stdin, line string, want ...string) {
	k.t.Helper()
	out, ok := k.run(stdin, line)
	assert.False(k.t, ok, "kubectl %s: %s", line, out)
	for _, w := range want {
		assert.Contains(k.t, out, w, "kubectl %s", line)
	}
}

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: Widget is a thing that does things.
        properties:
          spec:
            type: object
            description: Spec is what the widget shall do.
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: Size says how big it is.}
              parts:
                type: array
                items: {type: object, properties: {name: {type: string, description: Name of a part.}}}
`

func withWidgets(b *server.Builder) { b.Register(registry.FromCRD([]byte(widgetCRD))) }

func TestKubectlExplain(t *testing.T) {
	k := newKubectl(t, withWidgets)
	k.ok("", "explain configmap", "KIND:       ConfigMap", "VERSION:    v1", "binaryData	<map[string]string>", "metadata	<ObjectMeta>")
	k.ok("", "explain cm.metadata.ownerReferences", "FIELD: ownerReferences <[]OwnerReference>", "uid	<string> -required-")
	k.ok("", "explain pod.spec.containers", "FIELD: containers <[]Container>", "livenessProbe	<Probe>", "ports	<[]ContainerPort>")
	k.ok("", "explain pod.spec.volumes.configMap --recursive", "<ConfigMapVolumeSource>", "defaultMode	<integer>", "path	<string> -required-")
	k.ok("", "explain deployments.spec.strategy.rollingUpdate", "GROUP:      apps", "maxSurge	<IntOrString>")
	k.ok("", "explain pod.spec.containers.resources.limits", "<map[string]Quantity>")
	k.ok("", "explain leases.spec.renewTime", "<string>")
	k.ok("", "explain widgets", "GROUP:      example.com", "KIND:       Widget", "Widget is a thing that does things.", "spec	<Object>")
	k.ok("", "explain wd.spec", "size	<integer> -required-", "Size says how big it is.")
	k.ok("", "explain wd.spec.parts.name", "Name of a part.")
	k.ok("", "explain configmap -o plaintext-openapiv2", "binaryData	<map[string]string>")
	k.ok("", "explain wd.spec --output=plaintext-openapiv2", "size	<integer> -required-")
	k.fails("", "explain configmap.nothing", `field "nothing" does not exist`)
}

// A kind that is made while the server runs is known at once, and gone with its
// definition.
func TestKubectlCustomKind(t *testing.T) {
	k := newKubectl(t)
	k.fails(widget, "apply -f -", "no matches for kind")
	k.ok(widgetCRD, "apply -f -", "widgets.example.com created")
	k.ok("", "wait --for=condition=Established crd/widgets.example.com", "condition met")
	k.ok("", "explain widgets.spec", "Size says how big it is.")
	k.ok(widget, "apply -f -", "widget.example.com/w created")
	k.fails(strings.Replace(widget, "size", "colour: red, size", 1), "apply --validate=strict -f -", `unknown field "spec.colour"`)
	next := strings.Replace(widgetCRD, "Size says how big it is.", "Size is told anew.", 1)
	k.ok(next, "apply -f -", "widgets.example.com configured")
	k.ok("", "explain widgets.spec", "Size is told anew.")
	k.ok("", "delete crd widgets.example.com", "deleted")
	k.fails("", "explain widgets")
}

const widget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 2}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: a
        image: a:1
        env: [{name: X, value: "1"}]
        ports: [{containerPort: 80}]
      - {name: b, image: "b:1"}
`

func TestKubectlApply(t *testing.T) {
	k := newKubectl(t)
	k.ok(deployment, "apply -f -", "deployment.apps/web created")
	k.ok(deployment, "apply -f -", "deployment.apps/web unchanged")
	k.ok("", `patch deploy web --type=strategic -p {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"c:1"}]}}}}`, "patched")

	next := strings.NewReplacer("a:1", "a:2", `{name: X, value: "1"}`, `{name: Z, value: "2"}`).Replace(deployment)
	out, ok := k.run(next, "diff -f -")
	assert.False(t, ok, "there are differences")
	assert.Contains(t, strings.Join(strings.Fields(out), " "), `- - name: X - value: "1" - image: a:1 + - name: Z + value: "2" + image: a:2`)
	assert.NotContains(t, out, "c:1", "the container of another stays")
	k.ok(next, "apply -f - --dry-run=server", "configured (server dry run)")
	k.ok(next, "apply -f - --dry-run=client", "configured (dry run)")
	k.ok(next, "apply -f -", "configured")
	assert.Equal(t, "c:1 a:2 b:1", k.ok("", "get deploy web -o jsonpath={.spec.template.spec.containers[*].image}"))
	assert.Equal(t, "Z", k.ok("", "get deploy web -o jsonpath={.spec.template.spec.containers[?(@.name==\"a\")].env[*].name}"))
	without := next[:strings.Index(next, "      - {name: b")]
	k.ok(without, "apply -f -", "configured")
	assert.Equal(t, "c:1 a:2", k.ok("", "get deploy web -o jsonpath={.spec.template.spec.containers[*].image}"))

	k.ok(without, "apply --server-side -f - --field-manager=other --force-conflicts", "serverside-applied")
	k.fails(strings.Replace(without, "a:2", "a:3", 1), "apply --server-side -f - --field-manager=third", "conflict", "other")
	k.ok("", "scale deploy web --replicas=3", "scaled")
	k.ok("", "label deploy web tier=front", "labeled")
	k.ok("", "annotate deploy web note=x", "annotated")
	k.ok("", "set image deploy/web a=a:9", "image updated")
}

func TestKubectlValidation(t *testing.T) {
	k := newKubectl(t, withWidgets)
	const bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {a: b}\ndota: {}"
	k.fails(bad, "create -f -", `unknown field "dota"`)
	k.fails(bad, "apply --validate=strict -f -", `unknown field "dota"`)
	k.fails(bad, "apply --validate=true --dry-run=server -f -", `unknown field "dota"`)
	k.ok(bad, "apply --validate=warn -f -", `Warning: unknown field "dota"`, "configmap/bad created")
	k.ok(strings.Replace(bad, "a: b", "a: c", 1), "apply --validate=ignore -f -", "configmap/bad configured")
	k.ok(strings.Replace(bad, "dota", "#", 1), "replace -f - --validate=warn --dry-run=server", "replaced")

	k.fails(strings.Replace(widget, "size: 2", "size: 2, colour: red", 1), "create -f -", `unknown field "spec.colour"`)
	k.fails(strings.Replace(widget, "2", "0", 1), "create -f -", "spec.size")
	k.fails(strings.Replace(widget, "size: 2", "", 1), "create -f -", "spec.size", "Required value")
	k.ok(widget, "create -f - --save-config", "widget.example.com/w created")
	k.ok(strings.Replace(widget, "2", "5", 1), "apply -f -", "configured")
	k.ok(strings.Replace(widget, "2", "5", 1), "apply -f -", "unchanged")
	k.ok("", `patch wd w --type=merge -p {"spec":{"parts":[{"name":"p"}]}}`, "patched")
	k.ok("", `patch wd w --type=json -p [{"op":"replace","path":"/spec/size","value":7}]`, "patched")
	k.fails("", `patch wd w --type=strategic -p {"spec":{"size":8}}`, "is not supported by example.com/v1, Kind=Widget")
	assert.Equal(t, "7", k.ok("", "get wd w -o jsonpath={.spec.size}"))
}

func TestKubectlEdit(t *testing.T) {
	k := newKubectl(t, withWidgets)
	k.ok("", "create configmap a --from-literal=k=one", "created")
	edit := func(line, program string) (string, bool) { return k.run("", line, "KUBE_EDITOR="+program) }
	out, ok := edit("edit configmap a", "sed -i s/one/two/")
	assert.True(t, ok, out)
	assert.Contains(t, out, "configmap/a edited")
	assert.Equal(t, "two", k.ok("", "get cm a -o jsonpath={.data.k}"))
	out, _ = edit("edit configmap a", "sed -i s/nothing/else/")
	assert.Contains(t, out, "no changes made")

	k.ok(widget, "create -f -", "created")
	out, ok = edit("edit widget w", "sed -i s/size:.2/size:\\ 4/")
	assert.True(t, ok, out)
	assert.Equal(t, "4", k.ok("", "get wd w -o jsonpath={.spec.size}"))
	k.ok(deployment, "create -f -", "created")
	out, ok = edit("edit deploy web", "sed -i s/b:1/b:2/")
	assert.True(t, ok, out)
	assert.Equal(t, "a:1 b:2", k.ok("", "get deploy web -o jsonpath={.spec.template.spec.containers[*].image}"))
}
