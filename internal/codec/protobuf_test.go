package codec_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
)

type inner struct {
	Text  string `json:"text" protobuf:"bytes,1,opt,name=text"`
	Count *int32 `json:"count,omitempty" protobuf:"varint,2,opt,name=count"`
	Again *inner `json:"again,omitempty" protobuf:"bytes,3,opt,name=again"`
}

type words []string

type shared struct {
	A string `json:"a,omitempty" protobuf:"bytes,1,opt,name=a"`
	B *bool  `json:"b,omitempty" protobuf:"varint,2,opt,name=b"`
}

type sample struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	shared          `json:",inline" protobuf:"bytes,2,opt,name=shared"`
	Inner           inner             `json:"inner,omitempty" protobuf:"bytes,3,opt,name=inner"`
	List            []inner           `json:"list,omitempty" protobuf:"bytes,4,rep,name=list"`
	Data            map[string][]byte `json:"data,omitempty" protobuf:"bytes,5,rep,name=data"`
	Extra           map[string]words  `json:"extra,omitempty" protobuf:"bytes,6,rep,name=extra"`
	Numbers         []int64           `json:"numbers,omitempty" protobuf:"varint,7,rep,name=numbers"`
	Ratio           float64           `json:"ratio,omitempty" protobuf:"fixed64,8,opt,name=ratio"`
	At              meta.MicroTime    `json:"at,omitempty" protobuf:"bytes,9,opt,name=at"`
}

func sampleProto(tb testing.TB) *codec.Proto {
	s, err := schema.Go(reflect.TypeFor[sample](), names.Orch)
	require.NoError(tb, err)
	p, err := codec.NewProto(s)
	require.NoError(tb, err)
	return p
}

func TestProtobufMatchesKnownBytes(t *testing.T) {
	p := sampleProto(t)
	const emptyMeta = "\x0a\x10\x0a\x00\x12\x00\x1a\x00\x22\x00*\x002\x008\x00B\x00"
	const rest = "\x12\x02\x0a\x00\x1a\x02\x0a\x00"
	const zeros = "A\x00\x00\x00\x00\x00\x00\x00\x00J\x00"
	for _, row := range []struct{ json, want string }{
		{`{}`, emptyMeta + rest + zeros},
		{`{"a":"x","b":false}`, emptyMeta + "\x12\x05\x0a\x01x\x10\x00\x1a\x02\x0a\x00" + zeros},
		{`{"inner":{"text":"t","count":-1}}`, emptyMeta + "\x12\x02\x0a\x00\x1a\x0e\x0a\x01t\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + zeros},
		{`{"list":[{"text":""},{"text":"b","again":{"text":"c"}}]}`, emptyMeta + rest + "\x22\x02\x0a\x00\x22\x08\x0a\x01b\x1a\x03\x0a\x01c" + zeros},
		{`{"data":{"b":"aGk=","a":""}}`, emptyMeta + rest + "*\x05\x0a\x01a\x12\x00*\x07\x0a\x01b\x12\x02hi" + zeros},
		{`{"extra":{"k":["x","y"]}}`, emptyMeta + rest + "2\x0b\x0a\x01k\x12\x06\x0a\x01x\x0a\x01y" + zeros},
		{`{"numbers":[0,300]}`, emptyMeta + rest + "8\x008\xac\x02" + zeros},
		{`{"at":"1970-01-01T00:00:01.000002Z"}`, emptyMeta + rest + "A\x00\x00\x00\x00\x00\x00\x00\x00J\x05\x08\x01\x10\xd0\x0f"},
	} {
		tree, _, err := codec.DecodeJSON([]byte(row.json), codec.Limits{})
		require.NoError(t, err)
		got := p.Append(nil, tree)
		require.Equal(t, row.want, string(got), row.json)
		back, err := p.Decode(got, codec.Limits{})
		require.NoError(t, err)
		require.Equal(t, row.want, string(p.Append(nil, back)), row.json)
	}
	long := strings.Repeat("x", 20000)
	tree := map[string]any{"list": []any{map[string]any{"text": long, "again": map[string]any{"text": long}}}}
	back, err := p.Decode(p.Append(nil, tree), codec.Limits{})
	require.NoError(t, err)
	require.Equal(t, tree["list"], back["list"])
}

func TestProtobufErrors(t *testing.T) {
	p := sampleProto(t)
	for _, data := range []string{"\x0a", "\x0a\x05ab", "\xff", "\x08\x01", "\x1a\x03\x0a\x05x", "\x41\x00", "\x41\x00\x00\x00\x00\x00\x00\xf0\x7f",
		"2\x02\x08\x01", "J\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"} {
		_, err := p.Decode([]byte(data), codec.Limits{Depth: 20})
		require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), "%.20q", data)
	}
	nested := []byte{}
	for range 30 {
		nested = append([]byte{0x1a, byte(len(nested))}, nested...)
	}
	_, err := p.Decode(nested, codec.Limits{Depth: 20})
	require.ErrorContains(t, err, "levels")
	_, err = p.Decode([]byte("\xaa\x06\x02hi\x12\x02\x0a\x00"), codec.Limits{})
	require.NoError(t, err, "unknown fields are skipped")
	packed, err := p.Decode([]byte("\x3a\x03\x01\xac\x02"), codec.Limits{})
	require.NoError(t, err)
	require.Equal(t, []any{int64(1), int64(300)}, packed["numbers"])

	type untagged struct {
		A string `json:"a"`
	}
	s, err := schema.Go(reflect.TypeFor[untagged](), names.Orch)
	require.NoError(t, err)
	_, err = codec.NewProto(s)
	require.ErrorContains(t, err, "no protobuf number")
	_, err = codec.NewProto(&schema.Schema{})
	require.Error(t, err)
}

