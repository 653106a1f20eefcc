package webhook_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// TestQuotaKeptWithoutWebhooks checks that the server's own updates of a quota status call no webhooks, so
// that a webhook for the status that is unreachable, or writes into the namespace itself, blocks no other
// writes. Updates by clients call them.
func TestQuotaKeptWithoutWebhooks(t *testing.T) {
	const statuses = `rules: [{operations: ["*"], apiGroups: [""], apiVersions: ["*"], resources: [resourcequotas/status]}]`
	k := newKit(t)
	gone := k.serve(says(`{allowed: true}`))
	gone.Close()
	writes := k.serve(func(w http.ResponseWriter, review *meta.Object) {
		code, answer := k.do("POST configmaps", `{metadata: {generateName: made-}}`)
		assert.Equal(t, 201, code, answer.String("message"))
		respond(w, review, `{allowed: true}`)
	})
	used := func() string {
		k.Settle()
		_, q := k.do("GET resourcequotas/q", "")
		return q.String("status", "used", "count/configmaps")
	}
	code, answer := k.do("POST resourcequotas", `{metadata: {name: q}, spec: {hard: {count/configmaps: 10}}}`)
	require.Equal(t, 201, code, answer.String("message"))
	require.Equal(t, "0", used())

	k.register("validating", "quotas", gone, statuses)
	code, answer = k.do("POST configmaps", `{metadata: {name: a}}`)
	require.Equal(t, 201, code, answer.String("message"))
	require.Equal(t, "1", used())
	code, _ = k.do("PATCH resourcequotas/q/status", `{status: {used: {count/configmaps: 7}}}`)
	require.Equal(t, 500, code)
	k.unregister("validating", "quotas")

	k.register("mutating", "quotas", writes, statuses)
	code, answer = k.do("POST configmaps", `{metadata: {name: b}}`)
	require.Equal(t, 201, code, answer.String("message"))
	require.Equal(t, "2", used())
	require.Empty(t, writes.reviews())
	code, answer = k.do("DELETE configmaps/b", "")
	require.Equal(t, 200, code, answer.String("message"))
	require.Equal(t, "1", used())
	require.Empty(t, writes.reviews())
}
