package webhook_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/testcerts"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kit is a server and the webhooks that it calls over TLS.
type kit struct {
	*servertest.Server
	t         *testing.T
	authority *testcerts.Authority
}

func newKit(t *testing.T, configure ...func(*server.Builder)) *kit {
	return &kit{servertest.New(t, configure...), t, testcerts.New(t, "webhooks", nil)}
}

// hook is a webhook that answers with a function of the request in the review.
type hook struct {
	*httptest.Server
	closed chan struct{} // receives a value for each closed connection
	mu     sync.Mutex    // guards seen
	seen   []*meta.Object
}

// serve starts a webhook.
func (k *kit) serve(answer func(w http.ResponseWriter, review *meta.Object), names ...string) *hook {
	return k.serveAs(k.authority, answer, names...)
}

func (k *kit) serveAs(authority *testcerts.Authority, answer func(w http.ResponseWriter, review *meta.Object), names ...string) *hook {
	h := &hook{closed: make(chan struct{}, 1000)}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(k.t, err)
		tree, err := meta.ParseJSON(body)
		assert.NoError(k.t, err)
		review := meta.NewObject(tree.(map[string]any))
		review.Set(r.Header.Get("Authorization"), "authorization")
		review.Set(r.URL.RequestURI(), "uri")
		h.mu.Lock()
		h.seen = append(h.seen, review)
		h.mu.Unlock()
		answer(w, review)
	}))
	h.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Issue(k.t, pkix.Name{CommonName: "webhook"}, x509.ExtKeyUsageServerAuth, time.Hour, names...)}}
	h.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			h.closed <- struct{}{}
		}
	}
	h.StartTLS()
	k.t.Cleanup(h.Close)
	return h
}

// reviews returns the requests of the reviews received since its last call.
func (h *hook) reviews() (list []*meta.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list, h.seen = h.seen, nil
	return list
}

// respond writes the response to a review, with fields given as YAML.
func respond(w http.ResponseWriter, review *meta.Object, response string) {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(response), &fields); err != nil {
		panic(err)
	}
	if _, said := fields["uid"]; !said {
		fields["uid"] = review.String("request", "uid")
	}
	if patch, ok := fields["patch"].(string); ok {
		fields["patch"] = base64.StdEncoding.EncodeToString([]byte(patch))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "AdmissionReview", "apiVersion": review.APIVersion(), "response": fields})
}

// says returns a handler that always sends the same response.
func says(response string) func(http.ResponseWriter, *meta.Object) {
	return func(w http.ResponseWriter, review *meta.Object) { respond(w, review, response) }
}

// patches returns a handler that always sends the same patch.
func patches(patch string) func(http.ResponseWriter, *meta.Object) {
	return says("{allowed: true, patchType: JSONPatch, patch: '" + patch + "'}")
}

// register creates a webhook configuration, with a webhook for each YAML of fields. {url} in the YAML is
// replaced with the address of h.
func (k *kit) register(sort, name string, h *hook, webhooks ...string) {
	k.t.Helper()
	var list []any
	for i, text := range webhooks {
		fields := map[string]any{
			"name": "w" + string(rune('a'+i)) + "." + name + ".example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{"url": h.URL, "caBundle": base64.StdEncoding.EncodeToString(k.authority.PEM())},
			"rules":        []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{""}, "apiVersions": []any{"*"}, "resources": []any{"configmaps"}}},
		}
		var own map[string]any
		require.NoError(k.t, yaml.Unmarshal([]byte(text), &own))
		for field, value := range own {
			fields[field] = value
		}
		list = append(list, fields)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name}, "webhooks": list})
	require.NoError(k.t, err)
	code, answer := k.do("POST /apis/admissionregistration.k8s.io/v1/"+sort+"webhookconfigurations", string(body))
	require.Equal(k.t, 201, code, answer.String("message"))
}

func (k *kit) unregister(sort, name string) {
	k.t.Helper()
	code, _ := k.do("DELETE /apis/admissionregistration.k8s.io/v1/"+sort+"webhookconfigurations/"+name, "")
	require.Equal(k.t, 200, code)
}

// do sends a request; a path without a leading slash is in the namespace default.
func (k *kit) do(what, body string) (int, *meta.Object) {
	k.t.Helper()
	code, answer, _ := k.send(what, body)
	return code, answer
}

func (k *kit) send(what, body string) (int, *meta.Object, http.Header) {
	method, path, _ := strings.Cut(what, " ")
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/namespaces/default/" + path
	}
	data, err := yaml.YAMLToJSON([]byte(body))
	require.NoError(k.t, err)
	r, err := http.NewRequestWithContext(k.t.Context(), method, k.Host()+path, strings.NewReader(string(data)))
	require.NoError(k.t, err)
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := k.Client().Do(r)
	require.NoError(k.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(k.t, err)
	tree, err := meta.ParseJSON(text)
	if err != nil {
		tree = map[string]any{"message": string(text)}
	}
	return answer.StatusCode, meta.NewObject(tree.(map[string]any)), answer.Header
}

// operations returns the operations and objects of the reviews, sorted.
func operations(reviews []*meta.Object) []string {
	list := []string{}
	for _, r := range reviews {
		q := meta.NewObject(r.Map("request"))
		what := q.String("operation") + " " + q.String("requestResource", "resource")
		if sub := q.String("subResource"); sub != "" {
			what += "/" + sub
		}
		list = append(list, what+" "+q.String("name"))
	}
	slices.Sort(list)
	return list
}
