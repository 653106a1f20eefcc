package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/clientconfig"
	"orch.io/controlplane/controller/fake"
	"orch.io/controlplane/registry"
)

// FuzzAnswer: whatever a webhook answers, it is refused, or it is one that can be used.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true,"patchType":"JSONPatch","patch":"W10=","warnings":["a"],"auditAnnotations":{"a":"b"}}}`,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":false,"status":{"code":-1,"reason":"r","details":{"causes":[{"field":"f"}]}}}}`,
		`{"response":{"allowed":true}}`, `{"response":null}`, `[]`, ``, `{"response":{"status":{"code":1e99}}}`,
	} {
		f.Add([]byte(seed), true, true)
		f.Add([]byte(seed), false, false)
	}
	f.Fuzz(func(t *testing.T, body []byte, mutating, old bool) {
		version := "admission.k8s.io/v1"
		if old {
			version = "admission.k8s.io/v1beta1"
		}
		var in response
		if json.Unmarshal(body, &in) != nil {
			return
		}
		a, err := in.read(version, "u", mutating)
		if err != nil {
			assert.Nil(t, a)
			return
		}
		assert.Equal(t, a.Allowed, a.Denial == nil)
		assert.True(t, json.Valid(body))
		if a.Denial != nil {
			assert.GreaterOrEqual(t, a.Denial.Code, 400)
			assert.Empty(t, a.Patch)
		}
		if !mutating {
			assert.Empty(t, a.Patch)
		}
	})
}

// TestUser: the credentials for a host are those of the name that says most of it.
func TestUser(t *testing.T) {
	known := []string{"hook.ns.svc", "hook.ns.svc:8443", "*.ns.svc", "*.svc:9443", "example.com:444", "*.example.com", "*"}
	for host, want := range map[string]string{
		"hook.ns.svc:443": "hook.ns.svc", "hook.ns.svc:8443": "hook.ns.svc:8443", "other.ns.svc:443": "*.ns.svc", "other.ns.svc:8443": "*",
		"other.ns.svc:9443": "*.svc:9443", "a.b.c": "*", "example.com": "*", "example.com:443": "*", "example.com:444": "example.com:444", "a.b.example.com": "*.example.com",
		"nobody.svc:443": "*",
	} {
		d := dialer{config: &clientconfig.Config{}}
		for _, name := range known {
			d.config.Users = append(d.config.Users, clientconfig.NamedUser{Name: name, User: clientconfig.User{Token: name}})
		}
		assert.Equal(t, want, d.user(host).Token, host)
	}
	d := dialer{config: &clientconfig.Config{
		CurrentContext: "c", Contexts: []clientconfig.NamedContext{{Name: "c", Context: clientconfig.Context{User: "u"}}},
		Users: []clientconfig.NamedUser{{Name: "u", User: clientconfig.User{Token: "t"}}},
	}}
	assert.Equal(t, "t", d.user("a.b:1").Token)
	assert.Empty(t, (&dialer{config: &clientconfig.Config{}}).user(strings.Repeat("a.", 100)).Token)
}

// TestStoredByOthers: what the kinds would refuse, but a store may hold, fails the requests
// that it concerns.
func TestStoredByOthers(t *testing.T) {
	for fields, want := range map[string]string{
		`{"sideEffects":"Some","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1"}}`:                                                       `admission webhook "a" does not support dry run`,
		`{"sideEffects":"None","admissionReviewVersions":["v2"],"clientConfig":{"url":"https://127.0.0.1:1"}}`:                                                       `webhook does not accept known AdmissionReview versions (v1, v1beta1)`,
		`{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"http://127.0.0.1:1"}}`:                                                        `"http://127.0.0.1:1" is no https URL`,
		`{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{}}`:                                                                                  `is no https URL`,
		`{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1","caBundle":"?"}}`:                                        `caBundle`,
		`{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1"},"objectSelector":{"matchExpressions":[{"key":"a b"}]}}`: `objectSelector`,
	} {
		tree, err := meta.ParseJSON([]byte(`{"name":"a","rules":[{}],` + fields[1:]))
		require.NoError(t, err)
		var client fake.Client
		_, err = client.Create(t.Context(), meta.GroupResource{Group: "admissionregistration.orch.io", Resource: "validatingwebhookconfigurations"},
			meta.NewObject(map[string]any{"metadata": map[string]any{"name": "x"}, "webhooks": []any{tree}}))
		require.NoError(t, err)
		chain, err := admission.New([]admission.Plugin{Validating()}, admission.Options{}, admission.Env{
			Client: &client, Type: func(meta.GroupResource) *registry.Type { return &registry.Type{} },
		})
		require.NoError(t, err)
		err = chain.Validate(t.Context(), &admission.Request{Operation: admission.Create, DryRun: true, Object: meta.NewObject(nil)})
		assert.ErrorContains(t, err, want)
		chain.Close()
	}
}
