package codec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

func TestDecodeJSONValues(t *testing.T) {
	for _, row := range []struct {
		text string
		want any
	}{
		{`{}`, map[string]any{}},
		{` [ ] `, []any{}},
		{`0`, int64(0)},
		{`-0`, int64(0)},
		{`-12`, int64(-12)},
		{`9223372036854775807`, int64(math.MaxInt64)},
		{`-9223372036854775808`, int64(math.MinInt64)},
		{`9223372036854775808`, float64(9223372036854775808)},
		{`18446744073709551615`, float64(18446744073709551615)},
		{`1.0`, 1.0},
		{`1e3`, 1000.0},
		{`1E-2`, 0.01},
		{`5e-400`, 0.0},
		{`"a\u00e9\n\/\ud83d\ude00"`, "aé\n/😀"},
		{`"\ud83dx"`, "\ufffdx"},
		{`"\ud83d\ud83d\ude00"`, "\ufffd😀"},
		{"\"\xff\"", "\ufffd"},
		{`[true,false,null,"x"]`, []any{true, false, nil, "x"}},
		{`{"a":{"b":[{"c":1}]}}`, map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": int64(1)}}}}},
	} {
		got, dup, err := codec.DecodeValue([]byte(row.text), codec.Limits{})
		require.NoError(t, err, row.text)
		require.Empty(t, dup)
		require.Equal(t, row.want, got, row.text)
	}
}

func TestDecodeJSONErrors(t *testing.T) {
	for _, row := range []struct{ text, position string }{
		{``, "byte 0"}, {`{`, "byte 1"}, {`{"a"`, "byte 4"}, {`{"a":}`, "byte 5"}, {`{"a":1,}`, "byte 7"}, {`{"a":1}x`, "byte 7"},
		{`{} {}`, "byte 3"}, {`{a:1}`, "byte 1"}, {`{'a':1}`, "byte 1"}, {`{"a":01}`, "byte 5"}, {`{"a":-}`, "byte 6"}, {`{"a":1.}`, "byte 7"},
		{`{"a":.5}`, "byte 5"}, {`{"a":1e}`, "byte 7"}, {`{"a":+1}`, "byte 5"}, {`{"a":1e400}`, "byte 5"}, {`{"a":tru}`, "byte 5"},
		{`{"a":NaN}`, "byte 5"}, {"{\"a\":\"\n\"}", "byte 6"}, {`{"a":"\x"}`, "byte 6"}, {`{"a":"\u12"}`, "byte 6"}, {`{"a":"`, "byte 6"},
		{`[1,]`, "byte 3"}, {`[1 2]`, "byte 3"}, {`{"a" 1}`, "byte 5"}, {"\ufeff{}", "byte 0"}, {`{"a":1]`, "byte 6"}, {`// c`, "byte 0"},
		{strings.Repeat(`[`, 1001), "byte 1000"}, {strings.Repeat(`{"a":`, 1001), "byte 5000"},
	} {
		_, _, err := codec.DecodeJSON([]byte(row.text), codec.Limits{})
		require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), "%.40s", row.text)
		require.Contains(t, err.Error(), row.position, "%.40s", row.text)
	}
	_, _, err := codec.DecodeJSON([]byte(`null`), codec.Limits{})
	require.ErrorIs(t, err, codec.ErrNull)
	for _, text := range []string{`[]`, `"x"`, `1`, `true`} {
		_, _, err := codec.DecodeJSON([]byte(text), codec.Limits{})
		require.ErrorContains(t, err, "must be an object")
		require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
	}
	_, _, err = codec.DecodeJSON([]byte(`{"a":1}`), codec.Limits{Bytes: 3})
	require.Equal(t, meta.ReasonRequestEntityTooLarge, meta.ReasonOf(err))
	_, _, err = codec.DecodeJSON([]byte(`{"a":[]}`), codec.Limits{Depth: 1})
	require.Error(t, err)
	_, _, err = codec.DecodeJSON([]byte(strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), codec.Limits{})
	require.ErrorContains(t, err, "must be an object")
}

func TestDecodeJSONDuplicates(t *testing.T) {
	tree, dup, err := codec.DecodeJSON([]byte(`{"metadata":{"labels":{"a":"1","b":"2","a":"3","a":"4"}},
		"spec":{"containers":[{"name":"x","name":"y"},{"name":"z"}]},"spec":{"n":1}}`), codec.Limits{})
	require.NoError(t, err)
	require.Equal(t, []string{"metadata.labels.a", "spec.containers[0].name", "spec"}, dup)
	require.Equal(t, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "4", "b": "2"}},
		"spec":     map[string]any{"n": int64(1)},
	}, tree)
	_, dup, err = codec.DecodeJSON([]byte(`{`+strings.Repeat(`"a":1,"b":[{"c":1,"c":2}],`, 5)+`"z":1}`), codec.Limits{Duplicates: 2})
	require.NoError(t, err)
	require.Len(t, dup, 2)
}

func TestEncodeJSONOrder(t *testing.T) {
	tree := map[string]any{"spec": map[string]any{"z": int64(1), "kind": "x", "": nil}, "kind": "K", "apiVersion": "v1", "a": []any{},
		"metadata": map[string]any{"name": "n", "resourceVersion": "5"}}
	require.Equal(t, `{"apiVersion":"v1","kind":"K","metadata":{"name":"n","resourceVersion":"5"},"a":[],"spec":{"":null,"kind":"x","z":1}}`,
		string(codec.EncodeJSON(nil, tree)))
	require.Equal(t, `{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"a":[],"spec":{"":null,"kind":"x","z":1}}`,
		string(codec.EncodeStored(nil, tree)))
	require.Equal(t, `{"apiVersion":"","kind":"","metadata":{},"a":1}`, string(codec.EncodeStored(nil, map[string]any{"a": int64(1)})))
	require.Equal(t, `{"a":1}`, string(codec.EncodeJSON(nil, map[string]any{"a": int64(1)})))
	require.Equal(t, `{}`, string(codec.EncodeJSON(nil, nil)))
	require.Equal(t, `x{"kind":"a\u003cb\u003e\u0026c\u2028\u0001\ufffd"}`, string(codec.EncodeJSON([]byte("x"), map[string]any{"kind": "a<b>&c\u2028\x01\xff"})))
}

