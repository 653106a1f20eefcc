package plugins_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/testcerts"
)

// backend is an image policy backend over HTTPS.
type backend struct {
	mu    sync.Mutex
	asked []string // specs of the reviews since the last call of seen
	fault string
}

// seen returns the specs of the reviews since its last call.
func (b *backend) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}

func (b *backend) fail(how string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = how
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, _ := io.ReadAll(r.Body)
	var review struct {
		APIVersion, Kind string
		Spec             json.RawMessage
	}
	if json.Unmarshal(data, &review) != nil || r.Header.Get("Authorization") != "Bearer t" || review.APIVersion != "imagepolicy.k8s.io/v1alpha1" || review.Kind != "ImageReview" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.asked = append(b.asked, string(review.Spec))
	status := `{"allowed": true, "auditAnnotations": {"by": "test"}}`
	if strings.Contains(string(review.Spec), "bad") {
		status = `{"reason": "it is bad"}`
	}
	if strings.Contains(string(review.Spec), "worse") {
		status = `{}`
	}
	kind := review.Kind
	switch b.fault {
	case "code":
		w.WriteHeader(http.StatusInternalServerError)
	case "cut":
		panic(http.ErrAbortHandler)
	case "kind":
		kind = "Review"
	case "huge":
		status = `{"allowed": true, "reason": "` + strings.Repeat("x", 2<<20) + `"}`
	case "text":
		status = `"yes"`
	}
	fmt.Fprintf(w, `{"apiVersion": %q, "kind": %q, "status": %s}`, review.APIVersion, kind, status)
}

// imagePolicyOptions returns server options for a backend at url, whose server certificate authority has signed.
func imagePolicyOptions(t *testing.T, url string, authority []byte, more string) (admission.Options, error) {
	t.Helper()
	dir := t.TempDir()
	client, file := filepath.Join(dir, "client.yaml"), filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(client, []byte(fmt.Sprintf(`{clusters: [{name: b, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: {token: t}}]}`,
		url, base64.StdEncoding.EncodeToString(authority))), 0o600))
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: ImagePolicyWebhook,
		configuration: {imagePolicy: {kubeConfigFile: %q, %s}}}]}`, client, more)), 0o600))
	config, _, err := admission.LoadConfig(file, plugins.Table(), names.Kubernetes)
	return admission.Options{Enable: []string{"ImagePolicyWebhook"}, Config: config}, err
}

func authorityOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func imagePod(name, annotations, images string) step {
	return step{do: "POST pods", body: `{metadata: {name: ` + name + `, annotations: {` + annotations + `}}, spec: {` + images + `}}`, want: `201`}
}

// TestImagePolicyWebhook checks that the images of a pod are reviewed once, and that the reason of a refusal
// is returned.
func TestImagePolicyWebhook(t *testing.T) {
	b := &backend{}
	hook := httptest.NewTLSServer(b)
	defer hook.Close()
	o, err := imagePolicyOptions(t, hook.URL, authorityOf(hook), `allowTTL: 50, denyTTL: 50, retryBackoff: 500, defaultAllow: true`)
	require.NoError(t, err)
	s := newServer(t, o)
	for _, tc := range []struct {
		step
		want  string
		asked []string
	}{
		{imagePod("a", `a.image-policy.k8s.io/ticket: "1", other: "2", alpha.image-policy.k8s.io/failed-open: x`,
			`containers: [{name: c, image: "c:1"}], initContainers: [{name: i, image: "i:1"}], volumes: [{name: v, image: {reference: "v:1"}}]`), `201`,
			[]string{`{"containers":[{"image":"c:1"},{"image":"i:1"},{"image":"v:1"}],"annotations":{"a.image-policy.k8s.io/ticket":"1"},"namespace":"default"}`}},
		{imagePod("b", ``, `containers: [{name: c, image: "c:1"}]`), `201 {metadata: {annotations: null}}`, []string{`{"containers":[{"image":"c:1"}],"namespace":"default"}`}},
		{imagePod("c", ``, `containers: [{name: other, image: "c:1"}]`), `201`, nil},
		{imagePod("d", ``, `containers: [{name: c, image: "bad:1"}]`), `403 image policy webhook backend denied one or more images: it is bad`, []string{`{"containers":[{"image":"bad:1"}],"namespace":"default"}`}},
		{imagePod("d", ``, `containers: [{name: c, image: "bad:1"}]`), `403 image policy webhook backend denied one or more images: it is bad`, nil},
		{imagePod("d", ``, `containers: [{name: c, image: "worse:1"}]`), `403 one or more images rejected by webhook backend`, []string{`{"containers":[{"image":"worse:1"}],"namespace":"default"}`}},
		{step{do: "PATCH pods/b", body: `{metadata: {labels: {a: b}}}`}, `200`, nil},
		{step{do: "PATCH pods/b", body: `{spec: {containers: [{name: c, image: "bad:2"}]}}`}, `403 it is bad`, []string{`{"containers":[{"image":"bad:2"}],"namespace":"default"}`}},
		{step{do: "PATCH pods/b/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: "bad:3"}]}}`}, `403 it is bad`, []string{`{"containers":[{"image":"bad:3"}],"namespace":"default"}`}},
		{step{do: "PATCH pods/b/status", body: `{status: {phase: Running}}`}, `200`, nil},
		{step{do: "DELETE pods/b"}, `200`, nil},
	} {
		tc.step.want = tc.want
		runSteps(t, s, tc.step)
		assert.Equal(t, tc.asked, b.seen(), tc.do)
	}
}

