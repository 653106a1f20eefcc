package servertest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/fstest"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/servertest"
)

// A file has all manifests of an operator, as for kubectl apply. The test installs its definitions and
// webhooks.
func ExampleServer_InstallCRDs() {
	operator := fstest.MapFS{"operator.yaml": {Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Ship, plural: ships}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {captain: {type: string}}}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: operator}
webhooks:
- name: captains.sea.example.com
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: operator, namespace: operator, path: /captains}}
  rules: [{apiGroups: [sea.example.com], apiVersions: [v1], operations: [CREATE], resources: [ships]}]
  sideEffects: None
`)}}
	captains := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct{ Request struct{ UID string } }
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		patch := base64.StdEncoding.EncodeToString([]byte(`[{"op":"add","path":"/spec/captain","value":"Ahab"}]`))
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":
			{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":%q}}`, review.Request.UID, patch)
	})
	test(func(t testing.TB) {
		s := servertest.New(t)
		s.InstallCRDs(operator)
		s.InstallWebhooks(operator, captains)
		ship := `{"apiVersion":"sea.example.com/v1","kind":"Ship","metadata":{"name":"pequod"},"spec":{}}`
		send(t, t.Context(), s.Client(), "POST", s.Host()+"/apis/sea.example.com/v1/namespaces/default/ships", ship).Body.Close()
		ships := meta.GroupResource{Group: "sea.example.com", Resource: "ships"}
		pequod, err := s.Objects().Get(t.Context(), ships, meta.Key{Namespace: "default", Name: "pequod"})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(pequod.String("spec", "captain"))
	})
	// Output: Ahab
}

// The manifests belong to an operator. The handler is its webhook server, for example of
// controller-runtime; here it refuses everything.
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