func TestEncodeJSONAllocatesNothing(t *testing.T) {
	tree := podTree(t)
	dst := make([]byte, 0, 64<<10)
	require.Zero(t, testing.AllocsPerRun(20, func() { dst = codec.EncodeJSON(dst[:0], tree) }))
}

func TestSplice(t *testing.T) {
	for _, row := range []struct{ stored, want string }{
		{`{"apiVersion":"v1","kind":"K","metadata":{"name":"n"}}`, `{"apiVersion":"v1","kind":"K","metadata":{"resourceVersion":"42","name":"n"}}`},
		{`{"apiVersion":"v1","kind":"K","metadata":{}}`, `{"apiVersion":"v1","kind":"K","metadata":{"resourceVersion":"42"}}`},
		{`{"apiVersion":"v1","kind":"\"metadata\":{","metadata":{}}`, `{"apiVersion":"v1","kind":"\"metadata\":{","metadata":{"resourceVersion":"42"}}`},
		{`{}`, `{}`},
	} {
		require.Equal(t, "p"+row.want, string(codec.Splice([]byte("p"), []byte(row.stored), 42)))
	}
}

func TestIndentAndFrame(t *testing.T) {
	require.Equal(t, "{\n  \"a\": [\n    1\n  ]\n}\n", string(codec.Indent(nil, []byte(`{"a":[1]}`))))
	require.Equal(t, "{\"type\":\"ADDED\",\"object\":{}}\n", string(codec.Frame(nil, "ADDED", []byte(`{}`))))
}

// plain converts numbers of encoding/json to tree types.
func plain(t *testing.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(t, e)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(t, e)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			t.Skip("out of range: ours refuses, the reader keeps text")
		}
		return f
	}
	return v
}

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00",true,null]}`, `[[{}]]`, "\"\xff\"", `{"a":1,"a":2}`, `-0`, `1e999`, `"\ud800\udc00"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := codec.DecodeValue(data, codec.Limits{Depth: 9000})
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var want any
		wantErr := d.Decode(&want)
		if wantErr == nil && d.More() || wantErr == nil && !json.Valid(data) {
			wantErr = fmt.Errorf("trailing data")
		}
		if wantErr == nil {
			want = plain(t, want)
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: ours %v, encoding/json %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %#v, want %#v", data, got, want)
		}
		out := codec.EncodeValue(nil, got)
		again, _, err := codec.DecodeValue(out, codec.Limits{Depth: 9000})
		if err != nil || !meta.Equal(again, got) || !utf8.Valid(out) {
			t.Fatalf("%q -> %q -> %#v, %v", data, out, again, err)
		}
	})
}

func FuzzEncodeString(f *testing.F) {
	f.Add("a\x00\"\\\u2028\xff<>&")
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, string(want), string(codec.EncodeValue(nil, s)))
	})
}

func FuzzEncodeFloat(f *testing.F) {
	for _, n := range []float64{0, -0.5, 1e21, 1e-7, 123456789.25, 1e300} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n float64) {
		want, err := json.Marshal(n)
		if err != nil {
			want = []byte("null")
		}
		require.Equal(t, string(want), string(codec.EncodeValue(nil, n)))
	})
}

func podTree(tb testing.TB) map[string]any {
	container := `{"name":"c%d","image":"registry.example.com/team/app:v1.2.3","command":["/bin/app","--flag=value"],"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"250m","memory":"64Mi"}},"volumeMounts":[{"mountPath":"/data","name":"data"}],"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log"}`
	text := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-7d9c","namespace":"default","uid":"0d6f0c5c-6bd5-4d6c-9c55-0a0b0c0d0e0f","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web","pod-template-hash":"7d9c"},"annotations":{"example.com/note":"a \"quoted\" text"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"11111111-1111-1111-1111-111111111111","controller":true}]},"spec":{"containers":[` +
		fmt.Sprintf(container, 1) + "," + fmt.Sprintf(container, 2) + `],"restartPolicy":"Always","volumes":[{"name":"data","emptyDir":{}}],"terminationGracePeriodSeconds":30},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastProbeTime":null}],"podIP":"10.0.0.1"}}`
	tree, _, err := codec.DecodeJSON([]byte(text), codec.Limits{})
	require.NoError(tb, err)
	return tree
}

func BenchmarkDecodeJSON(b *testing.B) {
	data := codec.EncodeJSON(nil, podTree(b))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := codec.DecodeJSON(data, codec.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeEncodingJSON(b *testing.B) {
	data := codec.EncodeJSON(nil, podTree(b))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var v map[string]any
		if err := json.Unmarshal(data, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeJSON(b *testing.B) {
	tree := podTree(b)
	dst := codec.EncodeJSON(nil, tree)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = codec.EncodeJSON(dst[:0], tree)
	}
}

func BenchmarkSplice(b *testing.B) {
	stored := codec.EncodeStored(nil, podTree(b))
	dst := codec.Splice(nil, stored, 1)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = codec.Splice(dst[:0], stored, 123456789)
	}
}
