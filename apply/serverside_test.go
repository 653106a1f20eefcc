package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// The tests named Rule are the rules of the spec, 000, "Server-side apply and
// field ownership".

func TestRule1ApplyBody(t *testing.T) {
	a := configMaps(t)
	for body, code := range map[string]int{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{}]}}`: 400,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[]}}`:   400,
		`{"apiVersion":"v2","kind":"ConfigMap"}`:                                              400,
		`{"apiVersion":"v1","kind":"Secret"}`:                                                 400,
		`{"apiVersion":"v1","kind":"ConfigMap","junk":1}`:                                     422,
		`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":1}}`:                               422,
		`{"apiVersion":"v1","kind":"ConfigMap","data":[]}`:                                    422,
	} {
		_, err := a.manager.Apply(nil, meta.NewObject(tree(t, body)), a.write("m"))
		require.Error(t, err, body)
		s := statusOf(t, err)
		assert.Equal(t, code, s.Code, body)
		if code == 422 {
			assert.NotEmpty(t, s.Details.Causes, body)
			assert.NotEmpty(t, s.Details.Causes[0].Field, body)
		}
	}
	assert.Equal(t, []meta.StatusCause{{Reason: meta.CauseRequired, Field: "fieldManager", Message: "Required value: is required for apply patch"}}, ValidateManager("", "fieldManager", true))
	assert.Nil(t, ValidateManager("", "fieldManager", false))
}

func TestRule2UpdatesTakeAndNeverConflict(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"metadata":{"name":"a"},"data":{"a":"1","b":"1","c":"1"}}`)
	a.merge("u", `{"data":{"a":"2","b":"1"}}`)
	a.want("data", `{"a":"2","b":"1","c":"1"}`, `m Apply v1 {"f:data":{"f:b":{},"f:c":{}}}`, `u Update v1 {"f:data":{"f:a":{}}}`)
	assert.Equal(t, []string{`.data.a: conflict with "u" using v1`}, a.conflict("m", `{"metadata":{"name":"a"},"data":{"a":"1","b":"1","c":"1"}}`))
	a.put("v", `{"metadata":{"name":"a","uid":"1"},"data":{"a":"2","b":"3"}}`)
	a.want("data", `{"a":"2","b":"3"}`, `u Update v1 {"f:data":{"f:a":{}}}`, `v Update v1 {"f:data":{"f:b":{}}}`)
	a.force("m", `{"metadata":{"name":"a"},"data":{"a":"9","b":"9"}}`)
	a.want("data", `{"a":"9","b":"9"}`, `m Apply v1 {"f:data":{"f:a":{},"f:b":{}}}`)
	a.apply("m", `{"metadata":{"name":"a"},"data":{"b":"9"}}`)
	a.want("data", `{"b":"9"}`, `m Apply v1 {"f:data":{"f:b":{}}}`)
}

func TestRule3SharedFields(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"metadata":{"name":"a","labels":{"l":"1"}},"data":{"s":"1","only-m":"1"}}`)
	a.apply("n", `{"metadata":{"name":"a","labels":{"l":"1"}},"data":{"s":"1","only-n":"1"}}`)
	both := `n Apply v1 {"f:data":{"f:only-n":{},"f:s":{}},"f:metadata":{"f:labels":{"f:l":{}}}}`
	a.want("data", `{"only-m":"1","only-n":"1","s":"1"}`, `m Apply v1 {"f:data":{"f:only-m":{},"f:s":{}},"f:metadata":{"f:labels":{"f:l":{}}}}`, both)
	assert.Equal(t, []string{`.data.s: conflict with "n"`}, a.conflict("m", `{"data":{"s":"2"}}`))
	a.apply("m", `{"metadata":{"name":"a"},"data":{"only-m":"1"}}`)
	a.want("data", `{"only-m":"1","only-n":"1","s":"1"}`, `m Apply v1 {"f:data":{"f:only-m":{}}}`, both)
	a.apply("n", `{"metadata":{"name":"a"},"data":{"only-n":"1"}}`)
	a.apply("m", `{"metadata":{"name":"a"}}`)
	a.want("data", `{"only-n":"1"}`, `n Apply v1 {"f:data":{"f:only-n":{}}}`)
}

