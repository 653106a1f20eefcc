package definitions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// siteDefinition defines the kind Site. The field address of v1, the stored version, is host and port in v2.
const siteDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"sites.example.com"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"sites","kind":"Site"},
	"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"name":"sites","namespace":"default","path":"/convert"}}}},
	"versions":[
	{"name":"v1","served":true,"storage":true,"selectableFields":[{"jsonPath":".address"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{"address":{"type":"string"}}}}},
	{"name":"v2","served":true,"storage":false,"selectableFields":[{"jsonPath":".host"},{"jsonPath":".port"}],"schema":{"openAPIV3Schema":{"type":"object","properties":
		{"host":{"type":"string"},"port":{"type":"integer"},"kind2":{"type":"string","default":"plain"}}}},
		"additionalPrinterColumns":[{"name":"Host","type":"string","jsonPath":".host"}]}]}}`

// siteWebhook converts sites. The label zone of v1 is the label area in v2.
type siteWebhook struct {
	objects atomic.Int64
	away    atomic.Bool
}

func (h *siteWebhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review map[string]any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || h.away.Load() {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	objects, _ := apitest.Nested(review, "request", "objects").([]any)
	h.objects.Add(int64(len(objects)))
	for _, o := range objects {
		site, _ := o.(map[string]any)
		labels, _ := apitest.Nested(site, "metadata", "labels").(map[string]any)
		if site["apiVersion"] == "example.com/v1" {
			host, port, _ := strings.Cut(apitest.NestedString(site, "address"), ":")
			if site["host"] = host; port != "" {
				site["port"] = json.Number(port)
			}
			delete(site, "address")
			rename(labels, "zone", "area")
		} else {
			site["address"] = apitest.NestedString(site, "host")
			if port := apitest.Nested(site, "port"); port != nil {
				site["address"] = fmt.Sprintf("%s:%v", apitest.NestedString(site, "host"), port)
			}
			delete(site, "host")
			delete(site, "port")
			rename(labels, "area", "zone")
		}
		site["apiVersion"] = apitest.NestedString(review, "request", "desiredAPIVersion")
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": review["kind"], "apiVersion": review["apiVersion"], "response": map[string]any{
		"uid": apitest.NestedString(review, "request", "uid"), "result": map[string]any{"status": "Success"}, "convertedObjects": objects,
	}})
}

func rename(m map[string]any, from, to string) {
	if v, ok := m[from]; ok {
		m[to] = v
		delete(m, from)
	}
}

func sitePath(version, name string) string {
	return strings.TrimSuffix("/apis/example.com/"+version+"/namespaces/default/sites/"+name, "/")
}

func siteServer(t *testing.T) (*apitest.Client, *siteWebhook) {
	s, hook := servertest.New(t), &siteWebhook{}
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, siteDefinition)
	s.Settle()
	s.InstallWebhooks(fstest.MapFS{}, hook)
	return a, hook
}

// site returns the body of a Site in v1.
func createSite(a *apitest.Client, name, address string, labels ...string) {
	a.T.Helper()
	own := map[string]any{}
	for i := 0; i < len(labels); i += 2 {
		own[labels[i]] = labels[i+1]
	}
	a.Must(201, "POST", sitePath("v1", ""), map[string]any{"apiVersion": "example.com/v1", "kind": "Site",
		"metadata": map[string]any{"name": name, "labels": own}, "address": address})
}

// TestListsSelectByConvertedFields: selectors of a version refer to the fields that the version shows, whichever
// version is stored.
func TestListsSelectByConvertedFields(t *testing.T) {
	t.Parallel()
	a, hook := siteServer(t)
	createSite(a, "a", "one:80", "zone", "x")
	createSite(a, "b", "one:81", "zone", "y")
	createSite(a, "c", "two:80")
	createSite(a, "d", "one")
	assert.Zero(t, hook.objects.Load())
	for selector, want := range map[string]string{
		"/v1?fieldSelector=address%3Done:80":                  "a",
		"/v1?fieldSelector=address!%3Done:80":                 "b c d",
		"/v2?fieldSelector=host%3Done":                        "a b d",
		"/v2?fieldSelector=host%3Done,port%3D80":              "a",
		"/v2?fieldSelector=host!%3Done":                       "c",
		"/v2?fieldSelector=port%3D":                           "d",
		"/v2?fieldSelector=host%3Done,metadata.name!%3Da":     "b d",
		"/v2?fieldSelector=host%3Dthree":                      "",
		"/v1?labelSelector=zone%3Dx":                          "a",
		"/v2?labelSelector=zone%3Dx":                          "",
		"/v2?labelSelector=area":                              "a b",
		"/v2?labelSelector=area%3Dy&fieldSelector=host%3Done": "b",
	} {
		version, query, _ := strings.Cut(selector[1:], "?")
		got := a.Must(200, "GET", sitePath(version, "")+"?"+query, nil)
		assert.Equal(t, want, strings.Join(got.Names(), " "), selector)
		for _, item := range apitest.Nested(got.Body, "items").([]any) {
			assert.Equal(t, "example.com/"+version, apitest.NestedString(item, "apiVersion"))
		}
	}
	assert.EqualValues(t, 4, hook.objects.Load(), "each object must be converted once")
	a.Must(400, "GET", sitePath("v2", "")+"?fieldSelector=address%3Done", nil)
	a.Must(400, "GET", sitePath("v1", "")+"?fieldSelector=host%3Done", nil)

	table := a.Must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Dtwo", nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	require.Len(t, table.Body["rows"], 1)
	assert.Equal(t, []any{"two"}, apitest.Nested(table.Body["rows"].([]any)[0], "cells").([]any)[1:])
	partial := a.Must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Dtwo", nil, "Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	assert.Equal(t, []string{"c"}, partial.Names())

	a.Must(200, "DELETE", sitePath("v2", "")+"?fieldSelector=host%3Done,port%3D80", nil)
	assert.Equal(t, []string{"b", "c", "d"}, a.Must(200, "GET", sitePath("v1", ""), nil).Names())
	a.Must(200, "DELETE", sitePath("v1", "")+"?fieldSelector=address%3Dtwo:80", nil)
	assert.Equal(t, []string{"b", "d"}, a.Must(200, "GET", sitePath("v1", ""), nil).Names())
}

// TestPagesSelectByConvertedFields: the limit counts selected objects, and all pages show one revision.
func TestPagesSelectByConvertedFields(t *testing.T) {
	t.Parallel()
	a, hook := siteServer(t)
	var want []string
	for i := range 40 {
		name := fmt.Sprintf("s%02d", i)
		if i%4 == 0 {
			want = append(want, name)
		}
		createSite(a, name, fmt.Sprintf("h%d:1", i%4))
	}
	version := a.Must(200, "GET", sitePath("v1", "")+"?limit=1", nil).ResourceVersion()
	pages := func(limit int, between func()) (got []string, last apitest.Response) {
		path := fmt.Sprintf("%s?fieldSelector=host%%3Dh0&limit=%d", sitePath("v2", ""), limit)
		for token := ""; ; between() {
			last = a.Must(200, "GET", path+token, nil)
			assert.LessOrEqual(t, len(last.Names()), limit)
			assert.Equal(t, version, last.ResourceVersion())
			assert.Nil(t, apitest.Nested(last.Body, "metadata", "remainingItemCount"))
			got = append(got, last.Names()...)
			next := apitest.NestedString(last.Body, "metadata", "continue")
			if next == "" {
				return got, last
			}
			assert.Len(t, last.Names(), limit)
			token = "&continue=" + next
		}
	}
	for _, limit := range []int{1, 3, 5, 10, 100} {
		got, _ := pages(limit, func() {})
		assert.Equal(t, want, got, limit)
	}
	assert.EqualValues(t, 40, hook.objects.Load())
	got, _ := pages(3, func() { a.Do("DELETE", sitePath("v1", "s36"), nil) })
	assert.Equal(t, want, got, "all pages must show the first revision")
	exact := a.Must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Dh0&limit=100&resourceVersionMatch=Exact&resourceVersion="+version, nil)
	assert.Equal(t, want, exact.Names())
	hook.away.Store(true)
	assert.Equal(t, want[:9], a.Must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Dh0", nil).Names(), "what is known is not asked for")
}

// TestWatchesSelectByConvertedFields: an object is added or deleted when the selected fields of its version change.
func TestWatchesSelectByConvertedFields(t *testing.T) {
	t.Parallel()
	a, _ := siteServer(t)
	createSite(a, "a", "one:80")
	createSite(a, "b", "two:80")
	version := a.Must(200, "GET", sitePath("v1", ""), nil).ResourceVersion()
	const one = "?watch=1&fieldSelector=host%3Done"
	since := a.Watch(sitePath("v2", "") + one + "&resourceVersion=" + version)
	stored := a.Watch(sitePath("v1", "") + "?watch=1&fieldSelector=address%3Done:80&resourceVersion=" + version)
	initial := a.Watch(sitePath("v2", "") + one + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	assert.Equal(t, []string{"ADDED a", "BOOKMARK "}, initial.NextN(2))
	current := a.Watch(sitePath("v2", "")+one+",port%3D81", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")

	patch := func(name, address string) {
		a.Must(200, "PATCH", sitePath("v1", name), map[string]any{"address": address})
	}
	patch("b", "one:80") // is selected from now on
	patch("a", "one:81")
	patch("b", "three:1") // is not selected any more
	createSite(a, "c", "two:1")
	a.Must(200, "PATCH", sitePath("v2", "c"), `{"host":"one"}`)
	a.Must(200, "DELETE", sitePath("v2", "a"), nil)
	a.Must(200, "DELETE", sitePath("v2", "b"), nil) // is not selected any more
	createSite(a, "end", "one:80")
	want := []string{"ADDED b", "MODIFIED a", "DELETED b", "ADDED c", "DELETED a", "ADDED end"}
	for _, w := range []*apitest.Watcher{since, initial} {
		var last string
		for _, event := range want {
			e := w.Next()
			assert.Equal(t, event, e.String())
			assert.Equal(t, "example.com/v2", apitest.NestedString(e.Object, "apiVersion"))
			assert.Equal(t, "one", apitest.NestedString(e.Object, "host"), "as it was when it was selected: %s", e)
			assert.Greater(t, e.ResourceVersion(), last)
			last = e.ResourceVersion()
		}
	}
	assert.Equal(t, []string{"ADDED b", "DELETED a", "DELETED b", "ADDED end"}, stored.NextN(4))
	for _, want := range []string{"ADDED", "DELETED"} {
		e := current.Next()
		assert.Equal(t, want, e.Type)
		assert.Equal(t, "a", apitest.Nested(e.Object["rows"].([]any)[0], "cells").([]any)[0])
	}
	assert.Equal(t, want, a.Watch(sitePath("v2", "")+one+"&resourceVersion="+version).NextN(len(want)), "from history")
}

// TestSelectionFailsWithoutWebhook: a list is an error, not a part of the objects.
func TestSelectionFailsWithoutWebhook(t *testing.T) {
	t.Parallel()
	a, hook := siteServer(t)
	createSite(a, "a", "one:80")
	version := a.Must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Done", nil).ResourceVersion()
	w := a.Watch(sitePath("v2", "") + "?watch=1&allowWatchBookmarks=true&fieldSelector=host%3Done&resourceVersion=" + version)
	hook.away.Store(true)
	createSite(a, "b", "two:80")
	const told = "conversion webhook for example.com/v1, Kind=Site failed: "
	for _, query := range []string{"?fieldSelector=host%3Done", "?fieldSelector=host%3Done&limit=1", "?labelSelector=area", "?fieldSelector=host%3Dnone"} {
		got := a.Do("GET", sitePath("v2", "")+query, nil)
		assert.Equal(t, 500, got.Code, query)
		assert.True(t, strings.HasPrefix(apitest.NestedString(got.Body, "message"), told), "%s", got.Raw)
	}
	assert.Equal(t, 500, a.Do("DELETE", sitePath("v2", "")+"?fieldSelector=host%3Dtwo", nil).Code)
	assert.Equal(t, []string{"a", "b"}, a.Must(200, "GET", sitePath("v1", "")+"?fieldSelector=address!%3D", nil).Names())
	for _, w := range []*apitest.Watcher{w, a.Watch(sitePath("v2", "") + "?watch=1&fieldSelector=host%3Done&labelSelector=!area")} {
		failed := w.Next()
		for failed.Type == "ADDED" {
			assert.Equal(t, "a", failed.Name(), "the object is known")
			failed = w.Next()
		}
		assert.Equal(t, "ERROR", failed.Type)
		assert.True(t, strings.HasPrefix(apitest.NestedString(failed.Object, "message"), told))
		assert.Empty(t, w.ReadAll())
	}
	hook.away.Store(false)
	createSite(a, "c", "one:1")
	assert.Equal(t, "ADDED c", a.Watch(sitePath("v2", "")+"?watch=1&fieldSelector=host%3Done&resourceVersion="+version).Next().String())
}

// TestSelectionOfObjectsInFormerStorageVersion: objects in the former storage version are selected as the new version
// shows them, and wake the watches that select them.
func TestSelectionOfObjectsInFormerStorageVersion(t *testing.T) {
	t.Parallel()
	a, hook := siteServer(t)
	createSite(a, "a", "one:80")
	createSite(a, "b", "two:80")
	a.Must(200, "PATCH", apitest.DefinitionsPath+"/sites.example.com", `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		"Content-Type", "application/json-patch+json")
	version := a.Must(200, "GET", sitePath("v2", ""), nil).ResourceVersion()
	w := a.Watch(sitePath("v2", "") + "?watch=1&fieldSelector=host%3Done&resourceVersion=" + version)
	for path, want := range map[string]string{
		sitePath("v2", "") + "?fieldSelector=host%3Done":       "a",
		sitePath("v1", "") + "?fieldSelector=address%3Dtwo:80": "b",
	} {
		assert.Equal(t, want, strings.Join(a.Must(200, "GET", path, nil).Names(), " "), path)
	}
	a.Must(200, "PATCH", sitePath("v2", "a"), `{"host":"three"}`)
	a.Must(200, "PATCH", sitePath("v2", "b"), `{"host":"one"}`)
	assert.Equal(t, []string{"DELETED a", "ADDED b"}, w.NextN(2))
	asked := hook.objects.Load()
	assert.Equal(t, []string{"b"}, a.Must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Done", nil).Names())
	assert.Equal(t, asked, hook.objects.Load(), "the objects are stored in the new version")
}

