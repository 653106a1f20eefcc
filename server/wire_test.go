package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// TestGoneEvent: a watch from a forgotten version is one event, in one line or
// frame, that tells the asked version and the oldest one that there is.
func TestGoneEvent(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		var oldest storage.Revision
		for i := range 9 {
			rev, err := store.Commit(t.Context(), storage.Write{Key: fmt.Sprintf("things/a/%d", i), Value: []byte(`{}`)})
			require.NoError(t, err)
			oldest = rev
		}
		require.NoError(t, store.Compact(t.Context(), oldest))
		a := inProcess(t, servertest.New(t, over(store)))
		message := fmt.Sprintf("too old resource version: 1 (%d)", oldest)
		status := `{"apiVersion":"v1","kind":"Status","metadata":{},"code":410,"message":"` + message + `","reason":"Expired","status":"Failure"}`
		const path = configMaps + "?watch=1&resourceVersion=1"
		for _, query := range []string{"", "&pretty=1", "&allowWatchBookmarks=1", "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"} {
			for _, accept := range []string{"", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"} {
				got := a.must(200, "GET", path+query, nil, "Accept", accept)
				assert.Equal(t, `{"type":"ERROR","object":`+status+"}\n", string(got.raw), query+accept)
			}
		}
		for _, accept := range []string{"application/vnd.kubernetes.protobuf;stream=watch", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"} {
			frame := a.must(200, "GET", path, nil, "Accept", accept).raw
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
			assert.Equal(t, "The resourceVersion for the provided list is too old.", a.must(410, "GET", configMaps+query, nil).body["message"])
		}
	})
}

// everyPath has one path for each way through the server.
var everyPath = []string{
	"/", "/version", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/livez", "/livez/ping", "/readyz", "/metrics",
	"/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/extra", "/nowhere", "/apis/none.io/v1", "/livez/none", "/openapi/v3/apis/none/v1",
	configMaps, configMaps + "/none", namespaces + "/default", "/api/v1/nothings",
}

func withExtra(b *server.Builder) {
	b.Handlers = map[string]http.Handler{"/extra": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("more")) })}
}

// TestTimeoutParameter: every path takes it, before anything else is looked at,
// but what lasts as long as the caller wants.
func TestTimeoutParameter(t *testing.T) {
	users, err := tokenfile.Parse(strings.NewReader("a,alice,1\n"))
	require.NoError(t, err)
	a := inProcess(t, servertest.New(t, withExtra, func(b *server.Builder) { b.Authenticators = []auth.Authenticator{users} }))
	for _, path := range everyPath {
		code := a.do("GET", path, nil, "Authorization", "Bearer a").code
		for _, fine := range []string{"", "0", "-1s", "1h", "9000h", "34s", "1m30.5s"} {
			assert.Equal(t, code, a.do("GET", path+"?timeout="+fine, nil, "Authorization", "Bearer a").code, path+" "+fine)
		}
		for text, why := range map[string]string{
			"abc": `invalid duration "abc"`, "5": `missing unit in duration "5"`, "1e3s": `unknown unit "e" in duration "1e3s"`, "9999999999h": `invalid duration "9999999999h"`,
		} {
			for _, who := range []string{"a", "nobody"} {
				for _, method := range []string{"GET", "POST", "OPTIONS"} {
					got := a.must(400, method, path+"?timeout="+text, nil, "Authorization", "Bearer "+who)
					assert.Equal(t, "invalid timeout specified in the request URL - time: "+why, got.body["message"], path)
					assert.Equal(t, "BadRequest", got.body["reason"])
				}
			}
		}
	}
	for _, path := range []string{configMaps + "?watch=1&timeoutSeconds=1&", "/api/v1/watch/namespaces?timeoutSeconds=1&"} {
		assert.Equal(t, 200, a.do("GET", path+"timeout=abc", nil, "Authorization", "Bearer a").code, path)
	}
	assert.Equal(t, 404, a.do("GET", namespaces+"/default/pods/none/log?timeout=abc", nil, "Authorization", "Bearer a").code)
	assert.Equal(t, 400, a.do("GET", configMaps+"/a?watch=1&timeout=abc", nil, "Authorization", "Bearer a").code, "one object is not watched by that path")
	assert.Equal(t, 504, a.do("GET", configMaps+"?timeout=1ns", nil, "Authorization", "Bearer a").code)
}

