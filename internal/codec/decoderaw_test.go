package codec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func TestFieldSetsStayText(t *testing.T) {
	set := func(text string) any {
		tree, _, err := DecodeJSON([]byte(`{"metadata":{"managedFields":[{"fieldsV1":`+text+`,"time":"t"}]},"fieldsV1":{"a":1}}`), Limits{})
		require.NoError(t, err, text)
		assert.Equal(t, map[string]any{"a": int64(1)}, tree["fieldsV1"], "elsewhere it is a tree")
		entry := tree["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
		assert.Equal(t, "t", entry["time"])
		return entry["fieldsV1"]
	}
	for text, want := range map[string]any{
		`{}`: meta.RawJSON(`{}`),
		`{"f:a":{".":{},"k:{\"n\":\"x\\u0041\"}":{}},"l":[1,true,null,-1.5e3,"é"]}`: meta.RawJSON(`{"f:a":{".":{},"k:{\"n\":\"x\\u0041\"}":{}},"l":[1,true,null,-1.5e3,"é"]}`),
		" { \"f:a\" :\n{ } , \"x\":[ 1 , 2 ] } ":                                    meta.RawJSON(`{"f:a":{},"x":[1,2]}`),
		"{\"\xff\":{}}":                                                             map[string]any{"�": map[string]any{}},
		`null`:                                                                      nil,
		`[1]`:                                                                       []any{int64(1)},
		`"text"`:                                                                    "text",
	} {
		assert.Equal(t, want, set(text), text)
	}
}

func TestInvalidFieldSetsAreErrors(t *testing.T) {
	for _, text := range []string{`{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1`, `{"a":1]`, `{a:1}`, `{"a":tru}`, `{"a":01}`, "{\"a\n\":1}", `{"\x":1}`, `{} {}`} {
		_, _, err := DecodeJSON([]byte(`{"metadata":{"managedFields":[{"fieldsV1":`+text+`}]}}`), Limits{})
		assert.Error(t, err, text)
	}
	_, _, err := DecodeJSON([]byte(`{"metadata":{"managedFields":[{"fieldsV1":{"a":{"a":{"a":{}}}}}]}}`), Limits{Depth: 6})
	assert.ErrorContains(t, err, "more than 6 levels deep")
}

// FuzzFieldSet: a field set is accepted exactly if DecodeValue accepts it, with the same value.
func FuzzFieldSet(f *testing.F) {
	f.Add(`{"f:a":{".":{}}}`)
	f.Add(` { "k:{\"a\":1}" : [ 1 , {} ] } `)
	f.Fuzz(func(t *testing.T, text string) {
		tree, _, err := DecodeJSON([]byte(`{"metadata":{"managedFields":[{"fieldsV1":`+text+`}]}}`), Limits{})
		if valid := json.Valid([]byte(text)); err == nil && !valid {
			// The text may close the enclosing objects; then it is not a field set.
			return
		}
		if err != nil {
			return
		}
		entry := tree["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
		raw, ok := entry["fieldsV1"].(meta.RawJSON)
		if !ok {
			return
		}
		want, _, err := DecodeValue([]byte(text), Limits{})
		if err != nil || !meta.Equal(raw.Value(), want) {
			t.Errorf("%q became %q: %v", text, raw, err)
		}
	})
}
