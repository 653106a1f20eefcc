package webhook_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
)

// TestPatchedObjectMustBeValid checks that a patched object must be a valid object of its kind with the same identity.
func TestPatchedObjectMustBeValid(t *testing.T) {
	k := newKit(t)
	const secrets = `{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [secrets, configmaps]}`
	for _, test := range []struct {
		name, patch string
		code        int
		want        string // in the message, or the data of the object
	}{
		{"adds", `[{"op":"add","path":"/data","value":{"a":"b"}}]`, 201, "b"},
		{"nothing", `[]`, 201, ""},
		{"an unknown field", `[{"op":"add","path":"/color","value":"red"}]`, 201, ""},
		{"a label", `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, 201, ""},
		{"what the server writes", `[{"op":"replace","path":"/metadata/creationTimestamp","value":"2001-01-01T00:00:00Z"}]`, 201, ""},
		{"no list", `{"op":"add"}`, 500, `failed calling webhook "wa.patch.example.com": received undecodable patch in webhook response: `},
		{"no JSON", `[`, 500, `failed calling webhook "wa.patch.example.com": received undecodable patch in webhook response: `},
		{"null", `null`, 201, ""},
		{"what is not there", `[{"op":"remove","path":"/nothing"}]`, 500, "operation 0 (remove /nothing)"},
		{"removes metadata", `[{"op":"remove","path":"/metadata"}]`, 422, `ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required`},
		{"removes the name", `[{"op":"remove","path":"/metadata/name"}]`, 422, `ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required`},
		{"another name", `[{"op":"replace","path":"/metadata/name","value":"y"}]`, 201, ""},
		{"another namespace", `[{"op":"replace","path":"/metadata/namespace","value":"x"}]`, 400, "the namespace of the provided object does not match the namespace sent on the request"},
		{"removes the namespace", `[{"op":"remove","path":"/metadata/namespace"}]`, 201, ""},
		{"another uid", `[{"op":"add","path":"/metadata/uid","value":"x"}]`, 201, ""},
		{"removes the kind", `[{"op":"remove","path":"/kind"},{"op":"remove","path":"/apiVersion"}]`, 201, ""},
		{"another kind", `[{"op":"replace","path":"/kind","value":"Secret"}]`, 500, "apiVersion and kind may not change"},
		{"removes everything", `[{"op":"replace","path":"","value":{}}]`, 422, "metadata.name"},
		{"a wrong type", `[{"op":"add","path":"/data","value":7}]`, 500, "data"},
		{"an invalid object", `[{"op":"add","path":"/data","value":{"a b":"c"}}]`, 422, `data[a b]: Invalid value`},
		{"an invalid label", `[{"op":"add","path":"/metadata/labels","value":{"a b":"c"}}]`, 422, "metadata.labels"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := &kit{k.Server, t, k.authority}
			k.register("mutating", "patch", k.serve(patches(test.patch)), "rules: ["+secrets+"]")
			code, answer := k.do("POST configmaps?dryRun=All", "metadata: {name: x}")
			k.unregister("mutating", "patch")
			assert.Equal(t, test.code, code, answer.String("message"))
			if code == 201 {
				assert.Equal(t, test.want, answer.String("data", "a"))
				assert.NotContains(t, answer.Tree(), "color")
				assert.Equal(t, "ConfigMap", answer.Kind())
				assert.Equal(t, "default", answer.Namespace())
				assert.NotEqual(t, "x", answer.UID())
				assert.NotEqual(t, "2001-01-01T00:00:00Z", answer.String("metadata", "creationTimestamp"))
				return
			}
			assert.Contains(t, answer.String("message"), test.want)
		})
	}

	k.register("mutating", "patch", k.serve(patches(`[{"op":"add","path":"/data","value":{"a":"b"}}]`)), "rules: ["+secrets+"]")
	k.do("POST configmaps", "metadata: {name: x}")
	code, answer := k.do("DELETE configmaps/x", "")
	assert.Equal(t, 500, code)
	assert.Contains(t, answer.String("message"), `admission webhook "wa.patch.example.com" attempted to modify the object, which is not supported for this operation`)
}

// TestWebhooksSeeEarlierChanges checks that each webhook sees the changes of those before it, in the order of
// the configuration names, and the defaults filled in between; and that webhooks with reinvocationPolicy
// IfNeeded are called at most twice.
func TestWebhooksSeeEarlierChanges(t *testing.T) {
	k := newKit(t)
	var order []string
	step := func(name string) func(http.ResponseWriter, *meta.Object) {
		return func(w http.ResponseWriter, review *meta.Object) {
			order = append(order, name+review.String("request", "object", "data", "n"))
			patches(`[{"op":"add","path":"/data","value":{"n":"`+review.String("request", "object", "data", "n")+name+`"}}]`)(w, review)
		}
	}
	k.register("mutating", "b", k.serve(step("b")), "reinvocationPolicy: IfNeeded", "reinvocationPolicy: Never")
	k.register("mutating", "a", k.serve(step("a")), "reinvocationPolicy: IfNeeded")
	k.register("mutating", "c", k.serve(step("c")), "reinvocationPolicy: IfNeeded")
	code, answer := k.do("POST configmaps", "metadata: {name: x}")
	assert.Equal(t, 201, code, answer.String("message"))
	assert.Equal(t, []string{"a", "ba", "bab", "cabb", "aabbc", "babbca", "cabbcab"}, order, "c saw no change until a and b were reinvoked")
	assert.Equal(t, "abbcabc", answer.String("data", "n"))

	order = nil
	k.unregister("mutating", "c")
	k.register("mutating", "c", k.serve(says("{allowed: true}")), "reinvocationPolicy: IfNeeded")
	k.do("POST configmaps", "metadata: {name: yy}")
	assert.Equal(t, []string{"a", "ba", "bab", "aabb", "babba"}, order)
}

// TestOrderOfConvertingKinds checks the same for a kind with conversions and for the bodies of subresources.
func TestOrderOfConvertingKinds(t *testing.T) {
	k := newKit(t)
	rule := func(group, resource string) string {
		return `rules: [{operations: [CREATE], apiGroups: ["` + group + `"], apiVersions: ["*"], resources: [` + resource + `]}]`
	}
	first := patches(`[{"op":"add","path":"/metadata/labels","value":{"first":"yes"}}]`)
	seen := func(h *hook) (labels []string) {
		for _, review := range h.reviews() {
			labels = append(labels, review.String("request", "object", "metadata", "labels", "first"))
		}
		return labels
	}
	const scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	second := k.serve(patches(`[{"op":"add","path":"/metadata/labels/second","value":"yes"}]`))
	k.register("mutating", "a", k.serve(first), rule("autoscaling", "horizontalpodautoscalers"))
	k.register("mutating", "b", second, rule("autoscaling", "horizontalpodautoscalers"))
	code, answer := k.do("POST "+scalers, "{metadata: {name: h}, spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}}")
	require.Equal(t, 201, code, answer.String("message"))
	assert.Equal(t, map[string]string{"first": "yes", "second": "yes"}, answer.Labels())
	assert.Equal(t, []string{"yes"}, seen(second))
	k.unregister("mutating", "a")
	k.unregister("mutating", "b")

	k.do("POST /api/v1/nodes", "metadata: {name: n1}")
	k.do("POST pods", "{metadata: {name: p}, spec: {containers: [{name: a, image: a}]}}")
	k.register("mutating", "a", k.serve(patches(`[{"op":"replace","path":"/target/name","value":"n1"}]`)), rule("", "pods/binding"))
	code, answer = k.do("POST pods/p/binding", "{metadata: {name: p}, target: {kind: Node, name: other}}")
	require.Equal(t, 201, code, answer.String("message"))
	_, answer = k.do("GET pods/p", "")
	assert.Equal(t, "n1", answer.String("spec", "nodeName"))
}

// TestPluginsRunAgain checks that built-in plugins see the changes of a webhook.
func TestPluginsRunAgain(t *testing.T) {
	k := newKit(t)
	k.do("POST limitranges", "{metadata: {name: l}, spec: {limits: [{type: Container, default: {cpu: '1'}}]}}")
	k.register("mutating", "sidecar", k.serve(patches(`[{"op":"add","path":"/spec/containers/-","value":{"name":"b","image":"b"}}]`)),
		`rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]`)
	code, answer := k.do("POST pods", "{metadata: {name: x}, spec: {containers: [{name: a, image: a}]}}")
	assert.Equal(t, 201, code, answer.String("message"))
	containers := answer.Objects("spec", "containers")
	assert.Len(t, containers, 2)
	for _, c := range containers {
		assert.Equal(t, "1", c.String("resources", "limits", "cpu"))
		assert.Equal(t, "Always", c.String("imagePullPolicy"), "a default")
	}
}

// TestWebhooksAreReinvokedAfterChangesOfPlugins checks that only a webhook with the policy IfNeeded sees what another
// plugin changed in the second pass.
func TestWebhooksAreReinvokedAfterChangesOfPlugins(t *testing.T) {
	k := newKit(t, func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Passes", Rules: []admission.Rule{{Groups: []string{""}, Resources: []string{"configmaps"}}},
			Mutate: func(_ context.Context, r *admission.Request) error {
				r.Object.Set(strconv.Itoa(r.Pass), "metadata", "labels", "pass")
				r.Reinvoke()
				return nil
			},
		})
	})
	again, once := k.serve(says("{allowed: true}")), k.serve(says("{allowed: true}"))
	k.register("mutating", "again", again, "reinvocationPolicy: IfNeeded")
	k.register("mutating", "once", once, "reinvocationPolicy: Never")
	code, answer := k.do("POST configmaps", "metadata: {name: x}")
	require.Equal(t, 201, code, answer.String("message"))
	assert.Len(t, again.reviews(), 2)
	assert.Len(t, once.reviews(), 1)
}

// TestPatchChangesOnlyFieldsOfEndpoint checks that a webhook can change only the fields that the endpoint writes.
func TestPatchChangesOnlyFieldsOfEndpoint(t *testing.T) {
	k := newKit(t)
	const deployment = "/apis/apps/v1/namespaces/default/deployments"
	k.do("POST "+deployment, "{metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}")
	h := k.serve(patches(`[{"op":"replace","path":"/spec/replicas","value":5}]`))
	k.register("mutating", "replicas", h, `rules: [{operations: ["*"], apiGroups: [apps], apiVersions: [v1], resources: [deployments/*]}]`)

	code, answer := k.do("PATCH "+deployment+"/d/scale", "{spec: {replicas: 3}}")
	assert.Equal(t, 200, code, answer.String("message"))
	assert.Equal(t, int64(5), answer.Int("spec", "replicas"))
	q := meta.NewObject(h.reviews()[0].Map("request"))
	assert.Equal(t, "Scale", q.String("object", "kind"))
	assert.Equal(t, map[string]any{"group": "autoscaling", "version": "v1", "kind": "Scale"}, q.Map("kind"))
	assert.Equal(t, map[string]any{"group": "apps", "version": "v1", "resource": "deployments"}, q.Map("resource"))
	assert.Equal(t, "scale", q.String("subResource"))
	assert.Equal(t, int64(3), q.Int("object", "spec", "replicas"))
	assert.Equal(t, int64(1), q.Int("oldObject", "spec", "replicas"))

	k.unregister("mutating", "replicas")
	k.register("mutating", "replicas", k.serve(patches(`[{"op":"replace","path":"/spec/replicas","value":7},{"op":"add","path":"/status/replicas","value":2}]`)),
		`rules: [{operations: [UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments/status]}]`)
	code, answer = k.do("PATCH "+deployment+"/d/status", "{status: {replicas: 1}}")
	assert.Equal(t, 200, code, answer.String("message"))
	assert.Equal(t, int64(2), answer.Int("status", "replicas"))
	assert.Equal(t, int64(5), answer.Int("spec", "replicas"))
}
