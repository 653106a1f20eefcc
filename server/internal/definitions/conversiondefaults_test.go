package definitions_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// lodgeDefinition defines lodges, whose versions v1 and v2 have different defaults at every depth.
// late adds a field with a default to both versions.
func lodgeDefinition(conversion string, late bool, storage string) string {
	version := func(n int) string {
		extra := ""
		if late {
			extra = fmt.Sprintf(`,"late":{"type":"string","default":"l%d"}`, n)
		}
		return fmt.Sprintf(`{"name":"v%[1]d","served":true,"storage":%[2]t,"additionalPrinterColumns":[{"name":"Own","type":"string","jsonPath":".spec.own2"}],
			"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","default":{},"properties":{
			"shared":{"type":"string","default":"s%[1]d"},"own%[1]d":{"type":"string","default":"o%[1]d"},
			"nested":{"type":"object","default":{},"properties":{"n":{"type":"string","default":"n%[1]d"},"m%[1]d":{"type":"string","default":"m%[1]d"}}},
			"items":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string","default":"x%[1]d"}}}}%[3]s}}}}}}`,
			n, storage == fmt.Sprintf("v%d", n), extra)
	}
	return `{"metadata":{"name":"lodges.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"lodges","kind":"Lodge"},
		"conversion":` + conversion + `,"versions":[` + version(1) + `,` + version(2) + `]}}`
}

func lodgePath(version string) string {
	return "/apis/example.com/" + version + "/namespaces/default/lodges"
}

// lodges serves lodges. convert changes the spec of an object that their webhook converts; nil: the
// strategy is None.
func lodges(t *testing.T, convert func(spec map[string]any)) (a *apitest.Client, define func(late bool, storage string)) {
	s, hook := servertest.New(t), &barWebhook{}
	a = apitest.InProcess(t, s)
	conversion := `{"strategy":"None"}`
	if convert != nil {
		conversion = `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":` + barService + `}}`
	}
	hook.lies(func(review map[string]any) string {
		objects := apitest.Nested(review, "request", "objects").([]any)
		for _, o := range objects {
			o.(map[string]any)["apiVersion"] = apitest.NestedString(review, "request", "desiredAPIVersion")
			if spec, ok := apitest.Nested(o, "spec").(map[string]any); ok {
				convert(spec)
			}
		}
		answer, _ := json.Marshal(map[string]any{"kind": review["kind"], "apiVersion": review["apiVersion"], "response": map[string]any{
			"uid": apitest.NestedString(review, "request", "uid"), "result": map[string]any{"status": "Success"}, "convertedObjects": objects}})
		return string(answer)
	})
	a.Must(201, "POST", apitest.DefinitionsPath, lodgeDefinition(conversion, false, "v1"))
	s.Settle()
	if convert != nil {
		s.InstallWebhooks(fstest.MapFS{}, hook)
	}
	return a, func(late bool, storage string) {
		live := a.Must(200, "GET", apitest.DefinitionsPath+"/lodges.example.com", nil)
		a.Must(200, "PUT", apitest.DefinitionsPath+"/lodges.example.com",
			strings.Replace(lodgeDefinition(conversion, late, storage), `"metadata":{`, `"metadata":{"resourceVersion":"`+live.ResourceVersion()+`",`, 1))
		s.Settle()
	}
}

