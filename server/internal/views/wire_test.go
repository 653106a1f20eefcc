package views_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// TestWatchAtCompactedRevisionSendsOneGoneEvent checks that a watch from a compacted revision gets
// a single ERROR event, in one line or frame, with the requested revision and the oldest available
// revision.
func TestWatchAtCompactedRevisionSendsOneGoneEvent(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		var oldest storage.Revision
		for i := range 9 {
			rev, err := store.Commit(t.Context(), storage.Write{Key: fmt.Sprintf("things/a/%d", i), Value: []byte(`{}`)})
			require.NoError(t, err)
			oldest = rev
		}
		require.NoError(t, store.Compact(t.Context(), oldest))
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		message := fmt.Sprintf("too old resource version: 1 (%d)", oldest)
		status := `{"apiVersion":"v1","kind":"Status","metadata":{},"code":410,"message":"` + message + `","reason":"Expired","status":"Failure"}`
		const path = apitest.ConfigMapsPath + "?watch=1&resourceVersion=1"
		for _, query := range []string{"", "&pretty=1", "&allowWatchBookmarks=1", "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"} {
			for _, accept := range []string{"", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"} {
				got := a.Must(200, "GET", path+query, nil, "Accept", accept)
				assert.Equal(t, `{"type":"ERROR","object":`+status+"}\n", string(got.Raw), query+accept)
			}
		}
		for _, accept := range []string{"application/vnd.kubernetes.protobuf;stream=watch", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"} {
			frame := a.Must(200, "GET", path, nil, "Accept", accept).Raw
			require.Greater(t, len(frame), 4)
			assert.EqualValues(t, len(frame)-4, binary.BigEndian.Uint32(frame), "one frame and nothing behind it")
			i := bytes.Index(frame, []byte("k8s\x00"))
			require.Positive(t, i)
			_, kind, body, err := codec.OpenEnvelope(frame[i:])
			require.NoError(t, err)
			assert.Equal(t, "Status", kind)
			tree, err := codec.Metas().Status.Decode(body, codec.Limits{})
			require.NoError(t, err)
			assert.Equal(t, message, tree["message"])
		}
		for _, query := range []string{"?resourceVersion=1&resourceVersionMatch=Exact", "?resourceVersion=1&limit=1"} {
			assert.Equal(t, "The resourceVersion for the provided list is too old.", a.Must(410, "GET", apitest.ConfigMapsPath+query, nil).Body["message"])
		}
	})
}

// everyPath has a path for each handler of the server.
var everyPath = []string{
	"/", "/version", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/livez", "/livez/ping", "/readyz", "/metrics",
	"/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/extra", "/nowhere", "/apis/none.io/v1", "/livez/none", "/openapi/v3/apis/none/v1",
	apitest.ConfigMapsPath, apitest.ConfigMapsPath + "/none", apitest.NamespacesPath + "/default", "/api/v1/nothings",
}

func withExtra(b *server.Builder) {
	b.Handlers = map[string]http.Handler{"/extra": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("more")) })}
}

