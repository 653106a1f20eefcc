package definitions_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/testcerts"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// barDefinition defines the kind Bar. The field length of v1, the stored version, is the field size of v2. webhook is
// the client configuration of the conversion webhook.
func barDefinition(webhook string) string {
	version := func(name, field string, storage bool) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.%[3]s","statusReplicasPath":".status.n"}},
			"additionalPrinterColumns":[{"name":"Long","type":"integer","jsonPath":".spec.%[3]s"}],"selectableFields":[{"jsonPath":".spec.%[3]s"}],
			"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%[3]q:{"type":"integer"},"color":{"type":"string","default":"red"}}},
			"status":{"type":"object","properties":{"n":{"type":"integer"}}}}}}}`, name, storage, field)
	}
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"bars.example.com"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"bars","kind":"Bar"},
	"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v9","v1"],"clientConfig":` + webhook + `}},
	"versions":[` + version("v1", "length", true) + `,` + version("v2", "size", false) + `]}}`
}

const barService = `{"service":{"name":"bars","namespace":"default","path":"/convert"}}`

// barWebhook converts bars and counts the reviews.
type barWebhook struct {
	reviews, objects atomic.Int64
	lie              atomic.Pointer[func(review map[string]any) string] // makes the response instead
	first            atomic.Pointer[func(context.Context)]              // called before each response
}

func (b *barWebhook) lies(answer func(review map[string]any) string) {
	if b.lie.Store(&answer); answer == nil {
		b.lie.Store(nil)
	}
}

// does sets a function that the webhook calls before each response.
func (b *barWebhook) does(first func(context.Context)) { b.first.Store(&first) }

func (b *barWebhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review map[string]any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != "/convert" || r.URL.Query().Get("timeout") != "30s" {
		http.Error(w, "this is no review", http.StatusBadRequest)
		return
	}
	b.reviews.Add(1)
	if first := b.first.Load(); first != nil {
		(*first)(r.Context())
	}
	if lie := b.lie.Load(); lie != nil {
		fmt.Fprint(w, (*lie)(review))
		return
	}
	objects, _ := apitest.Nested(review, "request", "objects").([]any)
	b.objects.Add(int64(len(objects)))
	for _, o := range objects {
		obj, _ := o.(map[string]any)
		spec, _ := obj["spec"].(map[string]any)
		from, to := "length", "size"
		if obj["apiVersion"] == "example.com/v2" {
			from, to = to, from
		}
		if v, ok := spec[from]; ok {
			spec[to] = v
			delete(spec, from)
		}
		obj["apiVersion"] = apitest.NestedString(review, "request", "desiredAPIVersion")
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": review["kind"], "apiVersion": review["apiVersion"], "response": map[string]any{
		"uid": apitest.NestedString(review, "request", "uid"), "result": map[string]any{"status": "Success"}, "convertedObjects": objects,
	}})
}

func barPath(version, name string) string {
	path := "/apis/example.com/" + version + "/namespaces/default/bars"
	if name != "" {
		path += "/" + name
	}
	return path
}

func bar(version, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Bar","metadata":{"name":%q},"spec":%s}`, version, name, spec)
}

func barServer(t testing.TB) (*apitest.Client, *barWebhook, *servertest.Server) {
	s, hook := servertest.New(t), &barWebhook{}
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, barDefinition(barService))
	s.Settle()
	s.InstallWebhooks(fstest.MapFS{}, hook)
	return a, hook, s
}

