package discovery_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

func newKubectl(t *testing.T, configure ...func(*server.Builder)) *apitest.Kubectl {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	t.Parallel()
	return &apitest.Kubectl{T: t, Path: path, Dir: t.TempDir(), URL: servertest.New(t, configure...).URL()}
}

func withWidgets(b *server.Builder) { b.Register(registry.FromCRD([]byte(apitest.WidgetManifest))) }

func TestKubectlExplain(t *testing.T) {
	k := newKubectl(t, withWidgets)
	k.OK("", "explain configmap", "KIND:       ConfigMap", "VERSION:    v1", "binaryData	<map[string]string>", "metadata	<ObjectMeta>")
	k.OK("", "explain cm.metadata.ownerReferences", "FIELD: ownerReferences <[]OwnerReference>", "uid	<string> -required-")
	k.OK("", "explain pod.spec.containers", "FIELD: containers <[]Container>", "livenessProbe	<Probe>", "ports	<[]ContainerPort>")
	k.OK("", "explain pod.spec.volumes.configMap --recursive", "<ConfigMapVolumeSource>", "defaultMode	<integer>", "path	<string> -required-")
	k.OK("", "explain deployments.spec.strategy.rollingUpdate", "GROUP:      apps", "maxSurge	<IntOrString>")
	k.OK("", "explain pod.spec.containers.resources.limits", "<map[string]Quantity>")
	k.OK("", "explain leases.spec.renewTime", "<string>")
	k.OK("", "explain widgets", "GROUP:      example.com", "KIND:       Widget", "Widget is a thing that does things.", "spec	<Object>")
	k.OK("", "explain wd.spec", "size	<integer> -required-", "Size says how big it is.")
	k.OK("", "explain wd.spec.parts.name", "Name of a part.")
	k.OK("", "explain configmap -o plaintext-openapiv2", "binaryData	<map[string]string>")
	k.OK("", "explain wd.spec --output=plaintext-openapiv2", "size	<integer> -required-")
	k.Fails("", "explain configmap.nothing", `field "nothing" does not exist`)
}

// TestKubectlCustomKind checks that kubectl knows a kind as soon as it is defined, and no longer
// after its definition was deleted.
func TestKubectlCustomKind(t *testing.T) {
	k := newKubectl(t)
	k.Fails(widget, "apply -f -", "no matches for kind")
	k.OK(apitest.WidgetManifest, "apply -f -", "widgets.example.com created")
	k.OK("", "wait --for=condition=Established crd/widgets.example.com", "condition met")
	k.OK("", "explain widgets.spec", "Size says how big it is.")
	k.OK(widget, "apply -f -", "widget.example.com/w created")
	k.Fails(strings.Replace(widget, "size", "colour: red, size", 1), "apply --validate=strict -f -", `unknown field "spec.colour"`)
	next := strings.Replace(apitest.WidgetManifest, "Size says how big it is.", "Size has a new description.", 1)
	k.OK(next, "apply -f -", "widgets.example.com configured")
	k.OK("", "explain widgets.spec", "Size has a new description.")
	k.OK("", "delete crd widgets.example.com", "deleted")
	k.Fails("", "explain widgets")
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
	k.OK(deployment, "apply -f -", "deployment.apps/web created")
	k.OK(deployment, "apply -f -", "deployment.apps/web unchanged")
	k.OK("", `patch deploy web --type=strategic -p {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"c:1"}]}}}}`, "patched")

	next := strings.NewReplacer("a:1", "a:2", `{name: X, value: "1"}`, `{name: Z, value: "2"}`).Replace(deployment)
	out, ok := k.Run(next, "diff -f -")
	assert.False(t, ok, "there are differences")
	assert.Contains(t, strings.Join(strings.Fields(out), " "), `- - name: X - value: "1" - image: a:1 + - name: Z + value: "2" + image: a:2`)
	assert.NotContains(t, out, "c:1", "the container of another stays")
	k.OK(next, "apply -f - --dry-run=server", "configured (server dry run)")
	k.OK(next, "apply -f - --dry-run=client", "configured (dry run)")
	k.OK(next, "apply -f -", "configured")
	assert.Equal(t, "c:1 a:2 b:1", k.OK("", "get deploy web -o jsonpath={.spec.template.spec.containers[*].image}"))
	assert.Equal(t, "Z", k.OK("", "get deploy web -o jsonpath={.spec.template.spec.containers[?(@.name==\"a\")].env[*].name}"))
	without := next[:strings.Index(next, "      - {name: b")]
	k.OK(without, "apply -f -", "configured")
	assert.Equal(t, "c:1 a:2", k.OK("", "get deploy web -o jsonpath={.spec.template.spec.containers[*].image}"))

	k.OK(without, "apply --server-side -f - --field-manager=other --force-conflicts", "serverside-applied")
	k.Fails(strings.Replace(without, "a:2", "a:3", 1), "apply --server-side -f - --field-manager=third", "conflict", "other")
	k.OK("", "scale deploy web --replicas=3", "scaled")
	k.OK("", "label deploy web tier=front", "labeled")
	k.OK("", "annotate deploy web note=x", "annotated")
	k.OK("", "set image deploy/web a=a:9", "image updated")
}

