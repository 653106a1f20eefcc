package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

func requireSame(t *testing.T, want, got any, format string, args ...any) {
	t.Helper()
	if !meta.Equal(want, got) {
		require.Fail(t, "the objects differ", "%s\nwant %s\ngot  %s", fmt.Sprintf(format, args...), encoded(want), encoded(got))
	}
}

func encoded(v any) string { return string(codec.EncodeValue(nil, v)) }

// TestThreeWayPatchKeepsTheFieldsOfOthers applies a configuration to an object that others
// have changed.
func TestThreeWayPatchKeepsTheFieldsOfOthers(t *testing.T) {
	original := tree(t, podSpec(`{"containers":[{"name":"app","image":"app:1","env":[{"name":"A","value":"1"},{"name":"B","value":"1"}]},{"name":"old"}],"nodeSelector":{"disk":"ssd"}}`))
	modified := tree(t, podSpec(`{"containers":[{"name":"app","image":"app:2","env":[{"name":"A","value":"1"},{"name":"C","value":"1"}]}],"dnsPolicy":"Default"}`))
	current := tree(t, podSpec(`{"containers":[{"name":"sidecar"},{"name":"app","image":"app:1","imagePullPolicy":"Always","env":[{"name":"X","value":"1"},{"name":"A","value":"1"},{"name":"B","value":"1"}]},{"name":"old"}],"nodeSelector":{"disk":"ssd","zone":"a"},"dnsPolicy":"None"}`))

	patch, err := CreateThreeWayStrategicMerge(original, modified, current, deploymentSchema())
	require.NoError(t, err)
	got, err := StrategicMerge(current, patch, deploymentSchema())
	require.NoError(t, err)
	want := tree(t, podSpec(`{"containers":[{"name":"sidecar"},{"name":"app","image":"app:2","imagePullPolicy":"Always","env":[{"name":"X","value":"1"},{"name":"A","value":"1"},{"name":"C","value":"1"}]}],"dnsPolicy":"Default"}`))
	requireSame(t, want["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"],
		got["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"], "patch %s", encoded(patch))

	again, err := CreateThreeWayStrategicMerge(modified, modified, got, deploymentSchema())
	require.NoError(t, err)
	require.Empty(t, again, "nothing is left to change")

	merged := MergePatch(current, CreateThreeWayMergePatch(original, modified, current))
	spec := func(o map[string]any) *meta.Object {
		v, _ := meta.NewObject(o).Get("spec", "template", "spec")
		return meta.NewObject(v.(map[string]any))
	}
	assert.Equal(t, spec(modified).List("containers"), spec(merged).List("containers"), "a merge patch replaces lists")
	assert.Equal(t, "Default", spec(merged).String("dnsPolicy"))
}

func TestThreeWayPatchRetainsKeys(t *testing.T) {
	s := deploymentSchema()
	current := tree(t, `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}`)
	patch, err := CreateThreeWayStrategicMerge(nil, tree(t, `{"spec":{"strategy":{"type":"Recreate"}}}`), current, s)
	require.NoError(t, err)
	assert.JSONEq(t, `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`, encoded(patch))
	got, err := StrategicMerge(current, patch, s)
	require.NoError(t, err)
	assert.JSONEq(t, `{"spec":{"strategy":{"type":"Recreate"}}}`, encoded(got))
}

func TestStrategicMergeOfAmbiguousListsIsAnError(t *testing.T) {
	service := func(ports string) map[string]any { return tree(t, `{"spec":{"ports":[`+ports+`]}}`) }
	const dns = `{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"}`
	_, err := CreateStrategicMerge(service(`{"port":80}`), service(dns), serviceSchema())
	s := statusOf(t, err)
	assert.Equal(t, 422, s.Code)
	assert.Equal(t, "spec.ports", s.Details.Causes[0].Field)

	patch, err := CreateStrategicMerge(service(dns), service(dns), serviceSchema())
	require.NoError(t, err)
	assert.Empty(t, patch)

	for _, modified := range []string{`{"metadata":{"finalizers":["a","a"]}}`, `{"spec":{"$patch":"x"}}`, `{"status":{"new":{"$retainKeys":1}}}`,
		podSpec(`{"containers":[[]]}`), podSpec(`{"containers":[{"image":"i"}]}`)} {
		_, err := CreateStrategicMerge(tree(t, podSpec(`{"containers":[{"name":"c"}]}`)), meta.Clone(tree(t, modified)).(map[string]any), deploymentSchema())
		if modified == `{"metadata":{"finalizers":["a","a"]}}` {
			require.NoError(t, err, "a new list is set as it is")
			continue
		}
		assert.Equal(t, 422, statusOf(t, err).Code, modified)
	}
	deep := strings.Repeat(`{"a":`, 600) + `1` + strings.Repeat(`}`, 600)
	_, err = CreateStrategicMerge(nil, tree(t, deep), nil)
	assert.Equal(t, 400, statusOf(t, err).Code)
}

