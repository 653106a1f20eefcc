package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// tree reads JSON as the API's trees are.
func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := meta.ParseJSON([]byte(text))
	require.NoError(t, err, text)
	m, ok := v.(map[string]any)
	require.True(t, ok, text)
	return m
}

func statusOf(t *testing.T, err error) *meta.Status {
	t.Helper()
	var s *meta.Status
	require.True(t, errors.As(err, &s), "%v is no Status", err)
	return s
}

func TestTrailingTextAfterAPatch(t *testing.T) {
	for _, rest := range []string{"]", "}", " x", "[]", ","} {
		_, err := meta.ParseJSON([]byte("[]" + rest))
		require.Error(t, err, rest)
	}
	_, err := meta.ParseJSON([]byte("[] \n"))
	require.NoError(t, err)
}

func TestJSONPatchOperations(t *testing.T) {
	const doc = `{"data":{"a":"1","b":"2"},"list":[1,2,3],"m":{"x/y":{"~":1}}}`
	for patch, want := range map[string]string{
		`[]`: doc,
		`[{"op":"test","path":"/data/a","value":"1"},{"op":"replace","path":"/data/a","value":"10"}]`:  `{"data":{"a":"10","b":"2"},"list":[1,2,3],"m":{"x/y":{"~":1}}}`,
		`[{"op":"remove","path":"/data"},{"op":"remove","path":"/m"}]`:                                 `{"list":[1,2,3]}`,
		`[{"op":"copy","from":"/data/a","path":"/data/c"},{"op":"move","from":"/data/b","path":"/b"}]`: `{"b":"2","data":{"a":"1","c":"1"},"list":[1,2,3],"m":{"x/y":{"~":1}}}`,
		`[{"op":"add","path":"/list/-","value":4},{"op":"add","path":"/list/0","value":0}]`:            `{"data":{"a":"1","b":"2"},"list":[0,1,2,3,4],"m":{"x/y":{"~":1}}}`,
		`[{"op":"remove","path":"/list/-1"},{"op":"replace","path":"/list/0","value":9}]`:              `{"data":{"a":"1","b":"2"},"list":[9,2],"m":{"x/y":{"~":1}}}`,
		`[{"op":"replace","path":"/m/x~1y/~0","value":null}]`:                                          `{"data":{"a":"1","b":"2"},"list":[1,2,3],"m":{"x/y":{"~":null}}}`,
		`[{"op":"test","path":"/data/zzz","value":null}]`:                                              doc,
		`null`: doc,
		`[{"op":"add","path":"/data/c"},{"op":"replace","path":"/data/d","value":"4"},{"op":"copy","from":"/data/z","path":"/e"}]`: `{"data":{"a":"1","b":"2","c":null,"d":"4"},"e":null,"list":[1,2,3],"m":{"x/y":{"~":1}}}`,
		`[{"op":"add","path":"/m/~x","value":1},{"op":"add","path":"m/y","value":3},{"op":"replace","path":"/","value":2}]`:        `{"":2,"data":{"a":"1","b":"2"},"list":[1,2,3],"m":{"x/y":{"~":1},"~x":1},"y":3}`,
		`[{"op":"test","path":"","value":` + doc + `}]`:    doc,
		`[{"op":"replace","path":"","value":{"new":1.5}}]`: `{"new":1.5}`,
	} {
		obj := tree(t, doc)
		got, err := JSONPatch(obj, []byte(patch), Limits{})
		require.NoError(t, err, patch)
		assert.Equal(t, tree(t, want), got, patch)
		assert.Equal(t, tree(t, doc), obj, "the input must not change")
	}
}

func TestJSONPatchFaults(t *testing.T) {
	const doc = `{"data":{"a":"1"},"list":[1]}`
	for patch, code := range map[string]int{
		`{"op":"add","path":"/data/b","value":"1"}`:         400,
		`this is not json`:                                  400,
		`[{"op":"frobnicate","path":"/data/a"}]`:            422,
		`[{"op":"add","path":5,"value":"1"}]`:               400,
		`[{"op":5,"path":"/data/b"}]`:                       400,
		`[{"op":"copy","from":[],"path":"/data/b"}]`:        400,
		`[{"op":"add","path":"","value":{}}]`:               422,
		`[{"op":"copy","from":"","path":"/data/b"}]`:        422,
		`[{"op":"move","from":"/data/z","path":"/data/b"}]`: 422,
		`[{"op":"test","path":"/binaryData/x"}]`:            422,
		`[{"op":"add","value":1}]`:                          422,
		`[{"op":"copy","path":"/data/b"}]`:                  422,
		`[{"op":"test","path":"/data/a","value":"2"}]`:      422,
		`[{"op":"remove","path":"/data/zzz"}]`:              422,
		`[{"op":"add","path":"/binaryData/x","value":"A"}]`: 422,
		`[{"op":"add","path":"/list/3","value":1}]`:         422,
		`[{"op":"add","path":"/list/x","value":1}]`:         422,
		`[{"op":"add","path":"no-slash","value":1}]`:        422,
		`[{"op":"remove","path":""}]`:                       422,
		`[{"op":"replace","path":"","value":[]}]`:           422,
		`[{"op":"move","from":"/data","path":"/data/in"}]`:  422,
		`[{"op":"add","path":"/data/n","value":1e999}]`:     422,
	} {
		_, err := JSONPatch(tree(t, doc), []byte(patch), Limits{})
		require.Error(t, err, patch)
		s := statusOf(t, err)
		assert.Equal(t, code, s.Code, patch)
		if code == 422 {
			assert.Equal(t, meta.ReasonInvalid, s.Reason)
			assert.Equal(t, &meta.StatusDetails{}, s.Details)
		}
	}
}

