package webhook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/server"
)

// TestRulesSelectRequests checks which requests a webhook is called for.
func TestRulesSelectRequests(t *testing.T) {
	k := newKit(t)
	h := k.serve(says("{allowed: true}"))
	k.do("POST /api/v1/namespaces", "metadata: {name: quiet, labels: {quiet: 'yes'}}")
	pod := "spec: {containers: [{name: a, image: a}]}"
	for _, test := range []struct {
		name   string
		fields string
		do     [][2]string
		want   []string
	}{
		{"everything of a resource", `rules: [{operations: ["*"], apiGroups: [""], apiVersions: ["*"], resources: [configmaps]}]`, [][2]string{
			{"POST configmaps", "metadata: {name: a}"}, {"PATCH configmaps/a", "data: {a: b}"}, {"GET configmaps/a", ""}, {"POST configmaps", "metadata: {name: b}"},
			{"DELETE configmaps/a", ""}, {"POST configmaps?dryRun=All", "metadata: {name: c}"}, {"DELETE configmaps", ""},
			{"POST secrets", "metadata: {name: a}"}, {"DELETE secrets/a", ""},
		}, []string{"CREATE configmaps a", "CREATE configmaps b", "CREATE configmaps c", "DELETE configmaps a", "DELETE configmaps b", "UPDATE configmaps a"}},
		{"subresources", `rules: [{operations: [CREATE, UPDATE, CONNECT], apiGroups: [""], apiVersions: [v1], resources: [pods/*, serviceaccounts/token]}]`, [][2]string{
			{"POST pods", "metadata: {name: p}\n" + pod}, {"PATCH pods/p/status", "status: {phase: Running}"}, {"POST pods/p/exec?command=ls", ""},
			{"POST pods/p/eviction", "metadata: {name: p}"},
			{"POST serviceaccounts", "metadata: {name: s}"}, {"DELETE serviceaccounts/s", ""},
		}, []string{"CONNECT pods/exec p", "CREATE pods p", "CREATE pods/eviction p", "UPDATE pods/status p"}},
		{"cluster", `rules: [{operations: [CREATE, DELETE], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: Cluster}]`, [][2]string{
			{"POST /api/v1/namespaces", "metadata: {name: team}"}, {"POST configmaps", "metadata: {name: a}"}, {"DELETE configmaps/a", ""},
			{"POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "metadata: {name: empty}"},
			{"DELETE /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/empty", ""},
		}, []string{"CREATE namespaces team"}},
		{"namespace selector", `{namespaceSelector: {matchExpressions: [{key: quiet, operator: DoesNotExist}]}, rules: [{operations: [CREATE, UPDATE, DELETE], apiGroups: [""], apiVersions: [v1], resources: [configmaps, namespaces, nodes]}]}`, [][2]string{
			{"POST configmaps", "metadata: {name: s}"}, {"POST /api/v1/namespaces/quiet/configmaps", "metadata: {name: q}"}, {"DELETE configmaps/s", ""},
			{"POST /api/v1/namespaces", "metadata: {name: silent, labels: {quiet: 'yes'}}"}, {"POST /api/v1/namespaces", "metadata: {name: loud}"},
			{"DELETE /api/v1/namespaces/silent", ""}, {"DELETE /api/v1/namespaces/loud", ""},
			{"POST /api/v1/nodes", "metadata: {name: node}"}, {"DELETE /api/v1/nodes/node", ""},
		}, []string{"CREATE configmaps s", "CREATE namespaces loud", "CREATE nodes node", "DELETE configmaps s", "DELETE namespaces loud", "DELETE nodes node"}},
		{"object selector", `{objectSelector: {matchLabels: {watched: 'yes'}}, rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps, pods/exec]}]}`, [][2]string{
			{"POST configmaps", "metadata: {name: o}"}, {"PATCH configmaps/o", "metadata: {labels: {watched: 'yes'}}"}, {"PATCH configmaps/o", "{metadata: {labels: {watched: null}}, data: {a: b}}"},
			{"PATCH configmaps/o", "data: {a: c}"}, {"PATCH configmaps/o", "metadata: {labels: {watched: 'yes'}}"}, {"DELETE configmaps/o", ""}, {"POST pods/p/exec?command=ls", ""},
		}, []string{"DELETE configmaps o", "UPDATE configmaps o", "UPDATE configmaps o", "UPDATE configmaps o"}},
		{"no dry run", `{rules: [{operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}`, [][2]string{
			{"POST configmaps?dryRun=All", "metadata: {name: d}"},
		}, []string{}},
	} {
		for _, sort := range []string{"mutating", "validating"} {
			k.register(sort, "match", h, test.fields)
			for _, do := range test.do {
				code, answer := k.do(do[0], do[1])
				if code >= 400 && !strings.Contains(do[0], "exec") { // this server has no connector
					t.Errorf("%s: %s: %d %s", test.name, do[0], code, answer.String("message"))
				}
			}
			k.unregister(sort, "match")
			k.do("DELETE /api/v1/namespaces/team", "")
			k.do("DELETE pods/p?gracePeriodSeconds=0", "")
			k.do("DELETE /api/v1/namespaces/quiet/configmaps/q", "")
			k.Settle()
			assert.Equal(t, test.want, operations(h.reviews()), test.name+" "+sort)
		}
	}
}

// TestEquivalentRequestIsConverted checks that a webhook for one version is called for writes in another,
// with the object in its own version.
func TestEquivalentRequestIsConverted(t *testing.T) {
	k := newKit(t)
	const v1, v2 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	scaler := "{metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}, metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 70}}}]}}"
	rule := func(version string) string {
		return `rules: [{operations: [CREATE], apiGroups: [autoscaling], apiVersions: [` + version + `], resources: [horizontalpodautoscalers]}]`
	}
	h := k.serve(patches(`[{"op":"add","path":"/spec/targetCPUUtilizationPercentage","value":40},{"op":"replace","path":"/spec/maxReplicas","value":9}]`))
	k.register("mutating", "hpa", h, rule("v1"))
	code, answer := k.do("POST "+v2, scaler)
	require.Equal(t, 201, code, answer.String("message"))
	q := meta.NewObject(h.reviews()[0].Map("request"))
	assert.Equal(t, "v1", q.String("kind", "version"))
	assert.Equal(t, "v1", q.String("resource", "version"))
	assert.Equal(t, "v2", q.String("requestKind", "version"))
	assert.Equal(t, "v2", q.String("requestResource", "version"))
	assert.Equal(t, "autoscaling/v1", q.String("object", "apiVersion"))
	assert.Equal(t, int64(9), answer.Int("spec", "maxReplicas"))
	assert.Len(t, answer.List("spec", "metrics"), 2, "fields that v1 lacks stay")
	k.do("DELETE "+v2+"/h", "")

	k.unregister("mutating", "hpa")
	k.register("mutating", "hpa", h, "matchPolicy: Exact\n"+rule("v1"), "matchPolicy: Exact\n"+rule("v2"))
	code, answer = k.do("POST "+v1, "{metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}}")
	require.Equal(t, 201, code, answer.String("message"))
	assert.Equal(t, []string{"CREATE horizontalpodautoscalers h"}, operations(h.reviews()))
	assert.Equal(t, int64(40), answer.Int("spec", "targetCPUUtilizationPercentage"))
}

// TestReviewsAreExempt checks that no webhook is called for webhook configurations, policies and, unless the
// feature is disabled, reviews of identities and permissions.
func TestReviewsAreExempt(t *testing.T) {
	for _, exempt := range []bool{true, false} {
		k := newKit(t, func(b *server.Builder) {
			b.Register(review.Access(b.Authorizer)...)
			b.Register(review.Identity(nil, nil)...)
			b.Features = map[string]bool{features.ExcludeAdmissionWebhookVirtualResources: exempt}
		})
		h := k.serve(says("{allowed: true}"))
		k.register("validating", "all", h, `rules: [{operations: ["*"], apiGroups: [authentication.k8s.io, authorization.k8s.io, admissionregistration.k8s.io], apiVersions: ["*"], resources: ["*/*"]}]`)
		for _, do := range [][2]string{
			{"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "spec: {nonResourceAttributes: {path: /, verb: get}}"},
			{"POST /apis/authorization.k8s.io/v1/subjectaccessreviews", "spec: {user: a, nonResourceAttributes: {path: /, verb: get}}"},
			{"POST /apis/authentication.k8s.io/v1/selfsubjectreviews", "{}"},
			{"POST /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "metadata: {name: empty}"},
			{"DELETE /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/all", ""},
		} {
			code, answer := k.do(do[0], do[1])
			require.Less(t, code, 300, do[0]+answer.String("message"))
		}
		want := []string{}
		if !exempt {
			want = []string{"CREATE selfsubjectaccessreviews ", "CREATE selfsubjectreviews ", "CREATE subjectaccessreviews "}
		}
		assert.Equal(t, want, operations(h.reviews()))
	}
}
