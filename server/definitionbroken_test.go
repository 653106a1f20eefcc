package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestADefinitionThatIsBrokenInTheStore, as one may be that another program left there: its
// objects can be read and deleted, and nothing is written until somebody repairs it.
func TestADefinitionThatIsBrokenInTheStore(t *testing.T) {
	for name, spoil := range map[string]string{
		"no such type": `"type":"sting"`,
		"no schema":    `"$ref":"#/elsewhere"`,
		"broken rule":  `"type":"string","x-kubernetes-validations":[{"rule":"self +"}]`,
		"no rules":     `"type":"string","x-kubernetes-validations":7`,
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Options{})
			s := servertest.New(t, over(shared{store}))
			a := inProcess(t, s)
			a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
			s.Settle()
			a.must(201, "POST", definedPath, definedWidget("w", `{"a":"1"}`))
			spoilDefinition(t, store, `"type":"string"`, spoil)

			b := inProcess(t, servertest.New(t, over(shared{store})))
			assert.Equal(t, "1", text(b.must(200, "GET", definedPath+"/w", nil).body, "spec", "a"))
			assert.Equal(t, []string{"w"}, b.must(200, "GET", definedPath+"?fieldSelector=spec.a%3D1", nil).names())
			b.must(200, "GET", definedPath, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
			for _, path := range []string{"/apis/example.com/v1", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/example.com/v1"} {
				b.must(200, "GET", path, nil)
			}
			b.must(422, "POST", definedPath, definedWidget("n", `{"a":"1"}`))
			b.must(422, "PATCH", definedPath+"/w", `{"spec":{"a":"2"}}`)
			b.must(422, "PATCH", definedPath+"/n?fieldManager=m", definedWidget("n", `{"a":"1"}`), "Content-Type", "application/apply-patch+yaml")

			live := b.must(200, "GET", definedCRD, nil)
			repaired := widgetDefinition(`{"a":{"type":"string","maxLength":2}}`)
			b.must(200, "PUT", definedCRD, strings.Replace(repaired, `"metadata":{`, `"metadata":{"resourceVersion":"`+live.version()+`",`, 1))
			b.must(422, "PATCH", definedPath+"/w", `{"spec":{"a":"333"}}`)
			b.must(200, "PATCH", definedPath+"/w", `{"spec":{"a":"22"}}`)
			b.must(200, "DELETE", definedPath+"/w", nil)
		})
	}
}

// TestWhatIsEstablishedIsServed: what the server accepts as a definition it serves, also
// words and names that a program's own kinds may not have.
func TestWhatIsEstablishedIsServed(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	a.must(201, "POST", definedPath, definedWidget("w", `{"a":"1"}`))
	for _, version := range []string{
		`"selectableFields":[{"jsonPath":".spec.a b"},{"jsonPath":".spec.*"},{"jsonPath":".spec.'"},{"jsonPath":".spec.("},{"jsonPath":".spec.é"}]`,
		`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".spec.a","priority":-1},{"name":"A","type":"integer","jsonPath":".spec["}]`,
	} {
		for _, names := range []string{`"shortNames":["w","w"]`, `"categories":["all","all"]`, `"shortNames":["widgets","widget"]`} {
			a.must(200, "PATCH", definedCRD, `{"spec":{"names":{`+names+`},"versions":[{"name":"v1","served":true,"storage":true,`+version+`,
				"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"a b":{"type":"string"},
				"*":{"type":"string"},"'":{"type":"string"},"(":{"type":"string"},"é":{"type":"string"}}}}}}}]}}`)
			s.Settle()
			assert.Equal(t, []string{"w"}, a.must(200, "GET", definedPath, nil).names(), names+version)
		}
	}
	a.must(200, "PATCH", definedCRD, `[{"op":"add","path":"/spec/versions/0/selectableFields","value":[{"jsonPath":".spec.a b"}]}]`, "Content-Type", "application/json-patch+json")
	a.must(201, "POST", definedPath, definedWidget("blank", `{"a b":"2"}`))
	assert.Equal(t, []string{"blank"}, a.must(200, "GET", definedPath+"?fieldSelector=spec.a%20b%3D2", nil).names())
}

// TestADefinitionThatCannotBeServedKeepsItsObjects: nobody could delete them, and nobody
// would know of them any more without it.
func TestADefinitionThatCannotBeServedKeepsItsObjects(t *testing.T) {
	store := memstore.New(memstore.Options{})
	s := servertest.New(t, over(shared{store}))
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	a.must(201, "POST", definedPath, definedWidget("w", `{}`))
	spoilDefinition(t, store, `"strategy":"None"`, `"strategy":"Other"`)

	s = servertest.New(t, over(shared{store}))
	b := inProcess(t, s)
	assert.Equal(t, 404, b.do("GET", definedPath, nil).code)
	b.must(200, "DELETE", definedCRD, nil)
	s.Settle()
	crd := must(t, s, 200, "GET", definedCRD, "")
	assert.Contains(t, conditionsOf(crd), "Terminating=True InstanceDeletionFailed")
	b.must(200, "PATCH", definedCRD, `{"spec":{"conversion":{"strategy":"None"}}}`)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, 404, b.do("GET", definedCRD, nil).code)
	}, patience, 10*time.Millisecond)
	b.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	assert.Empty(t, b.must(200, "GET", definedPath, nil).names(), "nothing came back")
}

// spoilDefinition changes the text of the definition of widgets as another program would
// that knows nothing of definitions.
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