// TestSelectionByDefaults: objects are selected by the defaults of their stored version. Another version shows, and
// selects by, the same values, without its own defaults.
func TestSelectionByDefaults(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "")
	version := func(name string, storage bool, a string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"selectableFields":[{"jsonPath":".spec.a"}],"schema":{"openAPIV3Schema":{"type":"object",
			"properties":{"spec":{"type":"object","properties":{"a":{"type":"string"%s},"b":{"type":"string"}}}}}}}`, name, storage, a)
	}
	a.Must(201, "POST", apitest.DefinitionsPath, `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[`+
		version("v1", true, `,"default":"two"`)+`,`+version("v2", false, `,"default":"never"`)+`,`+version("v3", false, "")+`]}}`)
	a.AwaitEstablished("widgets.example.com")
	v2 := strings.Replace(apitest.WidgetsPath, "v1", "v2", 1)
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("x", `{}`))
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("y", `{"a":"one"}`))
	a.Must(201, "POST", apitest.WidgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"z"}}`) // has no spec, so no default
	selects := func(path, selector, want string) {
		t.Helper()
		assert.Equal(t, want, strings.Join(a.Must(200, "GET", path+"?fieldSelector="+selector, nil).Names(), " "), path+" "+selector)
	}
	for _, path := range []string{apitest.WidgetsPath, v2, strings.Replace(apitest.WidgetsPath, "v1", "v3", 1)} {
		selects(path, "spec.a%3Dtwo", "x")
		selects(path, "spec.a%3Dnever", "")
		selects(path, "spec.a%3D", "z")
		selects(path, "spec.a!%3Dtwo", "y z")
	}
	now := a.Must(200, "GET", v2, nil).ResourceVersion()
	two := a.Watch(v2 + "?watch=1&fieldSelector=spec.a%3Dtwo&resourceVersion=" + now)
	a.Must(200, "PATCH", apitest.WidgetsPath+"/x", `{"spec":{"a":"one"}}`)
	a.Must(200, "PATCH", apitest.WidgetsPath+"/y", `{"spec":{"a":null}}`)
	assert.Equal(t, []string{"DELETED x", "ADDED y"}, two.NextN(2))

	// Objects that were stored before the default was added.
	a.Must(200, "PATCH", apitest.WidgetDefinitionPath, `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/default","value":{"a":"new"}}]`,
		"Content-Type", "application/json-patch+json")
	for _, path := range []string{apitest.WidgetsPath, v2} {
		selects(path, "spec.a%3Dnew", "z")
		fresh := a.Watch(path + "?watch=1&fieldSelector=spec.a%3Dnew&resourceVersion=" + a.Must(200, "GET", path, nil).ResourceVersion())
		a.Must(200, "PATCH", apitest.WidgetsPath+"/z", `{"spec":{"a":"other"}}`)
		a.Must(200, "PATCH", apitest.WidgetsPath+"/x", `{"spec":null}`)
		assert.Equal(t, []string{"DELETED z", "ADDED x"}, fresh.NextN(2))
		a.Must(200, "PATCH", apitest.WidgetsPath+"/x", `{"spec":{"a":"one"}}`)
		a.Must(200, "PATCH", apitest.WidgetsPath+"/z", `{"spec":null}`)
	}
}

