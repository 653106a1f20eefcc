package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
)

const (
	jsonPatchType      = "application/json-patch+json"
	strategicPatchType = "application/strategic-merge-patch+json"
	applyPatchType     = "application/apply-patch+yaml"
)

// TestNumbersThatDifferAreStored: each way to write replaces a number by another that is the
// same float64.
func TestNumbersThatDifferAreStored(t *testing.T) {
	a := inProcess(t, servertest.New(t))
	a.must(201, "POST", crdPath, widgetDefinition(`{"n":{"type":"number"},"a":{"type":"string"}}`))
	a.established("widgets.example.com")
	for i, pair := range [][2]string{
		{"9007199254740993", "9007199254740992"}, {"9007199254740993", "9007199254740992.0"}, {"9223372036854775807", "9223372036854775808"},
	} {
		path := fmt.Sprintf("%s/w%d", definedPath, i)
		body := func(n string) string { return definedWidget(fmt.Sprintf("w%d", i), `{"n":`+n+`}`) }
		shown := func(got answer) string { // the number as it is written
			_, rest, _ := strings.Cut(string(got.raw), `"n":`)
			text, _, _ := strings.Cut(rest, "}")
			return text
		}
		first := a.must(201, "PATCH", path+"?fieldManager=one", body(pair[0]), "Content-Type", applyPatchType)
		require.Equal(t, pair[0], shown(first))
		a.must(409, "PATCH", path+"?fieldManager=two", body(pair[1]), "Content-Type", applyPatchType)
		a.must(422, "PATCH", path, `[{"op":"test","path":"/spec/n","value":`+pair[1]+`}]`, "Content-Type", jsonPatchType)
		a.must(200, "PATCH", path, `[{"op":"test","path":"/spec/n","value":`+pair[0]+`}]`, "Content-Type", jsonPatchType)

		patched := a.must(200, "PATCH", path+"?fieldManager=three", `{"spec":{"n":`+pair[1]+`}}`)
		assert.NotEqual(t, pair[0], shown(patched))
		assert.Equal(t, 2.0, at(patched.body, "metadata", "generation"))
		assert.Contains(t, string(patched.raw), `"manager":"three"`)
		again := a.must(200, "PATCH", path, `{"spec":{"n":`+pair[1]+`}}`)
		assert.Equal(t, at(patched.body, "metadata", "resourceVersion"), at(again.body, "metadata", "resourceVersion"), "the same number is no change")

		put := a.must(200, "PUT", path, strings.Replace(body(pair[0]), `"metadata":{`, `"metadata":{"resourceVersion":"`+at(again.body, "metadata", "resourceVersion").(string)+`",`, 1))
		assert.Equal(t, pair[0], shown(put))
		assert.Equal(t, 3.0, at(put.body, "metadata", "generation"))
	}
}

// TestWholeFloatsAreIntegers in what is YAML and in strategic merge patches, and not in JSON.
func TestWholeFloatsAreIntegers(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/default/deployments"
	deployment := func(name, replicas string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"replicas":%s,"selector":{"matchLabels":{"a":"b"}},
			"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, name, replicas)
	}
	a := inProcess(t, servertest.New(t))
	a.must(201, "POST", path, deployment("d", "1"))
	for i, n := range []string{"3.0", "3e0", "30e-1"} {
		replicas := func(got answer) any { return at(got.body, "spec", "replicas") }
		name := fmt.Sprintf("d%d", i)
		assert.Equal(t, 3.0, replicas(a.must(201, "PATCH", path+"/"+name+"?fieldManager=m", deployment(name, n), "Content-Type", applyPatchType)), n)
		assert.Equal(t, 3.0, replicas(a.must(201, "POST", path, deployment("y"+name, n), "Content-Type", "application/yaml")), n)
		assert.Equal(t, 3.0, replicas(a.must(200, "PATCH", path+"/d", `{"spec":{"replicas":`+n+`}}`, "Content-Type", strategicPatchType)), n)
		a.must(200, "PATCH", path+"/d", `{"spec":{"template":{"spec":{"containers":[{"name":"c","ports":[{"containerPort":`+n+`}]}]}}}}`, "Content-Type", strategicPatchType)
		a.must(400, "POST", path, deployment("j"+name, n))
		a.must(422, "PATCH", path+"/d", `{"spec":{"replicas":`+n+`}}`)
		a.must(422, "PATCH", path+"/d", `[{"op":"replace","path":"/spec/replicas","value":`+n+`}]`, "Content-Type", jsonPatchType)
	}
	got := a.must(200, "GET", path+"/d", nil)
	ports, _ := at(got.body, "spec", "template", "spec", "containers").([]any)
	require.Len(t, ports, 1)
	assert.Len(t, at(ports[0].(map[string]any), "ports"), 1, "3.0 and 3 are one key")
	a.must(422, "PATCH", path+"/d", `{"spec":{"replicas":3.5}}`, "Content-Type", strategicPatchType)
}
