package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/webhook"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
)

// TestReviewDescribesRequest checks the review that a webhook receives, in both versions.
func TestReviewDescribesRequest(t *testing.T) {
	k := newKit(t, func(b *server.Builder) {
		b.Authenticators = []auth.Authenticator{auth.AuthenticatorFunc(func(*http.Request) (*auth.User, error) {
			return &auth.User{Name: "ann", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v"}}}, nil
		})}
	})
	for _, version := range []string{"v1", "v1beta1"} {
		h := k.serve(says(`{allowed: true, status: {}}`))
		k.register("validating", "review", h, "admissionReviewVersions: [v2, "+version+"]")
		for _, do := range [][2]string{{"POST configmaps?fieldManager=me", "{metadata: {name: x}, data: {a: b}}"}, {"PATCH configmaps/x?dryRun=All&fieldManager=me", "data: {a: c}"}, {"DELETE configmaps/x?gracePeriodSeconds=0", ""}} {
			code, answer := k.do(do[0], do[1])
			require.Less(t, code, 300, answer.String("message"))
		}
		k.unregister("validating", "review")
		reviews := h.reviews()
		require.Len(t, reviews, 3)
		uids := map[string]bool{}
		for i, want := range []string{
			`{"operation":"CREATE","dryRun":false,"object":"b","old":"","options":"CreateOptions"}`,
			`{"operation":"UPDATE","dryRun":true,"object":"c","old":"b","options":"UpdateOptions"}`,
			`{"operation":"DELETE","dryRun":false,"object":"","old":"b","options":"DeleteOptions"}`,
		} {
			assert.Equal(t, "admission.k8s.io/"+version, reviews[i].APIVersion())
			assert.Equal(t, "AdmissionReview", reviews[i].Kind())
			assert.Equal(t, "/?timeout=10s", reviews[i].String("uri"))
			q := meta.NewObject(reviews[i].Map("request"))
			uids[q.String("uid")] = true
			got, err := json.Marshal(map[string]any{"operation": q.String("operation"), "dryRun": q.Tree()["dryRun"],
				"object": q.String("object", "data", "a"), "old": q.String("oldObject", "data", "a"), "options": q.String("options", "kind")})
			require.NoError(t, err)
			assert.JSONEq(t, want, string(got))
			assert.Contains(t, q.Tree(), "object")
			assert.Contains(t, q.Tree(), "oldObject")
			assert.Equal(t, "ConfigMap", q.String("kind", "kind"))
			assert.Equal(t, "ConfigMap", q.String("requestKind", "kind"))
			assert.Equal(t, "configmaps", q.String("resource", "resource"))
			assert.Equal(t, "x", q.String("name"))
			assert.Equal(t, "default", q.String("namespace"))
			assert.Equal(t, map[string]any{"username": "ann", "uid": "7", "groups": []any{"a", "b", "system:authenticated"}, "extra": map[string]any{"k": []any{"v"}}}, q.Map("userInfo"))
		}
		assert.Len(t, uids, 3)
	}
	h := k.serve(says(`{allowed: true, uid: ""}`))
	k.register("validating", "review", h, "admissionReviewVersions: [v1beta1]")
	code, _ := k.do("POST configmaps", "metadata: {name: x}")
	assert.Equal(t, 201, code, "the old version does not ask for the uid")
}

// TestDryRun checks that a webhook with side effects fails a dry run.
func TestDryRun(t *testing.T) {
	k := newKit(t)
	h := k.serve(says(`{allowed: true}`))
	k.register("validating", "dry", h, "sideEffects: NoneOnDryRun")
	code, answer := k.do("POST configmaps?dryRun=All", "metadata: {name: x}")
	assert.Equal(t, 201, code, answer.String("message"))
	assert.Len(t, h.reviews(), 1)
}

// TestServiceIsCalledAtItsEndpoints checks that a webhook behind a service is called at the endpoints of the
// service, with the name of the service for TLS.
func TestServiceIsCalledAtItsEndpoints(t *testing.T) {
	k := newKit(t)
	h := k.serve(says(`{allowed: true}`), "out.default.svc")
	u, err := url.Parse(h.URL)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(u.Host)
	require.NoError(t, err)
	code, answer := k.do("POST services", "{metadata: {name: out}, spec: {type: ExternalName, externalName: localhost}}")
	require.Equal(t, 201, code, answer.String("message"))
	ca, err := json.Marshal(k.authority.PEM())
	require.NoError(t, err)
	for _, test := range [][3]string{
		{"{namespace: default, name: out, port: " + port + "}", string(ca), ""},
		{"{namespace: default, name: out, path: /a/b, port: " + port + "}", string(ca), ""},
		{"{namespace: default, name: out, port: 1}", string(ca), "connection refused"},
		{"{namespace: other, name: out}", string(ca), `services "out" not found`},
		{"{namespace: default, name: out, port: " + port + "}", `""`, "certificate"}, // signed by an authority that the system roots do not include
	} {
		k.register("validating", "service", h, "clientConfig: {service: "+test[0]+", caBundle: "+test[1]+"}")
		code, answer := k.do("POST configmaps?dryRun=All", "metadata: {name: x}")
		k.unregister("validating", "service")
		if test[2] == "" {
			assert.Equal(t, 201, code, answer.String("message"))
			continue
		}
		assert.Equal(t, 500, code)
		assert.Contains(t, answer.String("message"), test[2])
	}
	var paths []string
	for _, r := range h.reviews() {
		paths = append(paths, r.String("uri"))
	}
	assert.ElementsMatch(t, []string{"/?timeout=10s", "/a/b?timeout=10s"}, paths)

}

// TestPathOfURLIsCleaned checks that redundant elements of the path of a webhook are removed.
func TestPathOfURLIsCleaned(t *testing.T) {
	k := newKit(t)
	h := k.serve(says(`{allowed: true}`))
	ca, err := json.Marshal(k.authority.PEM())
	require.NoError(t, err)
	for in, want := range map[string]string{"": "/", "/": "/", "//a": "/a", "/a//b/./c/../d/": "/a/b/d", "/..": "/", "/a%2Fb": "/a/b", "/a%20b": "/a%20b"} {
		k.register("validating", "clean", h, "clientConfig: {url: '"+h.URL+in+"', caBundle: "+string(ca)+"}")
		code, answer := k.do("POST configmaps?dryRun=All", "metadata: {name: x}")
		require.Equal(t, 201, code, answer.String("message"))
		k.unregister("validating", "clean")
		for _, r := range h.reviews() {
			assert.Equal(t, want+"?timeout=10s", r.String("uri"), in)
		}
	}
}

// TestKubeconfigCredentialsAreSent checks that webhooks are called with the credentials in the kubeconfig file.
func TestKubeconfigCredentialsAreSent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(file, []byte("users: [{name: hook.default.svc, user: {token: one}}, {name: '*.default.svc', user: {token: two}}, {name: '*', user: {username: a, password: b}}]"), 0o600))
	k := newKit(t, func(b *server.Builder) {
		b.AdmissionOptions.Config = map[string]any{"ValidatingAdmissionWebhook": webhook.Config{KubeConfigFile: file}}
	})
	h := k.serve(says(`{allowed: true}`))
	k.register("validating", "known", h, "{}")
	k.register("mutating", "unknown", h, "{}")
	code, answer := k.do("POST configmaps", "metadata: {name: x}")
	require.Equal(t, 201, code, answer.String("message"))
	var sent []string
	for _, r := range h.reviews() {
		sent = append(sent, r.String("authorization"))
	}
	assert.Equal(t, []string{"", "Basic YTpi"}, sent)

	for path, want := range map[string]string{
		file + "x": "no such file",
		"users":    `kubeConfigFile: Invalid value: "users": must be an absolute file path`,
	} {
		b := &server.Builder{Authorizer: auth.AllowAll, AdmissionOptions: admission.Options{
			Config: map[string]any{"MutatingAdmissionWebhook": webhook.Config{KubeConfigFile: path}}}}
		_, err := b.Build(t.Context())
		assert.ErrorContains(t, err, "admission plugin MutatingAdmissionWebhook: ")
		assert.ErrorContains(t, err, want)
	}
}

