package verbs_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestFieldValidation: unknown and duplicate fields, and values of the wrong type, by verb, media type, mode and
// kind: the code, and the message or warnings in the order and wording that clients expect.
func TestFieldValidation(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("fv", "a", "b"))
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"},"o":{"type":"object","properties":{"x":{"type":"string"}}},
		"l":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}},
		"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}`))
	s.Settle()
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("fv", `{"a":"x"}`))
	const (
		pods      = "/api/v1/namespaces/default/pods"
		merge     = "application/merge-patch+json"
		patch     = "application/json-patch+json"
		strategic = "application/strategic-merge-patch+json"
		applied   = "application/apply-patch+yaml"
		yaml      = "application/yaml"
		strict    = "fieldValidation=Strict"
		warn      = "fieldValidation=Warn"

		config = `{"apiVersion":"v1","kind":"ConfigMap","zz":1,"metadata":{"name":"NAME","nope":2,"labels":{"b":"1","a":"2","b":"3"}},"data":{"k":"v","k":"w"},"dota":{"q":1,"q":2},"data":{},"aa":3,"zz":4}`
		pod    = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME"},"spec":{"foo":1,"containers":[{"name":"c","image":"i","bar":1,"ports":[{"containerPort":1,"x":2,"containerPort":3}]},{"name":"d","image":"i","image":"j","baz":{"q":1}}],"bar":2,"foo":3},"status":{"q":1}}`
		widget = `{"apiVersion":"example.com/v1","kind":"Widget","zz":1,"metadata":{"name":"NAME","nope":2,"labels":{"b":"1","b":"3"}},"spec":{"unk":1,"a":"x","a":"y","o":{"q":1,"x":"a","x":"b"},"l":[{"w":1}],"unk":2,"e":{"apiVersion":"v1","kind":"X","metadata":{"bad":1}}},"aa":1,"zz":2}`
		lines  = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\n  labels:\n    a: x\n    a: z\nfoo: 1\ndata:\n  k: v\n  k: x\nfoo: 2\n"

		configFaults = `unknown field "zz", unknown field "metadata.nope", duplicate field "metadata.labels.b", duplicate field "data.k", unknown field "dota", duplicate field "data", unknown field "aa"`
		podFaults    = `unknown field "spec.foo", unknown field "spec.containers[0].bar", unknown field "spec.containers[0].ports[0].x", duplicate field "spec.containers[0].ports[0].containerPort", duplicate field "spec.containers[1].image", unknown field "spec.containers[1].baz", unknown field "spec.bar", unknown field "status.q"`
		widgetFaults = `duplicate field "metadata.labels.b", duplicate field "spec.a", duplicate field "spec.o.x", duplicate field "spec.unk", duplicate field "zz", unknown field "metadata.nope", unknown field "aa", unknown field "spec.l[0].w", unknown field "spec.o.q", unknown field "spec.unk", unknown field "zz", unknown field "spec.e.metadata.bad"`
		patchFaults  = `duplicate field "metadata.labels.b", duplicate field "data.k", duplicate field "dota.q", duplicate field "data", duplicate field "zz", unknown field "aa", unknown field "dota", unknown field "metadata.nope", unknown field "zz"`
		textFaults   = `line 7: key "a" already set in map, line 11: key "k" already set in map, line 12: key "foo" already set in map, unknown field "foo"`
		handled      = ` in version "v1" cannot be handled as a `
	)
	for _, c := range []struct {
		method, path, media, mode, body string
		code                            int
		want                            string // the message, or the warnings
	}{
		{"POST", apitest.ConfigMapsPath, "", strict, config, 400, "ConfigMap" + handled + "ConfigMap: strict decoding error: " + configFaults},
		{"POST", apitest.ConfigMapsPath, "", warn, config, 201, configFaults},
		{"POST", apitest.ConfigMapsPath, "", "", config, 201, configFaults},
		{"POST", apitest.ConfigMapsPath, "", "fieldValidation=Ignore", config, 201, ""},
		{"POST", apitest.ConfigMapsPath, "", "fieldValidation=odd", config, 422, `CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "odd": supported values: "", "Ignore", "Strict", "Warn"`},
		{"PUT", apitest.ConfigMapsPath + "/fv", "", warn, config, 200, configFaults},
		{"PUT", apitest.ConfigMapsPath + "/fv", "", strict, config, 400, "ConfigMap" + handled + "ConfigMap: strict decoding error: " + configFaults},
		{"PATCH", apitest.ConfigMapsPath + "/fv", merge, warn, config, 200, patchFaults},
		{"PATCH", apitest.ConfigMapsPath + "/fv", strategic, warn, config, 200, patchFaults},
		{"PATCH", apitest.ConfigMapsPath + "/fv", merge, strict, config, 422, ` "" is invalid: patch: Invalid value: strict decoding error: ` + patchFaults},
		{"POST", pods, "", warn, pod, 201, podFaults},
		{"POST", pods, "", strict, pod, 400, "Pod" + handled + "Pod: strict decoding error: " + podFaults},
		{"POST", apitest.WidgetsPath, "", warn, widget, 201, widgetFaults},
		{"POST", apitest.WidgetsPath, "", strict, widget, 400, "Widget" + handled + "Widget: strict decoding error: " + widgetFaults},
		{"PATCH", apitest.WidgetsPath + "/fv", merge, warn, widget, 200, widgetFaults},

		{"POST", apitest.ConfigMapsPath, yaml, warn, lines, 201, textFaults},
		{"POST", apitest.ConfigMapsPath, yaml, strict, lines, 400, "ConfigMap" + handled + "ConfigMap: strict decoding error: yaml: unmarshal errors:\n" +
			"  line 7: key \"a\" already set in map\n  line 11: key \"k\" already set in map\n  line 12: key \"foo\" already set in map, unknown field \"foo\""},
		{"POST", apitest.ConfigMapsPath, yaml, warn, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"data":{"a":"b","a":"c"}}`, 201, `line 1: key "a" already set in map`},

		{"PATCH", apitest.ConfigMapsPath + "/fv", patch, warn, `[{"op":"add","path":"/metadata/zz","value":1,"foo":2},{"op":"add","path":"/aa","value":{"a":1,"a":2},"op":"add"}]`, 200,
			`json patch unknown field "[0].foo", json patch duplicate field "[1].value.a", json patch duplicate field "[1].op", unknown field "aa", unknown field "metadata.zz"`},

		{"PATCH", apitest.ConfigMapsPath + "/new?fieldManager=m", applied, strict, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata:\n  a: b\n  a: c\n", 400,
			"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key \"a\" already set in map"},
		{"PATCH", apitest.ConfigMapsPath + "/new?fieldManager=m", applied, warn, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata:\n  a: b\n  a: c\n", 201, `line 6: key "a" already set in map`},
		{"PATCH", apitest.ConfigMapsPath + "/new?fieldManager=m", applied, strict, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndota: 1\n", 422,
			"failed to create typed patch object (/new; /v1, Kind=ConfigMap): .dota: field not declared in schema"},
		{"PATCH", apitest.WidgetsPath + "/new?fieldManager=m", applied, "", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: new, namespace: default}\nspec: {l: [{w: 1}, {unknown: 1}]}\n", 422,
			"failed to create typed patch object (default/new; example.com/v1, Kind=Widget): errors:\n  .spec.l[0].w: field not declared in schema\n  .spec.l[1].unknown: field not declared in schema"},
		{"PATCH", apitest.WidgetsPath + "/new?fieldManager=m", applied, "", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: new}\nspec: {o: x}\n", 422,
			"failed to create typed patch object (/new; example.com/v1, Kind=Widget): .spec.o: expected map, got &{x}"},

		{"PATCH", apitest.WidgetsPath + "/new?fieldManager=m", applied, "", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: new}\nspec: {a: null}\n", 422,
			`Widget.example.com "new" is invalid: spec.a: Invalid value: "null": spec.a in body must be of type string: "null"`},
		{"POST", apitest.WidgetsPath, "", "", apitest.NewWidget("n", `{"a":null}`), 201, ""},

		{"POST", apitest.ConfigMapsPath, "", "", `{"metadata":{"name":"n"},"immutable":"x"}`, 400, "ConfigMap" + handled + "ConfigMap: json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool"},
		{"POST", apitest.ConfigMapsPath, "", "", `{"metadata":{"name":"n"},"data":1}`, 400, "ConfigMap" + handled + "ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"},
		{"POST", apitest.ConfigMapsPath, "", "", `{"metadata":{"name":"n"},"data":{"a":true}}`, 400, "ConfigMap" + handled + "ConfigMap: json: cannot unmarshal bool into Go struct field ConfigMap.data of type string"},
		{"POST", apitest.ConfigMapsPath, "", "", `{"metadata":{"name":"n"},"binaryData":{"a":1}}`, 400, "ConfigMap" + handled + "ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.binaryData of type []uint8"},
		{"POST", apitest.ConfigMapsPath, "", "", `{"metadata":[1]}`, 400, "ConfigMap" + handled + "ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta"},
		{"POST", apitest.ConfigMapsPath, "", "", `{"metadata":{"name":"n","finalizers":1}}`, 400, "ConfigMap" + handled + "ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.finalizers of type []string"},
		{"POST", apitest.ConfigMapsPath, "", "", `{"metadata":{"name":"n","ownerReferences":[{"controller":"x"}]}}`, 400, "ConfigMap" + handled + "ConfigMap: json: cannot unmarshal string into Go struct field OwnerReference.metadata.ownerReferences.controller of type bool"},
		{"POST", apitest.ConfigMapsPath, "", "", `{"metadata":{"name":"n","generation":1.5}}`, 400, "ConfigMap" + handled + "ConfigMap: json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64"},
		{"POST", pods, "", "", `{"metadata":{"name":"n"},"spec":{"containers":{"a":1}}}`, 400, "Pod" + handled + "Pod: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"},
		{"POST", pods, "", "", `{"metadata":{"name":"n"},"spec":{"containers":[{"ports":[{"containerPort":3000000000}]}]}}`, 400, "Pod" + handled + "Pod: json: cannot unmarshal number 3000000000 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32"},
		{"POST", pods, "", "", `{"metadata":{"name":"n"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"x"}}}]}}`, 400, "Pod" + handled + "Pod: spec.containers[0].resources.limits.cpu: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		{"POST", apitest.WidgetsPath, "", "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":{"a":1}}}`, 400, "Widget" + handled + "Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"},
		{"POST", apitest.WidgetsPath, "", "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":"x"}`, 400, "Widget" + handled + "Widget: json: cannot unmarshal string into Go value of type v1.ObjectMeta"},
		{"POST", apitest.WidgetsPath, "", "", apitest.NewWidget("n", `{"e":{"apiVersion":1,"kind":"X"}}`), 400, "Widget" + handled + "Widget: spec.e.apiVersion: Invalid value: 1: must be a string"},
		{"POST", apitest.WidgetsPath, "", "", apitest.NewWidget("n", `{"e":{"apiVersion":"v1","kind":"X","metadata":{"labels":{"a":1}}}}`), 400,
			"Widget" + handled + `Widget: spec.e.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`},
	} {
		name := "new"
		if strings.HasSuffix(c.path, "/fv") {
			name = "fv"
		}
		path := c.path + map[bool]string{true: "&", false: "?"}[strings.Contains(c.path, "?")] + "dryRun=All&" + c.mode
		media := c.media
		if media == "" {
			media = "application/json"
		}
		got := a.Do(c.method, path, strings.ReplaceAll(c.body, "NAME", name), "Content-Type", media)
		messages := apitest.NestedString(got.Body, "message")
		if c.code < 300 {
			messages = strings.ReplaceAll(strings.ReplaceAll(strings.Join(got.Header.Values("Warning"), ", "), `299 - "`, ""), `\"`, "\x00")
			messages = strings.ReplaceAll(strings.ReplaceAll(messages, `"`, ""), "\x00", `"`)
		}
		assert.Equal(t, c.code, got.Code, "%s %s %s: %s", c.method, path, c.body, got.Raw)
		assert.Equal(t, c.want, messages, "%s %s %s", c.method, path, c.body)
	}
}

