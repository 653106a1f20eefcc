package operator

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/server/servertest"
)

// TestWebhooks: the webhook server of controller-runtime works in process, installed by one line from
// the operator's manifests, and over TLS.
func TestWebhooks(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	AddToScheme(scheme)
	t.Run("in process", func(t *testing.T) {
		s := newServer(t)
		s.InstallWebhooks(os.DirFS("config/webhook"), Webhooks(scheme))
		useWebhooks(t, s, scheme)
	})
	t.Run("over TLS", func(t *testing.T) {
		s := newServer(t)
		remote := httptest.NewTLSServer(Webhooks(scheme))
		t.Cleanup(remote.Close)
		installRemote(t, s, scheme, remote)
		useWebhooks(t, s, scheme)
	})
}

// installRemote creates the configurations with the URL of a server instead of the service.
func installRemote(t *testing.T, s *servertest.Server, scheme *runtime.Scheme, remote *httptest.Server) {
	t.Helper()
	text, err := os.ReadFile("config/webhook/manifests.yaml")
	require.NoError(t, err)
	c, err := client.New(&rest.Config{Host: s.Host(), Transport: s.Transport()}, client.Options{Scheme: scheme})
	require.NoError(t, err)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: remote.Certificate().Raw})
	for _, doc := range bytes.Split(text, []byte("---\n"))[1:] {
		var o unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal(doc, &o.Object))
		list, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		require.NoError(t, err)
		for _, hook := range list {
			config := hook.(map[string]any)["clientConfig"].(map[string]any)
			where := config["service"].(map[string]any)["path"].(string)
			delete(config, "service")
			config["url"], config["caBundle"] = remote.URL+where, base64.StdEncoding.EncodeToString(ca)
		}
		o.Object["webhooks"] = list
		require.NoError(t, c.Create(t.Context(), &o))
	}
}

// warnings collects the warnings of the server.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

func useWebhooks(t *testing.T, s *servertest.Server, scheme *runtime.Scheme) {
	ctx := patience(t)
	var warned warnings
	c, err := client.New(&rest.Config{Host: s.Host(), Transport: s.Transport(), WarningHandler: &warned}, client.Options{Scheme: scheme})
	require.NoError(t, err)

	fleet := newFleet("armada", 0)
	require.NoError(t, c.Create(ctx, fleet))
	require.Equal(t, int32(1), fleet.Spec.Ships)

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	require.NoError(t, c.Create(ctx, pod))
	require.Equal(t, map[string]string{"sea.example.com/ashore": "true"}, pod.Spec.NodeSelector)

	pirate := newShip()
	pirate.SetName("revenge")
	pirate.SetNamespace("default")
	require.NoError(t, unstructured.SetNestedField(pirate.Object, "Blackbeard", "spec", "captain"))
	err = c.Create(ctx, pirate)
	require.True(t, apierrors.IsForbidden(err), err)
	require.ErrorContains(t, err, `admission webhook "vship-v1.sea.example.com" denied the request: no pirates`)

	own := newShip()
	own.SetName("victory")
	own.SetNamespace("default")
	own.SetLabels(map[string]string{"at": "sea"})
	require.NoError(t, c.Create(ctx, own))
	require.Contains(t, warned, "the ship has no captain")
	require.ErrorContains(t, c.Delete(ctx, own), "the ship is at sea")
	own.SetLabels(nil)
	require.NoError(t, c.Update(ctx, own))
	require.NoError(t, c.Delete(ctx, own))
}