// trail keeps the audit annotations of the last request.
type trail struct{ sync.Map }

func (a *trail) Begin(*http.Request, string, auth.Attributes) auth.Trail { return a }
func (a *trail) Annotate(key, value string)                              { a.Store(key, value) }
func (a *trail) Concerns(string, string, string)                         {}
func (a *trail) Request(func() []byte)                                   {}
func (a *trail) Started(int)                                             {}
func (a *trail) Impersonate(*auth.User)                                  {}
func (a *trail) Complete(auth.Outcome)                                   {}

// TestCallsAreRecorded checks the metrics, audit annotations and warnings of webhooks.
func TestCallsAreRecorded(t *testing.T) {
	audit := &trail{}
	k := newKit(t, func(b *server.Builder) { b.Audit = audit })
	gone := k.serve(nil)
	gone.Close()
	k.register("mutating", "m", k.serve(patches(`[{"op":"add","path":"/data","value":{"a":"b"}}]`)), "{}", "reinvocationPolicy: IfNeeded")
	k.register("mutating", "o", gone, "failurePolicy: Ignore")
	k.register("validating", "v", k.serve(says(`{allowed: true, warnings: ["careful", "", "`+strings.Repeat("x", 9000)+`"], auditAnnotations: {key: value, "a b": c}}`)), "{}")
	k.register("validating", "w", k.serve(says(`{allowed: false, status: {code: 1000}}`)), "{}")
	k.register("validating", "x", gone, "failurePolicy: Ignore", "{}")
	code, answer, header := k.send("POST configmaps", "metadata: {name: x}")
	assert.Equal(t, 500, code)
	assert.Contains(t, answer.String("message"), `admission webhook "wa.w.example.com" denied the request`, "the refusal of the first webhook in order")
	warnings := header.Values("Warning")
	require.Len(t, warnings, 2)
	assert.Equal(t, `299 - "careful"`, warnings[0])
	assert.Less(t, len(warnings[1]), 300)

	got := map[string]any{}
	audit.Range(func(key, value any) bool {
		if strings.Contains(key.(string), "webhook") || strings.Contains(key.(string), "example.com") {
			got[key.(string)] = value
		}
		return true
	})
	patched := `"patch":[{"op":"add","path":"/data","value":{"a":"b"}}],"patchType":"JSONPatch",`
	assert.Equal(t, map[string]any{
		"mutation.webhook.admission.k8s.io/round_0_index_0":               `{"configuration":"m","mutated":true,"webhook":"wa.m.example.com"}`,
		"patch.webhook.admission.k8s.io/round_0_index_0":                  `{"configuration":"m",` + patched + `"webhook":"wa.m.example.com"}`,
		"mutation.webhook.admission.k8s.io/round_0_index_1":               `{"configuration":"m","mutated":false,"webhook":"wb.m.example.com"}`,
		"patch.webhook.admission.k8s.io/round_0_index_1":                  `{"configuration":"m",` + patched + `"webhook":"wb.m.example.com"}`,
		"mutation.webhook.admission.k8s.io/round_0_index_2":               `{"configuration":"o","mutated":false,"webhook":"wa.o.example.com"}`,
		"failed-open.mutation.webhook.admission.k8s.io/round_0_index_2":   "wa.o.example.com",
		"wa.v.example.com/key":                                            "value",
		"failed-open.validating.webhook.admission.k8s.io/round_0_index_2": "wa.x.example.com",
	}, got)

	response, err := k.Client().Get(k.Host() + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text := readAll(t, response)
	for _, line := range []string{
		`apiserver_admission_webhook_rejection_count{error_type="no_error",name="wa.w.example.com",operation="CREATE",rejection_code="600",type="validating"} 1`,
		`apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="wb.x.example.com",operation="CREATE",rejection_code="0",type="validating"} 1`,
		`apiserver_admission_webhook_fail_open_count{name="wa.o.example.com",type="admit"} 1`,
		`apiserver_admission_webhook_request_total{code="200",name="wa.m.example.com",operation="CREATE",rejected="false",type="admit"} 1`,
		`apiserver_admission_webhook_request_total{code="503",name="wb.x.example.com",operation="CREATE",rejected="true",type="validating"} 1`,
		`apiserver_admission_webhook_admission_duration_seconds_count{name="wa.v.example.com",operation="CREATE",rejected="false",type="validating"} 1`,
	} {
		assert.Contains(t, text, line)
	}
}

// TestAnnotationFlood checks that an audit event stays small, however many annotations webhooks return, and
// has the server's own annotations for each webhook.
func TestAnnotationFlood(t *testing.T) {
	audit := &trail{}
	k := newKit(t, func(b *server.Builder) { b.Audit = audit })
	annotations := map[string]string{}
	for i := range 70 {
		annotations[fmt.Sprintf("key%d", i)] = strings.Repeat("x", 2<<10)
	}
	patch := `[{"op":"add","path":"/data","value":{"a":"` + strings.Repeat("y", 60<<10) + `"}}]`
	floods := func(more map[string]any) *hook {
		return k.serve(func(w http.ResponseWriter, review *meta.Object) {
			response := map[string]any{"uid": review.String("request", "uid"), "allowed": true, "auditAnnotations": annotations}
			maps.Copy(response, more)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "AdmissionReview", "apiVersion": review.APIVersion(), "response": response})
		})
	}
	const hooks = 6
	all := slices.Repeat([]string{"{}"}, hooks)
	k.register("mutating", "m", floods(map[string]any{"patchType": "JSONPatch", "patch": []byte(patch)}), all...)
	k.register("validating", "v", floods(nil), "{}")
	code, answer := k.do("POST configmaps", "metadata: {name: x}")
	require.Equal(t, 201, code, answer.String("message"))
	size, patches, own := 0, 0, 0
	audit.Range(func(key, value any) bool {
		size += len(key.(string)) + len(value.(string))
		if strings.HasPrefix(key.(string), "patch.webhook.admission.k8s.io/") {
			patches++
		}
		if strings.Contains(key.(string), ".example.com/") {
			own++
		}
		return true
	})
	assert.Less(t, size, 160<<10)
	assert.Equal(t, 1, patches)
	assert.Greater(t, own, 5)
	assert.LessOrEqual(t, own, 64)
	for i := range hooks {
		_, ok := audit.Load(fmt.Sprintf("mutation.webhook.admission.k8s.io/round_0_index_%d", i))
		assert.True(t, ok, i)
	}
}