// TestWarningsAreBounded: duplicate warnings are dropped. If the warnings exceed 4 KiB, each is truncated to 256
// bytes.
func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	for _, c := range []struct {
		fields, length, warnings, longest int
	}{{100, 4, 100, 20}, {1, 5000, 1, 256}, {1, 3000, 1, 3016}, {20, 500, 16, 256}, {90, 100, 36, 116}} {
		var b strings.Builder
		for i := range c.fields {
			b.WriteString(`,"` + strings.Repeat("k", c.length-len(strconv.Itoa(i))) + strconv.Itoa(i) + `":1`)
		}
		got := a.Must(201, "POST", apitest.ConfigMapsPath+"?dryRun=All", `{"metadata":{"name":"n"}`+b.String()+"}")
		warnings, longest := got.Header.Values("Warning"), 0
		for _, w := range warnings {
			longest = max(longest, len(strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(w, `299 - "`), `"`), `\"`, `"`)))
		}
		assert.Len(t, warnings, c.warnings, "%+v", c)
		assert.Equal(t, c.longest, longest, "%+v", c)
	}
}

// TestScaleOwnsItsPath: a manager that writes the scale of a custom kind owns the field to which the definition maps
// it, and has conflicts over that field.
func TestScaleOwnsItsPath(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, strings.Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"},"size":{"type":"object","properties":{"n":{"type":"integer"}}}}`),
		`"schema":{`, `"subresources":{"status":{},"scale":{"specReplicasPath":".spec.size.n","statusReplicasPath":".status.n"}},"schema":{`, 1))
	s.Settle()
	a.Must(201, "POST", apitest.WidgetsPath+"?fieldManager=maker", apitest.NewWidget("w", `{"a":"x","size":{"n":1}}`))
	a.Must(200, "PATCH", apitest.WidgetsPath+"/w/scale?fieldManager=scaler", `{"spec":{"replicas":4}}`)
	owners := map[string]any{}
	list, _ := apitest.Nested(a.Must(200, "GET", apitest.WidgetsPath+"/w", nil).Body, "metadata", "managedFields").([]any)
	for _, e := range list {
		owners[apitest.NestedString(e, "manager")+" "+apitest.NestedString(e, "subresource")+" "+apitest.NestedString(e, "apiVersion")] = apitest.Nested(e, "fieldsV1", "f:spec")
	}
	assert.Equal(t, map[string]any{
		"maker  example.com/v1":       map[string]any{".": map[string]any{}, "f:a": map[string]any{}, "f:size": map[string]any{}},
		"scaler scale example.com/v1": map[string]any{"f:size": map[string]any{"f:n": map[string]any{}}},
	}, owners)
	got := a.Must(409, "PATCH", apitest.WidgetsPath+"/w?fieldManager=other", apitest.NewWidget("w", `{"size":{"n":9}}`), "Content-Type", "application/apply-patch+yaml")
	assert.Equal(t, `Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using example.com/v1: .spec.size.n`, apitest.NestedString(got.Body, "message"))
	for accept, code := range map[string]int{"application/vnd.kubernetes.protobuf": 406, "application/vnd.kubernetes.protobuf,application/json": 200, "application/vnd.kubernetes.protobuf, */*": 200} {
		got := a.Do("GET", apitest.WidgetsPath+"/w", nil, "Accept", accept)
		assert.Equal(t, code, got.Code, accept)
		want := "application/json"
		if code == 406 {
			want = "application/vnd.kubernetes.protobuf" // the media type of the error
		}
		assert.Equal(t, want, got.Header.Get("Content-Type"), accept)
	}
	assert.Equal(t, 415, a.Do("POST", apitest.WidgetsPath, "k8s\x00\x0a", "Content-Type", "application/vnd.kubernetes.protobuf").Code)
}