func TestRule4ConflictResolutions(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"data":{"k":"1","l":"1"}}`)
	assert.Equal(t, []string{`.data.k: conflict with "m"`, `.data.l: conflict with "m"`}, a.conflict("n", `{"data":{"k":"2","l":"2"}}`))

	a.apply("n", `{"data":{"k":"1"}}`) // (c) the same value is shared
	a.want("data", `{"k":"1","l":"1"}`, `m Apply v1 {"f:data":{"f:k":{},"f:l":{}}}`, `n Apply v1 {"f:data":{"f:k":{}}}`)
	first := a.live.List("metadata", "managedFields")[0].(map[string]any)
	assert.Equal(t, "n", first["manager"], "an entry without a time comes first")
	assert.NotContains(t, first, "time", "n changed nothing")

	a.force("n", `{"data":{"k":"3"}}`) // (a) force
	a.want("data", `{"k":"3","l":"1"}`, `m Apply v1 {"f:data":{"f:l":{}}}`, `n Apply v1 {"f:data":{"f:k":{}}}`)
	a.apply("m", `{"data":{"l":"1"}}`) // (b) leave it out
	a.want("data", `{"k":"3","l":"1"}`, `m Apply v1 {"f:data":{"f:l":{}}}`, `n Apply v1 {"f:data":{"f:k":{}}}`)
	a.apply("n", `{"data":{"q":"1"}}`)
	a.want("data", `{"l":"1","q":"1"}`, `m Apply v1 {"f:data":{"f:l":{}}}`, `n Apply v1 {"f:data":{"f:q":{}}}`)
}

func TestConflictMessage(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"data":{"k":"1","l":"1"}}`)
	a.merge("u", `{"data":{"l":"2"}}`)
	err := a.tryApply(a.write("n"), `{"data":{"k":"2","l":"3"}}`)
	assert.EqualError(t, err, "Apply failed with 2 conflicts: conflicts with \"m\":\n- .data.k\nconflicts with \"u\" using v1:\n- .data.l")
	err = a.tryApply(a.write("n"), `{"data":{"k":"2"}}`)
	assert.EqualError(t, err, `Apply failed with 1 conflict: conflict with "m": .data.k`)
}

