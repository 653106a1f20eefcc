package server_test

import (
	"bufio"
	"bytes"
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
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

const (
	crdPath     = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	definedCRD  = crdPath + "/widgets.example.com"
	definedPath = "/apis/example.com/v1/namespaces/default/widgets"
)

// widgetDefinition defines widgets with a spec of the given properties.
func widgetDefinition(properties string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":` +
		properties + `}}}},"selectableFields":[{"jsonPath":".spec.a"}]}]}}`
}

func definedWidget(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q},"spec":%s}`, name, spec)
}

func call(t testing.TB, s *servertest.Server, method, path, body string) (int, *meta.Object) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.Host()+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[method])
	if method != "PATCH" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := s.Client().Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(answer.Body)
	require.NoError(t, err)
	var tree map[string]any
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		require.NoError(t, json.Unmarshal(b.Bytes(), &tree))
	}
	return answer.StatusCode, meta.NewObject(tree)
}

func must(t testing.TB, s *servertest.Server, code int, method, path, body string) *meta.Object {
	t.Helper()
	got, o := call(t, s, method, path, body)
	require.Equal(t, code, got, "%s %s: %v", method, path, o.Tree())
	return o
}

// watchLines opens a watch; the channel closes when it ends.
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

func TestADefinitionIsServedWhileTheServerRuns(t *testing.T) {
	s := servertest.New(t)
	other := watchLines(t, s, "/api/v1/namespaces/default/configmaps")
	code, _ := call(t, s, "GET", definedPath, "")
	require.Equal(t, 404, code)
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	assert.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"},
		conditionsOf(must(t, s, 200, "GET", definedCRD, "")))
	watch := watchLines(t, s, definedPath)
	must(t, s, 201, "POST", definedPath, definedWidget("w", `{"a":"1"}`))
	must(t, s, 201, "POST", definedPath, definedWidget("v", `{"a":"2"}`))
	assert.Contains(t, <-watch, `"name":"w"`)
	found := must(t, s, 200, "GET", definedPath+"?fieldSelector=spec.a%3D2", "")
	assert.Len(t, found.List("items"), 1)
	must(t, s, 400, "GET", definedPath+"?fieldSelector=spec.b%3D2", "")
	assert.Equal(t, "example.com", must(t, s, 200, "GET", "/apis/example.com", "").String("name"))

	must(t, s, 201, "POST", "/api/v1/namespaces/default/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	assert.Contains(t, <-other, `"name":"c"`, "watches of other kinds go on")
}

func TestAChangedDefinitionShowsAtOnce(t *testing.T) {
	s := servertest.New(t)
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"},"b":{"type":"string"}}`))
	s.Settle()
	must(t, s, 201, "POST", definedPath, definedWidget("w", `{"b":"kept"}`))
	assert.Equal(t, "kept", must(t, s, 200, "GET", definedPath+"/w", "").String("spec", "b"))
	watch := watchLines(t, s, definedPath)
	assert.Contains(t, <-watch, "kept")

	crd := must(t, s, 200, "GET", definedCRD, "")
	var next map[string]any
	require.NoError(t, json.Unmarshal([]byte(widgetDefinition(`{"a":{"type":"string","default":"x"},"n":{"type":"integer"}}`)), &next))
	meta.NewObject(next).SetResourceVersion(crd.ResourceVersion())
	body, err := json.Marshal(next)
	require.NoError(t, err)
	must(t, s, 200, "PUT", definedCRD, string(body))
	_, open := <-watch
	assert.False(t, open, "a watch that would show the old schema ends")
	assert.Equal(t, map[string]any{"a": "x"}, must(t, s, 200, "GET", definedPath+"/w", "").Map("spec"), "no form made under the old schema is shown")
	must(t, s, 201, "POST", definedPath+"?fieldValidation=Strict", definedWidget("n", `{"n":1}`))

	must(t, s, 200, "PATCH", definedCRD, `{"metadata":{"labels":{"l":"1"}}}`)
	watch = watchLines(t, s, definedPath)
	<-watch
	<-watch
	must(t, s, 200, "PATCH", definedCRD, `{"metadata":{"labels":{"l":"2"}}}`)
	must(t, s, 201, "POST", definedPath, definedWidget("m", `{}`))
	assert.Contains(t, <-watch, `"name":"m"`, "what does not touch the schema ends no watch")
}

