package server_test

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
	"orch.io/controlplane/server/servertest"
)

// siteDefinition defines sites: the address of v1, the stored version, is host and port in v2.
const siteDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"sites.example.com"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"sites","kind":"Site"},
	"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"name":"sites","namespace":"default","path":"/convert"}}}},
	"versions":[
	{"name":"v1","served":true,"storage":true,"selectableFields":[{"jsonPath":".address"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{"address":{"type":"string"}}}}},
	{"name":"v2","served":true,"storage":false,"selectableFields":[{"jsonPath":".host"},{"jsonPath":".port"}],"schema":{"openAPIV3Schema":{"type":"object","properties":
		{"host":{"type":"string"},"port":{"type":"integer"},"kind2":{"type":"string","default":"plain"}}}},
		"additionalPrinterColumns":[{"name":"Host","type":"string","jsonPath":".host"}]}]}}`

// siteWebhook converts sites, and shows the label zone of v1 as area in v2.
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
	objects, _ := at(review, "request", "objects").([]any)
	h.objects.Add(int64(len(objects)))
	for _, o := range objects {
		site, _ := o.(map[string]any)
		labels, _ := at(site, "metadata", "labels").(map[string]any)
		if site["apiVersion"] == "example.com/v1" {
			host, port, _ := strings.Cut(text(site, "address"), ":")
			if site["host"] = host; port != "" {
				site["port"] = json.Number(port)
			}
			delete(site, "address")
			rename(labels, "zone", "area")
		} else {
			site["address"] = text(site, "host")
			if port := at(site, "port"); port != nil {
				site["address"] = fmt.Sprintf("%s:%v", text(site, "host"), port)
			}
			delete(site, "host")
			delete(site, "port")
			rename(labels, "area", "zone")
		}
		site["apiVersion"] = text(review, "request", "desiredAPIVersion")
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": review["kind"], "apiVersion": review["apiVersion"], "response": map[string]any{
		"uid": text(review, "request", "uid"), "result": map[string]any{"status": "Success"}, "convertedObjects": objects,
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

func siteServer(t *testing.T) (*api, *siteWebhook) {
	s, hook := servertest.New(t), &siteWebhook{}
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, siteDefinition)
	s.Settle()
	s.InstallWebhooks(fstest.MapFS{}, hook)
	return a, hook
}

// site makes a site of v1.
func (a *api) site(name, address string, labels ...string) {
	a.t.Helper()
	own := map[string]any{}
	for i := 0; i < len(labels); i += 2 {
		own[labels[i]] = labels[i+1]
	}
	a.must(201, "POST", sitePath("v1", ""), map[string]any{"apiVersion": "example.com/v1", "kind": "Site",
		"metadata": map[string]any{"name": name, "labels": own}, "address": address})
}

// TestListsSelectAsConverted: what a version names is what it shows, whichever is stored.
func TestListsSelectAsConverted(t *testing.T) {
	t.Parallel()
	a, hook := siteServer(t)
	a.site("a", "one:80", "zone", "x")
	a.site("b", "one:81", "zone", "y")
	a.site("c", "two:80")
	a.site("d", "one")
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
		got := a.must(200, "GET", sitePath(version, "")+"?"+query, nil)
		assert.Equal(t, want, strings.Join(got.names(), " "), selector)
		for _, item := range at(got.body, "items").([]any) {
			assert.Equal(t, "example.com/"+version, text(item, "apiVersion"))
		}
	}
	assert.EqualValues(t, 4, hook.objects.Load(), "each was converted once")
	a.must(400, "GET", sitePath("v2", "")+"?fieldSelector=address%3Done", nil)
	a.must(400, "GET", sitePath("v1", "")+"?fieldSelector=host%3Done", nil)

	table := a.must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Dtwo", nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	require.Len(t, table.body["rows"], 1)
	assert.Equal(t, []any{"two"}, at(table.body["rows"].([]any)[0], "cells").([]any)[1:])
	partial := a.must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Dtwo", nil, "Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	assert.Equal(t, []string{"c"}, partial.names())

	a.must(200, "DELETE", sitePath("v2", "")+"?fieldSelector=host%3Done,port%3D80", nil)
	assert.Equal(t, []string{"b", "c", "d"}, a.must(200, "GET", sitePath("v1", ""), nil).names())
	a.must(200, "DELETE", sitePath("v1", "")+"?fieldSelector=address%3Dtwo:80", nil)
	assert.Equal(t, []string{"b", "d"}, a.must(200, "GET", sitePath("v1", ""), nil).names())
}

// TestPagesSelectAsConverted: a limit counts what is selected, and all pages show one state.
func TestPagesSelectAsConverted(t *testing.T) {
	t.Parallel()
	a, hook := siteServer(t)
	var want []string
	for i := range 40 {
		name := fmt.Sprintf("s%02d", i)
		if i%4 == 0 {
			want = append(want, name)
		}
		a.site(name, fmt.Sprintf("h%d:1", i%4))
	}
	version := a.must(200, "GET", sitePath("v1", "")+"?limit=1", nil).version()
	pages := func(limit int, between func()) (got []string, last answer) {
		path := fmt.Sprintf("%s?fieldSelector=host%%3Dh0&limit=%d", sitePath("v2", ""), limit)
		for token := ""; ; between() {
			last = a.must(200, "GET", path+token, nil)
			assert.LessOrEqual(t, len(last.names()), limit)
			assert.Equal(t, version, last.version())
			assert.Nil(t, at(last.body, "metadata", "remainingItemCount"))
			got = append(got, last.names()...)
			next := text(last.body, "metadata", "continue")
			if next == "" {
				return got, last
			}
			assert.Len(t, last.names(), limit)
			token = "&continue=" + next
		}
	}
	for _, limit := range []int{1, 3, 5, 10, 100} {
		got, _ := pages(limit, func() {})
		assert.Equal(t, want, got, limit)
	}
	assert.EqualValues(t, 40, hook.objects.Load())
	got, _ := pages(3, func() { a.do("DELETE", sitePath("v1", "s36"), nil) })
	assert.Equal(t, want, got, "as it was when it began")
	exact := a.must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Dh0&limit=100&resourceVersionMatch=Exact&resourceVersion="+version, nil)
	assert.Equal(t, want, exact.names())
	hook.away.Store(true)
	assert.Equal(t, want[:9], a.must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Dh0", nil).names(), "what is known is not asked for")
}

// TestWatchesSelectAsConverted: an object comes and goes with what its version shows.
func TestWatchesSelectAsConverted(t *testing.T) {
	t.Parallel()
	a, _ := siteServer(t)
	a.site("a", "one:80")
	a.site("b", "two:80")
	version := a.must(200, "GET", sitePath("v1", ""), nil).version()
	const one = "?watch=1&fieldSelector=host%3Done"
	since := a.watch(sitePath("v2", "") + one + "&resourceVersion=" + version)
	stored := a.watch(sitePath("v1", "") + "?watch=1&fieldSelector=address%3Done:80&resourceVersion=" + version)
	initial := a.watch(sitePath("v2", "") + one + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	assert.Equal(t, []string{"ADDED a", "BOOKMARK "}, initial.some(2))
	current := a.watch(sitePath("v2", "")+one+",port%3D81", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")

	patch := func(name, address string) {
		a.must(200, "PATCH", sitePath("v1", name), map[string]any{"address": address})
	}
	patch("b", "one:80") // begins to match
	patch("a", "one:81")
	patch("b", "three:1") // ceases to
	a.site("c", "two:1")
	a.must(200, "PATCH", sitePath("v2", "c"), `{"host":"one"}`)
	a.must(200, "DELETE", sitePath("v2", "a"), nil)
	a.must(200, "DELETE", sitePath("v2", "b"), nil) // is not selected any more
	a.site("end", "one:80")
	want := []string{"ADDED b", "MODIFIED a", "DELETED b", "ADDED c", "DELETED a", "ADDED end"}
	for _, w := range []*watching{since, initial} {
		var last string
		for _, event := range want {
			e := w.next()
			assert.Equal(t, event, e.String())
			assert.Equal(t, "example.com/v2", text(e.Object, "apiVersion"))
			assert.Equal(t, "one", text(e.Object, "host"), "as it was when it was selected: %s", e)
			assert.Greater(t, e.version(), last)
			last = e.version()
		}
	}
	assert.Equal(t, []string{"ADDED b", "DELETED a", "DELETED b", "ADDED end"}, stored.some(4))
	for _, want := range []string{"ADDED", "DELETED"} {
		e := current.next()
		assert.Equal(t, want, e.Type)
		assert.Equal(t, "a", at(e.Object["rows"].([]any)[0], "cells").([]any)[0])
	}
	assert.Equal(t, want, a.watch(sitePath("v2", "")+one+"&resourceVersion="+version).some(len(want)), "from history")
}

// TestSelectionNeedsItsWebhook: nobody is shown a part as if it were all.
func TestSelectionNeedsItsWebhook(t *testing.T) {
	t.Parallel()
	a, hook := siteServer(t)
	a.site("a", "one:80")
	version := a.must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Done", nil).version()
	w := a.watch(sitePath("v2", "") + "?watch=1&allowWatchBookmarks=true&fieldSelector=host%3Done&resourceVersion=" + version)
	hook.away.Store(true)
	a.site("b", "two:80")
	const told = "conversion webhook for example.com/v1, Kind=Site failed: "
	for _, query := range []string{"?fieldSelector=host%3Done", "?fieldSelector=host%3Done&limit=1", "?labelSelector=area", "?fieldSelector=host%3Dnone"} {
		got := a.do("GET", sitePath("v2", "")+query, nil)
		assert.Equal(t, 500, got.code, query)
		assert.True(t, strings.HasPrefix(text(got.body, "message"), told), "%s", got.raw)
	}
	assert.Equal(t, 500, a.do("DELETE", sitePath("v2", "")+"?fieldSelector=host%3Dtwo", nil).code)
	assert.Equal(t, []string{"a", "b"}, a.must(200, "GET", sitePath("v1", "")+"?fieldSelector=address!%3D", nil).names())
	for _, w := range []*watching{w, a.watch(sitePath("v2", "") + "?watch=1&fieldSelector=host%3Done&labelSelector=!area")} {
		failed := w.next()
		for failed.Type == "ADDED" {
			assert.Equal(t, "a", failed.name(), "it is known")
			failed = w.next()
		}
		assert.Equal(t, "ERROR", failed.Type)
		assert.True(t, strings.HasPrefix(text(failed.Object, "message"), told))
		assert.Empty(t, w.ended())
	}
	hook.away.Store(false)
	a.site("c", "one:1")
	assert.Equal(t, "ADDED c", a.watch(sitePath("v2", "")+"?watch=1&fieldSelector=host%3Done&resourceVersion="+version).next().String())
}

// TestSelectionOfOlderRecords: what is stored in the former version is selected as the new
// one shows it, and such objects wake who waits for what they become.
func TestSelectionOfOlderRecords(t *testing.T) {
	t.Parallel()
	a, hook := siteServer(t)
	a.site("a", "one:80")
	a.site("b", "two:80")
	a.must(200, "PATCH", crdPath+"/sites.example.com", `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		"Content-Type", "application/json-patch+json")
	version := a.must(200, "GET", sitePath("v2", ""), nil).version()
	w := a.watch(sitePath("v2", "") + "?watch=1&fieldSelector=host%3Done&resourceVersion=" + version)
	for path, want := range map[string]string{
		sitePath("v2", "") + "?fieldSelector=host%3Done":       "a",
		sitePath("v1", "") + "?fieldSelector=address%3Dtwo:80": "b",
	} {
		assert.Equal(t, want, strings.Join(a.must(200, "GET", path, nil).names(), " "), path)
	}
	a.must(200, "PATCH", sitePath("v2", "a"), `{"host":"three"}`)
	a.must(200, "PATCH", sitePath("v2", "b"), `{"host":"one"}`)
	assert.Equal(t, []string{"DELETED a", "ADDED b"}, w.some(2))
	asked := hook.objects.Load()
	assert.Equal(t, []string{"b"}, a.must(200, "GET", sitePath("v2", "")+"?fieldSelector=host%3Done", nil).names())
	assert.Equal(t, asked, hook.objects.Load(), "they are stored anew")
}