// TestAnnotationsOfAttempts checks that the limit of annotations applies to all attempts at a request
// together, and that dropped annotations of a response are logged once.
func TestAnnotationsOfAttempts(t *testing.T) {
	const attempts, each = 6, 1000
	audit, log := &trail{}, &lines{}
	k := newKit(t, func(b *server.Builder) { b.Audit, b.Logger = audit, slog.New(slog.NewTextHandler(log, nil)) })
	code, answer := k.do("POST configmaps", "metadata: {name: x}")
	require.Equal(t, 201, code, answer.String("message"))
	asked := 0
	k.register("mutating", "m", k.serve(func(w http.ResponseWriter, review *meta.Object) {
		asked++
		annotations := map[string]string{}
		for i := range each {
			annotations[fmt.Sprintf("key%d-%d", asked, i)] = "x"
		}
		if asked < attempts { // cause a conflict
			_, err := k.Objects().Update(t.Context(), meta.GroupResource{Resource: "configmaps"}, meta.Key{Namespace: "default", Name: "x"}, "", func(o *meta.Object) error {
				o.Set(fmt.Sprint(asked), "data", "between")
				return nil
			})
			assert.NoError(t, err)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "AdmissionReview", "apiVersion": review.APIVersion(), "response": map[string]any{
			"uid": review.String("request", "uid"), "allowed": true, "auditAnnotations": annotations}})
	}), `{objectSelector: {matchLabels: {asks: them}}}`)
	code, answer = k.do("PATCH configmaps/x", "metadata: {labels: {asks: them}}")
	require.Equal(t, 200, code, answer.String("message"))
	assert.Equal(t, attempts, asked)
	external := 0
	audit.Range(func(key, _ any) bool {
		if strings.HasPrefix(key.(string), "wa.m.example.com/") {
			external++
		}
		return true
	})
	assert.Equal(t, 64, external)
	assert.Equal(t, attempts, strings.Count(log.String(), "dropped audit annotations of an admission webhook"))
	assert.Contains(t, log.String(), "noRoom=936 ")
	assert.Contains(t, log.String(), "noRoom=1000 ")
}

