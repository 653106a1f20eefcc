package door_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
)

// TestPatchIdentity checks that a patch which removes the name or apiVersion, or changes the kind,
// is refused.
func TestPatchIdentity(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
	const jsonPatch, mergePatch, strategic = "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"
	for _, c := range []struct {
		code      int
		typ, body string
	}{
		{400, mergePatch, `{"metadata":{"name":""}}`},
		{400, mergePatch, `{"metadata":{"name":null}}`},
		{400, mergePatch, `{"metadata":null}`},
		{400, mergePatch, `{"apiVersion":null}`},
		{400, mergePatch, `null`},
		{422, mergePatch, `{"kind":"Secret"}`},
		{422, mergePatch, `{"apiVersion":"v2"}`},
		{400, strategic, `{"$patch":"replace"}`},
		{200, strategic, `{"kind":"Secret"}`},
		{200, strategic, `null`},
		{200, jsonPatch, `null`},
		{200, jsonPatch, `[{"op":"add","path":"/data","value":{"old":"1"}},{"op":"replace","path":"/data/new","value":"1"}]`},
		{422, jsonPatch, `[{"op":"test","path":"/data/new","value":"2"}]`},
		{400, jsonPatch, `[{"op":"add","path":7,"value":"1"}]`},
	} {
		got := a.Do("PATCH", apitest.ConfigMapsPath+"/x", c.body, "Content-Type", c.typ)
		require.Equal(t, c.code, got.Code, "%s %s", c.typ, c.body)
	}
	stray := `[{"op":"add","path":"/data/w","value":"1","extra":true}]`
	assert.Len(t, a.Do("PATCH", apitest.ConfigMapsPath+"/x", stray, "Content-Type", jsonPatch).Header.Values("Warning"), 1)
	require.Equal(t, 422, a.Do("PATCH", apitest.ConfigMapsPath+"/x?fieldValidation=Strict", stray, "Content-Type", jsonPatch).Code)
}
