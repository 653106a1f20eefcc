package webhook_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/testcerts"
)

// TestFailurePolicyDecidesFailedCalls checks that a failed call refuses the request under the failure policy
// Fail and is ignored under Ignore.
func TestFailurePolicyDecidesFailedCalls(t *testing.T) {
	k := newKit(t)
	allows := says(`{allowed: true}`)
	closed := k.serve(allows)
	closed.Close()
	fixed := func(code int, body string) func(http.ResponseWriter, *meta.Object) {
		return func(w http.ResponseWriter, _ *meta.Object) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	late := make(chan struct{})
	defer close(late)
	for _, test := range []struct {
		name   string
		hook   *hook
		fields string
		want   string
	}{
		{"nobody there", closed, "", "failed to call webhook: Post"},
		{"hangs", k.serve(func(w http.ResponseWriter, _ *meta.Object) {
			_ = http.NewResponseController(w).Flush()
			<-late
		}), "", "context deadline exceeded"},
		{"of another authority", k.serveAs(testcerts.New(t, "others", nil), allows), "", "certificate signed by unknown authority"},
		{"an error", k.serve(fixed(500, `{}`)), "", "the remote server answered 500"},
		{"elsewhere", k.serve(fixed(302, ``)), "", "the remote server answered 302"},
		{"no JSON", k.serve(fixed(200, `allowed`)), "", "invalid character"},
		{"huge", k.serve(fixed(200, strings.Repeat(" ", 4<<20))), "", "more than 3145728 bytes"},
		{"of another kind", k.serve(fixed(200, `{"kind":"Pod","apiVersion":"v1"}`)), "", "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /v1, Kind=Pod"},
		{"no response", k.serve(fixed(200, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`)), "", "webhook response was absent"},
		{"wrong uid", k.serve(says(`{uid: x, allowed: true}`)), "", `, got "x"`},
		{"no uid", k.serve(says(`{uid: "", allowed: true}`)), "", `, got ""`},
		{"no type of the patch", k.serve(says(`{allowed: true, patch: '[]'}`)), "", "patch"},
		{"no patch of the type", k.serve(says(`{allowed: true, patchType: JSONPatch}`)), "", "patchType"},
		{"another type of patch", k.serve(says(`{allowed: true, patch: '[]', patchType: MergePatch}`)), "", "patch"},
		{"a name in capitals", k.serve(says(`{Allowed: true, allowed: 7}`)), "", "cannot unmarshal number"},
		{"a wrong type", k.serve(says(`{allowed: "true"}`)), "", `failed to call webhook: response: allowed: json: cannot unmarshal string`},
		{"a code that is none", k.serve(says(`{allowed: false, status: {code: 2147483648}}`)), "", "code"},
		{"half a list", k.serve(says(`{allowed: true, warnings: [1]}`)), "", "warnings"},
		{"no patch at all", k.serve(says(`{allowed: true, patchType: JSONPatch, patch: 7}`)), "", "patch"},
		{"the new version in the old one", k.serve(fixed(200, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"allowed":true}}`)),
			`admissionReviewVersions: [v1beta1]`, "expected webhook response of admission.k8s.io/v1beta1, Kind=AdmissionReview, got admission.k8s.io/v1, Kind=AdmissionReview"},
		{"of no version", k.serve(fixed(200, `{"kind":"AdmissionReview","response":{"allowed":true}}`)), "", "got /, Kind=AdmissionReview"},
		{"no authority", k.serve(allows), `clientConfig: {url: "https://127.0.0.1/", caBundle: "eA=="}`, "certificate"},
		{"no service", k.serve(allows), `clientConfig: {service: {namespace: default, name: missing}}`, `services "missing" not found`},
	} {
		for _, sort := range []string{"mutating", "validating"} {
			t.Run(test.name+" "+sort, func(t *testing.T) {
				k := &kit{k.Server, t, k.authority}
				k.register(sort, "bad", test.hook, "timeoutSeconds: 1\n"+test.fields)
				code, answer := k.do("POST configmaps", "metadata: {name: x}")
				k.unregister(sort, "bad")
				assert.Equal(t, 500, code)
				assert.Equal(t, "InternalError", answer.String("reason"))
				assert.Contains(t, answer.String("message"), `Internal error occurred: failed calling webhook "wa.bad.example.com": `)
				assert.Contains(t, answer.String("message"), test.want)
				assert.Len(t, answer.Objects("details", "causes"), 1)

				k.register(sort, "bad", test.hook, "timeoutSeconds: 1\nfailurePolicy: Ignore\n"+test.fields)
				code, answer = k.do("POST configmaps?dryRun=All", "metadata: {name: x}")
				k.unregister(sort, "bad")
				assert.Equal(t, 201, code, answer.String("message"))
			})
		}
	}
}

func TestMatchConditionsSelectRequests(t *testing.T) {
	k := newKit(t)
	for _, sort := range []string{"mutating", "validating"} {
		for _, test := range []struct {
			name, conditions, policy string
			code, asked              int
		}{
			{"all true", `{name: a, expression: "object.metadata.name == 'x'"}, {name: b, expression: "request.operation == 'CREATE' && oldObject == null"}`, "Fail", 201, 1},
			{"one false", `{name: a, expression: "true"}, {name: b, expression: "object.metadata.name != 'x'"}`, "Fail", 201, 0},
			{"a failure is an answer", `{name: a, expression: "object.spec.replicas > 1"}`, "Fail", 403, 0},
			{"a failure that is ignored", `{name: a, expression: "object.spec.replicas > 1"}`, "Ignore", 201, 0},
			{"one false, one failure", `{name: a, expression: "object.spec.replicas > 1"}, {name: b, expression: "false"}`, "Fail", 201, 0},
			{"who may do more", `{name: a, expression: "!authorizer.group('').resource('configmaps').check('delete').allowed()"}`, "Fail", 201, 0},
		} {
			t.Run(test.name+" "+sort, func(t *testing.T) {
				h := k.serve(says(`{allowed: true}`))
				k.register(sort, "conditions", h, "failurePolicy: "+test.policy+"\nmatchConditions: ["+test.conditions+"]")
				code, answer := k.do("POST configmaps?dryRun=All", "metadata: {name: x}")
				k.unregister(sort, "conditions")
				assert.Equal(t, test.code, code, answer)
				assert.Len(t, h.reviews(), test.asked)
			})
		}
	}
	code, answer := k.do("POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
		`{metadata: {name: wrong}, webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://localhost/"}, matchConditions: [{name: a, expression: "request.nothing"}]}]}`)
	assert.Equal(t, 422, code)
	assert.Contains(t, answer.String("message"), "webhooks[0].matchConditions[0].expression: Invalid value: \"request.nothing\": compilation failed: ERROR: <input>:1:8: undefined field 'nothing'")
}

// TestV1beta1Responses checks that only the field response is required in v1beta1.
func TestV1beta1Responses(t *testing.T) {
	k := newKit(t)
	for _, test := range []struct {
		answer string
		code   int
	}{
		{`{"response":{"allowed":true}}`, 201},
		{`{"kind":"AdmissionReview","response":{"allowed":true}}`, 201},
		{`{"apiVersion":"admission.k8s.io/v1beta1","response":{"allowed":true,"uid":"another"}}`, 201},
		{`{"response":{"allowed":true,"patchType":""}}`, 201},
		{`{"response":{"allowed":true,"patch":"W10="}}`, 201},
		{`{"response":{"Allowed":true}}`, 400},
		{`{"response":{"allowed":false,"allowed":true}}`, 201},
		{`{"response":{"allowed":false,"status":{"code":999}}}`, 999},
		{`{"response":null}`, 500},
		{`{"kind":"Pod","response":{"allowed":true}}`, 500},
	} {
		for _, sort := range []string{"mutating", "validating"} {
			k.register(sort, "old", k.serve(func(w http.ResponseWriter, _ *meta.Object) { _, _ = w.Write([]byte(test.answer)) }), "admissionReviewVersions: [v1beta1]")
			code, answer := k.do("POST configmaps?dryRun=All", "metadata: {name: x}")
			k.unregister(sort, "old")
			assert.Equal(t, test.code, code, "%s: %s", test.answer, answer.String("message"))
		}
	}
}

// TestFailurePolicyIgnoreKeepsDenials checks that the policy applies to failed calls, not to answers.
func TestFailurePolicyIgnoreKeepsDenials(t *testing.T) {
	k := newKit(t)
	h := k.serve(says("{allowed: false, status: {code: 403, message: not today}}"))
	for _, sort := range []string{"mutating", "validating"} {
		k.register(sort, "no", h, "failurePolicy: Ignore")
		code, answer := k.do("POST configmaps", "metadata: {name: x}")
		k.unregister(sort, "no")
		assert.Equal(t, 403, code, sort)
		assert.Contains(t, answer.String("message"), "not today")
	}
}

// TestDenialIsReturnedToClient checks that the status of a denial is returned to the caller.
func TestDenialIsReturnedToClient(t *testing.T) {
	k := newKit(t)
	for _, test := range []struct {
		status  string
		code    int
		message string
		reason  string
	}{
		{`{}`, 400, `admission webhook "wa.no.example.com" denied the request without explanation`, ""},
		{`{message: not today}`, 400, `admission webhook "wa.no.example.com" denied the request: not today`, ""},
		{`{reason: Tuesday}`, 400, `admission webhook "wa.no.example.com" denied the request: Tuesday`, "Tuesday"},
		{`{code: 200, message: a}`, 400, `admission webhook "wa.no.example.com" denied the request: a`, ""},
		{`{code: -1}`, 400, `admission webhook "wa.no.example.com" denied the request without explanation`, ""},
		{`{code: 403, reason: Forbidden, message: a}`, 403, `admission webhook "wa.no.example.com" denied the request: a`, "Forbidden"},
		{`{code: 418}`, 418, `admission webhook "wa.no.example.com" denied the request without explanation`, ""},
		{`{code: 600, message: a}`, 600, `admission webhook "wa.no.example.com" denied the request: a`, ""},
		{`{code: 999, message: a}`, 999, `admission webhook "wa.no.example.com" denied the request: a`, ""},
		{`{code: 302, message: a}`, 400, `admission webhook "wa.no.example.com" denied the request: a`, ""},
		{`{Code: 403, Message: a}`, 400, `admission webhook "wa.no.example.com" denied the request without explanation`, ""},
		{`{code: 1000}`, 500, `admission webhook "wa.no.example.com" denied the request without explanation`, ""},
		{`{code: 422, details: {name: nn, group: g, kind: k, retryAfterSeconds: 3, UID: u, causes: [{field: f, message: m, reason: r}, {field: g, Message: n}]}}`, 422, "", ""},
	} {
		for _, sort := range []string{"mutating", "validating"} {
			h := k.serve(says("{allowed: false, patch: " + map[string]string{"mutating": "'no patch', patchType: Other", "validating": "''"}[sort] + ", status: " + test.status + "}"))
			k.register(sort, "no", h, "{}")
			code, answer := k.do("POST configmaps", "metadata: {name: x}")
			k.unregister(sort, "no")
			assert.Equal(t, test.code, code, test.status)
			assert.Equal(t, int64(test.code), answer.Int("code"))
			assert.Equal(t, test.reason, answer.String("reason"))
			assert.Contains(t, answer.String("message"), test.message)
			if test.code == 422 {
				assert.Equal(t, map[string]any{"name": "nn", "group": "g", "kind": "k", "retryAfterSeconds": int64(3),
					"causes": []any{map[string]any{"field": "f", "message": "m", "reason": "r"}, map[string]any{"field": "g"}}}, answer.Map("details"))
			}
		}
	}
}
