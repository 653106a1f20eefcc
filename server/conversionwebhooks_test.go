package server_test

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
	"orch.io/controlplane/server/servertest"
)

// barDefinition defines bars, whose length of v1, the stored version, is the size of v2.
// webhook is where their webhook is.
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

// barWebhook converts bars, and counts.
type barWebhook struct {
	reviews, objects atomic.Int64
	lie              atomic.Pointer[func(review map[string]any) string] // the answer instead
	first            atomic.Pointer[func(context.Context)]              // what is done before
}

func (b *barWebhook) lies(answer func(review map[string]any) string) {
	if b.lie.Store(&answer); answer == nil {
		b.lie.Store(nil)
	}
}

// does lets the webhook do something before it answers.
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
	objects, _ := at(review, "request", "objects").([]any)
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
		obj["apiVersion"] = text(review, "request", "desiredAPIVersion")
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": review["kind"], "apiVersion": review["apiVersion"], "response": map[string]any{
		"uid": text(review, "request", "uid"), "result": map[string]any{"status": "Success"}, "convertedObjects": objects,
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

func barServer(t testing.TB) (*api, *barWebhook, *servertest.Server) {
	s, hook := servertest.New(t), &barWebhook{}
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, barDefinition(barService))
	s.Settle()
	s.InstallWebhooks(fstest.MapFS{}, hook)
	return a, hook, s
}

// TestConvertedByAWebhook: every verb in each version.
func TestConvertedByAWebhook(t *testing.T) {
	t.Parallel()
	a, hook, s := barServer(t)
	made := a.must(201, "POST", barPath("v2", ""), bar("v2", "b", `{"size":1}`))
	assert.Equal(t, map[string]any{"size": 1.0, "color": "red"}, made.body["spec"])
	asked := hook.reviews.Load()
	assert.EqualValues(t, 2, asked, "to the stored version, and back")
	assert.Equal(t, made.body, a.must(200, "GET", barPath("v2", "b"), nil).body)
	stored := a.must(200, "GET", barPath("v1", "b"), nil).body
	assert.Equal(t, map[string]any{"length": 1.0, "color": "red"}, stored["spec"])
	assert.Equal(t, asked, hook.reviews.Load(), "what is known is not asked for")

	a.must(201, "POST", barPath("v2", "")+"?dryRun=All", bar("v2", "dry", `{"size":1}`))
	a.must(404, "GET", barPath("v2", "dry"), nil)

	put := a.must(200, "PUT", barPath("v2", "b"), strings.Replace(string(made.raw), `"size":1`, `"size":2`, 1))
	assert.Equal(t, map[string]any{"size": 2.0, "color": "red"}, put.body["spec"])
	for _, patch := range []struct{ kind, body, want string }{
		{"application/merge-patch+json", `{"spec":{"size":3}}`, "3"},
		{"application/json-patch+json", `[{"op":"replace","path":"/spec/size","value":4}]`, "4"},
	} {
		got := a.must(200, "PATCH", barPath("v2", "b"), patch.body, "Content-Type", patch.kind)
		assert.Equal(t, patch.want, fmt.Sprint(at(got.body, "spec", "size")))
		assert.Equal(t, patch.want, fmt.Sprint(at(a.must(200, "GET", barPath("v1", "b"), nil).body, "spec", "length")))
	}
	asked = hook.reviews.Load()
	same := a.must(200, "PATCH", barPath("v1", "b"), `{"spec":{"length":4}}`)
	assert.Equal(t, asked, hook.reviews.Load(), "the stored version needs no webhook")
	a.must(200, "PATCH", barPath("v2", "b"), `{"spec":{"size":4}}`)
	assert.Equal(t, same.version(), a.must(200, "GET", barPath("v1", "b"), nil).version(), "nothing changed")

	status := a.must(200, "PATCH", barPath("v2", "b")+"/status", `{"status":{"n":7},"spec":{"size":9}}`)
	assert.EqualValues(t, 4, at(status.body, "spec", "size"))
	assert.EqualValues(t, 7, at(a.must(200, "GET", barPath("v1", "b"), nil).body, "status", "n"))
	for _, version := range []string{"v1", "v2"} {
		assert.EqualValues(t, 4, at(a.must(200, "GET", barPath(version, "b")+"/scale", nil).body, "spec", "replicas"), version)
	}
	a.must(200, "PATCH", barPath("v2", "b")+"/scale", `{"spec":{"replicas":5}}`)
	assert.EqualValues(t, 5, at(a.must(200, "GET", barPath("v1", "b"), nil).body, "spec", "length"))

	mine, err := s.Objects().Get(t.Context(), meta.GroupResource{Group: "example.com", Resource: "bars"}, meta.Key{Namespace: "default", Name: "b"})
	require.NoError(t, err)
	assert.EqualValues(t, 5, mine.Int("spec", "length"), "parts of the server see the stored version")

	a.must(200, "PATCH", barPath("v2", "b"), `{"metadata":{"finalizers":["example.com/f"]}}`)
	assert.Equal(t, "example.com/v2", a.must(200, "DELETE", barPath("v2", "b"), nil).body["apiVersion"])
	a.must(200, "PATCH", barPath("v2", "b"), `{"metadata":{"finalizers":null}}`)
	a.must(404, "GET", barPath("v1", "b"), nil)
	a.must(201, "POST", barPath("v1", ""), bar("v1", "c", `{"length":1}`))
	a.must(200, "DELETE", barPath("v2", ""), nil)
	assert.Empty(t, a.must(200, "GET", barPath("v1", ""), nil).names())
}