// TestJSONPatchOfManyChangesIsShort checks that a patch stays within the limits of JSONPatch
// and grows neither with the number of changes nor with the length of their paths.
func TestJSONPatchOfManyChangesIsShort(t *testing.T) {
	many := func(v int64) map[string]any {
		m := map[string]any{}
		for i := range 20_000 {
			m[fmt.Sprint("k", i)] = v
		}
		return map[string]any{"a": m, "b": v}
	}
	patch := CreateJSONPatch(many(1), many(2))
	out, err := JSONPatch(many(1), patch, Limits{})
	require.NoError(t, err)
	requireSame(t, many(2), out, "many")
	var ops []struct{ Op, Path string }
	require.NoError(t, json.Unmarshal(patch, &ops))
	assert.Len(t, ops, 2)

	long := func(v int64) map[string]any {
		m := map[string]any{}
		for i := range 1000 {
			m[fmt.Sprint(i)] = v
		}
		for range 100 {
			m = map[string]any{strings.Repeat("x", 100): m}
		}
		return m
	}
	patch = CreateJSONPatch(long(1), long(2))
	assert.Less(t, len(patch), 2<<20)
	out, err = JSONPatch(long(1), patch, Limits{})
	require.NoError(t, err)
	requireSame(t, long(2), out, "long")
}

// FuzzCreatePatches creates patches between any two objects. Whatever can be created leads
// to the modified object; nulls count as missing.
func FuzzCreatePatches(f *testing.F) {
	f.Add(podSpec(`{"containers":[{"name":"a","env":[{"name":"A"}]},{"name":"b"}]}`), podSpec(`{"containers":[{"name":"b"},{"name":"a","env":[{"name":"B"}]}]}`))
	f.Add(`{"metadata":{"finalizers":["a","b","c"]}}`, `{"metadata":{"finalizers":["c","x","a"]}}`)
	f.Add(`{"spec":{"strategy":{"type":"a","rollingUpdate":{"maxSurge":1}}}}`, `{"spec":{"strategy":{"type":"b"}}}`)
	f.Add(`{"a":[1,2,[3,{"x":1}],4]}`, `{"a":[1,[3,{"x":2}],4],"b/~c":{}}`)
	s := deploymentSchema()
	f.Fuzz(func(t *testing.T, one, two string) {
		x, err1 := meta.ParseJSON([]byte(one))
		y, err2 := meta.ParseJSON([]byte(two))
		a, ok1 := x.(map[string]any)
		b, ok2 := y.(map[string]any)
		if err1 != nil || err2 != nil || !ok1 || !ok2 || tooDeep(a, 100) || tooDeep(b, 100) {
			return
		}
		out, err := JSONPatch(a, CreateJSONPatch(a, b), Limits{})
		require.NoError(t, err)
		requireSame(t, b, out, "JSON patch")
		if hasNull(a) || hasNull(b) {
			return
		}
		requireSame(t, b, MergePatch(a, CreateMergePatch(a, b)), "merge patch")
		require.Equal(t, meta.Equal(a, b), len(Diff(a, b, s)) == 0)
		patch, err := CreateStrategicMerge(a, b, s)
		if err != nil {
			statusOf(t, err)
			return
		}
		out, err = StrategicMerge(a, patch, s)
		require.NoError(t, err, "%s", encoded(patch))
		requireSame(t, b, out, "strategic merge patch %s", encoded(patch))
	})
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if hasNull(e) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if hasNull(e) {
				return true
			}
		}
	}
	return false
}
