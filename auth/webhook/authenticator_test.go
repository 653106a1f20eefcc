package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/webhook"
	"orch.io/controlplane/client/kubeconfig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hook is a webhook server that answers with the status for the token.
type hook struct {
	calls   atomic.Int32
	body    atomic.Value // of the last request
	version string       // if set, the version in responses
	status  map[string]string
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.calls.Add(1)
	data, _ := io.ReadAll(r.Body)
	h.body.Store(string(data))
	var q struct {
		APIVersion string
		Spec       struct{ Token string }
	}
	if json.Unmarshal(data, &q) != nil {
		w.WriteHeader(400)
		return
	}
	if h.version != "" {
		q.APIVersion = h.version
	}
	status, ok := h.status[q.Spec.Token]
	if !ok {
		w.WriteHeader(500)
		return
	}
	fmt.Fprintf(w, `{"apiVersion":%q,"kind":"TokenReview","status":%s}`, q.APIVersion, status)
}

func newAuthenticator(t testing.TB, h http.Handler, change func(*webhook.AuthenticatorConfig)) *webhook.Authenticator {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	f, err := kubeconfig.Parse([]byte(`clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]`), "")
	require.NoError(t, err)
	r, err := f.Current()
	require.NoError(t, err)
	c := webhook.AuthenticatorConfig{Remote: r, Names: names.Kubernetes}
	if change != nil {
		change(&c)
	}
	a, err := webhook.NewAuthenticator(c)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

func TestReviewStatusBecomesUser(t *testing.T) {
	ctx := context.Background()
	h := &hook{status: map[string]string{
		"good":     `{"authenticated":true,"user":{"username":"alice","uid":"1","groups":["devs"],"extra":{"k":["v"]}}}`,
		"no":       `{"authenticated":false}`,
		"why":      `{"authenticated":false,"error":"it is stolen","user":{"username":"admin"}}`,
		"nobody":   `{"authenticated":true,"user":{"groups":["system:masters"]}}`,
		"error":    `{"authenticated":true,"error":"ignored","user":{"username":"bob"}}`,
		"vault":    `{"authenticated":true,"user":{"username":"carol"},"audiences":["vault"]}`,
		"many":     `{"authenticated":true,"user":{"username":"dave","groups":[` + strings.Repeat(`"g",`, 5000) + `"g"]}}`,
		"bad type": `{"authenticated":"true"}`,
	}}
	a := newAuthenticator(t, h, func(c *webhook.AuthenticatorConfig) { c.Audiences = []string{"api"} })
	for _, c := range []struct {
		token     string
		audiences []string
		want      string
		good      []string
		err       string
	}{
		{"good", nil, "alice", []string{"api"}, ""},
		{"good", []string{"api", "x"}, "alice", []string{"api"}, ""},
		{"good", []string{"x"}, "", nil, "token audiences"},
		{"no", nil, "", nil, ""},
		{"why", nil, "", nil, "it is stolen"},
		{"nobody", nil, "", nil, "status.user.username is empty"},
		{"error", nil, "bob", []string{"api"}, ""},
		{"vault", []string{"vault"}, "carol", []string{"vault"}, ""},
		{"vault", nil, "", nil, "token audiences"},
		{"many", nil, "", nil, "more than"},
		{"bad type", nil, "", nil, "the answer is not a TokenReview"},
		{"unknown", nil, "", nil, "answered 500"},
	} {
		u, good, err := a.AuthenticateToken(ctx, c.token, c.audiences)
		if c.err == "" {
			assert.NoError(t, err, c.token)
		} else {
			assert.ErrorContains(t, err, c.err, c.token)
		}
		assert.Equal(t, c.good, good, c.token)
		if c.want == "" {
			assert.Nil(t, u, c.token)
			continue
		}
		require.NotNil(t, u, c.token)
		assert.Equal(t, c.want, u.Name)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer good")
	u, err := a.Authenticate(r)
	require.NoError(t, err)
	assert.Equal(t, &auth.User{Name: "alice", UID: "1", Groups: []string{"devs"}, Extra: map[string][]string{"k": {"v"}}}, u)
}

func TestReviewVersions(t *testing.T) {
	good := map[string]string{"t": `{"authenticated":true,"user":{"username":"alice"}}`}
	for _, c := range []struct {
		asked, answered string
		fine            bool
	}{
		{"", "", true},
		{"v1", "authentication.k8s.io/v1", true},
		{"v1beta1", "authentication.k8s.io/v1beta1", true},
		{"v1", "authentication.k8s.io/v1beta1", false},
		{"v1beta1", "authentication.k8s.io/v1", false},
		{"v1", "authentication.orch.io/v1", false},
	} {
		h := &hook{status: good, version: c.answered}
		a := newAuthenticator(t, h, func(cfg *webhook.AuthenticatorConfig) { cfg.Version = c.asked })
		u, _, err := a.AuthenticateToken(context.Background(), "t", []string{"x"})
		_ = u
		if c.fine {
			assert.ErrorContains(t, err, "audiences", "the remote server does not return the audience x")
		} else {
			assert.ErrorContains(t, err, "asked authentication.k8s.io/"+c.asked)
		}
		version := c.asked
		if version == "" {
			version = "v1"
		}
		assert.JSONEq(t, `{"apiVersion":"authentication.k8s.io/`+version+`","kind":"TokenReview","metadata":{},
			"spec":{"token":"t","audiences":["x"]},"status":{"user":{}}}`, h.body.Load().(string))
	}
	_, err := webhook.NewAuthenticator(webhook.AuthenticatorConfig{})
	assert.Error(t, err)
	u := &kubeconfig.Remote{}
	_, err = webhook.NewAuthenticator(webhook.AuthenticatorConfig{Remote: u, Version: "v2"})
	assert.Error(t, err)
}

func TestAuthenticatorCachesAnswers(t *testing.T) {
	now := time.Unix(0, 0)
	ctx := context.Background()
	h := &hook{status: map[string]string{"good": `{"authenticated":true,"user":{"username":"alice"}}`, "no": `{}`, "why": `{"error":"stolen"}`}}
	a := newAuthenticator(t, h, func(c *webhook.AuthenticatorConfig) { c.Now = func() time.Time { return now } })
	ask := func(token string, audiences ...string) int32 {
		before := h.calls.Load()
		a.AuthenticateToken(ctx, token, audiences)
		return h.calls.Load() - before
	}
	assert.Equal(t, int32(1), ask("good"))
	assert.Equal(t, int32(0), ask("good"))
	assert.Equal(t, int32(1), ask("good", "x"), "other audiences are another cache entry")
	now = now.Add(2*time.Minute - 1)
	assert.Equal(t, int32(0), ask("good"))
	now = now.Add(1)
	assert.Equal(t, int32(1), ask("good"), "the entry expires after two minutes")
	for _, rejected := range []string{"no", "why"} {
		assert.Equal(t, int32(1), ask(rejected))
		assert.Equal(t, int32(0), ask(rejected))
		now = now.Add(10 * time.Second)
		assert.Equal(t, int32(1), ask(rejected), "a rejection is cached for a short time")
	}
	assert.Equal(t, int32(1), ask("failing"))
	assert.Equal(t, int32(1), ask("failing"), "a failed call is not cached")
	h.status["failing"] = `{"authenticated":true,"user":{"username":"bob"}}`
	u, _, err := a.AuthenticateToken(ctx, "failing", nil)
	require.NoError(t, err)
	assert.Equal(t, "bob", u.Name)

	never := newAuthenticator(t, h, func(c *webhook.AuthenticatorConfig) { c.Keep = -1 })
	before := h.calls.Load()
	never.AuthenticateToken(ctx, "good", nil)
	never.AuthenticateToken(ctx, "good", nil)
	assert.Equal(t, before+2, h.calls.Load())
}

func TestSlowServerTimesOut(t *testing.T) {
	release := make(chan struct{})
	a := newAuthenticator(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-release }),
		func(c *webhook.AuthenticatorConfig) { c.Timeout = 20 * time.Millisecond })
	_, _, err := a.AuthenticateToken(context.Background(), "t", nil)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	close(release)
}

func BenchmarkAuthenticateToken(b *testing.B) {
	a := newAuthenticator(b, &hook{status: map[string]string{"good": `{"authenticated":true,"user":{"username":"alice"}}`}}, nil)
	for b.Loop() {
		a.AuthenticateToken(context.Background(), "good", nil)
	}
}

func ExampleNewAuthenticator() {
	s := httptest.NewServer(&hook{status: map[string]string{"secret": `{"authenticated":true,"user":{"username":"alice"}}`}})
	defer s.Close()
	f, _ := kubeconfig.Parse([]byte(`clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]`), "")
	remote, _ := f.Current()
	a, err := webhook.NewAuthenticator(webhook.AuthenticatorConfig{Remote: remote})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	u, _, err := a.AuthenticateToken(context.Background(), "secret", nil)
	fmt.Println(u.Name, err)
	// Output: alice <nil>
}