// TestListsConvertedByAWebhook: a list takes few reviews, in every form.
func TestListsConvertedByAWebhook(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	const bars = 600
	for i := range bars {
		a.must(201, "POST", barPath("v1", ""), bar("v1", fmt.Sprintf("b%03d", i), fmt.Sprintf(`{"length":%d}`, i)))
	}
	assert.Zero(t, hook.reviews.Load())
	list := a.must(200, "GET", barPath("v2", ""), nil)
	items, _ := list.body["items"].([]any)
	require.Len(t, items, bars)
	for i, item := range items {
		require.EqualValues(t, i, at(item, "spec", "size"))
		require.Equal(t, "example.com/v2", text(item, "apiVersion"))
	}
	assert.EqualValues(t, 2, hook.reviews.Load())
	assert.Equal(t, list.body, a.must(200, "GET", barPath("v2", ""), nil).body)
	assert.EqualValues(t, 2, hook.reviews.Load(), "the answers are kept")

	exact := list.version()
	a.must(200, "PATCH", barPath("v1", "b007"), `{"spec":{"length":1007}}`)
	old := a.must(200, "GET", barPath("v2", "")+"?limit=8&resourceVersionMatch=Exact&resourceVersion="+exact, nil)
	assert.EqualValues(t, 7, at(old.body["items"].([]any)[7], "spec", "size"))
	now := a.must(200, "GET", barPath("v2", "")+"?limit=8", nil)
	assert.EqualValues(t, 1007, at(now.body["items"].([]any)[7], "spec", "size"))

	table := a.must(200, "GET", barPath("v2", "")+"?limit=1", nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	row := table.body["rows"].([]any)[0]
	assert.Equal(t, []any{"b000", 0.0}, at(row, "cells"))
	partial := a.must(200, "GET", barPath("v2", "b001"), nil, "Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	assert.Equal(t, "b001", text(partial.body, "metadata", "name"))
	assert.Contains(t, string(a.must(200, "GET", barPath("v2", "b001"), nil, "Accept", "application/yaml").raw), "size: 1\n")
}

// TestWatchesConvertedByAWebhook: many watchers of one version ask once.
func TestWatchesConvertedByAWebhook(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	a.must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	version := a.must(200, "GET", barPath("v1", ""), nil).version()
	var watches []*watching
	for range 5 {
		watches = append(watches, a.watch(barPath("v2", "")+"?watch=1&resourceVersion="+version), a.watch(barPath("v1", "")+"?watch=1&resourceVersion="+version))
	}
	initial := a.watch(barPath("v2", "") + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	assert.EqualValues(t, 1, at(initial.next().Object, "spec", "size"))
	assert.Equal(t, "BOOKMARK", initial.next().Type)
	table := a.watch(barPath("v2", "")+"?watch=1&resourceVersion="+version, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	asked := hook.objects.Load()
	a.must(201, "POST", barPath("v1", ""), bar("v1", "b", `{"length":2}`))
	a.must(200, "DELETE", barPath("v1", "b"), nil)
	for i, w := range watches {
		field := []string{"size", "length"}[i%2]
		for _, kind := range []string{"ADDED", "DELETED"} {
			e := w.next()
			assert.Equal(t, kind, e.Type)
			assert.EqualValues(t, 2, at(e.Object, "spec", field))
		}
	}
	assert.Equal(t, []any{"b", 2.0}, at(table.next().Object["rows"].([]any)[0], "cells"))
	assert.LessOrEqual(t, hook.objects.Load()-asked, int64(2), "the new object, and the one that went")
}

// TestOwnersAcrossWebhookVersions: fields are owned in the version that they were written
// in, and counted in all.
func TestOwnersAcrossWebhookVersions(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	apply := func(code int, version, manager, spec string) answer {
		t.Helper()
		return a.must(code, "PATCH", barPath(version, "b")+"?fieldManager="+manager, bar(version, "b", spec), "Content-Type", "application/apply-patch+yaml")
	}
	apply(201, "v1", "one", `{"length":1}`)
	refused := apply(409, "v2", "two", `{"size":2}`)
	assert.Contains(t, text(refused.body, "message"), `conflict with "one"`)
	apply(200, "v2", "two", `{"size":1,"color":"blue"}`)
	assert.Equal(t, map[string]any{"length": 1.0, "color": "blue"}, apply(200, "v1", "one", `{}`).body["spec"], "the other has it")
	assert.Equal(t, map[string]any{"color": "blue"}, apply(200, "v2", "two", `{"color":"blue"}`).body["spec"])
	apply(200, "v2", "two", `{"size":3}`)
	assert.Equal(t, map[string]any{"color": "green"}, apply(200, "v1", "two", `{"color":"green"}`).body["spec"], "what was applied in the other version goes")

	apply(200, "v1", "one", `{"length":4}`)
	a.must(200, "PATCH", barPath("v2", "b")+"?fieldManager=three", `{"spec":{"size":5}}`)
	owners := map[string]string{}
	for _, e := range at(a.must(200, "GET", barPath("v2", "b"), nil).body, "metadata", "managedFields").([]any) {
		owners[text(e, "manager")] = text(e, "apiVersion")
	}
	assert.Equal(t, map[string]string{"two": "example.com/v1", "three": "example.com/v2"}, owners)

	hook.lies(func(map[string]any) string { return `{}` })
	assert.Equal(t, 500, a.do("PATCH", barPath("v1", "b")+"?fieldManager=one", bar("v1", "b", `{"length":6}`), "Content-Type", "application/apply-patch+yaml").code)
}

// TestAnUnreachableWebhook: what needs no webhook works without.
func TestAnUnreachableWebhook(t *testing.T) {
	t.Parallel()
	a, hook, s := barServer(t)
	for _, name := range []string{"a", "b", "c"} {
		a.must(201, "POST", barPath("v1", ""), bar("v1", name, `{"length":1}`))
		a.must(200, "PATCH", barPath("v2", name), `{"metadata":{"finalizers":["example.com/f"]}}`)
	}
	version := a.must(200, "PATCH", barPath("v1", "a"), `{"spec":{"length":2}}`).version()
	v1, v2 := a.watch(barPath("v1", "")+"?watch=1&resourceVersion="+version), a.watch(barPath("v2", "")+"?watch=1&resourceVersion="+version)
	hook.lies(func(map[string]any) string { return "no" })
	const told = "conversion webhook for example.com/v1, Kind=Bar failed: "
	for _, get := range []string{barPath("v2", "a"), barPath("v2", ""), barPath("v2", "a") + "/scale"} {
		got := a.do("GET", get, nil)
		assert.Equal(t, 500, got.code, get)
		assert.True(t, strings.HasPrefix(text(got.body, "message"), told), "%s", got.raw)
	}
	assert.Equal(t, 500, a.do("POST", barPath("v2", ""), bar("v2", "d", `{"size":1}`)).code)
	assert.Len(t, a.must(200, "GET", barPath("v1", ""), nil).names(), 3)
	a.must(200, "PATCH", barPath("v1", "a"), `{"spec":{"length":3}}`)
	assert.Equal(t, "MODIFIED a", v1.next().String())
	failed := v2.next()
	assert.Equal(t, "ERROR", failed.Type)
	assert.True(t, strings.HasPrefix(text(failed.Object, "message"), told))
	assert.Empty(t, v2.ended())

	a.must(200, "DELETE", barPath("v1", "a"), nil)
	a.must(200, "PATCH", barPath("v1", "a"), `{"metadata":{"finalizers":null}}`)
	assert.Equal(t, "Success", a.must(200, "DELETE", barPath("v2", "b"), nil).body["status"], "nothing but a Status can be shown")
	a.must(200, "PATCH", barPath("v1", "b"), `{"metadata":{"finalizers":null}}`)
	require.NoError(t, s.Objects().Delete(t.Context(), meta.GroupResource{Group: "example.com", Resource: "bars"}, meta.Key{Namespace: "default", Name: "c"}, registry.DeleteOptions{}))
	a.must(200, "PATCH", barPath("v1", "c"), `[{"op":"remove","path":"/metadata/finalizers"}]`, "Content-Type", "application/json-patch+json")
	assert.Empty(t, a.must(200, "GET", barPath("v1", ""), nil).names())
}

// TestAnotherWebhook: a changed definition is in effect at once, and objects of the older
// storage version are read.
func TestAnotherWebhook(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	a.must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	a.must(200, "GET", barPath("v2", "a"), nil)
	a.must(200, "PATCH", crdPath+"/bars.example.com", `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		"Content-Type", "application/json-patch+json")
	asked := hook.reviews.Load()
	assert.EqualValues(t, 1, at(a.must(200, "GET", barPath("v2", "a"), nil).body, "spec", "size"))
	assert.EqualValues(t, 1, at(a.must(200, "GET", barPath("v1", "a"), nil).body, "spec", "length"))
	assert.Equal(t, asked+1, hook.reviews.Load(), "it is stored in v1 still")
	before := a.must(200, "GET", barPath("v2", "a"), nil).version()
	assert.NotEqual(t, before, a.must(200, "PATCH", barPath("v2", "a"), `{}`).version(), "it is stored anew")
	asked = hook.reviews.Load()
	assert.EqualValues(t, 1, at(a.must(200, "GET", barPath("v2", "a"), nil).body, "spec", "size"))
	assert.Equal(t, asked, hook.reviews.Load())

	a.must(200, "PATCH", crdPath+"/bars.example.com", `{"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"name":"nobody"}}}}}}`)
	assert.Equal(t, 500, a.do("GET", barPath("v1", "a"), nil).code)
}

// TestAConversionWebhookOverTLS: at a URL, by a certificate that the definition vouches for.
func TestAConversionWebhookOverTLS(t *testing.T) {
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
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, barDefinition(at(other)))
	s.Settle()
	a.must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	untrusted := a.do("GET", barPath("v2", "a"), nil)
	assert.Equal(t, 500, untrusted.code)
	assert.Contains(t, text(untrusted.body, "message"), "Kind=Bar failed: Post \""+remote.URL+"/convert?timeout=30s\": tls: failed to verify certificate")
	assert.Zero(t, hook.reviews.Load())
	a.must(200, "PATCH", crdPath+"/bars.example.com", `{"spec":{"conversion":{"webhook":{"clientConfig":`+at(ca)+`}}}}`)
	assert.EqualValues(t, 1, sizeOf(a, "a"))
	assert.Contains(t, string(a.must(200, "GET", "/metrics", nil).raw),
		`apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="bars.example.com",from_version="v1",succeeded="true",to_version="v2"} 1`)
}

// sizeOf is the size of a bar of v2.
func sizeOf(a *api, name string) any {
	return at(a.must(200, "GET", barPath("v2", name), nil).body, "spec", "size")
}
