package webhook

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

// FuzzAnswer checks that every response is rejected or valid.
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

// TestInvalidStoredConfigurations checks that a configuration that validation would refuse, but that is in
// the store, fails the requests that match it.
func TestInvalidStoredConfigurations(t *testing.T) {
	for fields, want := range map[string]string{
		`{"sideEffects":"Some","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1"}}`:                                                       `admission webhook "a" does not support dry run`,
		`{"sideEffects":"None","admissionReviewVersions":["v2"],"clientConfig":{"url":"https://127.0.0.1:1"}}`:                                                       `webhook does not accept known AdmissionReview versions (v1, v1beta1)`,
		`{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"http://127.0.0.1:1"}}`:                                                        `"http://127.0.0.1:1" is not an https URL`,
		`{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{}}`:                                                                                  `is not an https URL`,
		`{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1","caBundle":"?"}}`:                                        `caBundle`,
		`{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1"},"objectSelector":{"matchExpressions":[{"key":"a b"}]}}`: `objectSelector`,
	} {
		tree, err := meta.ParseJSON([]byte(`{"name":"a","rules":[{}],` + fields[1:]))
		require.NoError(t, err)
		var client testclient.Client
		_, err = client.Create(t.Context(), meta.GroupResource{Group: "admissionregistration.orch.io", Resource: "validatingwebhookconfigurations"},
			meta.NewObject(map[string]any{"metadata": map[string]any{"name": "x"}, "webhooks": []any{tree}}))
		require.NoError(t, err)
		chain, err := admission.New([]admission.Plugin{Validating()}, admission.Options{}, admission.PluginContext{
			Client: &client, Type: func(meta.GroupResource) *registry.Type { return &registry.Type{} },
		})
		require.NoError(t, err)
		err = chain.Validate(t.Context(), &admission.Request{Operation: admission.Create, DryRun: true, Object: meta.NewObject(nil)})
		assert.ErrorContains(t, err, want)
		chain.Close()
	}
}
