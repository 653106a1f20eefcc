package definitions_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestBrokenDefinitionInStore: if another program stored an invalid definition, its objects can be read and deleted,
// but not written until the definition is repaired.
func TestBrokenDefinitionInStore(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"no such type": `"type":"sting"`,
		"no schema":    `"$ref":"#/elsewhere"`,
		"broken rule":  `"type":"string","x-kubernetes-validations":[{"rule":"self +"}]`,
		"no rules":     `"type":"string","x-kubernetes-validations":7`,
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Options{})
			s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
			a := apitest.InProcess(t, s)
			a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
			s.Settle()
			a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"a":"1"}`))
			spoilDefinition(t, store, `"type":"string"`, spoil)

			b := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store})))
			assert.Equal(t, "1", apitest.NestedString(b.Must(200, "GET", apitest.WidgetsPath+"/w", nil).Body, "spec", "a"))
			assert.Equal(t, []string{"w"}, b.Must(200, "GET", apitest.WidgetsPath+"?fieldSelector=spec.a%3D1", nil).Names())
			b.Must(200, "GET", apitest.WidgetsPath, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
			for _, path := range []string{"/apis/example.com/v1", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/example.com/v1"} {
				b.Must(200, "GET", path, nil)
			}
			b.Must(422, "POST", apitest.WidgetsPath, apitest.NewWidget("n", `{"a":"1"}`))
			b.Must(422, "PATCH", apitest.WidgetsPath+"/w", `{"spec":{"a":"2"}}`)
			b.Must(422, "PATCH", apitest.WidgetsPath+"/n?fieldManager=m", apitest.NewWidget("n", `{"a":"1"}`), "Content-Type", "application/apply-patch+yaml")

			live := b.Must(200, "GET", apitest.WidgetDefinitionPath, nil)
			repaired := apitest.NewWidgetDefinition(`{"a":{"type":"string","maxLength":2}}`)
			b.Must(200, "PUT", apitest.WidgetDefinitionPath, strings.Replace(repaired, `"metadata":{`, `"metadata":{"resourceVersion":"`+live.ResourceVersion()+`",`, 1))
			b.Must(422, "PATCH", apitest.WidgetsPath+"/w", `{"spec":{"a":"333"}}`)
			b.Must(200, "PATCH", apitest.WidgetsPath+"/w", `{"spec":{"a":"22"}}`)
			b.Must(200, "DELETE", apitest.WidgetsPath+"/w", nil)
		})
	}
}

// TestEstablishedDefinitionsAreServed: every definition that the server accepts is served, including names that
// registered kinds may not have.
func TestEstablishedDefinitionsAreServed(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"a":"1"}`))
	for _, version := range []string{
		`"selectableFields":[{"jsonPath":".spec.a b"},{"jsonPath":".spec.*"},{"jsonPath":".spec.'"},{"jsonPath":".spec.("},{"jsonPath":".spec.é"}]`,
		`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".spec.a","priority":-1},{"name":"A","type":"integer","jsonPath":".spec["}]`,
	} {
		for _, names := range []string{`"shortNames":["w","w"]`, `"categories":["all","all"]`, `"shortNames":["widgets","widget"]`} {
			a.Must(200, "PATCH", apitest.WidgetDefinitionPath, `{"spec":{"names":{`+names+`},"versions":[{"name":"v1","served":true,"storage":true,`+version+`,
				"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"a b":{"type":"string"},
				"*":{"type":"string"},"'":{"type":"string"},"(":{"type":"string"},"é":{"type":"string"}}}}}}}]}}`)
			s.Settle()
			assert.Equal(t, []string{"w"}, a.Must(200, "GET", apitest.WidgetsPath, nil).Names(), names+version)
		}
	}
	a.Must(200, "PATCH", apitest.WidgetDefinitionPath, `[{"op":"add","path":"/spec/versions/0/selectableFields","value":[{"jsonPath":".spec.a b"}]}]`, "Content-Type", "application/json-patch+json")
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("blank", `{"a b":"2"}`))
	assert.Equal(t, []string{"blank"}, a.Must(200, "GET", apitest.WidgetsPath+"?fieldSelector=spec.a%20b%3D2", nil).Names())
}

// TestUnservableDefinitionIsNotRemoved: without the definition, its objects could not be deleted and would be hidden.
func TestUnservableDefinitionIsNotRemoved(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`))
	spoilDefinition(t, store, `"strategy":"None"`, `"strategy":"Other"`)

	s = servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
	b := apitest.InProcess(t, s)
	assert.Equal(t, 404, b.Do("GET", apitest.WidgetsPath, nil).Code)
	b.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
	s.Settle()
	crd := apitest.Must(t, s, 200, "GET", apitest.WidgetDefinitionPath, "")
	assert.Contains(t, conditionsOf(crd), "Terminating=True InstanceDeletionFailed")
	b.Must(200, "PATCH", apitest.WidgetDefinitionPath, `{"spec":{"conversion":{"strategy":"None"}}}`)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, 404, b.Do("GET", apitest.WidgetDefinitionPath, nil).Code)
	}, apitest.Timeout, 10*time.Millisecond)
	b.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	assert.Empty(t, b.Must(200, "GET", apitest.WidgetsPath, nil).Names(), "the objects must be gone")
}

// spoilDefinition changes the stored definition of widgets without validation.
func spoilDefinition(t *testing.T, store storage.Backend, old, anew string) {
	t.Helper()
	const key = "customresourcedefinitions.apiextensions.k8s.io//widgets.example.com"
	rec, err := store.Get(t.Context(), key, 0)
	require.NoError(t, err)
	broken := strings.Replace(string(rec.Value), old, anew, 1)
	require.NotEqual(t, string(rec.Value), broken)
	_, err = store.Commit(t.Context(), storage.Write{Key: key, Value: []byte(broken), Expect: rec.Revision})
	require.NoError(t, err)
}
