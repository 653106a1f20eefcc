package server_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// TestDeletionLifecycle is the table of states: live, terminating, removed, by
// whatever verb the last finalizer goes.
func TestDeletionLifecycle(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		item := configMaps + "/a"
		for verb, last := range map[string]func(cm map[string]any) answer{
			"update": func(cm map[string]any) answer {
				at(cm, "metadata").(map[string]any)["finalizers"] = []any{}
				return a.must(200, "PUT", item, cm)
			},
			"merge patch": func(map[string]any) answer {
				return a.must(200, "PATCH", item, `{"metadata":{"finalizers":null}}`)
			},
			"json patch": func(map[string]any) answer {
				return a.must(200, "PATCH", item, `[{"op":"remove","path":"/metadata/finalizers/0"}]`, "Content-Type", "application/json-patch+json")
			},
			"strategic patch": func(map[string]any) answer {
				return a.must(200, "PATCH", item, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x.io/2"]}}`, "Content-Type", "application/strategic-merge-patch+json")
			},
		} {
			w := a.watch(configMaps + "?watch=1&resourceVersion=" + a.must(200, "GET", configMaps, nil).version())
			cm := newConfigMap("a")
			at(cm, "metadata").(map[string]any)["finalizers"] = []any{"x.io/1", "x.io/2"}
			created := a.must(201, "POST", configMaps, cm)
			assert.Nil(t, at(created.body, "metadata", "deletionTimestamp"))
			begun := a.must(200, "DELETE", item, nil)
			stamp := text(begun.body, "metadata", "deletionTimestamp")
			assert.NotEmpty(t, stamp, verb)
			assert.EqualValues(t, 0, at(begun.body, "metadata", "deletionGracePeriodSeconds"))
			again := a.must(200, "DELETE", item, nil)
			assert.Equal(t, begun.version(), again.version(), "a second delete changes nothing")
			one := a.must(200, "PATCH", item, `{"metadata":{"finalizers":["x.io/2"]}}`)
			assert.Equal(t, stamp, text(one.body, "metadata", "deletionTimestamp"))
			a.must(422, "PATCH", item, `{"metadata":{"finalizers":["x.io/2","x.io/3"]}}`)
			a.must(409, "POST", configMaps, newConfigMap("a"))
			delete(one.body["metadata"].(map[string]any), "managedFields")
			last(one.body)
			a.must(404, "GET", item, nil)
			assert.Equal(t, "ADDED a, MODIFIED a, MODIFIED a, DELETED a", strings.Join(w.some(4), ", "), verb)
			w.close()
		}
		// Without finalizers it goes at once.
		a.must(201, "POST", configMaps, newConfigMap("a"))
		got := a.must(200, "DELETE", item, nil)
		assert.Equal(t, "Success", got.body["status"])
		assert.Equal(t, "a", at(got.body, "details", "name"))
		a.must(404, "DELETE", item, nil)
	})
}

// TestDeleteOptions: an option that is not understood keeps the object.
func TestDeleteOptions(t *testing.T) {
	for _, profile := range []names.Profile{names.Orch, names.Kubernetes} {
		a := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Names = profile }))
		item := configMaps + "/a"
		version := a.must(201, "POST", configMaps, newConfigMap("a")).version()
		for _, c := range []struct {
			query string
			body  any
			code  int
		}{
			{"", `{"preconditions":{"uid":"wrong"}}`, 409},
			{"", `{"preconditions":{"resourceVersion":"1"}}`, 409},
			{"?uid=wrong", nil, 409},
			{"?resourceVersion=1", nil, 409},
			{"", `{"preconditions":{"uid":5}}`, 400},
			{"", `{"preconditions":["x"]}`, 400},
			{"", `{"preconditions":{"resourceVersion":7}}`, 400},
			{"", `{"dryRun":"All"}`, 400},
			{"", `{"dryRun":true}`, 400},
			{"", `{"dryRun":["all"]}`, 422},
			{"?dryRun=yes", nil, 422},
			{"", `{"propagationPolicy":5}`, 400},
			{"", `{"propagationPolicy":"Quickly"}`, 422},
			{"?propagationPolicy=Quickly", nil, 422},
			{"", `{"propagationPolicy":"Orphan","orphanDependents":true}`, 422},
			{"", `{"orphanDependents":"no"}`, 400},
			{"", `{"gracePeriodSeconds":"5"}`, 400},
			{"", `{"gracePeriodSeconds":1.5}`, 400},
			{"?gracePeriodSeconds=x", nil, 400},
			{"", `{"kind":"Pod"}`, 400},
			{"", `[]`, 400},
			{"", `{`, 400},
			{"", "{}\n{}", 400},
			{"", `"x"`, 400},
		} {
			got := a.must(c.code, "DELETE", item+c.query, c.body)
			assert.Equal(t, version, a.must(200, "GET", item, nil).version(), "%v: %s", c, got.raw)
		}
		a.must(415, "DELETE", item, "x: 1", "Content-Type", "text/plain")
		a.must(400, "DELETE", item, "k8s\x00rubbish", "Content-Type", map[names.Profile]string{
			names.Orch: "application/vnd.orch.protobuf", names.Kubernetes: "application/vnd.kubernetes.protobuf"}[profile])
		a.must(200, "DELETE", item, `{"gracePeriodSeconds":9223372036854775807,"preconditions":{"resourceVersion":"`+version+`"},"unknown":1}`)
		a.must(404, "GET", item, nil)
	}
}