// valveHub and valveOld represent the state of a valve with different values.
type valveHub struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            struct {
		Open  bool   `json:"open,omitempty"`
		Owner string `json:"owner,omitempty"`
	} `json:"spec,omitempty"`
}

type valveOld struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            struct {
		Open   string `json:"open,omitempty"`
		Keeper string `json:"keeper,omitempty"`
		Level  string `json:"level,omitempty"`
	} `json:"spec,omitempty"`
}

// TestSelectionInVersionsOfGoKinds: a field has the value that the version shows. A field that is mapped to a field
// of the hub has its value.
func TestSelectionInVersionsOfGoKinds(t *testing.T) {
	t.Parallel()
	words := map[bool]string{true: "yes", false: "no"}
	spoke := registry.Spoke[valveOld, valveHub]{
		Version: "v1",
		ToHub: func(in *valveOld, out *valveHub) error {
			out.Spec.Open, out.Spec.Owner = in.Spec.Open == "yes", in.Spec.Keeper
			return nil
		},
		FromHub: func(in *valveHub, out *valveOld) error {
			out.Spec.Open, out.Spec.Keeper, out.Spec.Level = words[in.Spec.Open], in.Spec.Owner, words[in.Spec.Open]+"-"+in.Spec.Owner
			return nil
		},
	}
	named := spoke
	named.Version, named.Fields = "v1beta1", map[string]string{"spec.keeper": "spec.owner"}
	named.OwnFields = []registry.SelectableField{{Name: "level", Path: []string{"spec", "level"}}}
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[valveHub]{Group: "example.com", Version: "v2", Kind: "Valve",
			Fields:   []registry.SelectableField{{Name: "spec.open", Absent: "false"}, {Name: "spec.owner"}},
			Versions: []registry.VersionOf[valveHub]{spoke, named}}))
	}))
	path := func(version string) string { return "/apis/example.com/" + version + "/namespaces/default/valves" }
	for name, spec := range map[string]string{"a": `{"open":true,"owner":"ann"}`, "b": `{"owner":"ann"}`, "c": `{"open":true,"owner":"bob"}`} {
		a.Must(201, "POST", path("v2"), fmt.Sprintf(`{"apiVersion":"example.com/v2","kind":"Valve","metadata":{"name":%q},"spec":%s}`, name, spec))
	}
	for _, c := range []struct{ version, selector, want string }{
		{"v2", "spec.open%3Dtrue", "a c"},
		{"v2", "spec.open%3Dfalse,spec.owner%3Dann", "b"},
		{"v1", "spec.open%3Dyes", "a c"},
		{"v1", "spec.open%3Dtrue", ""},
		{"v1", "spec.open%3Dno", "b"},
		{"v1", "spec.owner%3Dbob", "c"},
		{"v1", "spec.open%3Dyes,spec.owner%3Dann", "a"},
		{"v1beta1", "spec.keeper%3Dbob", "c"},
		{"v1beta1", "level%3Dyes-ann", "a"},
		{"v1beta1", "level!%3Dyes-ann,spec.keeper%3Dann", "b"},
	} {
		got := a.Must(200, "GET", path(c.version)+"?fieldSelector="+c.selector, nil)
		assert.Equal(t, c.want, strings.Join(got.Names(), " "), "%v", c)
	}
	a.Must(400, "GET", path("v1beta1")+"?fieldSelector=spec.open%3Dyes", nil)
	now := a.Must(200, "GET", path("v2"), nil).ResourceVersion()
	yes := a.Watch(path("v1") + "?watch=1&fieldSelector=spec.open%3Dyes&resourceVersion=" + now)
	a.Must(200, "PATCH", path("v2")+"/a", `{"spec":{"open":false}}`)
	a.Must(200, "PATCH", path("v2")+"/b", `{"spec":{"open":true}}`)
	a.Must(200, "DELETE", path("v1")+"?fieldSelector=spec.open%3Dyes", nil)
	assert.Equal(t, []string{"DELETED a", "ADDED b"}, yes.NextN(2))
	assert.ElementsMatch(t, []string{"DELETED b", "DELETED c"}, yes.NextN(2))
}

// TestBookmarksAdvanceWithoutMatchingEvents: bookmarks advance although no event matches the
// selector of the watch.
func TestBookmarksAdvanceWithoutMatchingEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _ := siteServer(t)
		createSite(a, "a", "two:1")
		w := apitest.NewWatcher(t, a.Open(t.Context(), "GET", sitePath("v2", "")+"?watch=1&timeoutSeconds=170&allowWatchBookmarks=true&fieldSelector=host%3Done&resourceVersion="+
			a.Must(200, "GET", sitePath("v1", ""), nil).ResourceVersion(), nil))
		var versions []string
		for i := range 6 {
			time.Sleep(25 * time.Second)
			createSite(a, fmt.Sprint("b", i), "two:1")
			versions = append(versions, a.Must(200, "GET", sitePath("v1", ""), nil).ResourceVersion())
		}
		var got []string
		for _, e := range w.ReadAll() {
			assert.Equal(t, "BOOKMARK", e.Type)
			got = append(got, e.ResourceVersion())
		}
		assert.Equal(t, []string{versions[1], versions[3], versions[5]}, got)
	})
}
