package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func TestBrokenManagedFieldsInABody(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"data":{"a":"1"}}`)
	m := `m Apply v1 {"f:data":{"f:a":{}}}`
	const good = `"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1"`
	for _, list := range []string{
		`[{"manager":"x"}]`, `["text"]`, `[null,null]`, `"text"`, `{}`, `[{` + good + `,"fieldsV1":"f:a"}]`,
		`[{` + good + `,"fieldsV1":{"k:notjson":{}}}]`, `[{` + good + `,"time":"yesterday","fieldsV1":{}}]`,
		`[{"manager":"x","operation":"Own","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]`,
		`[{"manager":"x","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{}}]`,
		`[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV2","fieldsV1":{}}]`,
		`[` + strings.TrimSuffix(strings.Repeat(`{`+good+`},`, 1001), ",") + `]`,
		`[{` + good + `,"fieldsV1":` + strings.Repeat(`{"f:a":`, 600) + `{}` + strings.Repeat(`}`, 600) + `}]`,
	} {
		a.put("u", `{"metadata":{"uid":"1","managedFields":`+list+`},"data":{"a":"1"}}`)
		a.want("data", `{"a":"1"}`, m)
	}
	for _, names := range []string{`"manager":"` + strings.Repeat("x", 129) + `"`, `"manager":"a\nb"`, `"manager":"a","subresource":"` + strings.Repeat("x", 257) + `"`} {
		obj := a.body(`{"metadata":{"managedFields":[{` + names + `,"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}`)
		s := statusOf(t, a.manager.Update(a.live, obj, a.write("u")))
		assert.Equal(t, 422, s.Code)
		assert.Contains(t, s.Details.Causes[0].Field, "metadata.managedFields[0].")
	}
	// Valid entries are accepted, without their unknown fields and paths.
	a.put("u", `{"metadata":{"uid":"1","managedFields":[{`+good+`,"junk":{"big":1},"fieldsV1":{"f:data":{"f:a":{},"z:x":{}}}}]},"data":{"a":"1"}}`)
	a.want("data", `{"a":"1"}`, `x Update v1 {"f:data":{"f:a":{}}}`)
	assert.NotContains(t, a.live.List("metadata", "managedFields")[0], "junk")
}

func TestSubresourcesCannotSetManagedFields(t *testing.T) {
	a := deployments(t)
	a.apply("m", `{"spec":{"replicas":1}}`)
	obj := a.live.Clone()
	obj.Set([]any{map[string]any{}}, "metadata", "managedFields")
	w := a.write("u")
	w.Subresource = "status"
	require.NoError(t, a.manager.Update(a.live, obj, w))
	assert.Equal(t, a.live, obj)
}

func TestBrokenStoredManagedFields(t *testing.T) {
	a := configMaps(t)
	a.put("m", `{"data":{"a":"1"}}`)
	a.live.SetUID("1")
	a.live.Set([]any{"broken"}, "metadata", "managedFields")
	a.merge("u", `{"data":{"b":"1"}}`)
	a.want("data", `{"a":"1","b":"1"}`)
	a.live.Set([]any{"broken"}, "metadata", "managedFields")
	a.apply("m", `{"data":{"c":"1"}}`)
	a.want("data", `{"a":"1","b":"1","c":"1"}`, `before-first-apply Update v1 {"f:data":{".":{},"f:a":{},"f:b":{}}}`, `m Apply v1 {"f:data":{"f:c":{}}}`)
}

func TestTrailingGarbageInAFieldSet(t *testing.T) {
	for _, raw := range []meta.RawJSON{`{} {}`, `{"f:a":{}}x`, `{"f:a":{}}}`, ``, `[]`, `"a"`, `{"f:a"`} {
		_, err := parseSet(raw)
		assert.Error(t, err, "%q", raw)
	}
}

// FuzzManagedFields writes with managedFields that a caller made up.
func FuzzManagedFields(f *testing.F) {
	const head = `[{"manager":"x","operation":"Update","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":`
	f.Add(head+`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}}}}]`, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i:2"}]}}}}`)
	f.Add(head+`{"f:spec":{"v:1":{},"i:3":{},"k:{}":{},"f:replicas":{"f:x":{}}}}}]`, `{"spec":{"replicas":3}}`)
	f.Add(head+`{"f:spec":{"f:selector":{"f:matchLabels":{"f:a":{}}}}},"subresource":"status"}]`, `{"spec":{"selector":{"matchLabels":{"a":"c"}}}}`)
	f.Add(head+`{"k:{\"a\":{\"b\":[1]}}":{"v:{}":{}}}},{},null]`, `{"status":{"replicas":1}}`)
	f.Add(`[{}]`, `{}`)
	fm := deploymentManager()
	f.Fuzz(func(t *testing.T, list, body string) {
		managed, err1 := meta.ParseJSON([]byte(list))
		v, err2 := meta.ParseJSON([]byte(body))
		patch, ok := v.(map[string]any)
		if err1 != nil || err2 != nil || !ok {
			return
		}
		live := meta.NewObject(tree(t, deploymentBody(1)))
		live.SetUID("1")
		obj := live.Clone()
		obj.Metadata()["managedFields"] = managed
		if err := fm.Update(live, obj, Options{Manager: "u", APIVersion: "apps/v1", Now: start}); err != nil {
			statusOf(t, err)
			return
		}
		readable(t, fm, obj)
		patch["apiVersion"], patch["kind"] = "apps/v1", "Deployment"
		for _, sub := range []string{"", "status"} {
			got, err := fm.Apply(obj, meta.NewObject(patch), Options{Manager: "m", APIVersion: "apps/v1", Subresource: sub, Now: start, Force: sub == ""})
			if err != nil {
				statusOf(t, err)
				continue
			}
			readable(t, fm, got)
		}
	})
}

// readable checks that the recorded managedFields can be read again.
func readable(t *testing.T, fm *FieldManager, obj *meta.Object) {
	t.Helper()
	list := obj.List("metadata", "managedFields")
	_, err := readEntries(list, fm.readSet)
	require.NoError(t, err)
	_, err = json.Marshal(list)
	require.NoError(t, err)
}