// lines collects the output of a log.
type lines struct {
	mu sync.Mutex // guards b
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestConcurrentWritersPassChangingWebhooks checks 200 concurrent writers through five webhooks while configurations come and go.
func TestConcurrentWritersPassChangingWebhooks(t *testing.T) {
	k := newKit(t)
	var asked atomic.Int64
	count := func(answer func(http.ResponseWriter, *meta.Object)) func(http.ResponseWriter, *meta.Object) {
		return func(w http.ResponseWriter, review *meta.Object) {
			asked.Add(1)
			answer(w, review)
		}
	}
	k.register("mutating", "a", k.serve(count(patches(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`))), "{reinvocationPolicy: IfNeeded, timeoutSeconds: 30}")
	k.register("mutating", "b", k.serve(count(patches(`[{"op":"add","path":"/data","value":{"c":"d"}}]`))), "timeoutSeconds: 30")
	k.register("validating", "c", k.serve(count(says("{allowed: true}"))), "timeoutSeconds: 30", "timeoutSeconds: 30", "{failurePolicy: Ignore, timeoutSeconds: 30}")
	other := k.serve(says("{allowed: true}"))
	var all sync.WaitGroup
	all.Go(func() {
		for range 5 {
			k.register("validating", "other", other, "timeoutSeconds: 30")
			k.unregister("validating", "other")
		}
	})
	for i := range 200 {
		all.Go(func() {
			code, answer := k.do("POST configmaps", fmt.Sprintf("metadata: {name: x%d}", i))
			assert.Equal(t, 201, code, answer.String("message"))
			assert.Equal(t, "d", answer.String("data", "c"))
			assert.Equal(t, "b", answer.Labels()["a"])
		})
	}
	all.Wait()
	assert.Equal(t, int64(200*(5+1)), asked.Load(), "the first webhook is called again, because the second changed its result")
}

func readAll(t *testing.T, r *http.Response) string {
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}
