package server_test

import (
	"strings"
	"testing"

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
			const key = "customresourcedefinitions.apiextensions.k8s.io//widgets.example.com"
			rec, err := store.Get(t.Context(), key, 0)
			require.NoError(t, err)
			broken := strings.Replace(string(rec.Value), `"type":"string"`, spoil, 1)
			_, err = store.Commit(t.Context(), storage.Write{Key: key, Value: []byte(broken), Expect: rec.Revision})
			require.NoError(t, err)

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