// TestImagePolicyFails checks that a failed backend admits or refuses pods as configured, and that an
// admitted pod is annotated.
func TestImagePolicyFails(t *testing.T) {
	b := &backend{}
	hook := httptest.NewTLSServer(b)
	defer hook.Close()
	const closed = `403 the image policy webhook backend did not answer`
	const open = `201 {metadata: {annotations: {alpha.image-policy.k8s.io/failed-open: "true"}}}`
	other := testcerts.New(t, "other", nil).PEM()
	for i, fault := range []string{"code", "cut", "kind", "huge", "text", "authority"} {
		t.Run(fault, func(t *testing.T) {
			authority := authorityOf(hook)
			if fault == "authority" {
				authority = other
			}
			b.fail(fault)
			for allow, want := range map[string]string{"true": open, "false": closed} {
				o, err := imagePolicyOptions(t, hook.URL, authority, `retryBackoff: 1, defaultAllow: `+allow)
				require.NoError(t, err)
				s := newServer(t, o)
				pod := imagePod(fmt.Sprint("p", i), ``, `containers: [{name: c, image: "c:1"}]`)
				pod.want = want
				runSteps(t, s, pod)
				if allow == "false" || i > 0 {
					continue
				}
				b.fail("")
				runSteps(t, s, step{do: "PATCH pods/p0/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: "e:1"}]}}`, want: `200`})
				b.fail(fault)
				runSteps(t, s, step{do: "PATCH pods/p0/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: "e:1"}, {name: f, image: "f:1"}]}}`, want: `200`})
			}
		})
	}
}

// TestImagePolicyConfig checks that a missing or insecure backend, and invalid times, fail the build of the
// server.
func TestImagePolicyConfig(t *testing.T) {
	_, err := admission.New(plugins.Table(), admission.Options{Enable: []string{"ImagePolicyWebhook"}}, admission.PluginContext{Names: names.Kubernetes})
	assert.EqualError(t, err, "admission plugin ImagePolicyWebhook: imagePolicy.kubeConfigFile is required")
	for more, want := range map[string]string{
		``: "must use https, not http",
		`allowTTL: 1801, denyTTL: -2, retryBackoff: 300001`: "[imagePolicy.allowTTL: 1801 must be between 1 and 1800, imagePolicy.denyTTL: -2 must be between 1 and 1800, imagePolicy.retryBackoff: 300001 must be between 1 and 300000]",
	} {
		o, err := imagePolicyOptions(t, "http://127.0.0.1:1", nil, more)
		require.NoError(t, err)
		_, err = admission.New(plugins.Table(), o, admission.PluginContext{Names: names.Kubernetes})
		assert.ErrorContains(t, err, want)
	}
}
