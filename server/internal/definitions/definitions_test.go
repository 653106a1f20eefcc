package definitions_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

const ()

// watchLines opens a watch and returns its lines. The channel is closed when the watch ends.
func watchLines(t testing.TB, s *servertest.Server, path string) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.Host()+path+"?watch=true", nil)
	require.NoError(t, err)
	answer, err := s.Client().Do(r)
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	out := make(chan string, 100)
	go func() {
		defer close(out)
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			out <- lines.Text()
		}
	}()
	return out
}

func conditionsOf(o *meta.Object) (words []string) {
	for _, c := range o.List("status", "conditions") {
		m := c.(map[string]any)
		words = append(words, fmt.Sprint(m["type"], "=", m["status"], " ", m["reason"]))
	}
	return words
}

func TestNewDefinitionIsServed(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	other := watchLines(t, s, "/api/v1/namespaces/default/configmaps")
	code, _ := apitest.Call(t, s, "GET", apitest.WidgetsPath, "")
	require.Equal(t, 404, code)
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	assert.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"},
		conditionsOf(apitest.Must(t, s, 200, "GET", apitest.WidgetDefinitionPath, "")))
	watch := watchLines(t, s, apitest.WidgetsPath)
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"a":"1"}`))
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("v", `{"a":"2"}`))
	assert.Contains(t, <-watch, `"name":"w"`)
	found := apitest.Must(t, s, 200, "GET", apitest.WidgetsPath+"?fieldSelector=spec.a%3D2", "")
	assert.Len(t, found.List("items"), 1)
	apitest.Must(t, s, 400, "GET", apitest.WidgetsPath+"?fieldSelector=spec.b%3D2", "")
	assert.Equal(t, "example.com", apitest.Must(t, s, 200, "GET", "/apis/example.com", "").String("name"))

	apitest.Must(t, s, 201, "POST", "/api/v1/namespaces/default/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	assert.Contains(t, <-other, `"name":"c"`, "watches of other kinds must continue")
}

func TestChangedDefinitionTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"},"b":{"type":"string"}}`))
	s.Settle()
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"b":"kept"}`))
	assert.Equal(t, "kept", apitest.Must(t, s, 200, "GET", apitest.WidgetsPath+"/w", "").String("spec", "b"))
	watch := watchLines(t, s, apitest.WidgetsPath)
	assert.Contains(t, <-watch, "kept")

	crd := apitest.Must(t, s, 200, "GET", apitest.WidgetDefinitionPath, "")
	var next map[string]any
	require.NoError(t, json.Unmarshal([]byte(apitest.NewWidgetDefinition(`{"a":{"type":"string","default":"x"},"n":{"type":"integer"}}`)), &next))
	meta.NewObject(next).SetResourceVersion(crd.ResourceVersion())
	body, err := json.Marshal(next)
	require.NoError(t, err)
	apitest.Must(t, s, 200, "PUT", apitest.WidgetDefinitionPath, string(body))
	_, open := <-watch
	assert.False(t, open, "a watch with the old schema must end")
	assert.Equal(t, map[string]any{"a": "x"}, apitest.Must(t, s, 200, "GET", apitest.WidgetsPath+"/w", "").Map("spec"), "no form made under the old schema is shown")
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath+"?fieldValidation=Strict", apitest.NewWidget("n", `{"n":1}`))

	apitest.Must(t, s, 200, "PATCH", apitest.WidgetDefinitionPath, `{"metadata":{"labels":{"l":"1"}}}`)
	watch = watchLines(t, s, apitest.WidgetsPath)
	<-watch
	<-watch
	apitest.Must(t, s, 200, "PATCH", apitest.WidgetDefinitionPath, `{"metadata":{"labels":{"l":"2"}}}`)
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("m", `{}`))
	assert.Contains(t, <-watch, `"name":"m"`, "a change that does not affect the schema must not end watches")
}

func TestDeletedDefinitionDeletesItsObjects(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("free", `{}`))
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, strings.Replace(apitest.NewWidget("held", `{}`), `"name"`, `"finalizers":["example.com/f"],"name"`, 1))
	watch := watchLines(t, s, apitest.WidgetsPath)
	apitest.Must(t, s, 200, "DELETE", apitest.WidgetDefinitionPath, "")
	late := apitest.Must(t, s, 403, "POST", apitest.WidgetsPath, apitest.NewWidget("late", `{}`))
	assert.Equal(t, `widgets.example.com "late" is forbidden: create not allowed while custom resource definition is terminating`, late.String("message"))
	apitest.Must(t, s, 404, "PUT", apitest.WidgetsPath+"/late", apitest.NewWidget("late", `{}`))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, o := apitest.Call(t, s, "GET", apitest.WidgetDefinitionPath, "")
		assert.Contains(c, conditionsOf(o), "Terminating=True InstanceDeletionInProgress")
	}, apitest.Timeout, 10*time.Millisecond)
	code, _ := apitest.Call(t, s, "GET", apitest.WidgetsPath+"/free", "")
	assert.Equal(t, 404, code)
	apitest.Must(t, s, 200, "PATCH", apitest.WidgetsPath+"/held", `{"metadata":{"finalizers":null}}`)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		code, _ := apitest.Call(t, s, "GET", apitest.WidgetDefinitionPath, "")
		assert.Equal(c, 404, code)
	}, apitest.Timeout, 10*time.Millisecond)
	code, _ = apitest.Call(t, s, "GET", apitest.WidgetsPath, "")
	assert.Equal(t, 404, code)
	for range watch { // until the watch ends
	}
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	assert.Empty(t, apitest.Must(t, s, 200, "GET", apitest.WidgetsPath, "").List("items"), "nothing came back")
}

func TestNameIsAcceptedForOneDefinition(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	role := strings.NewReplacer("widgets", "roles", "Widget", "Job2", "example.com", "rbac.authorization.k8s.io",
		`"metadata":{`, `"metadata":{"annotations":{"api-approved.kubernetes.io":"unapproved"},`).Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, role)
	s.Settle()
	assert.Equal(t, []string{"NamesAccepted=False PluralConflict", "Established=False NotAccepted"},
		conditionsOf(apitest.Must(t, s, 200, "GET", apitest.DefinitionsPath+"/roles.rbac.authorization.k8s.io", "")))
	list := apitest.Must(t, s, 200, "GET", "/apis/rbac.authorization.k8s.io/v1/roles", "")
	assert.Equal(t, "RoleList", list.Kind())
}

func TestAddedNamesThatConflictAreNotServed(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, strings.NewReplacer("widgets", "gadgets", `"kind":"Widget"`, `"kind":"Gadget","shortNames":["g"]`).Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`)))
	s.Settle()
	for _, c := range []struct {
		short  string
		reason string
		served []any
	}{
		{`["w"]`, "NamesAccepted=True NoConflicts", []any{"w"}},
		{`["g"]`, "NamesAccepted=False ShortNamesConflict", []any{"w"}},
		{`null`, "NamesAccepted=True NoConflicts", nil},
	} {
		apitest.Must(t, s, 200, "PATCH", apitest.WidgetDefinitionPath, `{"spec":{"names":{"shortNames":`+c.short+`}}}`)
		s.Settle()
		assert.Equal(t, []string{c.reason, "Established=True InitialNamesAccepted"}, conditionsOf(apitest.Must(t, s, 200, "GET", apitest.WidgetDefinitionPath, "")))
		for _, r := range apitest.Must(t, s, 200, "GET", "/apis/example.com/v1", "").List("resources") {
			if m := r.(map[string]any); m["name"] == "widgets" {
				assert.Equal(t, c.served, meta.NewObject(m).List("shortNames"))
			}
		}
	}
}

