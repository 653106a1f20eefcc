package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// TestMutatingReviewsHaveNoIdentity checks that mutating webhooks see a new object as the caller sent it,
// without name, uid and timestamps set by the server, and validating webhooks as it is stored; and that the
// options are the options of the operation.
func TestMutatingReviewsHaveNoIdentity(t *testing.T) {
	k := newKit(t)
	const rule = `rules: [{operations: ["*"], apiGroups: ["", apps], apiVersions: ["*"], resources: [configmaps, deployments]}]`
	mutating, validating := k.serve(says("{allowed: true}")), k.serve(says("{allowed: true}"))
	k.register("mutating", "m", mutating, rule)
	k.register("validating", "v", validating, rule)
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	const spec = "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}"
	for _, c := range []struct {
		do, body      string
		name, options string // as mutating webhooks see them
		identity      bool   // whether they see uid and timestamps, those of the live object
	}{
		{"POST configmaps", "metadata: {name: a}", "a", `{"kind":"CreateOptions"}`, false},
		{"POST configmaps", "metadata: {generateName: a-}", "", `{"kind":"CreateOptions"}`, false},
		{"POST configmaps?fieldValidation=Strict&fieldManager=me&dryRun=All", "metadata: {generateName: a-}", "",
			`{"kind":"CreateOptions","fieldValidation":"Strict","fieldManager":"me","dryRun":["All"]}`, false},
		{"POST " + deployments, "{metadata: {name: d}, " + spec + "}", "d", `{"kind":"CreateOptions"}`, false},
		{"PUT configmaps/a", "metadata: {name: a, labels: {a: b}}", "a", `{"kind":"UpdateOptions"}`, false},
		{"PATCH configmaps/a?fieldManager=me", "data: {a: b}", "a", `{"kind":"UpdateOptions","fieldManager":"me"}`, true},
		{"DELETE configmaps/a?gracePeriodSeconds=0&fieldManager=me", "", "a", `{"kind":"DeleteOptions","gracePeriodSeconds":0}`, false},
	} {
		code, answer := k.do(c.do, c.body)
		require.Less(t, code, 300, answer.String("message"))
		for sort, hook := range map[string]*hook{"mutating": mutating, "validating": validating} {
			reviews := hook.reviews()
			require.Len(t, reviews, 1)
			q := meta.NewObject(reviews[0].Map("request"))
			obj := meta.NewObject(q.Map("object"))
			at := fmt.Sprintln(c.do, sort)
			options := q.Map("options")
			delete(options, "apiVersion")
			assert.JSONEq(t, c.options, string(mustJSON(t, options)), at)
			switch {
			case q.String("operation") == "DELETE":
				assert.Equal(t, c.name, q.String("name"), at)
			case sort == "mutating":
				assert.Equal(t, c.name, q.String("name"), at)
				assert.Equal(t, c.name, obj.Name(), at)
				for _, field := range []string{"uid", "creationTimestamp"} {
					assert.Equal(t, c.identity, obj.String("metadata", field) != "", at+field)
				}
				assert.Zero(t, obj.Generation(), at)
			default:
				assert.Equal(t, answer.Name(), q.String("name"), at)
				assert.Equal(t, answer.Name(), obj.Name(), at)
				assert.Equal(t, answer.UID(), obj.UID(), at)
				assert.Equal(t, answer.Generation(), obj.Generation(), at)
			}
		}
	}
}

// TestWebhookRenamesNewObject checks that a webhook can change the name of a new object, given or generated,
// and that no webhook is called twice because of it.
func TestWebhookRenamesNewObject(t *testing.T) {
	k := newKit(t)
	h := k.serve(patches(`[{"op":"replace","path":"/metadata/name","value":"other"}]`))
	given := k.serve(patches(`[{"op":"add","path":"/metadata/name","value":"given"}]`))
	k.register("mutating", "rename", h, `{objectSelector: {matchLabels: {by: rename}}, rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}`)
	k.register("mutating", "give", given, `{objectSelector: {matchLabels: {by: give}}, rules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}`)

	code, answer := k.do("POST configmaps", "{metadata: {name: first, labels: {by: rename}}, data: {a: b}}")
	require.Equal(t, 201, code, answer.String("message"))
	assert.Equal(t, "other", answer.Name())
	assert.NotEmpty(t, answer.UID())
	assert.Len(t, h.reviews(), 1)
	code, stored := k.do("GET configmaps/other", "")
	require.Equal(t, 200, code)
	assert.Equal(t, answer.UID(), stored.UID())
	assert.Equal(t, "b", stored.String("data", "a"))
	code, _ = k.do("GET configmaps/first", "")
	assert.Equal(t, 404, code)
	code, answer = k.do("POST configmaps", "metadata: {name: first, labels: {by: rename}}")
	assert.Equal(t, 409, code, answer.String("message"))

	code, answer = k.do("POST configmaps", "metadata: {generateName: first-, labels: {by: give}}")
	require.Equal(t, 201, code, answer.String("message"))
	assert.Equal(t, "given", answer.Name())
	code, answer = k.do("PATCH configmaps/given", "data: {a: c}")
	require.Equal(t, 200, code, "the name is that of the object: %s", answer.String("message"))
	code, _ = k.do("POST configmaps", "metadata: {name: third, labels: {by: give}}")
	assert.Equal(t, http.StatusConflict, code)
}

// TestWebhookThatRenamesEachTime checks a webhook that sets a different name at each call.
func TestWebhookThatRenamesEachTime(t *testing.T) {
	k := newKit(t)
	n := 0
	h := k.serve(func(w http.ResponseWriter, review *meta.Object) {
		n++
		respond(w, review, fmt.Sprintf(`{allowed: true, patchType: JSONPatch, patch: '[{"op":"replace","path":"/metadata/name","value":"n%d"}]'}`, n))
	})
	k.register("mutating", "rename", h, `rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`)
	for i := 1; i < 4; i++ {
		code, answer := k.do("POST configmaps", "metadata: {name: first}")
		require.Equal(t, 201, code, answer.String("message"))
		assert.Equal(t, fmt.Sprintf("n%d", i), answer.Name())
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}