// TestTimeoutParameter checks that every path validates the parameter timeout before anything else,
// except long-running requests.
func TestTimeoutParameter(t *testing.T) {
	t.Parallel()
	users, err := tokenfile.Parse(strings.NewReader("a,alice,1\n"))
	require.NoError(t, err)
	a := apitest.InProcess(t, servertest.New(t, withExtra, func(b *server.Builder) { b.Authenticators = []auth.Authenticator{users} }))
	for _, path := range everyPath {
		code := a.Do("GET", path, nil, "Authorization", "Bearer a").Code
		for _, fine := range []string{"", "0", "-1s", "1h", "9000h", "34s", "1m30.5s"} {
			assert.Equal(t, code, a.Do("GET", path+"?timeout="+fine, nil, "Authorization", "Bearer a").Code, path+" "+fine)
		}
		for text, why := range map[string]string{
			"abc": `invalid duration "abc"`, "5": `missing unit in duration "5"`, "1e3s": `unknown unit "e" in duration "1e3s"`, "9999999999h": `invalid duration "9999999999h"`,
		} {
			for _, user := range []string{"a", "nobody"} {
				for _, method := range []string{"GET", "POST", "OPTIONS"} {
					got := a.Must(400, method, path+"?timeout="+text, nil, "Authorization", "Bearer "+user)
					assert.Equal(t, "invalid timeout specified in the request URL - time: "+why, got.Body["message"], path)
					assert.Equal(t, "BadRequest", got.Body["reason"])
				}
			}
		}
	}
	for _, path := range []string{apitest.ConfigMapsPath + "?watch=1&timeoutSeconds=1&", "/api/v1/watch/namespaces?timeoutSeconds=1&"} {
		assert.Equal(t, 200, a.Do("GET", path+"timeout=abc", nil, "Authorization", "Bearer a").Code, path)
	}
	assert.Equal(t, 404, a.Do("GET", apitest.NamespacesPath+"/default/pods/none/log?timeout=abc", nil, "Authorization", "Bearer a").Code)
	assert.Equal(t, 400, a.Do("GET", apitest.ConfigMapsPath+"/a?watch=1&timeout=abc", nil, "Authorization", "Bearer a").Code, "a path of a single object is not a watch")
	assert.Equal(t, 504, a.Do("GET", apitest.ConfigMapsPath+"?timeout=1ns", nil, "Authorization", "Bearer a").Code)
}

// TestEveryResponseHasAnAuditID checks that every response has the client's audit ID or a new ID
// and forbids caching, whatever the outcome of the request.
func TestEveryResponseHasAnAuditID(t *testing.T) {
	t.Parallel()
	users, err := tokenfile.Parse(strings.NewReader("a,alice,1\nb,bob,2\n"))
	require.NoError(t, err)
	s := servertest.New(t, withExtra, func(b *server.Builder) {
		b.Authenticators = []auth.Authenticator{users}
		b.Limits.Watches = 1
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			if a.User.Name == "bob" {
				return auth.Deny, "", nil
			}
			return auth.Allow, "", nil
		})
	})
	a := apitest.InProcess(t, s)
	seen := map[string]bool{}
	check := func(code int, method, path, token string, headers ...string) {
		t.Helper()
		got := a.Do(method, path, nil, append(headers, "Authorization", "Bearer "+token)...)
		if code != 0 {
			assert.Equal(t, code, got.Code, "%s %s", method, path)
		}
		id := got.Header.Get("Audit-Id")
		assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id, path)
		assert.False(t, seen[id], id)
		seen[id] = true
		if got.Header.Get("Expires") == "" {
			assert.Equal(t, []string{"no-cache, private"}, got.Header["Cache-Control"], path)
		}
	}
	for _, path := range everyPath {
		check(0, "GET", path, "a")
		check(403, "GET", path, "b")
		check(401, "GET", path, "c")
		check(400, "GET", path+"?timeout=x", "c")
	}
	check(405, "PUT", "/version", "a")
	check(405, "PUT", apitest.ConfigMapsPath, "a")
	check(406, "GET", apitest.ConfigMapsPath, "a", "Accept", "text/html")
	check(415, "POST", apitest.ConfigMapsPath, "a", "Content-Type", "text/html")
	check(200, "GET", apitest.ConfigMapsPath+"?watch=1&timeoutSeconds=1", "a")
	w := a.Watch(apitest.ConfigMapsPath+"?watch=1", "Authorization", "Bearer a")
	check(429, "GET", apitest.ConfigMapsPath+"?watch=1", "a")
	w.Close()

	for id, echoed := range map[string]bool{
		"mine": true, "a/b:c,d": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "a b": false, "ä": false, "a\tb": false, "": false,
	} {
		got := a.Do("GET", "/version", nil, "Authorization", "Bearer c", "Audit-Id", id)
		assert.Equal(t, echoed, got.Header.Get("Audit-Id") == id, id)
		assert.Len(t, got.Header["Audit-Id"], 1)
	}
	require.NoError(t, s.Shutdown(context.Background()))
	check(503, "GET", apitest.ConfigMapsPath, "a")
}