// TestSelectionByDefaults: objects are selected by the defaults of the version that they are stored
// in. Another version shows, and selects by, the same values: it fills in none of its own.
func TestSelectionByDefaults(t *testing.T) {
	t.Parallel()
	a := inRelease(t, "")
	version := func(name string, storage bool, a string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"selectableFields":[{"jsonPath":".spec.a"}],"schema":{"openAPIV3Schema":{"type":"object",
			"properties":{"spec":{"type":"object","properties":{"a":{"type":"string"%s},"b":{"type":"string"}}}}}}}`, name, storage, a)
	}
	a.must(201, "POST", crdPath, `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[`+
		version("v1", true, `,"default":"two"`)+`,`+version("v2", false, `,"default":"never"`)+`,`+version("v3", false, "")+`]}}`)
	a.established("widgets.example.com")
	v2 := strings.Replace(definedPath, "v1", "v2", 1)
	a.must(201, "POST", definedPath, definedWidget("x", `{}`))
	a.must(201, "POST", definedPath, definedWidget("y", `{"a":"one"}`))
	a.must(201, "POST", definedPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"z"}}`) // which has no spec to fill in
	selects := func(path, selector, want string) {
		t.Helper()
		assert.Equal(t, want, strings.Join(a.must(200, "GET", path+"?fieldSelector="+selector, nil).names(), " "), path+" "+selector)
	}
	for _, path := range []string{definedPath, v2, strings.Replace(definedPath, "v1", "v3", 1)} {
		selects(path, "spec.a%3Dtwo", "x")
		selects(path, "spec.a%3Dnever", "")
		selects(path, "spec.a%3D", "z")
		selects(path, "spec.a!%3Dtwo", "y z")
	}
	now := a.must(200, "GET", v2, nil).version()
	two := a.watch(v2 + "?watch=1&fieldSelector=spec.a%3Dtwo&resourceVersion=" + now)
	a.must(200, "PATCH", definedPath+"/x", `{"spec":{"a":"one"}}`)
	a.must(200, "PATCH", definedPath+"/y", `{"spec":{"a":null}}`)
	assert.Equal(t, []string{"DELETED x", "ADDED y"}, two.some(2))

	// Objects that were stored before there was the default.
	a.must(200, "PATCH", definedCRD, `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/default","value":{"a":"new"}}]`,
		"Content-Type", "application/json-patch+json")
	for _, path := range []string{definedPath, v2} {
		selects(path, "spec.a%3Dnew", "z")
		fresh := a.watch(path + "?watch=1&fieldSelector=spec.a%3Dnew&resourceVersion=" + a.must(200, "GET", path, nil).version())
		a.must(200, "PATCH", definedPath+"/z", `{"spec":{"a":"other"}}`)
		a.must(200, "PATCH", definedPath+"/x", `{"spec":null}`)
		assert.Equal(t, []string{"DELETED z", "ADDED x"}, fresh.some(2))
		a.must(200, "PATCH", definedPath+"/x", `{"spec":{"a":"one"}}`)
		a.must(200, "PATCH", definedPath+"/z", `{"spec":null}`)
	}
}

