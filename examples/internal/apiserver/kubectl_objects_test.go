package apiserver

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKubectlObjects(t *testing.T) {
	k := newKubectl(t)
	k.ok("version", "Client Version: v1.", "Server Version: v1.")
	k.ok("api-resources", "configmaps", "secrets", "namespaces", "customresourcedefinitions", "deployments")
	k.ok("api-versions", "v1", "apps/v1")
	k.ok("cluster-info", "is running at")
	k.ok("create namespace team", "namespace/team created")
	k.fails("create namespace team", `Error from server (AlreadyExists): namespaces "team" already exists`)
	k.ok("wait namespace/team --for=jsonpath={.status.phase}=Active --timeout=30s", "condition met")
	k.ok("-n team wait configmap/kube-root-ca.crt --for=create --timeout=30s", "condition met")
	k.ok("-n team get configmap kube-root-ca.crt -o yaml", "BEGIN CERTIFICATE")
	k.ok("get namespaces", "NAME", "STATUS", "team", "Active", "kube-system")
	k.ok("describe namespace team", "Name:         team", "Status:       Active")

	k.ok("-n team create configmap cm --from-literal=greeting=world", "configmap/cm created")
	k.ok("-n team get configmap cm", "NAME", "DATA", "AGE")
	k.ok("-n team get configmap cm -o yaml", "greeting: world", "kind: ConfigMap", "resourceVersion:", "uid:")
	k.ok("-n team describe configmap cm", "greeting:", "world")
	k.ok("-n team label configmap cm tier=test", "labeled")
	k.ok("-n team annotate configmap cm why=because", "annotated")
	k.ok("-n team get configmaps -l tier=test -o name", "configmap/cm")
	k.ok("-n team get configmaps --field-selector metadata.name=cm -o name", "configmap/cm")
	assert.Equal(t, "No resources found in team namespace.", k.ok("-n team get configmaps -l tier=other"))
	k.fails("-n team get configmap none", `Error from server (NotFound): configmaps "none" not found`)
	k.fails("get nothings", `the server doesn't have a resource type "nothings"`)

	k.ok("-n team create secret generic pass --from-literal=word=sesame", "secret/pass created")
	k.ok("-n team get secret pass", "Opaque", "1")
	k.ok("-n team get secret pass -o jsonpath={.data.word}", "c2VzYW1l")
	k.ok("-n team describe secret pass", "word:  6 bytes")
	k.ok("-n team delete secret pass", `secret "pass" deleted`)
	k.ok("get configmaps -A --chunk-size=1", "team", "cm")
	k.ok("get --raw /readyz?verbose", "[+]ping ok", "readyz check passed")

	k.ok("delete namespace team --timeout=60s", `namespace "team" deleted`)
	k.fails("get namespace team", "NotFound")
	k.fails("delete namespace default", "Forbidden")
}

const shipDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships, singular: ship, shortNames: [sh], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.sails, statusReplicasPath: .status.sails}
    additionalPrinterColumns:
    - {name: Sails, type: integer, jsonPath: .spec.sails}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {sails: {type: integer, minimum: 1, default: 3}}}
          status:
            type: object
            properties:
              sails: {type: integer}
              conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}