// TestDefaultsOfConvertedObjects: an object gets the defaults of the version in which it is sent, and, when it is
// read, the defaults of the version in which it is stored, but never the defaults of the version in which it is read.
// The expected responses are those of kube-apiserver.
func TestDefaultsOfConvertedObjects(t *testing.T) {
	t.Parallel()
	keep := func(map[string]any) {}
	lose := func(spec map[string]any) {
		for _, field := range []string{"shared", "nested", "items", "late"} {
			delete(spec, field)
		}
	}
	type shown = map[string]string // the spec by version
	for _, c := range []struct {
		name    string
		convert func(map[string]any)
		a, b    shown // created in v1 and in v2, stored in v1
		late    shown // a, after its stored version got another default
		nulled  shown // a, after a patch in v2 removed fields that have defaults
		moved   shown // the spec {} put in v1, after v2 became the stored version
	}{
		{
			name: "None",
			a: shown{"v1": `{"items":[{"x":"x1"}],"nested":{"m1":"m1","n":"n1"},"own1":"o1","shared":"s1"}`,
				"v2": `{"items":[{"x":"x1"}],"nested":{"n":"n1"},"shared":"s1"}`},
			b: shown{"v1": `{"items":[{"x":"x2"}],"nested":{"m1":"m1","n":"n2"},"own1":"o1","shared":"s2"}`,
				"v2": `{"items":[{"x":"x2"}],"nested":{"n":"n2"},"shared":"s2"}`},
			late: shown{"v1": `{"items":[{"x":"x1"}],"late":"l1","nested":{"m1":"m1","n":"n1"},"own1":"o1","shared":"s1"}`,
				"v2": `{"items":[{"x":"x1"}],"late":"l1","nested":{"n":"n1"},"shared":"s1"}`},
			nulled: shown{"v1": `{"items":[{"x":"x1"}],"late":"l1","nested":{"m1":"m1","n":"n2"},"own1":"o1","shared":"s2"}`,
				"v2": `{"items":[{"x":"x1"}],"late":"l1","nested":{"n":"n2"},"shared":"s2"}`},
			moved: shown{"v1": `{"late":"l1","nested":{"n":"n1"},"shared":"s1"}`, "v2": `{"late":"l1","nested":{"m2":"m2","n":"n1"},"own2":"o2","shared":"s1"}`},
		},
		{
			name: "lossless", convert: keep,
			a: shown{"v1": `{"items":[{"x":"x1"}],"nested":{"m1":"m1","n":"n1"},"own1":"o1","shared":"s1"}`,
				"v2": `{"items":[{"x":"x1"}],"nested":{"n":"n1"},"shared":"s1"}`},
			b: shown{"v1": `{"items":[{"x":"x2"}],"nested":{"m1":"m1","n":"n2"},"own1":"o1","shared":"s2"}`,
				"v2": `{"items":[{"x":"x2"}],"nested":{"n":"n2"},"shared":"s2"}`},
			late: shown{"v1": `{"items":[{"x":"x1"}],"late":"l1","nested":{"m1":"m1","n":"n1"},"own1":"o1","shared":"s1"}`,
				"v2": `{"items":[{"x":"x1"}],"late":"l1","nested":{"n":"n1"},"shared":"s1"}`},
			nulled: shown{"v1": `{"items":[{"x":"x1"}],"late":"l1","nested":{"m1":"m1","n":"n2"},"own1":"o1","shared":"s2"}`,
				"v2": `{"items":[{"x":"x1"}],"late":"l1","nested":{"n":"n2"},"shared":"s2"}`},
			moved: shown{"v1": `{"late":"l1","nested":{"n":"n1"},"shared":"s1"}`, "v2": `{"late":"l1","nested":{"m2":"m2","n":"n1"},"own2":"o2","shared":"s1"}`},
		},
		{
			name: "lossy", convert: lose,
			a:      shown{"v1": `{"items":[{"x":"x1"}],"nested":{"m1":"m1","n":"n1"},"own1":"o1","shared":"s1"}`, "v2": `{}`},
			b:      shown{"v1": `{"nested":{"m1":"m1","n":"n1"},"own1":"o1","shared":"s1"}`, "v2": `{}`},
			late:   shown{"v1": `{"items":[{"x":"x1"}],"late":"l1","nested":{"m1":"m1","n":"n1"},"own1":"o1","shared":"s1"}`, "v2": `{}`},
			nulled: shown{"v1": `{"late":"l1","nested":{"m1":"m1","n":"n1"},"own1":"o1","shared":"s1"}`, "v2": `{}`},
			moved:  shown{"v1": `{}`, "v2": `{"late":"l2","nested":{"m2":"m2","n":"n2"},"own2":"o2","shared":"s2"}`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, define := lodges(t, c.convert)
			for version, want := range map[string]shown{"v1": c.a, "v2": c.b} {
				name := map[string]string{"v1": "a", "v2": "b"}[version]
				made := a.Must(201, "POST", lodgePath(version), `{"apiVersion":"example.com/`+version+`","kind":"Lodge","metadata":{"name":"`+name+`"},"spec":{"items":[{}]}}`)
				assert.JSONEq(t, want[version], specOf(t, made.Body), "created in %s", version)
				readsAs(t, a, name, want)
			}
			define(true, "v1")
			readsAs(t, a, "a", c.late)
			null := a.Must(200, "PATCH", lodgePath("v2")+"/a", `{"spec":{"nested":null,"shared":null,"own2":null}}`)
			assert.JSONEq(t, c.nulled["v2"], specOf(t, null.Body))
			readsAs(t, a, "a", c.nulled)
			define(true, "v2")
			readsAs(t, a, "a", c.nulled) // still stored in v1
			live := a.Must(200, "GET", lodgePath("v1")+"/a", nil)
			put := a.Must(200, "PUT", lodgePath("v1")+"/a", `{"apiVersion":"example.com/v1","kind":"Lodge","metadata":{"name":"a","resourceVersion":"`+live.ResourceVersion()+`"},"spec":{}}`)
			assert.JSONEq(t, c.moved["v1"], specOf(t, put.Body))
			readsAs(t, a, "a", c.moved)
		})
	}
}