// TestItemsOfListsOmitKind checks that list items of kinds that are Go structs have no kind and
// apiVersion, however the list is made, and that all other objects have them.
func TestItemsOfListsOmitKind(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		s := servertest.New(t, apitest.WithStorage(store))
		a := apitest.InProcess(t, s)
		big := strings.Repeat("x", 40<<10)
		for i, value := range []string{"1", "2", big, "4", "5"} {
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprintf("m%d", i), "v", value))
		}
		a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
		s.Settle()
		a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`))
		const partial = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		for _, c := range []struct{ path, accept, first, kind string }{
			{apitest.ConfigMapsPath, "application/json", `{"metadata":{`, ""},
			{apitest.ConfigMapsPath + "?limit=2", "application/json", `{"metadata":{`, ""},
			{apitest.ConfigMapsPath + "?labelSelector=!x", "application/json", `{"metadata":{`, ""},
			{apitest.ConfigMapsPath + "?pretty=1", "application/json", "{\n      \"metadata\": {", ""},
			{apitest.ConfigMapsPath, "application/yaml", "- data:\n    v: \"1\"\n  metadata:", ""},
			{apitest.ConfigMapsPath, "application/json" + partial, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{`, "PartialObjectMetadata"},
			{apitest.ConfigMapsPath, "application/yaml" + partial, "- apiVersion: meta.k8s.io/v1\n  kind: PartialObjectMetadata\n", ""},
			{apitest.WidgetsPath, "application/json", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{`, "Widget"},
			{apitest.WidgetsPath, "application/yaml", "- apiVersion: example.com/v1\n  kind: Widget\n", ""},
		} {
			for range 3 { // from single encodings, and from cached blocks
				got := a.Must(200, "GET", c.path, nil, "Accept", c.accept)
				name := c.path + " " + c.accept
				assert.Contains(t, string(got.Raw), "items", name)
				_, after, _ := strings.Cut(string(got.Raw), "items")
				assert.Contains(t, after[:min(len(after), 140)], c.first, name)
				items, _ := got.Body["items"].([]any)
				for _, item := range items {
					assert.Equal(t, c.kind, apitest.NestedString(item, "kind"), name)
					assert.NotEmpty(t, apitest.NestedString(item, "metadata", "resourceVersion"), name)
				}
				if n := got.Header.Get("Content-Length"); n != "" {
					assert.Equal(t, strconv.Itoa(len(got.Raw)), n, name)
				}
			}
			for i := range 5 {
				one := a.Must(200, "GET", fmt.Sprintf("%s/m%d", apitest.ConfigMapsPath, i), nil)
				assert.True(t, strings.HasPrefix(string(one.Raw), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":`), "%.100s", one.Raw)
				assert.Equal(t, "ConfigMap", one.Body["kind"])
			}
			assert.Equal(t, "ConfigMap", a.Watch(apitest.ConfigMapsPath + "?watch=1").Next().Object["kind"])
			rows, _ := a.Must(200, "GET", apitest.ConfigMapsPath+"?includeObject=Object", nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Body["rows"].([]any)
			require.Len(t, rows, 5)
			for _, row := range rows {
				assert.Equal(t, "ConfigMap", apitest.NestedString(row, "object", "kind"))
			}
		}
		list := a.Must(200, "GET", apitest.ConfigMapsPath, nil)
		assert.Equal(t, []string{"m0", "m1", "m2", "m3", "m4"}, list.Names())
		a.Must(200, "PATCH", apitest.ConfigMapsPath+"/m1", `{"data":{"w":"2"}}`)
		assert.Equal(t, "2", apitest.NestedString(a.Must(200, "GET", apitest.ConfigMapsPath+"/m1", nil).Body, "data", "w"))
	})
}

// TestDiscoveryFormats requests every discovery document in every format. JSON and YAML have the
// same content; for protobuf see internal/codec/conformance.
func TestDiscoveryFormats(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	const aggregated = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, c := range []struct{ path, params, kind, version string }{
		{"/api", "", "APIVersions", ""}, {"/api/v1", "", "APIResourceList", ""}, {"/apis", "", "APIGroupList", "v1"},
		{"/apis/apps", "", "APIGroup", "v1"}, {"/apis/apps/v1", "", "APIResourceList", "v1"}, {"/apis/example.com/v1", "", "APIResourceList", "v1"},
		{"/api", aggregated, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"}, {"/apis", aggregated, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"},
	} {
		name := c.path + c.params
		plain := a.Must(200, "GET", c.path, nil, "Accept", "application/json"+c.params)
		assert.Equal(t, "application/json"+c.params, plain.Header.Get("Content-Type"))
		assert.Equal(t, c.kind, apitest.NestedString(plain.Body, "kind"), name)
		assert.Equal(t, c.version, apitest.NestedString(plain.Body, "apiVersion"), name)
		yaml := a.Must(200, "GET", c.path, nil, "Accept", "application/yaml"+c.params)
		assert.Equal(t, "application/yaml"+c.params, yaml.Header.Get("Content-Type"))
		tree, _, err := codec.DecodeYAML(yaml.Raw, codec.Limits{})
		require.NoError(t, err)
		asJSON, _, err := codec.DecodeJSON(plain.Raw, codec.Limits{})
		require.NoError(t, err)
		assert.Equal(t, asJSON, tree, name)
		proto := a.Must(200, "GET", c.path, nil, "Accept", "application/vnd.kubernetes.protobuf"+c.params)
		assert.Equal(t, "application/vnd.kubernetes.protobuf"+c.params, proto.Header.Get("Content-Type"))
		version, kind, body, err := codec.OpenEnvelope(proto.Raw)
		require.NoError(t, err)
		assert.Equal(t, c.version+" "+c.kind, version+" "+kind)
		assert.NotEmpty(t, body)
		assert.Equal(t, plain.Header.Get("ETag"), proto.Header.Get("ETag"), "one document, one tag")
		if tag := proto.Header.Get("ETag"); c.params != "" {
			require.NotEmpty(t, tag)
			a.Must(304, "GET", c.path, nil, "Accept", "application/vnd.kubernetes.protobuf"+c.params, "If-None-Match", tag)
			a.Must(200, "GET", c.path, nil, "Accept", "application/vnd.kubernetes.protobuf"+c.params+",application/json", "If-None-Match", `"other"`)
		}
	}
	for _, path := range []string{"/version", "/"} {
		assert.Equal(t, 406, a.Do("GET", path, nil, "Accept", "application/vnd.kubernetes.protobuf").Code, path)
	}
	a.Must(406, "GET", "/apis/apps", nil, "Accept", "application/vnd.kubernetes.protobuf"+aggregated)

	hashes := map[string]string{}
	for _, path := range []string{"/api/v1", "/apis/apps/v1", "/apis/apiextensions.k8s.io/v1", "/apis/example.com/v1"} {
		list, _ := a.Must(200, "GET", path, nil).Body["resources"].([]any)
		last := ""
		for _, r := range list {
			hashes[apitest.NestedString(r, "name")] = apitest.NestedString(r, "storageVersionHash")
			base, _, _ := strings.Cut(apitest.NestedString(r, "name"), "/")
			if lastBase, _, _ := strings.Cut(last, "/"); base == lastBase && path != "/apis/example.com/v1" {
				assert.Less(t, last, apitest.NestedString(r, "name"), "subresources are sorted by name")
			}
			last = apitest.NestedString(r, "name")
		}
	}
	// The first eight bytes of the SHA-256 of group/version/Kind, as in the field's API server.
	for resource, hash := range map[string]string{
		"configmaps": "qFsyl6wFWjQ=", "deployments": "8aSe+NMegvE=", "deployments/status": "", "customresourcedefinitions": "jfWCUB31mvA=", "widgets": "gIwvi5rymmg=",
	} {
		assert.Equal(t, hash, hashes[resource], resource)
	}
}

// TestStatusMessages checks the messages of common failures word for word, as clients print them.
func TestStatusMessages(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	const (
		merge       = "application/merge-patch+json"
		applied     = "application/apply-patch+yaml"
		deployments = "/apis/apps/v1/namespaces/default/deployments"
		pods        = "/api/v1/namespaces/default/pods"
		csrs        = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
		scale       = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":5}}`
		spec        = `"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`
		scaled      = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com"},
			"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"gadgets","kind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,
			"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n","labelSelectorPath":".status.sel"}},
			"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"description":"Told.","required":["spec"],
			"properties":{"spec":{"type":"object","additionalProperties":true,"properties":{"n":{"type":"integer"},"s":{"type":"string"}}}}}}}]}}`
		gadgets = "/apis/example.com/v1/namespaces/default/gadgets"
	)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("u"))
	a.Must(201, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"held","finalizers":["x.io/f"]}}`)
	a.Must(200, "DELETE", apitest.ConfigMapsPath+"/held", nil)
	a.Must(201, "PATCH", deployments+"/d?fieldManager=one", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},`+spec+`}`, "Content-Type", applied)
	a.Must(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	a.Must(201, "POST", apitest.DefinitionsPath, scaled)
	s.Settle()
	a.Must(201, "POST", gadgets, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g"},"spec":{"n":1,"more":{"x":1}}}`)

	for _, c := range []struct {
		code              int
		path, media, body string
		message           string
		causes            int
	}{
		{422, apitest.ConfigMapsPath + "/u", merge, `{"metadata":{"uid":"<other>"}}`, `ConfigMap "u" is invalid: metadata.uid: Invalid value: "<other>": field is immutable`, 1},
		{422, apitest.ConfigMapsPath + "/held", merge, `{"metadata":{"finalizers":["x.io/f","y.io/g","z.io/h"]}}`, `ConfigMap "held" is invalid: metadata.finalizers: Forbidden: ` +
			`no new finalizers can be added if the object is being deleted, found new finalizers []string{"y.io/g", "z.io/h"}`, 1},
		{422, deployments + "/d", merge, `{"spec":{"replicas":-1}}`, `Deployment.apps "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`, 1},
		{422, deployments + "/d/scale", merge, `{"spec":{"replicas":-1}}`, `Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`, 1},
		{409, deployments + "/d/scale?fieldManager=two", applied, scale, `Apply failed with 1 conflict: conflict with "one": .spec.replicas`, 1},
		{422, gadgets + "/g", merge, `{"spec":{"n":-1}}`, `Gadget.example.com "g" is invalid: .spec.n: Invalid value: -1: should be a non-negative integer`, 1},
		{422, gadgets + "/g/scale", merge, `{"spec":{"replicas":-2}}`, `Gadget.example.com "g" is invalid: .spec.n: Invalid value: -2: should be a non-negative integer`, 1},
		{422, gadgets + "/g/status", merge, `{"status":{"n":-3}}`, `Gadget.example.com "g" is invalid: .status.n: Invalid value: -3: should be a non-negative integer`, 1},
		{422, gadgets + "/g", merge, `{"spec":{"n":3000000000}}`, `Gadget.example.com "g" is invalid: .spec.n: Invalid value: 3000000000: should be less than or equal to 2147483647`, 1},
		{422, gadgets + "/g", merge, `{"spec":{"n":"x"}}`, `Gadget.example.com "g" is invalid: [spec.n: Invalid value: "string": spec.n in body must be of type integer: "string", ` +
			`.spec.n: Invalid value: 0: .spec.n accessor error: x is of the type string, expected int64]`, 2},
		{422, gadgets + "/g", merge, `{"spec":true}`, `Gadget.example.com "g" is invalid: [spec: Invalid value: "boolean": spec in body must be of type object: "boolean", ` +
			`.spec.n: Invalid value: 0: .spec.n accessor error: true is of the type bool, expected map[string]interface{}]`, 2},
		{422, gadgets + "/g/status", merge, `{"status":{"n":[1,"x"]}}`, `Gadget.example.com "g" is invalid: .status.n: Invalid value: 0: .status.n accessor error: [1 x] is of the type []interface {}, expected int64`, 1},
		{422, gadgets + "/g/status", merge, `{"status":{"n":1.5,"sel":{"a":"b"}}}`, `Gadget.example.com "g" is invalid: [.status.n: Invalid value: 0: .status.n accessor error: 1.5 is of the type float64, expected int64, ` +
			`.status.sel: Invalid value: "": .status.sel accessor error: map[a:b] is of the type map[string]interface {}, expected string]`, 2},
		{422, gadgets + "/g", merge, `{"spec":{"s":1}}`, `Gadget.example.com "g" is invalid: spec.s: Invalid value: "integer": spec.s in body must be of type string: "integer"`, 1},
	} {
		got := a.Must(c.code, "PATCH", c.path, c.body, "Content-Type", c.media)
		assert.Equal(t, c.message, got.Body["message"], c.path)
		assert.Len(t, apitest.Nested(got.Body, "details", "causes"), c.causes, c.path)
	}
	a.Must(200, "PATCH", deployments+"/d?fieldManager=hand", `{"spec":{"replicas":7}}`, "Content-Type", merge)
	assert.Equal(t, `Apply failed with 1 conflict: conflict with "hand" using autoscaling/v1: .spec.replicas`,
		a.Must(409, "PATCH", deployments+"/d/scale?fieldManager=two", scale, "Content-Type", applied).Body["message"])
	assert.Equal(t, `Apply failed with 1 conflict: conflict with "hand" using apps/v1: .spec.replicas`,
		a.Must(409, "PATCH", deployments+"/d?fieldManager=one", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},`+spec+`}`, "Content-Type", applied).Body["message"])

	change := a.Must(422, "PATCH", pods+"/p", `{"spec":{"restartPolicy":"Never","hostname":"h"}}`, "Content-Type", merge)
	message := apitest.NestedString(change.Body, "message")
	assert.Contains(t, message, "pod updates may not change fields other than `spec.containers[*].image`")
	assert.Contains(t, message, "\n- \"restartPolicy\": \"Always\",\n+ \"restartPolicy\": \"Never\",\n")
	assert.Contains(t, message, "\n+ \"hostname\": \"h\",\n")
	assert.NotContains(t, message, `"image": "i",\n-`)

	// Text in angle brackets is not removed as markup.
	request := a.Must(422, "POST", csrs, `{"metadata":{"name":"c"},"spec":{"request":"YWJj","signerName":"<x>/y","usages":["client auth"]}}`)
	assert.Contains(t, apitest.NestedString(request.Body, "message"), "<x>")

	assert.Equal(t, map[string]any{"n": 1., "more": map[string]any{}}, apitest.Nested(a.Must(200, "GET", gadgets+"/g", nil).Body, "spec"), "properties, and others beside them")
	v2 := apitest.Nested(a.Must(200, "GET", "/openapi/v2", nil).Body, "definitions")
	assert.Equal(t, map[string]any{"type": "object", "x-kubernetes-group-version-kind": []any{map[string]any{"group": "example.com", "kind": "Gadget", "version": "v1"}}},
		apitest.Nested(v2, "com.example.v1.Gadget"), "its root keeps what it does not know")
	v3 := apitest.Nested(a.Must(200, "GET", "/openapi/v3/apis/example.com/v1", nil).Body, "components", "schemas", "com.example.v1.Gadget")
	assert.Equal(t, "Told.", apitest.NestedString(v3, "description"))
	for more, code := range map[string]int{`true`: 201, `false`: 422, `{"type":"string"}`: 422} {
		body := strings.NewReplacer(`"additionalProperties":true`, `"additionalProperties":`+more, "gadget", "other", "Gadget", "Other").Replace(scaled)
		assert.Equal(t, code, a.Do("POST", apitest.DefinitionsPath+"?dryRun=All", body).Code, more)
	}
}