`

func TestKubectlCustomKind(t *testing.T) {
	k := newKubectl(t)
	k.put("crd.yaml", shipDefinition)
	k.put("ship.yaml", "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: pequod}\nspec: {}\n")
	k.put("sunk.yaml", "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: sunk}\nspec: {sails: 0}\n")
	k.ok("apply -f @crd.yaml", "customresourcedefinition.apiextensions.k8s.io/ships.sea.example.com created")
	k.ok("wait crd/ships.sea.example.com --for=condition=Established --timeout=30s", "condition met")
	k.ok("api-resources --api-group=sea.example.com", "ships", "sh", "sea.example.com/v1", "true", "Ship")
	k.ok("explain ship.spec.sails", "sails <integer>")
	k.ok("create -f @ship.yaml", "ship.sea.example.com/pequod created")
	k.fails("create -f @sunk.yaml", "spec.sails")
	table := k.ok("get sh")
	assert.Equal(t, []string{"NAME", "SAILS", "pequod", "3"}, strings.Fields(table))
	k.ok("get all", "ship.sea.example.com/pequod")
	k.ok("describe ship pequod", "Sails:  3")
	k.ok("get ship pequod -o yaml", "sails: 3", "kind: Ship")
	k.ok("scale ship pequod --replicas=5", "scaled")
	assert.Equal(t, "5", k.ok("get ship pequod -o jsonpath={.spec.sails}"))
	k.ok(`patch ship pequod --subresource=status --type=merge -p {"status":{"conditions":[{"type":"Afloat","status":"True"}]}}`, "patched")
	k.ok("wait ship/pequod --for=condition=Afloat --timeout=30s", "condition met")
	k.ok("delete ship pequod", "deleted")
	k.ok("create -f @ship.yaml", "created")
	k.ok("delete crd ships.sea.example.com --timeout=60s", "deleted")
	k.fails("get ships") // the message depends on the discovery cache of kubectl
}

// TestKubectlMigrations migrates the stored objects of a built-in kind and of a custom resource.
func TestKubectlMigrations(t *testing.T) {
	k := newKubectl(t)
	k.put("crd.yaml", shipDefinition)
	k.put("ship.yaml", "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: pequod}\nspec: {sails: 3}\n")
	k.ok("create -f @crd.yaml", "created")
	k.ok("wait --for=condition=Established crd/ships.sea.example.com --timeout=30s")
	k.ok("create -f @ship.yaml", "created")
	k.ok("create configmap one --from-literal=k=1", "created")
	for name, resource := range map[string]string{"configmaps": "resource: configmaps, group: ''", "ships": "resource: ships, group: sea.example.com"} {
		k.put(name+".yaml", "apiVersion: storagemigration.k8s.io/v1\nkind: StorageVersionMigration\nmetadata: {name: "+name+"}\nspec: {resource: {"+resource+"}}\n")
		k.ok("apply -f @"+name+".yaml", "storageversionmigration.storagemigration.k8s.io/"+name+" created")
		k.ok("wait storageversionmigration/"+name+" --for=condition=Succeeded --timeout=60s", "condition met")
	}
	lines := strings.Split(k.ok("get storageversionmigrations"), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	assert.Equal(t, []string{"NAME RESOURCE STATUS", "configmaps configmaps Succeeded", "ships ships.sea.example.com Succeeded"}, lines)
	k.fails(`patch storageversionmigration ships --type=merge -p {"spec":{"resource":{"resource":"pods"}}}`, "immutable")
	k.ok("delete storageversionmigration --all", "deleted")
	assert.Equal(t, "3", k.ok("get ship pequod -o jsonpath={.spec.sails}"))
}

// TestKubectlWatches watches objects with get -w and wait while they change.
func TestKubectlWatches(t *testing.T) {
	k := newKubectl(t)
	k.ok("create configmap one --from-literal=k=1", "created")
	lines := k.follow("get configmaps -w --field-selector=metadata.name!=kube-root-ca.crt --no-headers -o custom-columns=NAME:.metadata.name,K:.data.k")
	require.Equal(t, "one 1", <-lines)
	k.ok("create configmap two --from-literal=k=1", "created")
	require.Equal(t, "two 1", <-lines)
	k.ok(`patch configmap one --type=merge -p {"data":{"k":"2"}}`, "patched")
	require.Equal(t, "one 2", <-lines)
	k.ok("delete configmap two", "deleted")
	require.Equal(t, "two 1", <-lines)

	k.ok(`patch configmap one --type=merge -p {"metadata":{"finalizers":["example.com/hold"]}}`, "patched")
	k.ok("delete configmap one --wait=false", "deleted")
	waited := make(chan bool, 1)
	go func() {
		_, ok := k.try("wait configmap/one --for=delete --timeout=60s")
		waited <- ok
	}()
	k.ok(`patch configmap one --type=merge -p {"metadata":{"finalizers":null}}`, "patched")
	require.True(t, <-waited)
}

// follow starts a command that keeps running, and returns its lines with spaces collapsed.
func (k kubectl) follow(line string) <-chan string {
	k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, "kubectl", strings.Fields(line)...)
	cmd.Env = []string{"HOME=" + k.dir, "KUBECONFIG=" + k.kubeconfig, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.StdoutPipe()
	require.NoError(k, err)
	require.NoError(k, cmd.Start())
	lines := make(chan string)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- strings.Join(strings.Fields(s.Text()), " "):
			case <-ctx.Done():
				return
			}
		}
	}()
	k.Cleanup(func() {
		cancel()
		<-ended
		_ = cmd.Wait()
	})
	return lines
}
