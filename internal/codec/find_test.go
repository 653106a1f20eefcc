package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/codec"
)

func TestFindField(t *testing.T) {
	data := []byte(` {"a" : {"b":"c\u0041\"", "n":-1.5e3, "t":true, "z":null, "o":{"x":[1,{}]}, "x\ty":1} , "l":[ 1 ], "s":"\\" } `)
	for path, want := range map[string]string{
		"a.b": `"c\u0041\""`, "a.n": "-1.5e3", "a.t": "true", "a.z": "null", "a.o": `{"x":[1,{}]}`, "a.o.x": `[1,{}]`, "a.x\ty": "1",
		"l": "[ 1 ]", "s": `"\\"`, "a.b.c": "", "l.0": "", "nosuch": "",
	} {
		assert.Equal(t, want, string(codec.FindField(data, strings.Split(path, ".")...)), path)
	}
	for text, want := range map[string]string{`"c\u0041\""`: `cA"`, `-1.5`: "-1.5", `true`: "true", `null`: "", `{}`: "", `[]`: "", ``: ""} {
		assert.Equal(t, want, codec.ScalarText([]byte(text)), text)
	}
}

// TestFieldsOfInvalidText: fields before a syntax error are found, and none after it.
func TestFieldsOfInvalidText(t *testing.T) {
	for _, text := range []string{
		`{"a":1`, `{"a":1 "b":2}`, `{"a":1,"b"}`, `{"a":1,"b":}`, `{"a":1,"b":01}`, `{"a":1,"b":tru,"c":3}`, `{"a":1,"b":"\x"}`,
		"{\"a\":1,\"b\":\"\n\"}", `{"a":1,"b":[1}`, `{"a":1,"b":1e999}`, `{"a":1,b:2}`, `{"a":1,"b":"`, `{"a":1,"b":-}`,
		`{"a":1,"b":` + strings.Repeat("[", 5000),
	} {
		var names []string
		for name := range codec.Fields([]byte(text)) {
			names = append(names, string(name))
		}
		assert.Equal(t, []string{"a"}, names, text)
	}
}

func TestIsObject(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, ` {"a":{"b":1}} `: true, `{"a":{"b":{}}}`: false, `{"a":[[]]}`: false, `{"a":"{{{"}`: true, `[]`: false, `{} x`: false,
		`{"a":1}}`: false, `{`: false, ``: false, "{}\x00": false, `{"a":[}`: false,
	} {
		assert.Equal(t, want, codec.IsObject([]byte(text), 2), text)
	}
}

func FuzzFindField(f *testing.F) {
	for _, s := range []string{`{"a":{"b":"c"}}`, `{"a":[{"b":1}],"a":2}`, ` { "x\"" : "\\" , "a" : null } `, `{"a":"\u0041}`, `{"a"`, `[`, `{"a":{}}{`} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		found := codec.FindField([]byte(text), name)
		codec.ScalarText(found)
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil || strings.Contains(text, `\u`) || strings.Count(text, name) > 1 {
			return
		}
		// In valid text, the result equals that of decoding.
		if want := object[name]; string(want) != string(found) {
			t.Errorf("found %q, want %q", found, want)
		}
	})
}

// FuzzDecodeWithout: the result equals that of DecodeJSON without the skipped fields.
func FuzzDecodeWithout(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"x":{"a":2},"l":[{"x":[1],"b":{"x":"\u0041"}}]}`, `{"x":1,"x":2}`, `{"x":01}`, `{"x":"\x"}`, `{"\u0078":{}}`, `[{"x":1}]`, `null`, `{"x":{"x":`,
		`{"a":` + strings.Repeat("[", 1001), `{"metadata":{"managedFields":[{"fieldsV1":{"f:x":{},"x":{}}}]}}`,
	} {
		f.Add([]byte(text))
	}
	_, err := codec.DecodeWithout([]byte(`{"a":1}]`), "x")
	require.ErrorContains(f, err, "unexpected data after the value")
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := codec.DecodeWithout(data, "x")
		whole, _, wholeErr := codec.DecodeJSON(data, codec.Limits{})
		if wholeErr != nil {
			return // skipped values are not fully validated
		}
		require.NoError(t, err)
		assert.Equal(t, removeX(whole), any(tree))
	})
}

// removeX removes the fields x from a tree.
func removeX(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "x")
		for _, e := range v {
			removeX(e)
		}
	case []any:
		for _, e := range v {
			removeX(e)
		}
	}
	return v
}

func TestItemsIteratesList(t *testing.T) {
	for list, want := range map[string][]string{
		`[]`: nil, ` [ 1 , "a]" ,{"b":[2]}, [ ] ]`: {"1", `"a]"`, `{"b":[2]}`, "[ ]"}, `[1,x,2]`: {"1"}, `[1 2]`: {"1"}, `{}`: nil, ``: nil, `[`: nil, `[1,`: {"1"},
	} {
		var got []string
		for v := range codec.Items([]byte(list)) {
			got = append(got, string(v))
		}
		assert.Equal(t, want, got, list)
	}
}

func TestCountValues(t *testing.T) {
	for text, want := range map[string]int{`1`: 1, `[]`: 2, `[1,2,3]`: 4, `{"a,b":"[{\\\",","c":[{}]}`: 5, `"`: 1, `"\`: 1} {
		assert.Equal(t, want, codec.CountValues([]byte(text)), text)
	}
}
