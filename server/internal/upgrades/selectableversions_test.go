package upgrades_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
)

// TestSelectableFieldsDependOnVersion: without a webhook, too, clients can select by the fields
// that their version declares, and by no other fields.
func TestSelectableFieldsDependOnVersion(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "")
	const one = `"served":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}}`
	a.Must(201, "POST", apitest.DefinitionsPath, `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[
		{"name":"v1","storage":true,`+one+`,"selectableFields":[{"jsonPath":".spec.a"}]},
		{"name":"v2","storage":false,`+one+`,"selectableFields":[{"jsonPath":".spec.a"},{"jsonPath":".spec.b"}]},
		{"name":"v3","storage":false,`+one+`}]}}`)
	a.AwaitEstablished("widgets.example.com")
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("x", `{"a":"1","b":"1"}`))
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("y", `{"a":"1","b":"2"}`))
	for selector, counts := range map[string]map[string]int{
		"spec.a=1":        {"v1": 2, "v2": 2, "v3": -1},
		"spec.b=1":        {"v1": -1, "v2": 1, "v3": -1},
		"metadata.name=x": {"v1": 1, "v2": 1, "v3": 1},
	} {
		for version, n := range counts {
			path := strings.Replace(apitest.WidgetsPath, "v1", version, 1) + "?fieldSelector=" + selector
			if n < 0 {
				got := a.Must(400, "GET", path, nil)
				assert.Contains(t, string(got.Raw), "field label not supported: spec.", path)
				continue
			}
			assert.Len(t, apitest.Nested(a.Must(200, "GET", path, nil).Body, "items"), n, path)
		}
	}
}