// TestEveryAnswerIsNamed by the caller's name for it or a new one, and is kept
// by nobody on the way, whatever becomes of the request.
func TestEveryAnswerIsNamed(t *testing.T) {
	users, err := tokenfile.Parse(strings.NewReader("a,alice,1\nb,bob,2\n"))
	require.NoError(t, err)
	s := servertest.New(t, withExtra, func(b *server.Builder) {
		b.Authenticators = []auth.Authenticator{users}
		b.Limits.Watches = 1
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Action) (auth.Decision, string, error) {
			if a.User.Name == "bob" {
				return auth.Deny, "", nil
			}
			return auth.Allow, "", nil
		})
	})
	a := inProcess(t, s)
	seen := map[string]bool{}
	check := func(code int, method, path, token string, headers ...string) {
		t.Helper()
		got := a.do(method, path, nil, append(headers, "Authorization", "Bearer "+token)...)
		if code != 0 {
			assert.Equal(t, code, got.code, "%s %s", method, path)
		}
		id := got.header.Get("Audit-Id")
		assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id, path)
		assert.False(t, seen[id], id)
		seen[id] = true
		if got.header.Get("Expires") == "" {
			assert.Equal(t, []string{"no-cache, private"}, got.header["Cache-Control"], path)
		}
	}
	for _, path := range everyPath {
		check(0, "GET", path, "a")
		check(403, "GET", path, "b")
		check(401, "GET", path, "c")
		check(400, "GET", path+"?timeout=x", "c")
	}
	check(405, "PUT", "/version", "a")
	check(405, "PUT", configMaps, "a")
	check(406, "GET", configMaps, "a", "Accept", "text/html")
	check(415, "POST", configMaps, "a", "Content-Type", "text/html")
	check(200, "GET", configMaps+"?watch=1&timeoutSeconds=1", "a")
	w := a.watch(configMaps+"?watch=1", "Authorization", "Bearer a")
	check(429, "GET", configMaps+"?watch=1", "a")
	w.close()

	for id, echoed := range map[string]bool{
		"mine": true, "a/b:c,d": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "a b": false, "ä": false, "a\tb": false, "": false,
	} {
		got := a.do("GET", "/version", nil, "Authorization", "Bearer c", "Audit-Id", id)
		assert.Equal(t, echoed, got.header.Get("Audit-Id") == id, id)
		assert.Len(t, got.header["Audit-Id"], 1)
	}
	require.NoError(t, s.Shutdown(context.Background()))
	check(503, "GET", configMaps, "a")
}

