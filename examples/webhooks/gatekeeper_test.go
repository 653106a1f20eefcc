package webhooks

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
)

const (
	gatekeeper       = "github.com/open-policy-agent/gatekeeper/v3"
	gatekeeperSystem = "gatekeeper-system"
)

// TestGatekeeper runs Gatekeeper's program with everything in its manifest, and its demonstration. The
// server connects to it over TLS through the Service of the manifest, with the certificate that
// Gatekeeper generates and writes into the configurations.
func TestGatekeeper(t *testing.T) {
	if testing.Short() {
		t.Skip("building Gatekeeper takes minutes on a fresh machine")
	}
	program := build(t, gatekeeper)
	ctx := patience(t)
	s, port := serveGatekeeper(t)
	var warned warnings
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	g := policies{client: connect(t, s, scheme, "admin", rest.ImpersonationConfig{}, &warned), demo: filepath.Join(source(t, gatekeeper), "demo")}
	installGatekeeper(t, ctx, s, g.client)
	startGatekeeper(t, ctx, s, g.client, program, port)
	g.awaitAuthority(t, ctx)

	t.Run("the ignore label", func(t *testing.T) {
		err := g.client.Create(ctx, namespace("sneaky", "admission.gatekeeper.sh/ignore"))
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.EqualError(t, err, `admission webhook "check-ignore-label.gatekeeper.sh" denied the request: Only exempt namespace can have the admission.gatekeeper.sh/ignore label`)
	})
	t.Run("policies", func(t *testing.T) { g.usePolicies(t, ctx, &warned) })
	t.Run("what other objects have", func(t *testing.T) { g.useInventory(t, ctx) })
	t.Run("audit", func(t *testing.T) { g.useAudit(t, ctx) })
	t.Run("mutation", func(t *testing.T) { g.useMutation(t, ctx) })
}

// serveGatekeeper starts a server with RBAC that resolves the Service of Gatekeeper to a local port.
// The port is free when it is chosen. If another program takes it before Gatekeeper does, Gatekeeper
// exits and its log, which the test prints, shows the reason.
func serveGatekeeper(t *testing.T) (*servertest.Server, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	service := server.Service{Namespace: gatekeeperSystem, Name: "gatekeeper-webhook-service", Port: 443}
	admin := auth.AuthenticatorFunc(func(r *http.Request) (*auth.User, error) {
		if token, _ := auth.BearerToken(r); token != "admin" {
			return nil, nil
		}
		return &auth.User{Name: "admin", Groups: []string{auth.Masters}}, nil
	})
	s := servertest.New(t, func(b *server.Builder) {
		b.Authorizer = nil
		require.NoError(t, access.Setup(b, access.Config{Authenticators: []auth.Authenticator{admin}}))
		b.ServiceResolver = func(_ context.Context, of server.Service) (server.Endpoint, error) {
			if of != service {
				return server.Endpoint{}, fmt.Errorf("no service %s/%s", of.Namespace, of.Name)
			}
			return server.Endpoint{Address: l.Addr().String()}, nil
		}
	})
	return s, l.Addr().(*net.TCPAddr).Port
}

// installGatekeeper creates the objects in Gatekeeper's manifest, and the pod that the controller of a
// Deployment would create.
func installGatekeeper(t *testing.T, ctx context.Context, s *servertest.Server, c client.Client) {
	t.Helper()
	deploy := filepath.Join(source(t, gatekeeper), "deploy")
	s.InstallCRDs(os.DirFS(deploy))
	var manager *unstructured.Unstructured
	for _, o := range documents(t, filepath.Join(deploy, "gatekeeper.yaml")) {
		if o.GetKind() != "CustomResourceDefinition" {
			require.NoError(t, c.Create(ctx, o), "%s %s", o.GetKind(), o.GetName())
		}
		if o.GetKind() == "Deployment" {
			manager = o
		}
	}
	pod, _, err := unstructured.NestedMap(manager.Object, "spec", "template")
	require.NoError(t, err)
	own := &unstructured.Unstructured{Object: pod}
	own.SetAPIVersion("v1")
	own.SetKind("Pod")
	own.SetName("gatekeeper-0")
	own.SetNamespace(gatekeeperSystem)
	require.NoError(t, c.Create(ctx, own))
}