func TestRule5RemovalOfFieldsAndItems(t *testing.T) {
	a := deployments(t)
	const first = `m Apply apps/v1 {"f:spec":{"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:volumeMounts":{"k:{\"mountPath\":\"/v\"}":{".":{},"f:mountPath":{},"f:name":{}}}}},"f:volumes":{"k:{\"name\":\"v\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}}}}`
	a.apply("m", `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"i:1","env":[{"name":"A","value":"1"}],"volumeMounts":[{"name":"v","mountPath":"/v"}]}],"volumes":[{"name":"v","emptyDir":{}}]}}}}`)
	a.live.Set("Always", "spec", "template", "spec", "restartPolicy") // a default, which no manager owns
	a.live.List("spec", "template", "spec", "containers")[0].(map[string]any)["imagePullPolicy"] = "IfNotPresent"

	a.apply("n", `{"metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"B","value":"2"}]},{"name":"side","image":"s:1"}],"volumes":[{"name":"w","emptyDir":{}}]}}}}`)
	a.want("spec.template.spec.volumes", `[{"name":"v","emptyDir":{}},{"name":"w","emptyDir":{}}]`, first,
		`n Apply apps/v1 {"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:env":{"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},"f:name":{}},"k:{\"name\":\"side\"}":{".":{},"f:image":{},"f:name":{}}},"f:volumes":{"k:{\"name\":\"w\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}}}}`)
	assert.Equal(t, []string{
		`.spec.template.spec.containers[name="c"].image: conflict with "m"`,
		`.spec.template.spec.containers[name="c"].env[name="A"].value: conflict with "m"`,
	}, a.conflict("n", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i:2","env":[{"name":"A","value":"9"}]}]}}}}`))

	a.apply("n", `{"metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s:2"}]}}}}`)
	a.want("spec.template.spec", `{"restartPolicy":"Always","containers":[{"name":"c","image":"i:1","imagePullPolicy":"IfNotPresent","env":[{"name":"A","value":"1"}],"volumeMounts":[{"name":"v","mountPath":"/v"}]},{"name":"side","image":"s:2"}],"volumes":[{"name":"v","emptyDir":{}}]}`,
		first, `n Apply apps/v1 {"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"side\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`)
}

func listKind(t *testing.T, spec *schema.Schema) *actor {
	return newActor(t, Config{Kind: "Widget", Versions: []Version{{APIVersion: "x.example.com/v1", Status: true,
		Schema: object(false, fields{"spec": spec, "status": object(false, fields{"s": text(), "l": {Type: schema.Array, Items: text(), ListType: "set"}})})}}})
}

func TestRule6ListAndMapTypes(t *testing.T) {
	item := object(false, fields{"k": text(), "p": withDefault(text(), "x"), "v": text()})
	a := listKind(t, object(false, fields{
		"set":    {Type: schema.Array, Items: text(), ListType: "set"},
		"map":    {Type: schema.Array, Items: item, ListType: "map", ListKeys: []string{"k", "p"}},
		"atomic": {Type: schema.Array, Items: text(), ListType: "atomic"},
		"plain":  listOf(object(false, fields{"a": text()})),
	}))
	a.apply("m", `{"spec":{"set":["a","b"],"map":[{"k":"1","v":"x"}],"atomic":["a"],"plain":[{"a":"1"}]}}`)
	m := `m Apply x.example.com/v1 {"f:spec":{"f:atomic":{},"f:map":{"k:{\"k\":\"1\",\"p\":\"x\"}":{".":{},"f:k":{},"f:v":{}}},"f:plain":{},"f:set":{"v:\"a\"":{},"v:\"b\"":{}}}}`
	a.live.List("spec", "map")[0].(map[string]any)["p"] = "x" // defaulted
	a.apply("n", `{"spec":{"set":["b","c"],"map":[{"k":"1","p":"y","v":"z"}]}}`)
	n := `n Apply x.example.com/v1 {"f:spec":{"f:map":{"k:{\"k\":\"1\",\"p\":\"y\"}":{".":{},"f:k":{},"f:p":{},"f:v":{}}},"f:set":{"v:\"b\"":{},"v:\"c\"":{}}}}`
	a.want("spec", `{"atomic":["a"],"map":[{"k":"1","p":"x","v":"x"},{"k":"1","p":"y","v":"z"}],"plain":[{"a":"1"}],"set":["a","b","c"]}`, m, n)
	assert.Equal(t, []string{`.spec.atomic: conflict with "m"`}, a.conflict("n", `{"spec":{"atomic":["a","b"]}}`))
	assert.Equal(t, []string{`.spec.plain: conflict with "m"`, `.spec.map[k="1",p="x"].v: conflict with "m"`},
		a.conflict("n", `{"spec":{"map":[{"k":"1","v":"changed"}],"plain":[{"a":"2"}]}}`))
	a.apply("m", `{"spec":{"set":["b"],"map":[],"atomic":["q"]}}`)
	a.want("spec", `{"atomic":["q"],"map":[{"k":"1","p":"y","v":"z"}],"set":["b","c"]}`, `m Apply x.example.com/v1 {"f:spec":{"f:atomic":{},"f:set":{"v:\"b\"":{}}}}`, n)
	for _, body := range []string{`{"spec":{"set":["c","c"]}}`, `{"spec":{"map":[{"k":"1","p":"y"},{"k":"1","p":"y"}]}}`, `{"spec":{"map":["no object"]}}`} {
		s := statusOf(t, a.tryApply(a.write("n"), body))
		assert.Equal(t, 422, s.Code, body)
		assert.NotEmpty(t, s.Details.Causes, body)
	}
	a.apply("n", `{"spec":{"map":[{"v":"nokey"}]}}`)
	a.want("spec.map", `[{"v":"nokey"}]`, `m Apply x.example.com/v1 {"f:spec":{"f:atomic":{},"f:set":{"v:\"b\"":{}}}}`, `n Apply x.example.com/v1 {"f:spec":{"f:map":{"k:{\"p\":\"x\"}":{".":{},"f:v":{}}}}}`)
}

func TestRule6MapsAndStructs(t *testing.T) {
	a := listKind(t, object(false, fields{
		"gran": mapOf(text()), "atom": atomic(mapOf(text())), "struct": atomic(object(false, fields{"a": text(), "b": text()})),
	}))
	a.apply("m", `{"spec":{"gran":{"a":"1"},"atom":{"a":"1"},"struct":{"a":"1"}}}`)
	a.apply("n", `{"spec":{"gran":{"b":"2"}}}`)
	assert.Equal(t, []string{`.spec.atom: conflict with "m"`}, a.conflict("n", `{"spec":{"atom":{"b":"2"}}}`))
	assert.Equal(t, []string{`.spec.struct: conflict with "m"`}, a.conflict("n", `{"spec":{"struct":{"a":"1","b":"2"}}}`))
	a.force("n", `{"spec":{"gran":{"b":"2"},"atom":{"b":"2"},"struct":{"b":"2"}}}`)
	a.want("spec", `{"gran":{"a":"1","b":"2"},"atom":{"b":"2"},"struct":{"b":"2"}}`,
		`m Apply x.example.com/v1 {"f:spec":{"f:gran":{"f:a":{}}}}`, `n Apply x.example.com/v1 {"f:spec":{"f:atom":{},"f:gran":{"f:b":{}},"f:struct":{}}}`)
	a.apply("m", `{"spec":{"struct":{"b":"2"}}}`)
	a.apply("n", `{"spec":{"struct":{"b":"2"}}}`)
	a.apply("n", `{}`)
	a.want("spec", `{"struct":{"b":"2"}}`, `m Apply x.example.com/v1 {"f:spec":{"f:struct":{}}}`)
}

func TestRule7PatchMergeKeyAndNestedAtomic(t *testing.T) {
	inner := listOf(object(true, fields{"name": text(), "v": text()}))
	inner.PatchStrategy, inner.PatchMergeKey = "merge", "name"
	outer := atomic(listOf(object(true, fields{"name": text(), "inner": inner})))
	a := listKind(t, object(true, fields{"inner": inner, "outer": outer}))
	a.apply("m", `{"spec":{"inner":[{"name":"a","v":"1"}],"outer":[{"name":"o","inner":[{"name":"a","v":"1"}]}]}}`)
	a.want("spec.inner", `[{"name":"a","v":"1"}]`,
		`m Apply x.example.com/v1 {"f:spec":{"f:inner":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:v":{}}},"f:outer":{}}}`)
	assert.Equal(t, []string{`.spec.outer: conflict with "m"`}, a.conflict("n", `{"spec":{"outer":[{"name":"o","inner":[{"name":"b","v":"1"}]}]}}`))
}

func TestRule8Schemaless(t *testing.T) {
	for name, s := range map[string]*schema.Schema{"no schema": nil, "preserve": {Type: schema.Object, Preserve: true}} {
		t.Run(name, func(t *testing.T) {
			a := newActor(t, Config{Kind: "Widget", Versions: []Version{{APIVersion: "x/v1", Schema: s}}})
			a.apply("m", `{"metadata":{"name":"a"},"spec":{"x":{"a":1},"l":["a"],"n":null}}`)
			m := `m Apply x/v1 {"f:spec":{".":{},"f:l":{},"f:n":{},"f:x":{".":{},"f:a":{}}}}`
			a.want("spec", `{"x":{"a":1},"l":["a"],"n":null}`, m)
			a.apply("n", `{"metadata":{"name":"a"},"spec":{"x":{"b":2},"y":true}}`)
			a.want("spec", `{"x":{"a":1,"b":2},"y":true,"l":["a"],"n":null}`, m, `n Apply x/v1 {"f:spec":{".":{},"f:x":{".":{},"f:b":{}},"f:y":{}}}`)
			assert.Equal(t, []string{`.spec.l: conflict with "m"`}, a.conflict("n", `{"spec":{"l":["a","b"]}}`))
			assert.Equal(t, []string{`.spec.x.a: conflict with "m"`}, a.conflict("n", `{"spec":{"x":{"a":"text"}}}`))
			a.force("n", `{"spec":{"x":{"a":{"deep":1}}}}`)
			a.want("spec", `{"l":["a"],"n":null,"x":{"a":{"deep":1}}}`,
				`m Apply x/v1 {"f:spec":{".":{},"f:l":{},"f:n":{},"f:x":{}}}`, `n Apply x/v1 {"f:spec":{".":{},"f:x":{".":{},"f:a":{".":{},"f:deep":{}}}}}`)
			a.apply("m", `{"spec":{"l":[]}}`)
			a.want("spec", `{"l":[],"x":{"a":{"deep":1}}}`,
				`m Apply x/v1 {"f:spec":{".":{},"f:l":{}}}`, `n Apply x/v1 {"f:spec":{".":{},"f:x":{".":{},"f:a":{".":{},"f:deep":{}}}}}`)
		})
	}
}

func TestRule9ListTypeChanges(t *testing.T) {
	one := func(listType string) *schema.Schema {
		return object(false, fields{"l": {Type: schema.Array, Items: text(), ListType: listType}})
	}
	a := listKind(t, one("atomic"))
	a.apply("m", `{"spec":{"l":["a","b"]}}`)
	assert.Len(t, a.conflict("n", `{"spec":{"l":["a","c"]}}`), 1)
	a.manager = listKind(t, one("set")).manager
	a.apply("n", `{"spec":{"l":["a","c"]}}`)
	a.want("spec.l", `["a","b","c"]`, `m Apply x.example.com/v1 {"f:spec":{"f:l":{}}}`, `n Apply x.example.com/v1 {"f:spec":{"f:l":{"v:\"a\"":{},"v:\"c\"":{}}}}`)
	a.apply("m", `{"spec":{"l":["b"]}}`)
	a.want("spec.l", `["a","b","c"]`, `m Apply x.example.com/v1 {"f:spec":{"f:l":{"v:\"b\"":{}}}}`, `n Apply x.example.com/v1 {"f:spec":{"f:l":{"v:\"a\"":{},"v:\"c\"":{}}}}`)
	a.apply("n", `{"spec":{"l":[]}}`)
	a.want("spec.l", `["b"]`, `m Apply x.example.com/v1 {"f:spec":{"f:l":{"v:\"b\"":{}}}}`)

	a.manager = listKind(t, one("atomic")).manager // and back: the owner of parts owns the whole
	assert.Equal(t, []string{`.spec.l: conflict with "m"`}, a.conflict("n", `{"spec":{"l":["z"]}}`))
}

func TestRule10NoReadNoVersion(t *testing.T) {
	a := configMaps(t)
	a.live = a.body(`{"metadata":{"name":"a","uid":"1","resourceVersion":"7"},"data":{"other":"1"}}`)
	require.NoError(t, a.manager.Update(nil, a.live, a.write("someone")))
	a.force("ctl", `{"metadata":{"name":"a"},"data":{"mine":"1"}}`)
	a.want("data", `{"mine":"1","other":"1"}`, `ctl Apply v1 {"f:data":{"f:mine":{}}}`, `someone Update v1 {"f:data":{".":{},"f:other":{}}}`)
	assert.Equal(t, "7", a.live.ResourceVersion())
	a.force("ctl", `{"metadata":{"name":"a"}}`)
	a.want("data", `{"other":"1"}`, `someone Update v1 {"f:data":{".":{},"f:other":{}}}`)
}

func TestRule11Reset(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"metadata":{"name":"a"},"data":{"a":"1","b":"1"}}`)
	m := `m Apply v1 {"f:data":{"f:a":{},"f:b":{}}}`
	a.merge("r", `{"metadata":{"managedFields":null}}`)
	a.want("data", `{"a":"1","b":"1"}`, m)
	a.merge("r", `{"metadata":{"managedFields":[]}}`)
	a.want("data", `{"a":"1","b":"1"}`, m)
	a.merge("r", `{"metadata":{"managedFields":[{}]}}`)
	a.want("data", `{"a":"1","b":"1"}`)
	a.merge("later", `{"data":{"b":"1","c":null}}`)
	a.want("data", `{"a":"1","b":"1"}`)

	assert.Equal(t, []string{`.data.a: conflict with "before-first-apply" using v1`}, a.conflict("n", `{"data":{"a":"2"}}`))
	a.apply("m", `{"metadata":{"name":"a"},"data":{"c":"1"}}`)
	a.want("data", `{"a":"1","b":"1","c":"1"}`, `m Apply v1 {"f:data":{"f:c":{}}}`, `before-first-apply Update v1 {"f:data":{".":{},"f:a":{},"f:b":{}}}`)

	a.merge("r", `{"metadata":{"managedFields":[{}]},"data":{"a":"5"}}`)
	a.want("data", `{"a":"5","b":"1","c":"1"}`, `r Update v1 {"f:data":{"f:a":{}}}`)

	patched, err := JSONPatch(a.live.Tree(), []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`), Limits{})
	require.NoError(t, err)
	obj := meta.NewObject(patched)
	a.store(obj, a.manager.Update(a.live, obj, a.write("r")))
	a.want("data", `{"a":"5","b":"1","c":"1"}`)
}

