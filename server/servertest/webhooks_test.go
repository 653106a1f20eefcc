package servertest_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/fstest"

	"orch.io/controlplane/server/servertest"
)

// The manifests are an operator's own; the handler is its webhook server, such as that of
// controller-runtime, here one that refuses everything.
func ExampleServer_InstallWebhooks() {
	manifests := fstest.MapFS{"manifests.yaml": {Data: []byte(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating-webhook-configuration}
webhooks:
- name: vconfigmap.example.com
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate-v1-configmap}}
  failurePolicy: Fail
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  sideEffects: None
`)}}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("asked at", r.URL.Path)
		http.Error(w, "closed", http.StatusServiceUnavailable)
	})
	test(func(t testing.TB) {
		s := servertest.New(t)
		s.InstallWebhooks(manifests, handler)
		res := send(t, t.Context(), s.Client(), "POST", s.Host()+"/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"x"}}`)
		res.Body.Close()
		fmt.Println(res.StatusCode)
	})
	// Output:
	// asked at /validate-v1-configmap
	// 500
}