func TestADeletedDefinitionTakesItsObjectsAlong(t *testing.T) {
	s := servertest.New(t)
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	must(t, s, 201, "POST", definedPath, definedWidget("free", `{}`))
	must(t, s, 201, "POST", definedPath, strings.Replace(definedWidget("held", `{}`), `"name"`, `"finalizers":["example.com/f"],"name"`, 1))
	watch := watchLines(t, s, definedPath)
	must(t, s, 200, "DELETE", definedCRD, "")
	late := must(t, s, 403, "POST", definedPath, definedWidget("late", `{}`))
	assert.Equal(t, `widgets.example.com "late" is forbidden: create not allowed while custom resource definition is terminating`, late.String("message"))
	must(t, s, 404, "PUT", definedPath+"/late", definedWidget("late", `{}`))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, o := call(t, s, "GET", definedCRD, "")
		assert.Contains(c, conditionsOf(o), "Terminating=True InstanceDeletionInProgress")
	}, patience, 10*time.Millisecond)
	code, _ := call(t, s, "GET", definedPath+"/free", "")
	assert.Equal(t, 404, code)
	must(t, s, 200, "PATCH", definedPath+"/held", `{"metadata":{"finalizers":null}}`)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		code, _ := call(t, s, "GET", definedCRD, "")
		assert.Equal(c, 404, code)
	}, patience, 10*time.Millisecond)
	code, _ = call(t, s, "GET", definedPath, "")
	assert.Equal(t, 404, code)
	for range watch { // ends
	}
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	assert.Empty(t, must(t, s, 200, "GET", definedPath, "").List("items"), "nothing came back")
}

func TestNamesAreGivenOnce(t *testing.T) {
	s := servertest.New(t)
	role := strings.NewReplacer("widgets", "roles", "Widget", "Job2", "example.com", "rbac.authorization.k8s.io",
		`"metadata":{`, `"metadata":{"annotations":{"api-approved.kubernetes.io":"unapproved"},`).Replace(widgetDefinition(`{"a":{"type":"string"}}`))
	must(t, s, 201, "POST", crdPath, role)
	s.Settle()
	assert.Equal(t, []string{"NamesAccepted=False PluralConflict", "Established=False NotAccepted"},
		conditionsOf(must(t, s, 200, "GET", crdPath+"/roles.rbac.authorization.k8s.io", "")))
	list := must(t, s, 200, "GET", "/apis/rbac.authorization.k8s.io/v1/roles", "")
	assert.Equal(t, "RoleList", list.Kind())
}

func TestNamesThatAreTakenLaterAreNotServed(t *testing.T) {
	s := servertest.New(t)
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	must(t, s, 201, "POST", crdPath, strings.NewReplacer("widgets", "gadgets", `"kind":"Widget"`, `"kind":"Gadget","shortNames":["g"]`).Replace(widgetDefinition(`{"a":{"type":"string"}}`)))
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
		must(t, s, 200, "PATCH", definedCRD, `{"spec":{"names":{"shortNames":`+c.short+`}}}`)
		s.Settle()
		assert.Equal(t, []string{c.reason, "Established=True InitialNamesAccepted"}, conditionsOf(must(t, s, 200, "GET", definedCRD, "")))
		for _, r := range must(t, s, 200, "GET", "/apis/example.com/v1", "").List("resources") {
			if m := r.(map[string]any); m["name"] == "widgets" {
				assert.Equal(t, c.served, meta.NewObject(m).List("shortNames"))
			}
		}
	}
}

// shared is a store that several servers use: none of them closes it.
type shared struct{ storage.Backend }

func (shared) Close() error { return nil }