func TestRule12MigrationFromClientSideApply(t *testing.T) {
	a := configMaps(t)
	const annotation = `"annotations":{"` + lastAppliedName + `":"{\"apiVersion\":\"v1\",\"data\":{\"a\":\"1\",\"b\":\"1\"},\"kind\":\"ConfigMap\",\"metadata\":{\"annotations\":{},\"name\":\"a\",\"namespace\":\"ns\"}}\n"}`
	a.put("kubectl-client-side-apply", `{"metadata":{"name":"a","namespace":"ns",`+annotation+`},"data":{"a":"1","b":"1"}}`)
	assert.Len(t, a.conflict("other", `{"metadata":{"name":"a"},"data":{"a":"2"}}`), 1)
	a.apply("kubectl", `{"metadata":{"name":"a"},"data":{"a":"2"}}`)
	csa := `kubectl-client-side-apply Update v1 {"f:data":{".":{},"f:b":{}},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`
	a.want("data", `{"a":"2","b":"1"}`, `kubectl Apply v1 {"f:data":{"f:a":{}}}`, csa)
	assert.Equal(t, `{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"a"}}`+"\n", a.live.Annotation(lastAppliedName))
	a.apply("kubectl", `{"metadata":{"name":"a"},"data":{"a":"3"}}`)
	a.want("data", `{"a":"3","b":"1"}`, `kubectl Apply v1 {"f:data":{"f:a":{}}}`, csa)
	a.merge("kubectl-client-side-apply", `{"data":{"a":"4"}}`)
	a.want("data", `{"a":"4","b":"1"}`, `kubectl-client-side-apply Update v1 {"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`)
	a.merge("else", `{"data":{"a":"5"}}`) // the annotation no longer holds
	assert.Equal(t, []string{`.data.a: conflict with "else" using v1`}, a.conflict("kubectl", `{"data":{"a":"6"}}`))
}