// startGatekeeper runs the program as its service account until the test ends, with the secret and the
// empty directory at the paths where a kubelet would mount them.
func startGatekeeper(t *testing.T, ctx context.Context, s *servertest.Server, c client.Client, program string, port int) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, certificates, audit := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "certs"), filepath.Join(dir, "audit")
	require.NoError(t, os.Mkdir(certificates, 0o700))
	require.NoError(t, os.Mkdir(audit, 0o700))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: gatekeeperSystem, Name: "gatekeeper-admin"}}
	token := &authenticationv1.TokenRequest{}
	require.NoError(t, c.SubResource("token").Create(ctx, account, token))
	remote := httptest.NewTLSServer(s)
	t.Cleanup(remote.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: remote.Certificate().Raw})
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":%q}}]}`,
		remote.URL, base64.StdEncoding.EncodeToString(authority), token.Status.Token), 0o600))
	cmd := exec.CommandContext(t.Context(), program, "--kubeconfig="+kubeconfig, "--host=127.0.0.1", fmt.Sprintf("--port=%d", port), "--cert-dir="+certificates,
		"--health-addr=0", "--prometheus-port=0", "--shutdown-delay=0", "--exempt-namespace="+gatekeeperSystem,
		"--audit-interval=1", "--api-cache-dir="+audit)
	cmd.Env = append(os.Environ(), "POD_NAME=gatekeeper-0", "POD_NAMESPACE="+gatekeeperSystem)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		// The context of the test has ended, and the program has stopped with it.
		if err := cmd.Wait(); !errors.Is(err, context.Canceled) || t.Failed() {
			t.Errorf("gatekeeper ended: %v\n%s", err, log.Bytes())
		}
	})
	secret := &corev1.Secret{}
	require.Eventually(t, func() bool {
		err := c.Get(ctx, client.ObjectKey{Namespace: gatekeeperSystem, Name: "gatekeeper-webhook-server-cert"}, secret)
		return err == nil && len(secret.Data["tls.crt"]) > 0
	}, time.Minute, 10*time.Millisecond, "gatekeeper makes its certificate")
	for name, data := range secret.Data {
		require.NoError(t, os.WriteFile(filepath.Join(certificates, name), data, 0o600))
	}
}

// policies is a client for the objects of the demonstration.
type policies struct {
	client client.Client
	demo   string
}

func namespace(name string, labels ...string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, l := range labels {
		ns.Labels[l] = "yes"
	}
	return ns
}

// awaitAuthority waits until Gatekeeper has written its CA into all configurations and answers: the
// webhook for the namespace label fails closed.
func (g policies) awaitAuthority(t *testing.T, ctx context.Context) {
	t.Helper()
	require.Eventually(t, func() bool {
		return g.client.Create(ctx, namespace("plain"), client.DryRunAll) == nil
	}, time.Minute, 10*time.Millisecond, "gatekeeper answers")
}

// create creates the objects of a file of the demonstration, and retries, because their kinds may not exist yet.
func (g policies) create(t *testing.T, ctx context.Context, file string) {
	t.Helper()
	for _, o := range documents(t, filepath.Join(g.demo, file)) {
		var err error
		require.Eventually(t, func() bool {
			err = g.client.Create(ctx, o)
			return err == nil
		}, time.Minute, 10*time.Millisecond, "%s", file)
	}
}

func (g policies) patch(ctx context.Context, o client.Object, body string) error {
	return g.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(body)))
}

// refused waits until the objects of a file are rejected.
func (g policies) refused(t *testing.T, ctx context.Context, file, text string) {
	t.Helper()
	for _, o := range documents(t, filepath.Join(g.demo, file)) {
		var err error
		require.Eventually(t, func() bool {
			err = g.client.Create(ctx, o.DeepCopy(), client.DryRunAll)
			return err != nil
		}, time.Minute, 10*time.Millisecond, "%s", file)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, g.client.Create(ctx, o), text)
	}
}

// usePolicies creates a kind of policy and a policy of this kind.
func (g policies) usePolicies(t *testing.T, ctx context.Context, warned *warnings) {
	require.NoError(t, g.client.Create(ctx, namespace("no-label")))
	g.refused(t, ctx, "basic/bad/bad_template.yaml", `admission webhook "validation.gatekeeper.sh" denied the request: invalid ConstraintTemplate`)
	g.create(t, ctx, "basic/templates/k8srequiredlabels_template.yaml")
	g.create(t, ctx, "basic/constraints/all_ns_must_have_gatekeeper.yaml")
	const text = `you must provide labels: {"gatekeeper"}`
	g.refused(t, ctx, "basic/bad/bad_ns.yaml", `admission webhook "validation.gatekeeper.sh" denied the request: [ns-must-have-gk] `+text)
	g.create(t, ctx, "basic/good/good_ns.yaml")

	good := namespace("good-ns")
	require.ErrorContains(t, g.patch(ctx, good, `{"metadata":{"labels":{"gatekeeper":null}}}`), text)
	require.NoError(t, g.client.Delete(ctx, good))

	policy := &unstructured.Unstructured{}
	policy.SetAPIVersion("constraints.gatekeeper.sh/v1beta1")
	policy.SetKind("K8sRequiredLabels")
	policy.SetName("ns-must-have-gk")
	require.ErrorContains(t, g.patch(ctx, policy, `{"spec":{"enforcementAction":"shout"}}`), `admission webhook "validation.gatekeeper.sh" denied the request: `)
	err := g.patch(ctx, policy, `{"spec":{"parameters":{"labels":"gatekeeper"}}}`)
	require.True(t, apierrors.IsInvalid(err), "by the schema of the definition that gatekeeper made: %v", err)
	require.NoError(t, g.patch(ctx, policy, `{"spec":{"enforcementAction":"warn"}}`))
	require.Eventually(t, func() bool {
		*warned = nil
		return g.client.Create(ctx, namespace("warned"), client.DryRunAll) == nil
	}, time.Minute, 10*time.Millisecond, "warnings only")
	require.Equal(t, warnings{"[ns-must-have-gk] " + text}, *warned)
}

