package codec_test

import (
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
)

type strictPart struct {
	Name string            `json:"name,omitempty"`
	Data map[string]string `json:"data,omitempty"`
}

type strictKind struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Parts []strictPart          `json:"parts,omitempty"`
	By    map[string]strictPart `json:"by,omitempty"`
}

func strictSchema(t testing.TB) *schema.Schema {
	s, err := schema.Go(reflect.TypeFor[strictKind](), names.Orch)
	require.NoError(t, err)
	return s
}

func TestStrictJSON(t *testing.T) {
	s := strictSchema(t)
	for text, want := range map[string][]string{
		`{}`: nil,
		`{"metadata":{"name":"a"},"parts":[{"name":"x"}],"by":{"k.l":{"data":{"a":"b"}}}}`: nil,
		`{"z":1,"parts":[{"q":{"r":1,"r":2}},{"name":"x","name":"y"}],"a":2,"z":3}`:        {`unknown field "z"`, `unknown field "parts[0].q"`, `duplicate field "parts[1].name"`, `unknown field "a"`},
		`{"by":{"k.l":{"data":{"a":"b","a":"c","a":"d"},"no":[1,[2]]},"k.l":{}}}`:          {`duplicate field "by.k.l.data.a"`, `unknown field "by.k.l.no"`, `duplicate field "by.k.l"`},
		` { "\u0061" : [ { } , 1 ] , "parts" : [ ] , "parts" : [ ] } `:                     {`unknown field "a"`, `duplicate field "parts"`},
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}},"x":1}]}}`:          {`unknown field "metadata.managedFields[0].x"`},
		`{"parts":null,"by":3,"metadata":{"labels":null}}`:                                 nil,
	} {
		require.Equal(t, want, codec.StrictJSON([]byte(text), s), text)
	}
}

// FuzzStrictJSON: the unknown fields are those that Normalize drops.
func FuzzStrictJSON(f *testing.F) {
	f.Add(`{"z":1,"parts":[{"q":{"r":1,"r":2}},{"name":"x","name":"y"}],"a":2,"z":3,"by":{"":{"no":1}}}`)
	f.Add(`{"metadata":{"labels":{"a":"b"},"x":[{"y":1}]}}`)
	s := strictSchema(f)
	f.Fuzz(func(t *testing.T, text string) {
		tree, duplicates, err := codec.DecodeJSON([]byte(text), codec.Limits{Bytes: 4096})
		told := codec.StrictJSON([]byte(text), s)
		require.LessOrEqual(t, len(told), 100)
		if err != nil || len(duplicates) > 0 {
			return
		}
		unknown, faults := s.Normalize(tree)
		if len(faults) > 0 || len(unknown) >= 100 {
			return
		}
		want := []string{}
		for _, path := range unknown {
			want = append(want, "unknown field "+strconv.Quote(path))
		}
		slices.Sort(want)
		slices.Sort(told)
		require.ElementsMatch(t, slices.Compact(want), told, text)
	})
}