// valveHub and valveOld say whether a valve is open in words of their own.
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

// TestSelectionInVersionsOfGoKinds: a field has the value that the version shows, one that
// stands for another of the hub has that one's.
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
	named.Own = []registry.SelectableField{{Name: "level", Path: []string{"spec", "level"}}}
	a := inProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[valveHub]{Group: "example.com", Version: "v2", Kind: "Valve",
			Fields:   []registry.SelectableField{{Name: "spec.open", Absent: "false"}, {Name: "spec.owner"}},
			Versions: []registry.VersionOf[valveHub]{spoke, named}}))
	}))
	path := func(version string) string { return "/apis/example.com/" + version + "/namespaces/default/valves" }
	for name, spec := range map[string]string{"a": `{"open":true,"owner":"ann"}`, "b": `{"owner":"ann"}`, "c": `{"open":true,"owner":"bob"}`} {
		a.must(201, "POST", path("v2"), fmt.Sprintf(`{"apiVersion":"example.com/v2","kind":"Valve","metadata":{"name":%q},"spec":%s}`, name, spec))
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
		got := a.must(200, "GET", path(c.version)+"?fieldSelector="+c.selector, nil)
		assert.Equal(t, c.want, strings.Join(got.names(), " "), "%v", c)
	}
	a.must(400, "GET", path("v1beta1")+"?fieldSelector=spec.open%3Dyes", nil)
	now := a.must(200, "GET", path("v2"), nil).version()
	yes := a.watch(path("v1") + "?watch=1&fieldSelector=spec.open%3Dyes&resourceVersion=" + now)
	a.must(200, "PATCH", path("v2")+"/a", `{"spec":{"open":false}}`)
	a.must(200, "PATCH", path("v2")+"/b", `{"spec":{"open":true}}`)
	a.must(200, "DELETE", path("v1")+"?fieldSelector=spec.open%3Dyes", nil)
	assert.Equal(t, []string{"DELETED a", "ADDED b"}, yes.some(2))
	assert.ElementsMatch(t, []string{"DELETED b", "DELETED c"}, yes.some(2))
}

// TestBookmarksWhileNothingIsSelected: changes that a watch has to look at and does not show
// do not keep from it how far it is.
func TestBookmarksWhileNothingIsSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := siteServer(t)
		a.site("a", "two:1")
		w := newWatching(t, a.open(t.Context(), "GET", sitePath("v2", "")+"?watch=1&timeoutSeconds=170&allowWatchBookmarks=true&fieldSelector=host%3Done&resourceVersion="+
			a.must(200, "GET", sitePath("v1", ""), nil).version(), nil))
		var versions []string
		for i := range 6 {
			time.Sleep(25 * time.Second)
			a.site(fmt.Sprint("b", i), "two:1")
			versions = append(versions, a.must(200, "GET", sitePath("v1", ""), nil).version())
		}
		var got []string
		for _, e := range w.ended() {
			assert.Equal(t, "BOOKMARK", e.Type)
			got = append(got, e.version())
		}
		assert.Equal(t, []string{versions[1], versions[3], versions[5]}, got)
	})
}
