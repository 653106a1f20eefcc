package upgrades_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestUnknownFieldsOfStoredVersionsAreKept: fields without a place in the kind stay in records of
// a version other than the hub, including versions that the release does not have.
func TestUnknownFieldsOfStoredVersionsAreKept(t *testing.T) {
	t.Parallel()
	const ingress = `{"metadata":{"name":"i"},"spec":{"backend":{"serviceName":"s","servicePort":80}}}`
	const schema = `{"metadata":{"name":"i"},"spec":{"priorityLevelConfiguration":{"name":"exempt"}}}`
	for name, row := range map[string]struct{ first, second, path, made, version, body, key string }{
		"the newest":            {"1.18", "", "/apis/networking.k8s.io/%s/namespaces/default/ingresses", "v1beta1", "v1", ingress, "ingresses.networking.k8s.io/default/i"},
		"both":                  {"1.18", "1.21", "/apis/networking.k8s.io/%s/namespaces/default/ingresses", "v1beta1", "v1beta1", ingress, "ingresses.networking.k8s.io/default/i"},
		"neither of the served": {"1.22", "1.27", "/apis/flowcontrol.apiserver.k8s.io/%s/flowschemas", "v1beta1", "v1beta3", schema, "flowschemas.flowcontrol.apiserver.k8s.io//i"},
	} {
		for _, migrates := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", migrates), func(t *testing.T) {
				store := memstore.New(memstore.Options{})
				t.Cleanup(func() { _ = store.Close() })
				in := func(release string) func(*server.Builder) {
					return func(b *server.Builder) {
						b.Storage, b.Release, b.ServeIncompatible = apitest.KeepOpen{Backend: store}, release, true
					}
				}
				s := servertest.New(t, in(row.first))
				a := apitest.InProcess(t, s)
				a.Must(201, "POST", fmt.Sprintf(row.path, row.made), row.body)
				s.Restart(func(b *server.Builder) {
					rec, err := store.Get(t.Context(), row.key, 0)
					require.NoError(t, err)
					object, _, signed := strings.Cut(string(rec.Value), "\n") // which is another release's
					require.True(t, signed)
					text := strings.Replace(object, `"spec":{`, `"spec":{"futureField":{"kept":true},`, 1)
					_, err = store.Commit(t.Context(), storage.Write{Key: row.key, Value: []byte(text), Expect: rec.Revision})
					require.NoError(t, err)
					in(row.second)(b)
				})
				if migrates {
					require.NoError(t, s.Migrate(t.Context(), nil))
				}
				a.Must(200, "PATCH", fmt.Sprintf(row.path, row.version)+"/i", `{"metadata":{"labels":{"x":"y"}}}`)
				rec, err := store.Get(t.Context(), row.key, 0)
				require.NoError(t, err)
				assert.Contains(t, string(rec.Value), `"futureField":{"kept":true}`)
				assert.Contains(t, string(rec.Value), `"x":"y"`)
			})
		}
	}
}

// TestDefinitionV1beta1KeepsSchemas: values, lists, booleans and schemas within a schema are
// the same in both versions of a definition.
func TestDefinitionV1beta1KeepsSchemas(t *testing.T) {
	t.Parallel()
	const of = "/apis/apiextensions.k8s.io/%s/customresourcedefinitions"
	a := apitest.NewInRelease(t, "1.21")
	for i, property := range []string{
		`{"type":"string","default":"x"}`, `{"type":"string","enum":["a","b"]}`, `{"type":"integer","default":1}`, `{"type":"boolean","default":true}`,
		`{"type":"object","default":{"a":1},"properties":{"a":{"type":"integer"}}}`, `{"type":"object","additionalProperties":{"type":"string","maxLength":3}}`,
		`{"type":"array","items":{"type":"string","x-kubernetes-int-or-string":false},"default":["a"]}`,
		`{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`, `{"type":"object","additionalProperties":true}`,
	} {
		name := fmt.Sprintf("r%ds.example.com", i)
		schema := `{"type":"object","properties":{"spec":{"type":"object","properties":{"a":` + property + `}}}}`
		head := func(kind string) string {
			return fmt.Sprintf(`{"metadata":{"name":"%[1]s%[2]ds.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"%[1]s%[2]ds","kind":"K%[1]s%[2]d"},`, kind, i)
		}
		made := a.Must(201, "POST", fmt.Sprintf(of, "v1"), head("r")+`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":`+schema+`}}]}}`)
		want := apitest.Nested(apitest.Nested(made.Body, "spec", "versions").([]any)[0], "schema", "openAPIV3Schema")
		old := a.Must(200, "GET", fmt.Sprintf(of, "v1beta1")+"/"+name, nil)
		assert.Equal(t, want, apitest.Nested(old.Body, "spec", "validation", "openAPIV3Schema"), property)
		a.Must(200, "PATCH", fmt.Sprintf(of, "v1beta1")+"/"+name, map[string]any{"spec": old.Body["spec"], "metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
		now := a.Must(200, "GET", fmt.Sprintf(of, "v1")+"/"+name, nil)
		assert.Equal(t, want, apitest.Nested(apitest.Nested(now.Body, "spec", "versions").([]any)[0], "schema", "openAPIV3Schema"), property)
		a.Must(200, "GET", fmt.Sprintf(of, "v1beta1"), nil)
		again := a.Must(201, "POST", fmt.Sprintf(of, "v1beta1"), head("o")+`"preserveUnknownFields":false,"version":"v1","validation":{"openAPIV3Schema":`+schema+`}}}`)
		assert.Equal(t, want, apitest.Nested(again.Body, "spec", "validation", "openAPIV3Schema"), property)
	}
}