// TestWebhookConversion: every verb works in each version.
func TestWebhookConversion(t *testing.T) {
	t.Parallel()
	a, hook, s := barServer(t)
	made := a.Must(201, "POST", barPath("v2", ""), bar("v2", "b", `{"size":1}`))
	assert.Equal(t, map[string]any{"size": 1.0, "color": "red"}, made.Body["spec"])
	asked := hook.reviews.Load()
	assert.EqualValues(t, 2, asked, "to the stored version and back")
	assert.Equal(t, made.Body, a.Must(200, "GET", barPath("v2", "b"), nil).Body)
	stored := a.Must(200, "GET", barPath("v1", "b"), nil).Body
	assert.Equal(t, map[string]any{"length": 1.0, "color": "red"}, stored["spec"])
	assert.Equal(t, asked, hook.reviews.Load(), "the results must be reused")

	a.Must(201, "POST", barPath("v2", "")+"?dryRun=All", bar("v2", "dry", `{"size":1}`))
	a.Must(404, "GET", barPath("v2", "dry"), nil)

	put := a.Must(200, "PUT", barPath("v2", "b"), strings.Replace(string(made.Raw), `"size":1`, `"size":2`, 1))
	assert.Equal(t, map[string]any{"size": 2.0, "color": "red"}, put.Body["spec"])
	for _, patch := range []struct{ kind, body, want string }{
		{"application/merge-patch+json", `{"spec":{"size":3}}`, "3"},
		{"application/json-patch+json", `[{"op":"replace","path":"/spec/size","value":4}]`, "4"},
	} {
		got := a.Must(200, "PATCH", barPath("v2", "b"), patch.body, "Content-Type", patch.kind)
		assert.Equal(t, patch.want, fmt.Sprint(apitest.Nested(got.Body, "spec", "size")))
		assert.Equal(t, patch.want, fmt.Sprint(apitest.Nested(a.Must(200, "GET", barPath("v1", "b"), nil).Body, "spec", "length")))
	}
	asked = hook.reviews.Load()
	same := a.Must(200, "PATCH", barPath("v1", "b"), `{"spec":{"length":4}}`)
	assert.Equal(t, asked, hook.reviews.Load(), "the stored version needs no webhook")
	a.Must(200, "PATCH", barPath("v2", "b"), `{"spec":{"size":4}}`)
	assert.Equal(t, same.ResourceVersion(), a.Must(200, "GET", barPath("v1", "b"), nil).ResourceVersion(), "the object must not change")

	status := a.Must(200, "PATCH", barPath("v2", "b")+"/status", `{"status":{"n":7},"spec":{"size":9}}`)
	assert.EqualValues(t, 4, apitest.Nested(status.Body, "spec", "size"))
	assert.EqualValues(t, 7, apitest.Nested(a.Must(200, "GET", barPath("v1", "b"), nil).Body, "status", "n"))
	for _, version := range []string{"v1", "v2"} {
		assert.EqualValues(t, 4, apitest.Nested(a.Must(200, "GET", barPath(version, "b")+"/scale", nil).Body, "spec", "replicas"), version)
	}
	a.Must(200, "PATCH", barPath("v2", "b")+"/scale", `{"spec":{"replicas":5}}`)
	assert.EqualValues(t, 5, apitest.Nested(a.Must(200, "GET", barPath("v1", "b"), nil).Body, "spec", "length"))

	mine, err := s.Objects().Get(t.Context(), meta.GroupResource{Group: "example.com", Resource: "bars"}, meta.Key{Namespace: "default", Name: "b"})
	require.NoError(t, err)
	assert.EqualValues(t, 5, mine.Int("spec", "length"), "components of the server see the stored version")

	a.Must(200, "PATCH", barPath("v2", "b"), `{"metadata":{"finalizers":["example.com/f"]}}`)
	assert.Equal(t, "example.com/v2", a.Must(200, "DELETE", barPath("v2", "b"), nil).Body["apiVersion"])
	a.Must(200, "PATCH", barPath("v2", "b"), `{"metadata":{"finalizers":null}}`)
	a.Must(404, "GET", barPath("v1", "b"), nil)
	a.Must(201, "POST", barPath("v1", ""), bar("v1", "c", `{"length":1}`))
	a.Must(200, "DELETE", barPath("v2", ""), nil)
	assert.Empty(t, a.Must(200, "GET", barPath("v1", ""), nil).Names())
}

