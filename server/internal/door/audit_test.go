package door_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

func TestAuditEventDescribesRequest(t *testing.T) {
	t.Parallel()
	policy, err := audit.ParsePolicy([]byte(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ["/healthz"]}
- {level: RequestResponse}
`), names.Kubernetes)
	require.NoError(t, err)
	out := &apitest.LogBuffer{}
	log, err := audit.Open(audit.Config{Policy: policy, Sinks: []audit.Sink{audit.Writer{W: out}}, Names: names.Kubernetes})
	require.NoError(t, err)
	users, err := tokenfile.Parse(strings.NewReader("a,alice,1\nb,bob,2\n"))
	require.NoError(t, err)
	s := servertest.New(t, func(b *server.Builder) {
		b.Audit = log
		b.Authenticators = []auth.Authenticator{users}
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			if a.User.Name == "bob" {
				return auth.NoOpinion, "bob may nothing", nil
			}
			return auth.Allow, "because", nil
		})
	})
	do := func(method, path, token, body string, headers ...string) string {
		r, err := http.NewRequest(method, "http://server"+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := s.Transport().RoundTrip(r)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.Header.Get("Audit-Id")
	}
	maps := "/api/v1/namespaces/default/configmaps"
	id := do("POST", maps, "a", `{"metadata":{"name":"m"},"data":{"k":"v"}}`)
	do("GET", maps+"/m", "a", "")
	do("GET", maps, "a", "")
	do("PATCH", maps+"/m", "a", `{"data":{"k":"w"}}`, "Content-Type", "application/merge-patch+json")
	do("GET", maps+"/m", "b", "")
	do("GET", maps+"/m", "wrong", "")
	do("GET", maps+"/none", "a", "", "Impersonate-User", "zoe")
	do("GET", "/healthz", "a", "")
	do("GET", maps+"?watch=1&timeoutSeconds=1", "a", "")
	require.NoError(t, log.Close(context.Background()))
	var events []apitest.AuditEvent
	for line := range strings.Lines(out.String()) {
		var e apitest.AuditEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		events = append(events, e)
	}
	require.Len(t, events, 9)
	want := []struct {
		verb, user string
		code       int
		decision   string
	}{
		{"create", "alice", 201, "allow"}, {"get", "alice", 200, "allow"}, {"list", "alice", 200, "allow"}, {"patch", "alice", 200, "allow"},
		{"get", "bob", 403, "forbid"}, {"get", "", 401, ""}, {"get", "alice", 404, "allow"}, {"watch", "alice", 200, "allow"}, {"watch", "alice", 200, "allow"},
	}
	for i, w := range want {
		e := events[i]
		assert.Equal(t, w.verb, e.Verb, i)
		assert.Equal(t, w.user, e.User.Username, i)
		assert.Equal(t, w.code, e.ResponseStatus.Code, i)
		assert.Equal(t, w.decision, e.Annotations["authorization.k8s.io/decision"], i)
		assert.Equal(t, "configmaps", e.ObjectRef.Resource, i)
	}
	assert.Equal(t, id, events[0].AuditID)
	assert.Equal(t, "m", events[0].ObjectRef.Name, "a new object has its name from the body")
	assert.Equal(t, map[string]any{"k": "v"}, events[0].RequestObject["data"])
	assert.Equal(t, map[string]any{"k": "v"}, events[0].ResponseObject["data"])
	assert.Nil(t, events[1].RequestObject)
	assert.Equal(t, "ConfigMapList", events[2].ResponseObject["kind"])
	assert.Equal(t, map[string]any{"k": "w"}, events[3].RequestObject["data"])
	assert.Equal(t, map[string]any{"k": "w"}, events[3].ResponseObject["data"])
	assert.Equal(t, "bob may nothing", events[4].Annotations["authorization.k8s.io/reason"])
	assert.Equal(t, "Status", events[4].ResponseObject["kind"])
	assert.Equal(t, "zoe", events[6].ImpersonatedUser.Username)
	assert.Equal(t, "ResponseStarted", events[7].Stage)
	assert.Equal(t, "ResponseComplete", events[8].Stage)
}

// TestLostRecordsAreShown checks that the health endpoints and the metrics report lost audit
// records while the server continues to serve.
func TestLostRecordsAreShown(t *testing.T) {
	t.Parallel()
	policy, err := audit.ParsePolicy([]byte("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None, nonResourceURLs: ['*']}, {level: Metadata}]}"), names.Kubernetes)
	require.NoError(t, err)
	pipe, other := io.Pipe()
	log, err := audit.Open(audit.Config{Policy: policy, Sinks: []audit.Sink{audit.Writer{W: other}}, Names: names.Kubernetes})
	require.NoError(t, err)
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Audit = log }))
	assert.Contains(t, string(a.Must(200, "GET", "/readyz?verbose", nil).Raw), "[+]audit ok\n")
	require.NoError(t, pipe.CloseWithError(io.ErrNoProgress)) // every write fails
	a.Must(200, "GET", apitest.ConfigMapsPath, nil)
	for log.Dropped() < 2 {
		runtime.Gosched()
	}
	for _, path := range []string{"/readyz", "/livez", "/healthz", "/readyz/audit"} {
		assert.Equal(t, "ok", string(a.Must(200, "GET", path, nil).Raw), path)
	}
	assert.Contains(t, string(a.Must(200, "GET", "/readyz?verbose", nil).Raw), "[+]audit degraded: ok\n")
	metrics := string(a.Must(200, "GET", "/metrics", nil).Raw)
	assert.Contains(t, metrics, "apiserver_audit_event_total 2\n")
	assert.Contains(t, metrics, "apiserver_audit_error_total{plugin=\"log\"} 2\n")
	require.NoError(t, log.Close(t.Context()))
}

// TestAnnotationsLeftOut checks that the server logs once per request if its own annotations do not
// fit into the audit event.
func TestAnnotationsLeftOut(t *testing.T) {
	t.Parallel()
	policy, err := audit.ParsePolicy([]byte(`{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}`), names.Kubernetes)
	require.NoError(t, err)
	log, err := audit.Open(audit.Config{Policy: policy, Sinks: []audit.Sink{audit.Writer{W: io.Discard}}, Names: names.Kubernetes})
	require.NoError(t, err)
	defer func() { assert.NoError(t, log.Close(context.Background())) }()
	out := &apitest.LogBuffer{}
	s := servertest.New(t, func(b *server.Builder) {
		b.Audit, b.Logger = log, slog.New(slog.NewTextHandler(out, nil))
		b.Admission = append(b.Admission, admission.Plugin{Name: "test", Mutate: func(_ context.Context, r *admission.Request) error {
			for i := range 300 {
				r.Annotate("key"+strconv.Itoa(i), "value")
			}
			return nil
		}})
	})
	apitest.InProcess(t, s).Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
	s.Settle()
	assert.Equal(t, 1, strings.Count(out.String(), "no room for some annotations"), out.String())
	assert.Contains(t, out.String(), "leftOut=44")
}
