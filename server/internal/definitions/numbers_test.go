package definitions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

const (
	jsonPatchType      = "application/json-patch+json"
	strategicPatchType = "application/strategic-merge-patch+json"
)

// TestNumbersEqualAsFloat64AreUpdated: each verb replaces a number by a different one with the
// same float64 value.
func TestNumbersEqualAsFloat64AreUpdated(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"n":{"type":"number"},"a":{"type":"string"}}`))
	a.AwaitEstablished("widgets.example.com")
	for i, pair := range [][2]string{
		{"9007199254740993", "9007199254740992"}, {"9007199254740993", "9007199254740992.0"}, {"9223372036854775807", "9223372036854775808"},
	} {
		path := fmt.Sprintf("%s/w%d", apitest.WidgetsPath, i)
		body := func(n string) string { return apitest.NewWidget(fmt.Sprintf("w%d", i), `{"n":`+n+`}`) }
		shown := func(got apitest.Response) string { // the number as it is written
			_, rest, _ := strings.Cut(string(got.Raw), `"n":`)
			text, _, _ := strings.Cut(rest, "}")
			return text
		}
		first := a.Must(201, "PATCH", path+"?fieldManager=one", body(pair[0]), "Content-Type", apitest.ApplyPatch)
		require.Equal(t, pair[0], shown(first))
		a.Must(409, "PATCH", path+"?fieldManager=two", body(pair[1]), "Content-Type", apitest.ApplyPatch)
		a.Must(422, "PATCH", path, `[{"op":"test","path":"/spec/n","value":`+pair[1]+`}]`, "Content-Type", jsonPatchType)
		a.Must(200, "PATCH", path, `[{"op":"test","path":"/spec/n","value":`+pair[0]+`}]`, "Content-Type", jsonPatchType)

		patched := a.Must(200, "PATCH", path+"?fieldManager=three", `{"spec":{"n":`+pair[1]+`}}`)
		assert.NotEqual(t, pair[0], shown(patched))
		assert.Equal(t, 2.0, apitest.Nested(patched.Body, "metadata", "generation"))
		assert.Contains(t, string(patched.Raw), `"manager":"three"`)
		again := a.Must(200, "PATCH", path, `{"spec":{"n":`+pair[1]+`}}`)
		assert.Equal(t, apitest.Nested(patched.Body, "metadata", "resourceVersion"), apitest.Nested(again.Body, "metadata", "resourceVersion"), "the same number is no change")

		put := a.Must(200, "PUT", path, strings.Replace(body(pair[0]), `"metadata":{`, `"metadata":{"resourceVersion":"`+apitest.Nested(again.Body, "metadata", "resourceVersion").(string)+`",`, 1))
		assert.Equal(t, pair[0], shown(put))
		assert.Equal(t, 3.0, apitest.Nested(put.Body, "metadata", "generation"))
	}
}

// TestWholeFloatsAreIntegers: whole floats are integers in YAML and in strategic merge patches, and not in JSON.
func TestWholeFloatsAreIntegers(t *testing.T) {
	t.Parallel()
	const path = "/apis/apps/v1/namespaces/default/deployments"
	deployment := func(name, replicas string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"replicas":%s,"selector":{"matchLabels":{"a":"b"}},
			"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, name, replicas)
	}
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", path, deployment("d", "1"))
	for i, n := range []string{"3.0", "3e0", "30e-1"} {
		replicas := func(got apitest.Response) any { return apitest.Nested(got.Body, "spec", "replicas") }
		name := fmt.Sprintf("d%d", i)
		assert.Equal(t, 3.0, replicas(a.Must(201, "PATCH", path+"/"+name+"?fieldManager=m", deployment(name, n), "Content-Type", apitest.ApplyPatch)), n)
		assert.Equal(t, 3.0, replicas(a.Must(201, "POST", path, deployment("y"+name, n), "Content-Type", "application/yaml")), n)
		assert.Equal(t, 3.0, replicas(a.Must(200, "PATCH", path+"/d", `{"spec":{"replicas":`+n+`}}`, "Content-Type", strategicPatchType)), n)
		a.Must(200, "PATCH", path+"/d", `{"spec":{"template":{"spec":{"containers":[{"name":"c","ports":[{"containerPort":`+n+`}]}]}}}}`, "Content-Type", strategicPatchType)
		a.Must(400, "POST", path, deployment("j"+name, n))
		a.Must(422, "PATCH", path+"/d", `{"spec":{"replicas":`+n+`}}`)
		a.Must(422, "PATCH", path+"/d", `[{"op":"replace","path":"/spec/replicas","value":`+n+`}]`, "Content-Type", jsonPatchType)
	}
	got := a.Must(200, "GET", path+"/d", nil)
	ports, _ := apitest.Nested(got.Body, "spec", "template", "spec", "containers").([]any)
	require.Len(t, ports, 1)
	assert.Len(t, apitest.Nested(ports[0].(map[string]any), "ports"), 1, "3.0 and 3 are one key")
	a.Must(422, "PATCH", path+"/d", `{"spec":{"replicas":3.5}}`, "Content-Type", strategicPatchType)
}