func TestServersOverOneStoreFollowEachOther(t *testing.T) {
	t.Parallel()
	store := apitest.KeepOpen{Backend: memstore.New(memstore.Options{})}
	over := func(b *server.Builder) { b.Storage = store }
	one, two := servertest.New(t, over), servertest.New(t, over)
	apitest.Must(t, one, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	one.Settle()
	apitest.Must(t, one, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"a":"1"}`))
	two.Settle()
	assert.Equal(t, "1", apitest.Must(t, two, 200, "GET", apitest.WidgetsPath+"/w", "").String("spec", "a"))

	three := servertest.New(t, over)
	assert.Equal(t, "1", apitest.Must(t, three, 200, "GET", apitest.WidgetsPath+"/w", "").String("spec", "a"), "served from the start")
	apitest.Must(t, three, 200, "DELETE", apitest.WidgetDefinitionPath, "")
	three.Settle()
	one.Settle()
	code, _ := apitest.Call(t, one, "GET", apitest.WidgetsPath, "")
	assert.Equal(t, 404, code)
}

func TestDefinitionsFromFiles(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"crds/widgets.json": {Data: []byte(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))}}
	s := servertest.New(t)
	s.InstallCRDs(files)
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`))
	apitest.Must(t, s, 200, "GET", apitest.WidgetDefinitionPath, "")

	static := servertest.New(t, func(b *server.Builder) {
		kinds, err := registry.FromCRDDir(files)
		require.NoError(t, err)
		b.Register(kinds...)
	})
	apitest.Must(t, static, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`))
	code, _ := apitest.Call(t, static, "GET", apitest.WidgetDefinitionPath, "")
	assert.Equal(t, 404, code, "a registered kind needs no definition")
}

// TestValidationPrecedesFieldOwnership: all violations of an object are reported even if its lists
// have duplicate keys, for which no owner can be tracked.
func TestValidationPrecedesFieldOwnership(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"},"color":{"type":"string","enum":["red"]},"list":{"type":"array",
		"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
		"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}`))
	s.Settle()
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("good", `{"color":"red","list":[{"name":"a"}]}`))
	for _, c := range []struct {
		spec   string
		fields []string
	}{
		{`{"color":"blue","list":[{"name":"a"},{}]}`, []string{"spec.color", "spec.list[1].name"}},
		{`{"color":"red","list":[{"name":"a"},{"name":"a"}]}`, []string{"spec.list[1]"}},
	} {
		for method, path := range map[string]string{"POST": apitest.WidgetsPath, "PUT": apitest.WidgetsPath + "/good"} {
			name := map[string]string{"POST": "bad", "PUT": "good"}[method]
			body := apitest.NewWidget(name, c.spec)
			if method == "PUT" {
				live := apitest.Must(t, s, 200, "GET", path, "")
				body = strings.Replace(body, `"metadata":{`, fmt.Sprintf(`"metadata":{"resourceVersion":%q,`, live.ResourceVersion()), 1)
			}
			got := apitest.Must(t, s, 422, method, path, body)
			var fields []string
			for _, cause := range got.List("details", "causes") {
				fields = append(fields, cause.(map[string]any)["field"].(string))
			}
			assert.Equal(t, c.fields, fields, "%s %s: %s", method, c.spec, got.String("message"))
			assert.Contains(t, got.String("message"), `"`+name+`" is invalid`)
		}
	}
}

