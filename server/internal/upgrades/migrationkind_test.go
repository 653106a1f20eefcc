package upgrades_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/builtin/storagemigration"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestMigrationSupportsAllVerbs: a migration of a resource that does not exist can be written by
// each verb, its status separately, in each version.
func TestMigrationSupportsAllVerbs(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t, serves(storagemigration.Kinds()...), func(b *server.Builder) {
		b.Serving.RuntimeConfig = map[string]string{"storagemigration.k8s.io/v1beta1": "true"}
	}))
	for _, version := range []string{"v1", "v1beta1"} {
		path := strings.Replace(migrations, "/v1/", "/"+version+"/", 1)
		apiVersion := "storagemigration.k8s.io/" + version
		whole := func(rest string) string {
			return fmt.Sprintf(`{"apiVersion":%q,"kind":"StorageVersionMigration","metadata":{"name":"m","labels":{"e2e":"x"}%s}`, apiVersion, rest)
		}
		const spec, condition = `"spec":{"resource":{"group":"","resource":"foo"}}`, `{"type":"TestCondition","status":"True","reason":"R","message":"M","lastTransitionTime":"2026-01-01T00:00:00Z"}`
		fresh := func() apitest.Response { return a.Must(201, "POST", path+"?fieldValidation=Strict", whole("},"+spec)) }
		again := func() {
			a.Must(200, "DELETE", path+"/m", nil)
			a.Must(404, "GET", path+"/m", nil)
			fresh()
		}
		assert.Equal(t, map[string]any{}, fresh().Body["status"])
		a.Must(422, "PUT", path+"/m", whole(`},`+spec))
		now := a.Must(200, "GET", path+"/m", nil).ResourceVersion()
		put := a.Must(200, "PUT", path+"/m", whole(`,"resourceVersion":"`+now+`"},`+spec+`,"status":{"resourceVersion":"1"}`))
		assert.Empty(t, put.Body["status"])
		put = a.Must(200, "PUT", path+"/m/status", whole(`,"resourceVersion":"`+put.ResourceVersion()+`"},`+spec+`,"status":{"conditions":[`+condition+`]}`))
		assert.Len(t, apitest.Nested(a.Must(200, "GET", path+"/m/status", nil).Body, "status", "conditions"), 1)
		uid := apitest.NestedString(put.Body, "metadata", "uid")
		for i, kind := range []string{"apply-patch+yaml", "strategic-merge-patch+json", "merge-patch+json", "json-patch+json"} {
			query := "?fieldValidation=Strict"
			labels, status := `{"metadata":{"labels":{"test":"test"}}}`, `{"status":{"conditions":[`+condition+`]}}`
			switch {
			case i == 0:
				query += "&fieldManager=test-apply&force=true"
				head := fmt.Sprintf(`{"apiVersion":%q,"kind":"StorageVersionMigration","metadata":{"name":"m"`, apiVersion)
				labels, status = head+`,"labels":{"test":"test"}}}`, head+`},`+status[1:]
			case i == 3:
				labels = `[{"op":"add","path":"/metadata/labels/test","value":"test"}]`
				status = `[{"op":"add","path":"/status/conditions","value":[` + condition + `]}]`
			}
			again()
			got := a.Must(200, "PATCH", path+"/m"+query, labels, "Content-Type", "application/"+kind)
			assert.Equal(t, "test", apitest.NestedString(got.Body, "metadata", "labels", "test"), kind)
			assert.NotEqual(t, uid, apitest.NestedString(got.Body, "metadata", "uid"))
			again()
			got = a.Must(200, "PATCH", path+"/m/status"+query, status, "Content-Type", "application/"+kind)
			assert.Len(t, apitest.Nested(got.Body, "status", "conditions"), 1, kind)
		}
		assert.Equal(t, []string{"m"}, a.Must(200, "GET", path+"?labelSelector=e2e%3Dx", nil).Names())
		a.Must(422, "PATCH", path+"/m", `{"spec":{"resource":{"resource":"pods"}}}`)
		a.Must(422, "POST", path, strings.Replace(whole("},"+spec), `"foo"`, `"Foo"`, 1))
		a.Must(200, "DELETE", path+"?labelSelector=e2e%3Dx", nil)
		assert.Empty(t, a.Must(200, "GET", path, nil).Names())
	}
}

// TestMigrationsEndOnce: updates cannot change how a migration began or ended.
func TestMigrationsEndOnce(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, serves(storagemigration.Kinds()...))
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", migrations, newMigration("m", "", "configmaps"))
	s.Settle()
	ended := a.Must(200, "GET", migrations+"/m", nil)
	assert.NotEmpty(t, apitest.NestedString(ended.Body, "status", "resourceVersion"))
	for status, fault := range map[string]string{
		`{"resourceVersion":"1"}`: "status.resourceVersion FieldValueInvalid",
		`{"resourceVersion":"x"}`: "status.resourceVersion FieldValueInvalid",
		`{"conditions":[]}`:       "status.conditions FieldValueInvalid",
		`{"conditions":[{"type":"Succeeded","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},
			{"type":"Failed","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`: "status.conditions FieldValueInvalid",
	} {
		got := a.Must(422, "PATCH", migrations+"/m/status", `{"status":`+status+`}`)
		assert.Contains(t, got.Causes(), fault, status)
	}
	assert.Equal(t, ended.ResourceVersion(), a.Must(200, "GET", migrations+"/m", nil).ResourceVersion())
}

// TestMigrationWaitsForItsKind: a migration waits a minute for its kind, because its definition
// may be created later.
func TestMigrationWaitsForItsKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t, serves(storagemigration.Kinds()...))
		a := apitest.InProcess(t, s)
		begun := time.Now()
		for name, resource := range map[string]string{"early": "widgets", "never": "nothings"} {
			a.Must(201, "POST", migrations, newMigration(name, "example.com", resource))
		}
		state := func(name string) (list []string) {
			conditions, _ := apitest.Nested(a.Must(200, "GET", migrations+"/"+name, nil).Body, "status", "conditions").([]any)
			for _, c := range conditions {
				list = append(list, apitest.NestedString(c, "type")+" "+apitest.NestedString(c, "status")+": "+apitest.NestedString(c, "message"))
			}
			return list
		}
		s.Settle()
		assert.Empty(t, state("early"))
		time.Sleep(22 * time.Second)
		a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
		s.Settle()
		a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"a":"1"}`))
		time.Sleep(15 * time.Second)
		assert.Equal(t, []string{"Running False: 0 of 1 objects were stored anew", "Succeeded True: 0 of 1 objects were stored anew"}, state("early"))
		assert.Empty(t, state("never"))
		time.Sleep(time.Until(begun.Add(70 * time.Second)))
		assert.Equal(t, []string{"Running False: there are no objects of nothings.example.com", "Failed True: there are no objects of nothings.example.com"}, state("never"))
		require.NoError(t, s.Shutdown(t.Context()))
	})
}