// TestWebhookConversionOfLists: a list needs few reviews, in every encoding.
func TestWebhookConversionOfLists(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	const bars = 600
	for i := range bars {
		a.Must(201, "POST", barPath("v1", ""), bar("v1", fmt.Sprintf("b%03d", i), fmt.Sprintf(`{"length":%d}`, i)))
	}
	assert.Zero(t, hook.reviews.Load())
	list := a.Must(200, "GET", barPath("v2", ""), nil)
	items, _ := list.Body["items"].([]any)
	require.Len(t, items, bars)
	for i, item := range items {
		require.EqualValues(t, i, apitest.Nested(item, "spec", "size"))
		require.Equal(t, "example.com/v2", apitest.NestedString(item, "apiVersion"))
	}
	assert.EqualValues(t, 2, hook.reviews.Load())
	assert.Equal(t, list.Body, a.Must(200, "GET", barPath("v2", ""), nil).Body)
	assert.EqualValues(t, 2, hook.reviews.Load(), "the results must be kept")

	exact := list.ResourceVersion()
	a.Must(200, "PATCH", barPath("v1", "b007"), `{"spec":{"length":1007}}`)
	old := a.Must(200, "GET", barPath("v2", "")+"?limit=8&resourceVersionMatch=Exact&resourceVersion="+exact, nil)
	assert.EqualValues(t, 7, apitest.Nested(old.Body["items"].([]any)[7], "spec", "size"))
	now := a.Must(200, "GET", barPath("v2", "")+"?limit=8", nil)
	assert.EqualValues(t, 1007, apitest.Nested(now.Body["items"].([]any)[7], "spec", "size"))

	table := a.Must(200, "GET", barPath("v2", "")+"?limit=1", nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	row := table.Body["rows"].([]any)[0]
	assert.Equal(t, []any{"b000", 0.0}, apitest.Nested(row, "cells"))
	partial := a.Must(200, "GET", barPath("v2", "b001"), nil, "Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	assert.Equal(t, "b001", apitest.NestedString(partial.Body, "metadata", "name"))
	assert.Contains(t, string(a.Must(200, "GET", barPath("v2", "b001"), nil, "Accept", "application/yaml").Raw), "size: 1\n")
}

// TestWebhookConversionOfWatches: many watches in a version share the reviews.
func TestWebhookConversionOfWatches(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	a.Must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	version := a.Must(200, "GET", barPath("v1", ""), nil).ResourceVersion()
	var watches []*apitest.Watcher
	for range 5 {
		watches = append(watches, a.Watch(barPath("v2", "")+"?watch=1&resourceVersion="+version), a.Watch(barPath("v1", "")+"?watch=1&resourceVersion="+version))
	}
	initial := a.Watch(barPath("v2", "") + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	assert.EqualValues(t, 1, apitest.Nested(initial.Next().Object, "spec", "size"))
	assert.Equal(t, "BOOKMARK", initial.Next().Type)
	table := a.Watch(barPath("v2", "")+"?watch=1&resourceVersion="+version, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	asked := hook.objects.Load()
	a.Must(201, "POST", barPath("v1", ""), bar("v1", "b", `{"length":2}`))
	a.Must(200, "DELETE", barPath("v1", "b"), nil)
	for i, w := range watches {
		field := []string{"size", "length"}[i%2]
		for _, kind := range []string{"ADDED", "DELETED"} {
			e := w.Next()
			assert.Equal(t, kind, e.Type)
			assert.EqualValues(t, 2, apitest.Nested(e.Object, "spec", field))
		}
	}
	assert.Equal(t, []any{"b", 2.0}, apitest.Nested(table.Next().Object["rows"].([]any)[0], "cells"))
	assert.LessOrEqual(t, hook.objects.Load()-asked, int64(2), "the new and the deleted object")
}

// TestFieldOwnershipAcrossWebhookVersions: fields are owned in the version in which they were written, and conflicts
// are found in all versions.
func TestFieldOwnershipAcrossWebhookVersions(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	apply := func(code int, version, manager, spec string) apitest.Response {
		t.Helper()
		return a.Must(code, "PATCH", barPath(version, "b")+"?fieldManager="+manager, bar(version, "b", spec), "Content-Type", "application/apply-patch+yaml")
	}
	apply(201, "v1", "one", `{"length":1}`)
	refused := apply(409, "v2", "two", `{"size":2}`)
	assert.Contains(t, apitest.NestedString(refused.Body, "message"), `conflict with "one"`)
	apply(200, "v2", "two", `{"size":1,"color":"blue"}`)
	assert.Equal(t, map[string]any{"length": 1.0, "color": "blue"}, apply(200, "v1", "one", `{}`).Body["spec"], "the other manager owns the field")
	assert.Equal(t, map[string]any{"color": "blue"}, apply(200, "v2", "two", `{"color":"blue"}`).Body["spec"])
	apply(200, "v2", "two", `{"size":3}`)
	assert.Equal(t, map[string]any{"color": "green"}, apply(200, "v1", "two", `{"color":"green"}`).Body["spec"], "fields that were applied in the other version are removed")

	apply(200, "v1", "one", `{"length":4}`)
	a.Must(200, "PATCH", barPath("v2", "b")+"?fieldManager=three", `{"spec":{"size":5}}`)
	owners := map[string]string{}
	for _, e := range apitest.Nested(a.Must(200, "GET", barPath("v2", "b"), nil).Body, "metadata", "managedFields").([]any) {
		owners[apitest.NestedString(e, "manager")] = apitest.NestedString(e, "apiVersion")
	}
	assert.Equal(t, map[string]string{"two": "example.com/v1", "three": "example.com/v2"}, owners)

	hook.lies(func(map[string]any) string { return `{}` })
	assert.Equal(t, 500, a.Do("PATCH", barPath("v1", "b")+"?fieldManager=one", bar("v1", "b", `{"length":6}`), "Content-Type", "application/apply-patch+yaml").Code)
}

// TestUnreachableWebhook: requests that need no conversion succeed.
func TestUnreachableWebhook(t *testing.T) {
	t.Parallel()
	a, hook, s := barServer(t)
	for _, name := range []string{"a", "b", "c"} {
		a.Must(201, "POST", barPath("v1", ""), bar("v1", name, `{"length":1}`))
		a.Must(200, "PATCH", barPath("v2", name), `{"metadata":{"finalizers":["example.com/f"]}}`)
	}
	version := a.Must(200, "PATCH", barPath("v1", "a"), `{"spec":{"length":2}}`).ResourceVersion()
	v1, v2 := a.Watch(barPath("v1", "")+"?watch=1&resourceVersion="+version), a.Watch(barPath("v2", "")+"?watch=1&resourceVersion="+version)
	hook.lies(func(map[string]any) string { return "no" })
	const told = "conversion webhook for example.com/v1, Kind=Bar failed: "
	for _, get := range []string{barPath("v2", "a"), barPath("v2", ""), barPath("v2", "a") + "/scale"} {
		got := a.Do("GET", get, nil)
		assert.Equal(t, 500, got.Code, get)
		assert.True(t, strings.HasPrefix(apitest.NestedString(got.Body, "message"), told), "%s", got.Raw)
	}
	assert.Equal(t, 500, a.Do("POST", barPath("v2", ""), bar("v2", "d", `{"size":1}`)).Code)
	assert.Len(t, a.Must(200, "GET", barPath("v1", ""), nil).Names(), 3)
	a.Must(200, "PATCH", barPath("v1", "a"), `{"spec":{"length":3}}`)
	assert.Equal(t, "MODIFIED a", v1.Next().String())
	failed := v2.Next()
	assert.Equal(t, "ERROR", failed.Type)
	assert.True(t, strings.HasPrefix(apitest.NestedString(failed.Object, "message"), told))
	assert.Empty(t, v2.ReadAll())

	a.Must(200, "DELETE", barPath("v1", "a"), nil)
	a.Must(200, "PATCH", barPath("v1", "a"), `{"metadata":{"finalizers":null}}`)
	assert.Equal(t, "Success", a.Must(200, "DELETE", barPath("v2", "b"), nil).Body["status"], "the object cannot be converted for the response")
	a.Must(200, "PATCH", barPath("v1", "b"), `{"metadata":{"finalizers":null}}`)
	require.NoError(t, s.Objects().Delete(t.Context(), meta.GroupResource{Group: "example.com", Resource: "bars"}, meta.Key{Namespace: "default", Name: "c"}, registry.DeleteOptions{}))
	a.Must(200, "PATCH", barPath("v1", "c"), `[{"op":"remove","path":"/metadata/finalizers"}]`, "Content-Type", "application/json-patch+json")
	assert.Empty(t, a.Must(200, "GET", barPath("v1", ""), nil).Names())
}

// TestChangedConversionWebhookTakesEffectAtOnce: a definition with another webhook takes effect at
// once, and objects stored in the older version stay readable.
func TestChangedConversionWebhookTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	a.Must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	a.Must(200, "GET", barPath("v2", "a"), nil)
	a.Must(200, "PATCH", apitest.DefinitionsPath+"/bars.example.com", `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		"Content-Type", "application/json-patch+json")
	asked := hook.reviews.Load()
	assert.EqualValues(t, 1, apitest.Nested(a.Must(200, "GET", barPath("v2", "a"), nil).Body, "spec", "size"))
	assert.EqualValues(t, 1, apitest.Nested(a.Must(200, "GET", barPath("v1", "a"), nil).Body, "spec", "length"))
	assert.Equal(t, asked+1, hook.reviews.Load(), "the object is still stored in v1")
	before := a.Must(200, "GET", barPath("v2", "a"), nil).ResourceVersion()
	assert.NotEqual(t, before, a.Must(200, "PATCH", barPath("v2", "a"), `{}`).ResourceVersion(), "the object must be stored in the new version")
	asked = hook.reviews.Load()
	assert.EqualValues(t, 1, apitest.Nested(a.Must(200, "GET", barPath("v2", "a"), nil).Body, "spec", "size"))
	assert.Equal(t, asked, hook.reviews.Load())

	a.Must(200, "PATCH", apitest.DefinitionsPath+"/bars.example.com", `{"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"name":"nobody"}}}}}}`)
	assert.Equal(t, 500, a.Do("GET", barPath("v1", "a"), nil).Code)
}

// TestConversionWebhookOverTLS: the webhook is called at a URL, and its certificate is verified with the CA bundle of
// the definition.
func TestConversionWebhookOverTLS(t *testing.T) {
	t.Parallel()
	ca, other, hook := testcerts.New(t, "ca", nil), testcerts.New(t, "other", nil), &barWebhook{}
	remote := httptest.NewUnstartedServer(hook)
	remote.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Issue(t, pkix.Name{CommonName: "hook"}, x509.ExtKeyUsageServerAuth, time.Hour)}}
	remote.Config.ErrorLog = log.New(io.Discard, "", 0)
	remote.StartTLS()
	t.Cleanup(remote.Close)
	at := func(authority *testcerts.Authority) string {
		return fmt.Sprintf(`{"url":%q,"caBundle":%q}`, remote.URL+"/convert", base64.StdEncoding.EncodeToString(authority.PEM()))
	}
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, barDefinition(at(other)))
	s.Settle()
	a.Must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	untrusted := a.Do("GET", barPath("v2", "a"), nil)
	assert.Equal(t, 500, untrusted.Code)
	assert.Contains(t, apitest.NestedString(untrusted.Body, "message"), "Kind=Bar failed: Post \""+remote.URL+"/convert?timeout=30s\": tls: failed to verify certificate")
	assert.Zero(t, hook.reviews.Load())
	a.Must(200, "PATCH", apitest.DefinitionsPath+"/bars.example.com", `{"spec":{"conversion":{"webhook":{"clientConfig":`+at(ca)+`}}}}`)
	assert.EqualValues(t, 1, sizeOf(a, "a"))
	assert.Contains(t, string(a.Must(200, "GET", "/metrics", nil).Raw),
		`apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="bars.example.com",from_version="v1",succeeded="true",to_version="v2"} 1`)
}

// sizeOf returns the size of a bar in v2.
func sizeOf(a *apitest.Client, name string) any {
	return apitest.Nested(a.Must(200, "GET", barPath("v2", name), nil).Body, "spec", "size")
}