// TestWriteResponseMatchesTheStoredObject: the response of a write and later reads are equal to the object that
// another server decodes from the stored bytes.
func TestWriteResponseMatchesTheStoredObject(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) { b.Names = names.Kubernetes })
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string","default":"x"},"n":{"type":"number"},
		"o":{"type":"object","nullable":true,"properties":{"p":{"type":"string","default":"y"},"q":{"type":"array","items":{"type":"object","properties":{"r":{"type":"integer","default":1}}}}}},
		"m":{"type":"object","additionalProperties":{"type":"object","properties":{"d":{"type":"boolean","default":false}}}},
		"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"is":{"x-kubernetes-int-or-string":true},"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}`))
	s.Settle()
	a := apitest.InProcess(t, s)
	for i, spec := range []string{
		`{}`, `null`, `{"a":null,"zz":1}`, `{"n":1.0,"is":1}`, `{"n":1e3,"is":"5%"}`, `{"o":null}`, `{"o":{}}`, `{"o":{"q":[{},{"r":2,"zz":1}]}}`,
		`{"m":{"k":{},"l":{"d":true,"zz":1}}}`, `{"any":{"x":[1,1.5,null,{"y":null}]}}`,
		`{"e":{"apiVersion":"v1","kind":"K","metadata":{"name":"n","labels":{"l":"v"},"zz":1},"spec":{"zz":1},"zz":1}}`,
	} {
		name := fmt.Sprint("w", i)
		written := a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget(name, spec), "Content-Type", "application/json")
		assert.Equal(t, string(written.Raw), string(a.Must(200, "GET", apitest.WidgetsPath+"/"+name, nil).Raw), spec)
	}
	other := apitest.InProcess(t, s.Fork(t))
	for _, path := range []string{apitest.WidgetsPath, apitest.WidgetsPath + "/w3", apitest.WidgetsPath + "/w7"} {
		for _, accept := range []string{
			"application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		} {
			here, there := a.Do("GET", path, nil, "Accept", accept), other.Do("GET", path, nil, "Accept", accept)
			assert.Equal(t, here.Code, there.Code)
			assert.Equal(t, string(here.Raw), string(there.Raw), "%s %s", path, accept)
		}
	}
}

// TestDefaultsAreBounded: a default in the items of a list is set in each item, so a small body could become an
// object of gigabytes.
func TestDefaultsAreBounded(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	define := func(text string) {
		apitest.Must(t, s, 200, "PUT", apitest.WidgetDefinitionPath, strings.Replace(apitest.NewWidgetDefinition(
			`{"a":{"type":"string"},"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"`+text+`"}}}}}`),
			`"metadata":{`, `"metadata":{"resourceVersion":"`+apitest.Must(t, s, 200, "GET", apitest.WidgetDefinitionPath, "").ResourceVersion()+`",`, 1))
		s.Settle()
	}
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"},"l":{"type":"array","items":{"type":"object"}}}`))
	s.Settle()
	many := `{"l":[{}` + strings.Repeat(",{}", 18_000) + `]}`
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("before", many))

	define(strings.Repeat("x", 200<<10))
	for _, body := range []string{apitest.NewWidget("w", many), apitest.NewWidget("before", many)} {
		o := apitest.Must(t, s, 413, "POST", apitest.WidgetsPath, body)
		require.Equal(t, "RequestEntityTooLarge", o.String("reason"))
	}
	apitest.Must(t, s, 413, "PATCH", apitest.WidgetsPath+"/before", `{"metadata":{"labels":{"a":"b"}}}`)
	o := apitest.Must(t, s, 200, "GET", apitest.WidgetsPath+"/before", "")
	require.True(t, meta.Equal(o.List("spec", "l"), slices.Repeat([]any{map[string]any{}}, 18_001)), "the object is shown without defaults")
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("few", `{"l":[{},{}]}`))

	define(strings.Repeat("x", 100))
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", many))
	apitest.Must(t, s, 200, "DELETE", apitest.WidgetsPath+"/before", "")
}