// TestItemsOfLists: those of kinds that are structs in Go tell no kind and
// apiVersion, whatever the list is made from; all else tells them.
func TestItemsOfLists(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		s := servertest.New(t, over(store))
		a := inProcess(t, s)
		big := strings.Repeat("x", 40<<10)
		for i, value := range []string{"1", "2", big, "4", "5"} {
			a.must(201, "POST", configMaps, newConfigMap(fmt.Sprintf("m%d", i), "v", value))
		}
		a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
		s.Settle()
		a.must(201, "POST", definedPath, definedWidget("w", `{}`))
		const partial = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		for _, c := range []struct{ path, accept, first, kind string }{
			{configMaps, "application/json", `{"metadata":{`, ""},
			{configMaps + "?limit=2", "application/json", `{"metadata":{`, ""},
			{configMaps + "?labelSelector=!x", "application/json", `{"metadata":{`, ""},
			{configMaps + "?pretty=1", "application/json", "{\n      \"metadata\": {", ""},
			{configMaps, "application/yaml", "- data:\n    v: \"1\"\n  metadata:", ""},
			{configMaps, "application/json" + partial, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{`, "PartialObjectMetadata"},
			{configMaps, "application/yaml" + partial, "- apiVersion: meta.k8s.io/v1\n  kind: PartialObjectMetadata\n", ""},
			{definedPath, "application/json", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{`, "Widget"},
			{definedPath, "application/yaml", "- apiVersion: example.com/v1\n  kind: Widget\n", ""},
		} {
			for range 3 { // from single texts, and from blocks
				got := a.must(200, "GET", c.path, nil, "Accept", c.accept)
				name := c.path + " " + c.accept
				assert.Contains(t, string(got.raw), "items", name)
				_, after, _ := strings.Cut(string(got.raw), "items")
				assert.Contains(t, after[:min(len(after), 140)], c.first, name)
				items, _ := got.body["items"].([]any)
				for _, item := range items {
					assert.Equal(t, c.kind, text(item, "kind"), name)
					assert.NotEmpty(t, text(item, "metadata", "resourceVersion"), name)
				}
				if n := got.header.Get("Content-Length"); n != "" {
					assert.Equal(t, itoa(len(got.raw)), n, name)
				}
			}
			for i := range 5 {
				one := a.must(200, "GET", fmt.Sprintf("%s/m%d", configMaps, i), nil)
				assert.True(t, strings.HasPrefix(string(one.raw), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":`), "%.100s", one.raw)
				assert.Equal(t, "ConfigMap", one.body["kind"])
			}
			assert.Equal(t, "ConfigMap", a.watch(configMaps + "?watch=1").next().Object["kind"])
			rows, _ := a.must(200, "GET", configMaps+"?includeObject=Object", nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").body["rows"].([]any)
			require.Len(t, rows, 5)
			for _, row := range rows {
				assert.Equal(t, "ConfigMap", text(row, "object", "kind"))
			}
		}
		list := a.must(200, "GET", configMaps, nil)
		assert.Equal(t, []string{"m0", "m1", "m2", "m3", "m4"}, list.names())
		a.must(200, "PATCH", configMaps+"/m1", `{"data":{"w":"2"}}`)
		assert.Equal(t, "2", text(a.must(200, "GET", configMaps+"/m1", nil).body, "data", "w"))
	})
}

// TestDiscoveryForms: every document in every encoding; JSON and YAML say the
// same, protobuf is compared with what clients read in internal/codec/conformance.
func TestDiscoveryForms(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	const aggregated = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, c := range []struct{ path, params, kind, version string }{
		{"/api", "", "APIVersions", ""}, {"/api/v1", "", "APIResourceList", ""}, {"/apis", "", "APIGroupList", "v1"},
		{"/apis/apps", "", "APIGroup", "v1"}, {"/apis/apps/v1", "", "APIResourceList", "v1"}, {"/apis/example.com/v1", "", "APIResourceList", "v1"},
		{"/api", aggregated, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"}, {"/apis", aggregated, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"},
	} {
		name := c.path + c.params
		plain := a.must(200, "GET", c.path, nil, "Accept", "application/json"+c.params)
		assert.Equal(t, "application/json"+c.params, plain.header.Get("Content-Type"))
		assert.Equal(t, c.kind, text(plain.body, "kind"), name)
		assert.Equal(t, c.version, text(plain.body, "apiVersion"), name)
		yaml := a.must(200, "GET", c.path, nil, "Accept", "application/yaml"+c.params)
		assert.Equal(t, "application/yaml"+c.params, yaml.header.Get("Content-Type"))
		tree, _, err := codec.DecodeYAML(yaml.raw, codec.Limits{})
		require.NoError(t, err)
		asJSON, _, err := codec.DecodeJSON(plain.raw, codec.Limits{})
		require.NoError(t, err)
		assert.Equal(t, asJSON, tree, name)
		proto := a.must(200, "GET", c.path, nil, "Accept", "application/vnd.kubernetes.protobuf"+c.params)
		assert.Equal(t, "application/vnd.kubernetes.protobuf"+c.params, proto.header.Get("Content-Type"))
		version, kind, body, err := codec.OpenEnvelope(proto.raw)
		require.NoError(t, err)
		assert.Equal(t, c.version+" "+c.kind, version+" "+kind)
		assert.NotEmpty(t, body)
		assert.Equal(t, plain.header.Get("ETag"), proto.header.Get("ETag"), "one document, one tag")
		if tag := proto.header.Get("ETag"); c.params != "" {
			require.NotEmpty(t, tag)
			a.must(304, "GET", c.path, nil, "Accept", "application/vnd.kubernetes.protobuf"+c.params, "If-None-Match", tag)
			a.must(200, "GET", c.path, nil, "Accept", "application/vnd.kubernetes.protobuf"+c.params+",application/json", "If-None-Match", `"other"`)
		}
	}
	for _, path := range []string{"/version", "/"} {
		assert.Equal(t, 406, a.do("GET", path, nil, "Accept", "application/vnd.kubernetes.protobuf").code, path)
	}
	a.must(406, "GET", "/apis/apps", nil, "Accept", "application/vnd.kubernetes.protobuf"+aggregated)

	hashes := map[string]string{}
	for _, path := range []string{"/api/v1", "/apis/apps/v1", "/apis/apiextensions.k8s.io/v1", "/apis/example.com/v1"} {
		list, _ := a.must(200, "GET", path, nil).body["resources"].([]any)
		last := ""
		for _, r := range list {
			hashes[text(r, "name")] = text(r, "storageVersionHash")
			base, _, _ := strings.Cut(text(r, "name"), "/")
			if lastBase, _, _ := strings.Cut(last, "/"); base == lastBase && path != "/apis/example.com/v1" {
				assert.Less(t, last, text(r, "name"), "sub-resources stand by name")
			}
			last = text(r, "name")
		}
	}
	// The first eight bytes of the SHA-256 of group/version/Kind, as stored by
	// the servers that clients know.
	for resource, hash := range map[string]string{
		"configmaps": "qFsyl6wFWjQ=", "deployments": "8aSe+NMegvE=", "deployments/status": "", "customresourcedefinitions": "jfWCUB31mvA=", "widgets": "gIwvi5rymmg=",
	} {
		assert.Equal(t, hash, hashes[resource], resource)
	}
}

// TestMessages: what faults are told in, word by word as clients print it.
func TestMessages(t *testing.T) {
	s := servertest.New(t)
	a := inProcess(t, s)
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
	a.must(201, "POST", configMaps, newConfigMap("u"))
	a.must(201, "POST", configMaps, `{"metadata":{"name":"held","finalizers":["x.io/f"]}}`)
	a.must(200, "DELETE", configMaps+"/held", nil)
	a.must(201, "PATCH", deployments+"/d?fieldManager=one", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},`+spec+`}`, "Content-Type", applied)
	a.must(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	a.must(201, "POST", crdPath, scaled)
	s.Settle()
	a.must(201, "POST", gadgets, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g"},"spec":{"n":1,"more":{"x":1}}}`)

	for _, c := range []struct {
		code              int
		path, media, body string
		message           string
		causes            int
	}{
		{422, configMaps + "/u", merge, `{"metadata":{"uid":"<other>"}}`, `ConfigMap "u" is invalid: metadata.uid: Invalid value: "<other>": field is immutable`, 1},
		{422, configMaps + "/held", merge, `{"metadata":{"finalizers":["x.io/f","y.io/g","z.io/h"]}}`, `ConfigMap "held" is invalid: metadata.finalizers: Forbidden: ` +
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
		got := a.must(c.code, "PATCH", c.path, c.body, "Content-Type", c.media)
		assert.Equal(t, c.message, got.body["message"], c.path)
		assert.Len(t, at(got.body, "details", "causes"), c.causes, c.path)
	}
	a.must(200, "PATCH", deployments+"/d?fieldManager=hand", `{"spec":{"replicas":7}}`, "Content-Type", merge)
	assert.Equal(t, `Apply failed with 1 conflict: conflict with "hand" using autoscaling/v1: .spec.replicas`,
		a.must(409, "PATCH", deployments+"/d/scale?fieldManager=two", scale, "Content-Type", applied).body["message"])
	assert.Equal(t, `Apply failed with 1 conflict: conflict with "hand" using apps/v1: .spec.replicas`,
		a.must(409, "PATCH", deployments+"/d?fieldManager=one", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},`+spec+`}`, "Content-Type", applied).body["message"])

	change := a.must(422, "PATCH", pods+"/p", `{"spec":{"restartPolicy":"Never","hostname":"h"}}`, "Content-Type", merge)
	message := text(change.body, "message")
	assert.Contains(t, message, "pod updates may not change fields other than `spec.containers[*].image`")
	assert.Contains(t, message, "\n- \"restartPolicy\": \"Always\",\n+ \"restartPolicy\": \"Never\",\n")
	assert.Contains(t, message, "\n+ \"hostname\": \"h\",\n")
	assert.NotContains(t, message, `"image": "i",\n-`)

	// What stands in brackets is no markup.
	request := a.must(422, "POST", csrs, `{"metadata":{"name":"c"},"spec":{"request":"YWJj","signerName":"<x>/y","usages":["client auth"]}}`)
	assert.Contains(t, text(request.body, "message"), "<x>")

	assert.Equal(t, map[string]any{"n": 1., "more": map[string]any{}}, at(a.must(200, "GET", gadgets+"/g", nil).body, "spec"), "properties, and others beside them")
	v2 := at(a.must(200, "GET", "/openapi/v2", nil).body, "definitions")
	assert.Equal(t, map[string]any{"type": "object", "x-kubernetes-group-version-kind": []any{map[string]any{"group": "example.com", "kind": "Gadget", "version": "v1"}}},
		at(v2, "com.example.v1.Gadget"), "its root keeps what it does not know")
	v3 := at(a.must(200, "GET", "/openapi/v3/apis/example.com/v1", nil).body, "components", "schemas", "com.example.v1.Gadget")
	assert.Equal(t, "Told.", text(v3, "description"))
	for more, code := range map[string]int{`true`: 201, `false`: 422, `{"type":"string"}`: 422} {
		body := strings.NewReplacer(`"additionalProperties":true`, `"additionalProperties":`+more, "gadget", "other", "Gadget", "Other").Replace(scaled)
		assert.Equal(t, code, a.do("POST", crdPath+"?dryRun=All", body).code, more)
	}
}
