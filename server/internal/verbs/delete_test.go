package verbs_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// TestDeletionLifecycle: an object is live, then terminating, then removed, whichever verb removes the last
// finalizer.
func TestDeletionLifecycle(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		item := apitest.ConfigMapsPath + "/a"
		for verb, last := range map[string]func(cm map[string]any) apitest.Response{
			"update": func(cm map[string]any) apitest.Response {
				apitest.Nested(cm, "metadata").(map[string]any)["finalizers"] = []any{}
				return a.Must(200, "PUT", item, cm)
			},
			"merge patch": func(map[string]any) apitest.Response {
				return a.Must(200, "PATCH", item, `{"metadata":{"finalizers":null}}`)
			},
			"json patch": func(map[string]any) apitest.Response {
				return a.Must(200, "PATCH", item, `[{"op":"remove","path":"/metadata/finalizers/0"}]`, "Content-Type", "application/json-patch+json")
			},
			"strategic patch": func(map[string]any) apitest.Response {
				return a.Must(200, "PATCH", item, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x.io/2"]}}`, "Content-Type", "application/strategic-merge-patch+json")
			},
		} {
			w := a.Watch(apitest.ConfigMapsPath + "?watch=1&resourceVersion=" + a.Must(200, "GET", apitest.ConfigMapsPath, nil).ResourceVersion())
			cm := apitest.NewConfigMap("a")
			apitest.Nested(cm, "metadata").(map[string]any)["finalizers"] = []any{"x.io/1", "x.io/2"}
			created := a.Must(201, "POST", apitest.ConfigMapsPath, cm)
			assert.Nil(t, apitest.Nested(created.Body, "metadata", "deletionTimestamp"))
			begun := a.Must(200, "DELETE", item, nil)
			stamp := apitest.NestedString(begun.Body, "metadata", "deletionTimestamp")
			assert.NotEmpty(t, stamp, verb)
			assert.EqualValues(t, 0, apitest.Nested(begun.Body, "metadata", "deletionGracePeriodSeconds"))
			again := a.Must(200, "DELETE", item, nil)
			assert.Equal(t, begun.ResourceVersion(), again.ResourceVersion(), "a second delete must not change the object")
			one := a.Must(200, "PATCH", item, `{"metadata":{"finalizers":["x.io/2"]}}`)
			assert.Equal(t, stamp, apitest.NestedString(one.Body, "metadata", "deletionTimestamp"))
			a.Must(422, "PATCH", item, `{"metadata":{"finalizers":["x.io/2","x.io/3"]}}`)
			a.Must(409, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
			delete(one.Body["metadata"].(map[string]any), "managedFields")
			last(one.Body)
			a.Must(404, "GET", item, nil)
			assert.Equal(t, "ADDED a, MODIFIED a, MODIFIED a, DELETED a", strings.Join(w.NextN(4), ", "), verb)
			w.Close()
		}
		// Without finalizers, the object is removed at once.
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
		got := a.Must(200, "DELETE", item, nil)
		assert.Equal(t, "Success", got.Body["status"])
		assert.Equal(t, "a", apitest.Nested(got.Body, "details", "name"))
		a.Must(404, "DELETE", item, nil)
	})
}

// TestDeleteOptions: an object is not deleted if an option is invalid.
func TestDeleteOptions(t *testing.T) {
	t.Parallel()
	for _, profile := range []names.Profile{names.Orch, names.Kubernetes} {
		a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Names = profile }))
		item := apitest.ConfigMapsPath + "/a"
		version := a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a")).ResourceVersion()
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
			got := a.Must(c.code, "DELETE", item+c.query, c.body)
			assert.Equal(t, version, a.Must(200, "GET", item, nil).ResourceVersion(), "%v: %s", c, got.Raw)
		}
		a.Must(415, "DELETE", item, "x: 1", "Content-Type", "text/plain")
		a.Must(400, "DELETE", item, "k8s\x00rubbish", "Content-Type", map[names.Profile]string{
			names.Orch: "application/vnd.orch.protobuf", names.Kubernetes: "application/vnd.kubernetes.protobuf"}[profile])
		a.Must(200, "DELETE", item, `{"gracePeriodSeconds":9223372036854775807,"preconditions":{"resourceVersion":"`+version+`"},"unknown":1}`)
		a.Must(404, "GET", item, nil)
	}
}

// TestDryRun: a dry run of each verb does everything except storing the result.
func TestDryRun(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		cm := apitest.NewConfigMap("a", "v", "1")
		apitest.Nested(cm, "metadata").(map[string]any)["finalizers"] = []any{"x.io/1"}
		a.Must(201, "POST", apitest.ConfigMapsPath, cm)
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("plain"))
		before := string(a.Must(200, "GET", "/api/v1/configmaps", nil).Raw)
		const apply = "application/apply-patch+yaml"
		for _, c := range []struct {
			code                    int
			method, path, body, typ string
			want                    string // data.v of the response
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
			got := a.Must(c.code, c.method, apitest.ConfigMapsPath+c.path+query, body, headers...)
			assert.Equal(t, c.want, apitest.NestedString(got.Body, "data", "v"), "%v", c)
			if c.code == 201 {
				assert.NotEmpty(t, apitest.NestedString(got.Body, "metadata", "uid"))
				assert.NotEmpty(t, apitest.NestedString(got.Body, "metadata", "name"))
			}
			assert.Equal(t, before, string(a.Must(200, "GET", "/api/v1/configmaps", nil).Raw), "%v", c)
		}
		a.Must(200, "PUT", apitest.ConfigMapsPath+"/a?dryRun", apitest.NewConfigMap("a", "v", "3")) // without a value: a normal request
		assert.Equal(t, "3", apitest.NestedString(a.Must(200, "GET", apitest.ConfigMapsPath+"/a", nil).Body, "data", "v"))
	})
}

// TestDeleteCollection: deletecollection deletes the objects that a list with the same parameters returns.
func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		fill := func() {
			for _, n := range []string{"a", "b", "c", "d"} {
				cm := apitest.NewConfigMap(n)
				apitest.Nested(cm, "metadata").(map[string]any)["labels"] = map[string]any{"n": n}
				a.Do("POST", apitest.ConfigMapsPath, cm)
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
			got := a.Must(c.code, "DELETE", apitest.ConfigMapsPath+c.query, nil)
			assert.Equal(t, c.left, strings.Join(a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names(), " "), "%s: %s", c.query, got.Raw)
		}
		a.Must(405, "DELETE", "/api/v1/configmaps", nil)
		a.Must(405, "DELETE", "/api/v1/namespaces", nil)
	})
}

// TestDeletionTimestamp: the deletionTimestamp is that of the first request.
func TestDeletionTimestamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apitest.InProcess(t, servertest.New(t))
		cm := apitest.NewConfigMap("a")
		apitest.Nested(cm, "metadata").(map[string]any)["finalizers"] = []any{"x.io/1"}
		a.Must(201, "POST", apitest.ConfigMapsPath, cm)
		time.Sleep(time.Hour)
		want := time.Now().UTC().Format(time.RFC3339)
		a.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
		time.Sleep(time.Hour)
		a.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
		assert.Equal(t, want, apitest.NestedString(a.Must(200, "GET", apitest.ConfigMapsPath+"/a", nil).Body, "metadata", "deletionTimestamp"))
	})
}