func TestProtobufFieldSets(t *testing.T) {
	p := sampleProto(t)
	entry := func(set string) []byte {
		tree := map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{"manager": "m", "fieldsV1": meta.RawJSON(set)}}}}
		return p.Append(nil, tree)
	}
	for sent, want := range map[string]any{
		`{"f:a":{}}`:     meta.RawJSON(`{"f:a":{}}`),
		` {"f:a" : {}} `: meta.RawJSON(`{"f:a":{}}`),
		`[1]`:            []any{int64(1)},
	} {
		tree, err := p.Decode(entry(sent), codec.Limits{})
		require.NoError(t, err, sent)
		managed := meta.NewObject(tree).List("metadata", "managedFields")
		require.Equal(t, want, managed[0].(map[string]any)["fieldsV1"], sent)
	}
	for _, bad := range []string{`{`, `{} x`, ``, `{"a":"\x"}`} {
		_, err := p.Decode(entry(bad), codec.Limits{})
		require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), bad)
	}
}

func TestOpenEnvelopeReadsClientBody(t *testing.T) {
	// A body as clients send it.
	const sent = "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x0e\n\x04\n\x02pb\x12\x06\n\x01a\x12\x011\x1a\x00\"\x00"
	apiVersion, kind, body, err := codec.OpenEnvelope([]byte(sent))
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "ConfigMap"}, []string{apiVersion, kind})
	require.Equal(t, sent, string(codec.Envelope(nil, apiVersion, kind, body)))
	for _, bad := range []string{"", "not protobuf", "k8s\x00\x0a", "k8s\x00\x0a\x02\x0a\x05", "k8s\x00\x22\x01x", "k8s\x00\x1a\x01x"} {
		_, _, _, err := codec.OpenEnvelope([]byte(bad))
		require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), "%q", bad)
	}
	_, _, body, err = codec.OpenEnvelope([]byte("k8s\x00\x12\x01x\x22\x1dapplication/vnd.orch.protobuf"))
	require.NoError(t, err)
	require.Equal(t, "x", string(body))
	n := int64(5)
	got := codec.ProtoList(nil, "v1", "L", codec.ListMeta{ResourceVersion: "7", Continue: "c", Remaining: &n}, slices.Values([][]byte{[]byte("ab"), nil}))
	require.Equal(t, "k8s\x00\n\x07\n\x02v1\x12\x01L\x12\x12\n\x0a\n\x00\x12\x017\x1a\x01c\x20\x05\x12\x02ab\x12\x00\x1a\x00\"\x00", string(got))
	require.Equal(t, "\x00\x00\x00\x0d\n\x05ADDED\x12\x04\n\x02ab", string(codec.ProtoFrame(nil, "ADDED", []byte("ab"))))
	require.Equal(t, "\x0a\x02\x0a\x00", string(codec.ProtoPartial([]byte("\x0a\x02\x0a\x00\x12\x00"))))
	require.Nil(t, codec.ProtoPartial([]byte("\x12\x00")))
}