// useInventory uses a policy that compares an object with all others, which Gatekeeper watches.
func (g policies) useInventory(t *testing.T, ctx context.Context) {
	g.create(t, ctx, "basic/sync.yaml")
	g.create(t, ctx, "basic/templates/k8suniquelabel_template.yaml")
	g.create(t, ctx, "basic/constraints/all_ns_gatekeeper_label_unique.yaml")
	g.create(t, ctx, "basic/good/no_dupe_ns.yaml")
	g.refused(t, ctx, "basic/bad/no_dupe_ns_2.yaml", "[ns-gk-label-unique] label gatekeeper has duplicate value not_duplicated")
}

// useAudit checks that the status of a policy lists objects that existed before the policy.
func (g policies) useAudit(t *testing.T, ctx context.Context) {
	policy := &unstructured.Unstructured{}
	policy.SetAPIVersion("constraints.gatekeeper.sh/v1beta1")
	policy.SetKind("K8sRequiredLabels")
	require.Eventually(t, func() bool {
		if err := g.client.Get(ctx, client.ObjectKey{Name: "ns-must-have-gk"}, policy); err != nil {
			return false
		}
		violations, _, _ := unstructured.NestedSlice(policy.Object, "status", "violations")
		for _, v := range violations {
			if v.(map[string]any)["name"] == "no-label" {
				return true
			}
		}
		return false
	}, time.Minute, 100*time.Millisecond, "the audit finds the namespace")
}

// useMutation lets Gatekeeper change pods.
func (g policies) useMutation(t *testing.T, ctx context.Context) {
	owner := parse(t, []byte(`
apiVersion: mutations.gatekeeper.sh/v1
kind: AssignMetadata
metadata: {name: owner}
spec:
  match: {scope: Namespaced, kinds: [{apiGroups: [""], kinds: [Pod]}]}
  location: spec.owner
  parameters: {assign: {value: somebody}}
`))[0]
	err := g.client.Create(ctx, owner)
	require.ErrorContains(t, err, `admission webhook "validation.gatekeeper.sh" denied the request: `)
	require.NoError(t, unstructured.SetNestedField(owner.Object, "metadata.labels.owner", "spec", "location"))
	require.NoError(t, g.client.Create(ctx, owner))
	g.create(t, ctx, "mutation/assignimagedemo.yaml")
	pod := documents(t, filepath.Join(g.demo, "mutation/pod.yaml"))[0]
	pod.SetNamespace("default")
	var trial *unstructured.Unstructured
	require.Eventually(t, func() bool {
		trial = pod.DeepCopy()
		err = g.client.Create(ctx, trial, client.DryRunAll)
		return err != nil || trial.GetLabels()["owner"] == "somebody" && firstOf(trial, "spec", "containers")["image"] == "mycompany.registry.io/nginx"
	}, time.Minute, 10*time.Millisecond, "mutators work")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		err = g.client.Get(ctx, client.ObjectKeyFromObject(owner), owner)
		return err != nil || firstOf(owner, "status", "byPod")["id"] == "gatekeeper-0"
	}, time.Minute, 10*time.Millisecond, "gatekeeper says where the mutator works")
	require.NoError(t, err)
	pods, _, err := unstructured.NestedSlice(owner.Object, "status", "byPod")
	require.NoError(t, err)
	require.Len(t, pods, 1)
}

// firstOf returns the first object of a list, or nil if the list is empty.
func firstOf(o *unstructured.Unstructured, list ...string) map[string]any {
	all, _, _ := unstructured.NestedSlice(o.Object, list...)
	if len(all) == 0 {
		return nil
	}
	first, _ := all[0].(map[string]any)
	return first
}