func TestKubectlValidation(t *testing.T) {
	k := newKubectl(t, withWidgets)
	const bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {a: b}\ndota: {}"
	k.Fails(bad, "create -f -", `unknown field "dota"`)
	k.Fails(bad, "apply --validate=strict -f -", `unknown field "dota"`)
	k.Fails(bad, "apply --validate=true --dry-run=server -f -", `unknown field "dota"`)
	k.OK(bad, "apply --validate=warn -f -", `Warning: unknown field "dota"`, "configmap/bad created")
	k.OK(strings.Replace(bad, "a: b", "a: c", 1), "apply --validate=ignore -f -", "configmap/bad configured")
	k.OK(strings.Replace(bad, "dota", "#", 1), "replace -f - --validate=warn --dry-run=server", "replaced")

	k.Fails(strings.Replace(widget, "size: 2", "size: 2, colour: red", 1), "create -f -", `unknown field "spec.colour"`)
	k.Fails(strings.Replace(widget, "2", "0", 1), "create -f -", "spec.size")
	k.Fails(strings.Replace(widget, "size: 2", "", 1), "create -f -", "spec.size", "Required value")
	k.OK(widget, "create -f - --save-config", "widget.example.com/w created")
	k.OK(strings.Replace(widget, "2", "5", 1), "apply -f -", "configured")
	k.OK(strings.Replace(widget, "2", "5", 1), "apply -f -", "unchanged")
	k.OK("", `patch wd w --type=merge -p {"spec":{"parts":[{"name":"p"}]}}`, "patched")
	k.OK("", `patch wd w --type=json -p [{"op":"replace","path":"/spec/size","value":7}]`, "patched")
	k.Fails("", `patch wd w --type=strategic -p {"spec":{"size":8}}`, "is not supported by example.com/v1, Kind=Widget")
	assert.Equal(t, "7", k.OK("", "get wd w -o jsonpath={.spec.size}"))
}

func TestKubectlEdit(t *testing.T) {
	k := newKubectl(t, withWidgets)
	k.OK("", "create configmap a --from-literal=k=one", "created")
	edit := func(line, program string) (string, bool) { return k.Run("", line, "KUBE_EDITOR="+program) }
	out, ok := edit("edit configmap a", "sed -i s/one/two/")
	assert.True(t, ok, out)
	assert.Contains(t, out, "configmap/a edited")
	assert.Equal(t, "two", k.OK("", "get cm a -o jsonpath={.data.k}"))
	out, _ = edit("edit configmap a", "sed -i s/nothing/else/")
	assert.Contains(t, out, "no changes made")

	k.OK(widget, "create -f -", "created")
	out, ok = edit("edit widget w", "sed -i s/size:.2/size:\\ 4/")
	assert.True(t, ok, out)
	assert.Equal(t, "4", k.OK("", "get wd w -o jsonpath={.spec.size}"))
	k.OK(deployment, "create -f -", "created")
	out, ok = edit("edit deploy web", "sed -i s/b:1/b:2/")
	assert.True(t, ok, out)
	assert.Equal(t, "a:1 b:2", k.OK("", "get deploy web -o jsonpath={.spec.template.spec.containers[*].image}"))
}
