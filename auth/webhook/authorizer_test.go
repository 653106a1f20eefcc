package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/webhook"
	"orch.io/controlplane/client/kubeconfig"
)

// remote answers with a fixed text and code.
type remote struct {
	calls atomic.Int32
	code  int
	text  string
	body  string
}

func (r *remote) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	data, _ := io.ReadAll(q.Body)
	r.body = string(data)
	r.calls.Add(1)
	if r.code != 0 {
		w.WriteHeader(r.code)
	}
	fmt.Fprint(w, r.text)
}

func newAuthorizer(t testing.TB, r *remote, change func(*webhook.AuthorizerConfig)) *webhook.Authorizer {
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	c := webhook.AuthorizerConfig{Remote: &kubeconfig.Remote{URL: u}, Names: names.Kubernetes}
	if change != nil {
		change(&c)
	}
	a, err := webhook.NewAuthorizer(c)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

func accessReview(version, status string) string {
	return `{"apiVersion":"authorization.k8s.io/` + version + `","kind":"SubjectAccessReview","status":` + status + `}`
}

var attributes = auth.Attributes{User: &auth.User{Name: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
	Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "ns", Name: "n"}

func TestAuthorizerReturnsDecision(t *testing.T) {
	for _, tt := range []struct {
		code   int
		text   string
		want   auth.Decision
		reason string
		fails  bool
		calls  int32
	}{
		{200, accessReview("v1", `{"allowed":true,"reason":"r"}`), auth.Allow, "r", false, 1},
		{200, accessReview("v1", `{"allowed":false,"reason":"r"}`), auth.NoOpinion, "r", false, 1},
		{200, accessReview("v1", `{"allowed":true,"reason":"`+strings.Repeat("r", 5000)+`"}`), auth.Allow, strings.Repeat("r", 1024), false, 1},
		{200, accessReview("v1", `{"denied":true}`), auth.Deny, "", false, 1},
		{200, accessReview("v1", `{"evaluationError":"e"}`), auth.NoOpinion, "", true, 1},
		{200, accessReview("v1", `{"allowed":true,"denied":true}`), auth.NoOpinion, "", true, 3},
		{200, accessReview("v1beta1", `{"allowed":true}`), auth.NoOpinion, "", true, 3},
		{200, `{"status":{"allowed":true}}`, auth.NoOpinion, "", true, 3},
		{200, `x`, auth.NoOpinion, "", true, 3},
		{500, accessReview("v1", `{"allowed":true}`), auth.NoOpinion, "", true, 3},
		{400, accessReview("v1", `{"allowed":true}`), auth.NoOpinion, "", true, 1},
	} {
		r := &remote{code: tt.code, text: tt.text}
		d, reason, err := newAuthorizer(t, r, nil).Authorize(context.Background(), attributes)
		assert.Equal(t, tt.want, d, tt.text)
		assert.Equal(t, tt.reason, reason)
		assert.Equal(t, tt.fails, err != nil, tt.text)
		assert.Equal(t, tt.calls, r.calls.Load(), tt.text)
	}
}

func TestAuthorizerSendsReview(t *testing.T) {
	r := &remote{text: accessReview("v1", `{"allowed":true}`)}
	_, _, err := newAuthorizer(t, r, nil).Authorize(context.Background(), attributes)
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","metadata":{},"status":{"allowed":false},"spec":{
		"user":"u","uid":"1","groups":["g"],"extra":{"k":["v"]},"resourceAttributes":{"verb":"get","group":"apps","version":"v1","resource":"deployments","subresource":"scale","namespace":"ns","name":"n"}}}`, r.body)
	r.text = accessReview("v1beta1", `{"allowed":true}`)
	_, _, err = newAuthorizer(t, r, func(c *webhook.AuthorizerConfig) { c.Version = "v1beta1" }).Authorize(context.Background(),
		auth.Attributes{User: &auth.User{Groups: []string{"g"}}, Verb: "get", Path: "/x"})
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview","metadata":{},"status":{"allowed":false},"spec":{
		"group":["g"],"nonResourceAttributes":{"verb":"get","path":"/x"}}}`, r.body)
}