func TestJSONPatchLimits(t *testing.T) {
	_, err := JSONPatch(map[string]any{}, []byte(`[`+strings.Repeat(`{"op":"test","path":"/x","value":null},`, 10_000)+`{"op":"test","path":"/x"}]`), Limits{})
	assert.Equal(t, 413, statusOf(t, err).Code, "operations")

	var ops []string
	for i := range 40 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/a","path":"/a/x%d"}`, i))
	}
	_, err = JSONPatch(tree(t, `{"a":{"b":"some text"}}`), []byte("["+strings.Join(ops, ",")+"]"), Limits{})
	assert.Equal(t, 413, statusOf(t, err).Code, "a value doubled forty times")

	ops = nil
	for i := range 600 {
		ops = append(ops, fmt.Sprintf(`{"op":"add","path":"%s","value":{}}`, strings.Repeat("/a", i+1)))
	}
	_, err = JSONPatch(map[string]any{}, []byte("["+strings.Join(ops, ",")+"]"), Limits{})
	assert.Equal(t, 422, statusOf(t, err).Code, "depth")
}

func TestJSONPatchInsideFieldSets(t *testing.T) {
	obj := map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{"fieldsV1": meta.RawJSON(`{"f:a":{}}`)}}}}
	got, err := JSONPatch(obj, []byte(`[{"op":"add","path":"/metadata/managedFields/0/fieldsV1/f:b","value":{}}]`), Limits{})
	require.NoError(t, err)
	assert.True(t, meta.Equal(got, tree(t, `{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:b":{}}}]}}`)))
}

// FuzzJSONPatch compares with an independent implementation: where both carry a
// patch out they agree.
func FuzzJSONPatch(f *testing.F) {
	f.Add(`{"a":{"b":[1,2]}}`, `[{"op":"add","path":"/a/b/-","value":{"c":1}},{"op":"remove","path":"/a/b/0"}]`)
	f.Add(`{"a":1}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"move","from":"/b","path":"/c"}]`)
	f.Add(`{}`, `[{"op":"test","path":"/x","value":null},{"op":"add","path":"","value":{}}]`)
	f.Fuzz(func(t *testing.T, doc, patch string) {
		v, err := meta.ParseJSON([]byte(doc))
		obj, ok := v.(map[string]any)
		if err != nil || !ok {
			return
		}
		got, err := JSONPatch(obj, []byte(patch), Limits{})
		if err != nil {
			statusOf(t, err)
			return
		}
		if strings.Contains(patch, `/"`) || strings.Contains(patch, `//`) || strings.Contains(doc+patch, `""`) {
			return // they take a member named "" for the whole document
		}
		theirs, err := jsonpatch.DecodePatch([]byte(patch))
		if err != nil {
			return
		}
		out, err := theirs.Apply([]byte(doc))
		if err != nil {
			return
		}
		want, err := meta.ParseJSON(out)
		if err != nil {
			return
		}
		if !meta.Equal(want, any(got)) {
			b, _ := json.Marshal(got)
			t.Errorf("%s\nby %s\ngives %s\nwant %s", doc, patch, b, out)
		}
	})
}

func TestMergePatch(t *testing.T) {
	for _, c := range []struct{ doc, patch, want string }{ // RFC 7386, appendix A
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"data":{"a":"1"}}`, `{}`, `{"data":{"a":"1"}}`},
	} {
		doc, patch := tree(t, c.doc), tree(t, c.patch)
		assert.Equal(t, tree(t, c.want), MergePatch(doc, patch), "%s by %s", c.doc, c.patch)
		assert.Equal(t, tree(t, c.doc), doc)
		assert.Equal(t, tree(t, c.patch), patch)
	}
}

func FuzzMergePatch(f *testing.F) {
	f.Add(`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`)
	f.Fuzz(func(t *testing.T, doc, patch string) {
		d, err1 := meta.ParseJSON([]byte(doc))
		p, err2 := meta.ParseJSON([]byte(patch))
		obj, ok1 := d.(map[string]any)
		change, ok2 := p.(map[string]any)
		if err1 != nil || err2 != nil || !ok1 || !ok2 {
			return
		}
		got := MergePatch(obj, change)
		// Merging the same patch again changes nothing.
		if again := MergePatch(got, change); !meta.Equal(any(again), any(got)) {
			t.Errorf("%v and again %v", got, again)
		}
	})
}
