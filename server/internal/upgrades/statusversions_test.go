package upgrades_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
)

// TestStatusIsOwnedWhereItIsWritten: a version without the subresource status writes the status
// with the rest of an object, and its writers own the fields of the status that they write.
// Writers in a version that has the subresource own the status only through the subresource.
func TestStatusIsOwnedWhereItIsWritten(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "")
	const schema = `"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}},
		"status":{"type":"object","properties":{"s":{"type":"string"},"t":{"type":"string"}}}}}}`
	a.Must(201, "POST", apitest.DefinitionsPath, `{"metadata":{"name":"gauges.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"gauges","kind":"Gauge"},"versions":[
		{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},`+schema+`},{"name":"v2","served":true,"storage":false,`+schema+`}]}}`)
	a.AwaitEstablished("gauges.example.com")
	send := func(code int, version, sub, manager, media, content string) apitest.Response {
		t.Helper()
		path := "/apis/example.com/" + version + "/namespaces/default/gauges/x" + sub + "?fieldManager=" + manager
		return a.Must(code, "PATCH", path, `{"apiVersion":"example.com/`+version+`","kind":"Gauge","metadata":{"name":"x"}`+content+`}`, "Content-Type", media)
	}
	apply := func(code int, version, manager, content string) apitest.Response {
		t.Helper()
		return send(code, version, "", manager, "application/apply-patch+yaml", content)
	}
	owned := func(of apitest.Response, manager string) any {
		list, _ := apitest.Nested(of.Body, "metadata", "managedFields").([]any)
		for _, e := range list {
			if apitest.NestedString(e, "manager") == manager {
				return apitest.Nested(e, "fieldsV1", "f:status")
			}
		}
		return nil
	}
	s := map[string]any{"f:s": map[string]any{}}

	got := apply(201, "v2", "one", `,"status":{"s":"1"}`)
	assert.Equal(t, s, owned(got, "one"))
	apply(409, "v2", "two", `,"status":{"s":"2"}`)

	got = apply(200, "v1", "two", `,"spec":{"a":"1"},"status":{"s":"2"}`)
	assert.Equal(t, "1", apitest.NestedString(got.Body, "status", "s"), "v1 has it apart")
	assert.Equal(t, []any{s, nil}, []any{owned(got, "one"), owned(got, "two")})
	send(409, "v1", "/status", "two", "application/apply-patch+yaml", `,"status":{"s":"2"}`)

	got = send(200, "v2", "", "three", "application/merge-patch+json", `,"status":{"t":"3"}`)
	assert.Equal(t, map[string]any{"f:t": map[string]any{}}, owned(got, "three"))
	got = apply(200, "v2", "one", "")
	assert.Equal(t, map[string]any{"t": "3"}, apitest.Nested(got.Body, "status"), "what one applied and leaves out goes")
	assert.Nil(t, owned(got, "one"))

	apply(200, "v2", "one", `,"status":{"s":"4"}`)
	got = apply(200, "v1", "one", "")
	assert.Equal(t, "4", apitest.NestedString(got.Body, "status", "s"), "through v1 the status stays as it is")
}