// TestDefinitionWithPlaceholderBundle: a manifest may have any text as the CA bundle of its conversion webhook until
// the actual bundle is injected.
func TestDefinitionWithPlaceholderBundle(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	hook := func(bundle string) string {
		return `"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://example.com/convert","caBundle":"` + bundle + `"},"conversionReviewVersions":["v1"]}},`
	}
	crd := strings.Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`), `"scope"`, hook("Cg==")+`"scope"`, 1)
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, crd)
	s.Settle()
	assert.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=False InvalidCABundle"}, conditionsOf(apitest.Must(t, s, 200, "GET", apitest.WidgetDefinitionPath, "")))
	apitest.Must(t, s, 404, "GET", apitest.WidgetsPath, "")

	patch := func(bundle string) string {
		return `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"` + bundle + `"}}}}}`
	}
	apitest.Must(t, s, 200, "PATCH", apitest.WidgetDefinitionPath, patch("bm9uc2Vuc2U="))
	tlsServer := httptest.NewTLSServer(nil)
	defer tlsServer.Close()
	valid := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsServer.Certificate().Raw}))
	apitest.Must(t, s, 200, "PATCH", apitest.WidgetDefinitionPath, patch(valid))
	s.Settle()
	assert.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"}, conditionsOf(apitest.Must(t, s, 200, "GET", apitest.WidgetDefinitionPath, "")))
	apitest.Must(t, s, 200, "GET", apitest.WidgetsPath, "")
	apitest.Must(t, s, 422, "PATCH", apitest.WidgetDefinitionPath, patch("Cg=="))
}

func TestScaleWithoutWantedSizeNamesThePath(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	crd := strings.Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"},"n":{"type":"integer"}}`), `"selectableFields"`,
		`"subresources":{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},"selectableFields"`, 1)
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, crd)
	s.Settle()
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`))
	status := apitest.Must(t, s, 500, "GET", apitest.WidgetsPath+"/w/scale", "")
	assert.Equal(t, `Internal error occurred: the spec replicas field ".spec.n" does not exist`, status.String("message"))
	apitest.Must(t, s, 200, "PATCH", apitest.WidgetsPath+"/w/scale", `{"spec":{"replicas":2}}`)
	assert.EqualValues(t, 2, apitest.Must(t, s, 200, "GET", apitest.WidgetsPath+"/w/scale", "").Int("spec", "replicas"))
}