func TestServersOverOneStoreFollowEachOther(t *testing.T) {
	store := shared{memstore.New(memstore.Options{})}
	over := func(b *server.Builder) { b.Storage = store }
	one, two := servertest.New(t, over), servertest.New(t, over)
	must(t, one, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	one.Settle()
	must(t, one, 201, "POST", definedPath, definedWidget("w", `{"a":"1"}`))
	two.Settle()
	assert.Equal(t, "1", must(t, two, 200, "GET", definedPath+"/w", "").String("spec", "a"))

	three := servertest.New(t, over)
	assert.Equal(t, "1", must(t, three, 200, "GET", definedPath+"/w", "").String("spec", "a"), "served from the start")
	must(t, three, 200, "DELETE", definedCRD, "")
	three.Settle()
	one.Settle()
	code, _ := call(t, one, "GET", definedPath, "")
	assert.Equal(t, 404, code)
}

func TestDefinitionsFromFiles(t *testing.T) {
	files := fstest.MapFS{"crds/widgets.json": {Data: []byte(widgetDefinition(`{"a":{"type":"string"}}`))}}
	s := servertest.New(t)
	s.InstallCRDs(files)
	must(t, s, 201, "POST", definedPath, definedWidget("w", `{}`))
	must(t, s, 200, "GET", definedCRD, "")

	static := servertest.New(t, func(b *server.Builder) {
		kinds, err := registry.FromCRDDir(files)
		require.NoError(t, err)
		b.Register(kinds...)
	})
	must(t, static, 201, "POST", definedPath, definedWidget("w", `{}`))
	code, _ := call(t, static, "GET", definedCRD, "")
	assert.Equal(t, 404, code, "a registered kind needs no definition")
}

// What is wrong with an object is told in whole, also if its lists cannot be
// read by their keys, so that nobody can own their items.
func TestFaultsComeBeforeOwnership(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"},"color":{"type":"string","enum":["red"]},"list":{"type":"array",
		"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
		"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}`))
	s.Settle()
	must(t, s, 201, "POST", definedPath, definedWidget("good", `{"color":"red","list":[{"name":"a"}]}`))
	for _, c := range []struct {
		spec   string
		fields []string
	}{
		{`{"color":"blue","list":[{"name":"a"},{}]}`, []string{"spec.color", "spec.list[1].name"}},
		{`{"color":"red","list":[{"name":"a"},{"name":"a"}]}`, []string{"spec.list[1]"}},
	} {
		for method, path := range map[string]string{"POST": definedPath, "PUT": definedPath + "/good"} {
			name := map[string]string{"POST": "bad", "PUT": "good"}[method]
			body := definedWidget(name, c.spec)
			if method == "PUT" {
				live := must(t, s, 200, "GET", path, "")
				body = strings.Replace(body, `"metadata":{`, fmt.Sprintf(`"metadata":{"resourceVersion":%q,`, live.ResourceVersion()), 1)
			}
			got := must(t, s, 422, method, path, body)
			var fields []string
			for _, cause := range got.List("details", "causes") {
				fields = append(fields, cause.(map[string]any)["field"].(string))
			}
			assert.Equal(t, c.fields, fields, "%s %s: %s", method, c.spec, got.String("message"))
			assert.Contains(t, got.String("message"), `"`+name+`" is invalid`)
		}
	}
}

// TestWrittenObjectsShowAsStored: what a write answers, and what its server shows
// of it then, is what another server makes of the stored bytes by the schema.
func TestWrittenObjectsShowAsStored(t *testing.T) {
	s := servertest.New(t, func(b *server.Builder) { b.Names = names.Kubernetes })
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string","default":"x"},"n":{"type":"number"},
		"o":{"type":"object","nullable":true,"properties":{"p":{"type":"string","default":"y"},"q":{"type":"array","items":{"type":"object","properties":{"r":{"type":"integer","default":1}}}}}},
		"m":{"type":"object","additionalProperties":{"type":"object","properties":{"d":{"type":"boolean","default":false}}}},
		"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"is":{"x-kubernetes-int-or-string":true},"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}`))
	s.Settle()
	a := inProcess(t, s)
	for i, spec := range []string{
		`{}`, `null`, `{"a":null,"zz":1}`, `{"n":1.0,"is":1}`, `{"n":1e3,"is":"5%"}`, `{"o":null}`, `{"o":{}}`, `{"o":{"q":[{},{"r":2,"zz":1}]}}`,
		`{"m":{"k":{},"l":{"d":true,"zz":1}}}`, `{"any":{"x":[1,1.5,null,{"y":null}]}}`,
		`{"e":{"apiVersion":"v1","kind":"K","metadata":{"name":"n","labels":{"l":"v"},"zz":1},"spec":{"zz":1},"zz":1}}`,
	} {
		name := fmt.Sprint("w", i)
		written := a.must(201, "POST", definedPath, definedWidget(name, spec), "Content-Type", "application/json")
		assert.Equal(t, string(written.raw), string(a.must(200, "GET", definedPath+"/"+name, nil).raw), spec)
	}
	other := inProcess(t, s.Fork(t))
	for _, path := range []string{definedPath, definedPath + "/w3", definedPath + "/w7"} {
		for _, accept := range []string{
			"application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		} {
			here, there := a.do("GET", path, nil, "Accept", accept), other.do("GET", path, nil, "Accept", accept)
			assert.Equal(t, here.code, there.code)
			assert.Equal(t, string(here.raw), string(there.raw), "%s %s", path, accept)
		}
	}
}

// TestDefaultsAreBounded: a default in the items of a list is filled in as often
// as a body has items, so a small body must not become an object of gigabytes.
func TestDefaultsAreBounded(t *testing.T) {
	s := servertest.New(t)
	define := func(text string) {
		must(t, s, 200, "PUT", definedCRD, strings.Replace(widgetDefinition(
			`{"a":{"type":"string"},"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"`+text+`"}}}}}`),
			`"metadata":{`, `"metadata":{"resourceVersion":"`+must(t, s, 200, "GET", definedCRD, "").ResourceVersion()+`",`, 1))
		s.Settle()
	}
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"},"l":{"type":"array","items":{"type":"object"}}}`))
	s.Settle()
	many := `{"l":[{}` + strings.Repeat(",{}", 18_000) + `]}`
	must(t, s, 201, "POST", definedPath, definedWidget("before", many))

	define(strings.Repeat("x", 200<<10))
	for _, body := range []string{definedWidget("w", many), definedWidget("before", many)} {
		o := must(t, s, 413, "POST", definedPath, body)
		require.Equal(t, "RequestEntityTooLarge", o.String("reason"))
	}
	must(t, s, 413, "PATCH", definedPath+"/before", `{"metadata":{"labels":{"a":"b"}}}`)
	o := must(t, s, 200, "GET", definedPath+"/before", "")
	require.True(t, meta.Equal(o.List("spec", "l"), slices.Repeat([]any{map[string]any{}}, 18_001)), "what was there is shown, without defaults")
	must(t, s, 201, "POST", definedPath, definedWidget("few", `{"l":[{},{}]}`))

	define(strings.Repeat("x", 100))
	must(t, s, 201, "POST", definedPath, definedWidget("w", many))
	must(t, s, 200, "DELETE", definedPath+"/before", "")
}