func specOf(t *testing.T, obj any) string {
	spec, err := json.Marshal(apitest.Nested(obj, "spec"))
	require.NoError(t, err)
	return string(spec)
}

// readsAs reads a lodge in both versions by every kind of read.
func readsAs(t *testing.T, a *apitest.Client, name string, want map[string]string) {
	t.Helper()
	for version, spec := range want {
		path, only := lodgePath(version), "?fieldSelector=metadata.name%3D"+name
		assert.JSONEq(t, spec, specOf(t, a.Must(200, "GET", path+"/"+name, nil).Body), version)
		assert.JSONEq(t, spec, specOf(t, a.Must(200, "GET", path+only, nil).Body["items"].([]any)[0]), version)
		assert.JSONEq(t, spec, specOf(t, a.Watch(path+only+"&watch=1").Next().Object), version)
		table := a.Must(200, "GET", path+"/"+name, nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
		var cell any
		if strings.Contains(spec, "own2") && version == "v2" {
			cell = "o2"
		}
		assert.Equal(t, []any{name, cell}, apitest.Nested(table.Body["rows"].([]any)[0], "cells"), version)
	}
}

// TestReadsUseNewConverter: after the definition has another converter, unchanged objects are converted by it in
// every kind of read.
func TestReadsUseNewConverter(t *testing.T) {
	t.Parallel()
	a, _, s := barServer(t)
	a.Must(201, "POST", barPath("v1", ""), bar("v1", "b", `{"length":1}`))
	reads := func() (specs []any) {
		specs = append(specs, apitest.Nested(a.Must(200, "GET", barPath("v2", "b"), nil).Body, "spec", "size"))
		specs = append(specs, apitest.Nested(a.Must(200, "GET", barPath("v2", ""), nil).Body["items"].([]any)[0], "spec", "size"))
		specs = append(specs, apitest.Nested(a.Watch(barPath("v2", "")+"?watch=1").Next().Object, "spec", "size"))
		table := a.Must(200, "GET", barPath("v2", "b"), nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
		return append(specs, apitest.Nested(table.Body["rows"].([]any)[0], "cells").([]any)[1])
	}
	assert.Equal(t, []any{1.0, 1.0, 1.0, 1.0}, reads())
	for _, conversion := range []string{
		`{"strategy":"None"}`,
		`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":` + barService + `}}`,
	} {
		a.Must(200, "PATCH", apitest.DefinitionsPath+"/bars.example.com", `[{"op":"replace","path":"/spec/conversion","value":`+conversion+`}]`, "Content-Type", "application/json-patch+json")
		s.Settle()
		want := []any{nil, nil, nil, nil}
		if strings.Contains(conversion, "Webhook") {
			want = []any{1.0, 1.0, 1.0, 1.0}
		}
		assert.Equal(t, want, reads(), conversion)
	}
}

// TestConversionsAreRepeatedAfterAMinute: if a webhook converts differently while the definition stays the same, it
// is called again after a minute.
func TestConversionsAreRepeatedAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, hook, replaced := servertest.New(t), &barWebhook{}, false
		a := apitest.InProcess(t, s)
		a.Must(201, "POST", apitest.DefinitionsPath, barDefinition(barService))
		s.Settle()
		s.InstallWebhooks(fstest.MapFS{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			if replaced {
				body = bytes.ReplaceAll(body, []byte(`"length":1`), []byte(`"length":2`))
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			hook.ServeHTTP(w, r)
		}))
		a.Must(201, "POST", barPath("v1", ""), bar("v1", "b", `{"length":1}`))
		size := func() any { return apitest.Nested(a.Must(200, "GET", barPath("v2", "b"), nil).Body, "spec", "size") }
		assert.Equal(t, 1.0, size())
		replaced = true
		assert.Equal(t, 1.0, size())
		asked := hook.reviews.Load()
		time.Sleep(time.Minute)
		assert.Equal(t, 2.0, size())
		assert.Equal(t, 2.0, size())
		assert.Equal(t, asked+1, hook.reviews.Load())
	})
}