// TestScalePathsAreFieldNames: each part of a scale path is a field name, whatever its characters, and not an index.
// A Scale without replicas means 0.
func TestScalePathsAreFieldNames(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	a := apitest.InProcess(t, s)
	open := `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	a.Must(201, "POST", apitest.DefinitionsPath, strings.Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"},"o":`+open+`}`),
		`"schema":{`, `"subresources":{"scale":{"specReplicasPath":".spec.o.b[0]","statusReplicasPath":".status.n","labelSelectorPath":".spec.o.s c"}},"schema":{`, 1))
	s.Settle()
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"o":{"b":[3],"b[0]":5,"s c":"x=y"}}`))
	scale := a.Must(200, "GET", apitest.WidgetsPath+"/w/scale", nil)
	assert.EqualValues(t, 5, apitest.Nested(scale.Body, "spec", "replicas"))
	assert.Equal(t, "x=y", apitest.NestedString(scale.Body, "status", "selector"))
	a.Must(200, "PATCH", apitest.WidgetsPath+"/w/scale", `{"spec":{"replicas":4}}`)
	assert.Equal(t, map[string]any{"b": []any{3.0}, "b[0]": 4.0, "s c": "x=y"}, apitest.Nested(a.Must(200, "GET", apitest.WidgetsPath+"/w", nil).Body, "spec", "o"))

	for _, unset := range []func() apitest.Response{
		func() apitest.Response {
			return a.Must(200, "PATCH", apitest.WidgetsPath+"/w/scale", `{"spec":{"replicas":null}}`)
		},
		func() apitest.Response { return a.Must(200, "PATCH", apitest.WidgetsPath+"/w/scale", `{"spec":null}`) },
		func() apitest.Response {
			return a.Must(200, "PUT", apitest.WidgetsPath+"/w/scale", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"w","namespace":"default"}}`)
		},
	} {
		a.Must(200, "PATCH", apitest.WidgetsPath+"/w/scale", `{"spec":{"replicas":4}}`)
		assert.Equal(t, map[string]any{}, apitest.Nested(unset().Body, "spec"))
		assert.EqualValues(t, 0, apitest.Nested(a.Must(200, "GET", apitest.WidgetsPath+"/w", nil).Body, "spec", "o", "b[0]"))
	}

	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("none", `{"o":{"b":[3]}}`))
	missing := a.Must(500, "GET", apitest.WidgetsPath+"/none/scale", nil)
	assert.Equal(t, `Internal error occurred: the spec replicas field ".spec.o.b[0]" does not exist`, missing.Body["message"])
	assert.Equal(t, []any{map[string]any{"message": `the spec replicas field ".spec.o.b[0]" does not exist`}}, apitest.Nested(missing.Body, "details", "causes"))
	a.Must(200, "PATCH", apitest.WidgetsPath+"/none/scale", `{"metadata":{}}`)
	a.Must(200, "GET", apitest.WidgetsPath+"/none/scale", nil)
}

// TestNamespaceSelector: metadata.namespace is selectable only for namespaced kinds, except for some built-in kinds
// for which clients expect it.
func TestNamespaceSelector(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) {
		b.Register(
			registry.Of(registry.Definition[apitest.Site]{Group: "example.com", Version: "v1"}),
			registry.Of(registry.Definition[apitest.UntypedSite]{Group: "example.com", Version: "v1", Kind: "Place", Scope: registry.Cluster}),
		)
	})
	for path, code := range map[string]int{
		"/apis/example.com/v1/sites": 200, "/apis/example.com/v1/places": 400, "/api/v1/namespaces": 400,
		"/apis/certificates.k8s.io/v1/certificatesigningrequests": 400, apitest.DefinitionsPath: 200, "/apis/scheduling.k8s.io/v1/priorityclasses": 200, "/apis/storage.k8s.io/v1/csinodes": 200,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles": 200, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": 200,
	} {
		got := apitest.Must(t, s, code, "GET", path+"?fieldSelector=metadata.namespace%3Dx", "")
		if code == 400 {
			require.Equal(t, "field label not supported: metadata.namespace", got.String("message"), path)
		}
	}
}