// TestKeyedItemsMayOmitAKey is why structured-merge-diff is v6 and not v4, which
// refuses an item that omits one of several keys before the kind's own validation
// can say spec.map[0].k: Required value.
func TestKeyedItemsMayOmitAKey(t *testing.T) {
	item := object(false, fields{"k": text(), "l": text(), "v": text()})
	a := listKind(t, object(false, fields{"map": {Type: schema.Array, Items: item, ListType: "map", ListKeys: []string{"k", "l"}}}))
	a.apply("m", `{"spec":{"map":[{"k":"1","l":"2","v":"x"},{"k":"1","v":"y"}]}}`)
	a.want("spec.map", `[{"k":"1","l":"2","v":"x"},{"k":"1","v":"y"}]`,
		`m Apply x.example.com/v1 {"f:spec":{"f:map":{"k:{\"k\":\"1\"}":{".":{},"f:k":{},"f:v":{}},"k:{\"k\":\"1\",\"l\":\"2\"}":{".":{},"f:k":{},"f:l":{},"f:v":{}}}}}`)
	s := statusOf(t, a.tryApply(a.write("m"), `{"spec":{"map":[{"v":"x"}]}}`))
	assert.Equal(t, 422, s.Code)
	assert.Contains(t, s.Message, `omits all key fields ["k" "l"]`)
}