func TestEncodeStatus(t *testing.T) {
	s := meta.NotFound(meta.GroupResource{Resource: "configmaps"}, "a")
	b, err := codec.EncodeStatus(nil, s, codec.JSON)
	require.NoError(t, err)
	require.Equal(t, `{"apiVersion":"v1","kind":"Status","metadata":{},"code":404,"details":{"kind":"configmaps","name":"a"},"message":"configmaps \"a\" not found","reason":"NotFound","status":"Failure"}`, string(b))
	b, err = codec.EncodeStatus(nil, s, codec.YAML)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(b), "apiVersion: v1\ncode: 404\n"))
	b, err = codec.EncodeStatus(nil, s, codec.Protobuf)
	require.NoError(t, err)
	_, kind, body, err := codec.OpenEnvelope(b)
	require.NoError(t, err)
	require.Equal(t, "Status", kind)
	tree, err := codec.Metas().Status.Decode(body, codec.Limits{})
	require.NoError(t, err)
	delete(s.Object().Tree(), "kind")
	want := s.Object().Tree()
	delete(want, "kind")
	delete(want, "apiVersion")
	require.Equal(t, want, tree)
	opts, err := codec.Metas().DeleteOptions.Decode([]byte("\x08\x00\x12\x03\x0a\x01u\x22\x06Orphan\x2a\x03All"), codec.Limits{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"gracePeriodSeconds": int64(0), "preconditions": map[string]any{"uid": "u"}, "propagationPolicy": "Orphan", "dryRun": []any{"All"}}, opts)
}

func FuzzProtobuf(f *testing.F) {
	p := sampleProto(f)
	f.Add(p.Append(nil, map[string]any{"list": []any{map[string]any{"text": "x"}}, "data": map[string]any{"a": "aGk="}, "at": "2001-01-01T00:00:00.000001Z"}))
	f.Add([]byte("\x3a\x03\x01\xac\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := p.Decode(data, codec.Limits{})
		if err != nil {
			if meta.ReasonOf(err) != meta.ReasonBadRequest {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		once := p.Append(nil, tree)
		again, err := p.Decode(once, codec.Limits{})
		if err != nil || string(p.Append(nil, again)) != string(once) {
			t.Fatalf("%q: %q, %v", data, once, err)
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	f.Add(codec.Envelope(nil, "v1", "K", []byte("x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, k, body, err := codec.OpenEnvelope(data); err == nil {
			if _, _, again, err := codec.OpenEnvelope(codec.Envelope(nil, v, k, body)); err != nil || string(again) != string(body) {
				t.Fatalf("%q: %v", data, err)
			}
		}
	})
}

func BenchmarkProtoAppend(b *testing.B) {
	p := sampleProto(b)
	tree := podTree(b)
	tree["list"] = []any{map[string]any{"text": "x", "again": map[string]any{"text": "y"}}, map[string]any{"text": "z"}}
	dst := p.Append(nil, tree)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = p.Append(dst[:0], tree)
	}
}

func BenchmarkProtoDecode(b *testing.B) {
	p := sampleProto(b)
	data := p.Append(nil, podTree(b))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Decode(data, codec.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