func TestAuthorizerCachesAnswers(t *testing.T) {
	for _, tt := range []struct {
		status string
		keep   time.Duration
	}{{`{"allowed":true}`, 5 * time.Minute}, {`{"allowed":false}`, 30 * time.Second}, {`{"denied":true}`, 30 * time.Second}} {
		now := time.Now()
		r := &remote{text: accessReview("v1", tt.status)}
		a := newAuthorizer(t, r, func(c *webhook.AuthorizerConfig) { c.Now = func() time.Time { return now } })
		ask := func(x auth.Attributes) int32 {
			_, _, err := a.Authorize(context.Background(), x)
			require.NoError(t, err)
			return r.calls.Load()
		}
		other := attributes
		other.Name = "other"
		assert.EqualValues(t, 1, ask(attributes))
		assert.EqualValues(t, 1, ask(attributes))
		assert.EqualValues(t, 2, ask(other))
		now = now.Add(tt.keep - time.Second)
		assert.EqualValues(t, 2, ask(attributes))
		now = now.Add(time.Second)
		assert.EqualValues(t, 3, ask(attributes), tt.status)
	}
}

// TestReviewHasSelectors checks the selectors in a review. Requirements that cannot be parsed
// are omitted.
func TestReviewHasSelectors(t *testing.T) {
	r := &remote{text: accessReview("v1", `{"allowed":true}`)}
	a := newAuthorizer(t, r, nil)
	for _, tt := range []struct{ fields, labels, want, not string }{
		{"a=b,c!=d", "", `"fieldSelector":{"requirements":[{"key":"a","operator":"In","values":["b"]},{"key":"c","operator":"NotIn","values":["d"]}]}}`, "labelSelector"},
		{"", "x,!y,z in (b,a),n>1", `"labelSelector":{"requirements":[{"key":"x","operator":"Exists"},{"key":"y","operator":"DoesNotExist"},{"key":"z","operator":"In","values":["a","b"]}]}}`, "fieldSelector"},
		{"!", "a in (b", `"name":"n"}`, "Selector"},
		{"", "n>1", `"name":"n"}`, "Selector"},
	} {
		x := attributes
		x.Fields, x.Labels = tt.fields, tt.labels
		_, _, err := a.Authorize(t.Context(), x)
		require.NoError(t, err)
		assert.Contains(t, r.body, tt.want)
		assert.NotContains(t, r.body, tt.not)
	}
}

func TestAuthorizerFailurePolicy(t *testing.T) {
	r := &remote{code: 400}
	d, _, err := newAuthorizer(t, r, func(c *webhook.AuthorizerConfig) { c.OnFailure = auth.Deny }).Authorize(context.Background(), attributes)
	require.Error(t, err)
	assert.Equal(t, auth.Deny, d)
	for _, c := range []webhook.AuthorizerConfig{{}, {Remote: &kubeconfig.Remote{URL: &url.URL{}}, Version: "v2"}, {Remote: &kubeconfig.Remote{URL: &url.URL{}}, OnFailure: auth.Allow}} {
		_, err := webhook.NewAuthorizer(c)
		require.Error(t, err)
	}
}

func ExampleNewAuthorizer() {
	s := httptest.NewServer(&remote{text: accessReview("v1", `{"allowed":true,"reason":"alice is on call"}`)})
	defer s.Close()
	f, _ := kubeconfig.Parse([]byte(`clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]`), "")
	r, _ := f.Current()
	a, err := webhook.NewAuthorizer(webhook.AuthorizerConfig{Remote: r, Names: names.Kubernetes, OnFailure: auth.Deny})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	d, reason, err := a.Authorize(context.Background(), auth.Attributes{User: &auth.User{Name: "alice"}, Verb: "get", Resource: "pods", Version: "v1"})
	fmt.Println(d == auth.Allow, reason, err)
	// Output: true alice is on call <nil>
}