// TestDryRun: every verb does everything but keep it.
func TestDryRun(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		cm := newConfigMap("a", "v", "1")
		at(cm, "metadata").(map[string]any)["finalizers"] = []any{"x.io/1"}
		a.must(201, "POST", configMaps, cm)
		a.must(201, "POST", configMaps, newConfigMap("plain"))
		before := string(a.must(200, "GET", "/api/v1/configmaps", nil).raw)
		const apply = "application/apply-patch+yaml"
		for _, c := range []struct {
			code                    int
			method, path, body, typ string
			want                    string // data.v of the answer
		}{
			{201, "POST", "", `{"metadata":{"name":"n"},"data":{"v":"2"}}`, "", "2"},
			{201, "POST", "", `{"metadata":{"generateName":"n-"},"data":{"v":"2"}}`, "", "2"},
			{409, "POST", "", `{"metadata":{"name":"a"}}`, "", ""},
			{422, "POST", "", `{"metadata":{"name":"NO"}}`, "", ""},
			{200, "PUT", "/a", `{"metadata":{"name":"a"},"data":{"v":"2"}}`, "", "2"},
			{404, "PUT", "/none", `{"metadata":{"name":"none"}}`, "", ""},
			{409, "PUT", "/a", `{"metadata":{"name":"a","resourceVersion":"1"}}`, "", ""},
			{200, "PATCH", "/a", `{"data":{"v":"2"}}`, "", "2"},
			{200, "PATCH", "/a", `[{"op":"replace","path":"/data/v","value":"2"}]`, "application/json-patch+json", "2"},
			{200, "PATCH", "/plain", `{"apiVersion":"v1","kind":"ConfigMap","data":{"v":"2"}}`, apply, "2"},
			{201, "PATCH", "/new", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"},"data":{"v":"2"}}`, apply, "2"},
			{409, "PATCH", "/a", `{"apiVersion":"v1","kind":"ConfigMap","data":{"v":"2"}}`, apply, ""},
			{200, "DELETE", "/a", "", "", "1"},
			{200, "DELETE", "/plain", "", "", ""},
			{404, "DELETE", "/none", "", "", ""},
			{200, "DELETE", "/plain", `{"dryRun":["All"]}`, "", ""},
			{200, "DELETE", "", "", "", ""},
		} {
			query := "?dryRun=All"
			if c.typ == apply {
				query += "&fieldManager=me"
			}
			var body any
			var headers []string
			if c.body != "" {
				body = c.body
			}
			if c.typ != "" {
				headers = []string{"Content-Type", c.typ}
			}
			got := a.must(c.code, c.method, configMaps+c.path+query, body, headers...)
			assert.Equal(t, c.want, text(got.body, "data", "v"), "%v", c)
			if c.code == 201 {
				assert.NotEmpty(t, text(got.body, "metadata", "uid"))
				assert.NotEmpty(t, text(got.body, "metadata", "name"))
			}
			assert.Equal(t, before, string(a.must(200, "GET", "/api/v1/configmaps", nil).raw), "%v", c)
		}
		a.must(200, "PUT", configMaps+"/a?dryRun", newConfigMap("a", "v", "3")) // bare: a normal request
		assert.Equal(t, "3", text(a.must(200, "GET", configMaps+"/a", nil).body, "data", "v"))
	})
}

// TestDeleteCollection deletes what a list with the same parameters shows.
func TestDeleteCollection(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		fill := func() {
			for _, n := range []string{"a", "b", "c", "d"} {
				cm := newConfigMap(n)
				at(cm, "metadata").(map[string]any)["labels"] = map[string]any{"n": n}
				a.do("POST", configMaps, cm)
			}
		}
		for _, c := range []struct {
			query string
			code  int
			left  string
		}{
			{"?labelSelector=n+in+(a,b)", 200, "c d"},
			{"?fieldSelector=metadata.name%3Da", 200, "b c d"},
			{"?limit=3", 200, "d"},
			{"?dryRun=All", 200, "a b c d"},
			{"?resourceVersionMatch=Exact", 422, "a b c d"},
			{"?labelSelector=((", 400, "a b c d"},
			{"?continue=x", 400, "a b c d"},
			{"", 200, ""},
		} {
			fill()
			got := a.must(c.code, "DELETE", configMaps+c.query, nil)
			assert.Equal(t, c.left, strings.Join(a.must(200, "GET", configMaps, nil).names(), " "), "%s: %s", c.query, got.raw)
		}
		a.must(405, "DELETE", "/api/v1/configmaps", nil)
		a.must(405, "DELETE", "/api/v1/namespaces", nil)
	})
}

// TestDeletionTimestamp is the time of the first request.
func TestDeletionTimestamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := inProcess(t, servertest.New(t))
		cm := newConfigMap("a")
		at(cm, "metadata").(map[string]any)["finalizers"] = []any{"x.io/1"}
		a.must(201, "POST", configMaps, cm)
		time.Sleep(time.Hour)
		want := time.Now().UTC().Format(time.RFC3339)
		a.must(200, "DELETE", configMaps+"/a", nil)
		time.Sleep(time.Hour)
		a.must(200, "DELETE", configMaps+"/a", nil)
		assert.Equal(t, want, text(a.must(200, "GET", configMaps+"/a", nil).body, "metadata", "deletionTimestamp"))
	})
}