// TestDefinitionWithPlaceholderBundle: a manifest may hold anything as the CA bundle of its
// conversion webhook until the right one is injected.
func TestDefinitionWithPlaceholderBundle(t *testing.T) {
	s := servertest.New(t)
	hook := func(bundle string) string {
		return `"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://example.com/convert","caBundle":"` + bundle + `"},"conversionReviewVersions":["v1"]}},`
	}
	crd := strings.Replace(widgetDefinition(`{"a":{"type":"string"}}`), `"scope"`, hook("Cg==")+`"scope"`, 1)
	must(t, s, 201, "POST", crdPath, crd)
	s.Settle()
	assert.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=False InvalidCABundle"}, conditionsOf(must(t, s, 200, "GET", definedCRD, "")))
	must(t, s, 404, "GET", definedPath, "")

	patch := func(bundle string) string {
		return `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"` + bundle + `"}}}}}`
	}
	must(t, s, 200, "PATCH", definedCRD, patch("bm9uc2Vuc2U="))
	tlsServer := httptest.NewTLSServer(nil)
	defer tlsServer.Close()
	valid := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsServer.Certificate().Raw}))
	must(t, s, 200, "PATCH", definedCRD, patch(valid))
	s.Settle()
	assert.Equal(t, []string{"NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"}, conditionsOf(must(t, s, 200, "GET", definedCRD, "")))
	must(t, s, 200, "GET", definedPath, "")
	must(t, s, 422, "PATCH", definedCRD, patch("Cg=="))
}

func TestScaleWithoutWantedSizeNamesThePath(t *testing.T) {
	s := servertest.New(t)
	crd := strings.Replace(widgetDefinition(`{"a":{"type":"string"},"n":{"type":"integer"}}`), `"selectableFields"`,
		`"subresources":{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},"selectableFields"`, 1)
	must(t, s, 201, "POST", crdPath, crd)
	s.Settle()
	must(t, s, 201, "POST", definedPath, definedWidget("w", `{}`))
	status := must(t, s, 500, "GET", definedPath+"/w/scale", "")
	assert.Equal(t, `Internal error occurred: the spec replicas field ".spec.n" does not exist`, status.String("message"))
	must(t, s, 200, "PATCH", definedPath+"/w/scale", `{"spec":{"replicas":2}}`)
	assert.EqualValues(t, 2, must(t, s, 200, "GET", definedPath+"/w/scale", "").Int("spec", "replicas"))
}
