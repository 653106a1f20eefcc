package conformance

import (
	"math"
	"slices"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/codec"
)

// Package codec reads and writes JSON itself. These benchmarks are the reason: each
// runs the same work with json-iterator beside it.

const podText = `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"example.com/note":"a \"quoted\" text"},"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web","pod-template-hash":"7d9c"},"name":"web-7d9c","namespace":"default","uid":"0d6f0c5c-6bd5-4d6c-9c55-0a0b0c0d0e0f"},"spec":{"containers":[{"command":["/bin/app","--flag=value"],"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"image":"registry.example.com/team/app:v1.2.3","imagePullPolicy":"IfNotPresent","name":"c1","ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"250m","memory":"64Mi"}},"volumeMounts":[{"mountPath":"/data","name":"data"}]}],"nodeName":"node-1","restartPolicy":"Always","terminationGracePeriodSeconds":30,"volumes":[{"emptyDir":{},"name":"data"}]},"status":{"conditions":[{"lastProbeTime":null,"status":"True","type":"Ready"}],"phase":"Running","podIP":"10.0.0.1"}}`

func iterTree(it *jsoniter.Iterator) any {
	switch it.WhatIsNext() {
	case jsoniter.ObjectValue:
		m := map[string]any{}
		it.ReadMapCB(func(it *jsoniter.Iterator, key string) bool {
			m[key] = iterTree(it)
			return it.Error == nil
		})
		return m
	case jsoniter.ArrayValue:
		l := []any{}
		it.ReadArrayCB(func(it *jsoniter.Iterator) bool {
			l = append(l, iterTree(it))
			return it.Error == nil
		})
		return l
	case jsoniter.StringValue:
		return it.ReadString()
	case jsoniter.NumberValue:
		n := it.ReadNumber()
		if i, err := n.Int64(); err == nil {
			return i
		}
		f, err := n.Float64()
		if err != nil || math.IsInf(f, 0) {
			it.ReportError("number", "out of range")
		}
		return f
	case jsoniter.BoolValue:
		return it.ReadBool()
	}
	it.Skip()
	return nil
}

func streamTree(s *jsoniter.Stream, v any) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		s.WriteObjectStart()
		for i, k := range keys {
			if i > 0 {
				s.WriteMore()
			}
			s.WriteObjectField(k)
			streamTree(s, v[k])
		}
		s.WriteObjectEnd()
	case []any:
		s.WriteArrayStart()
		for i, e := range v {
			if i > 0 {
				s.WriteMore()
			}
			streamTree(s, e)
		}
		s.WriteArrayEnd()
	case string:
		s.WriteString(v)
	case int64:
		s.WriteInt64(v)
	case float64:
		s.WriteFloat64(v)
	case bool:
		s.WriteBool(v)
	default:
		s.WriteNil()
	}
}

// iterFind is codec.FindField.
func iterFind(it *jsoniter.Iterator, data []byte, path ...string) (found []byte) {
	it.ResetBytes(data)
	for _, name := range path {
		at := false
		for key := it.ReadObject(); key != ""; key = it.ReadObject() {
			if at = key == name; at {
				break
			}
			it.Skip()
		}
		if !at {
			return nil
		}
	}
	return it.SkipAndReturnBytes()
}

func TestJSONIteratorDoesTheSameWork(t *testing.T) {
	it := jsoniter.ConfigDefault.BorrowIterator([]byte(podText))
	tree, _, err := codec.DecodeJSON([]byte(podText), codec.Limits{})
	require.NoError(t, err)
	got := iterTree(it)
	require.NoError(t, it.Error)
	require.JSONEq(t, string(codec.EncodeJSON(nil, tree)), string(codec.EncodeValue(nil, got)))
	s := jsoniter.NewStream(jsoniter.ConfigDefault, nil, 4096)
	streamTree(s, got)
	require.JSONEq(t, podText, string(s.Buffer()))
	require.Equal(t, string(codec.FindField([]byte(podText), "spec", "nodeName")), string(iterFind(it, []byte(podText), "spec", "nodeName")))
}

// TestJSONIteratorTakesMoreThanJSON: a body that is no JSON must be refused.
func TestJSONIteratorTakesMoreThanJSON(t *testing.T) {
	for _, text := range []string{"\"\\n\x01\"", `[01]`, `[1.]`} {
		_, _, err := codec.DecodeValue([]byte(text), codec.Limits{})
		require.Error(t, err, text)
		it := jsoniter.ConfigDefault.BorrowIterator([]byte(text))
		iterTree(it)
		require.NoError(t, it.Error, text)
	}
}

// TestJSONIteratorWritesOtherText: an object has one text, the one of encoding/json.
func TestJSONIteratorWritesOtherText(t *testing.T) {
	for _, v := range []any{"\xff", "\u2028", "\b", 1e-9} {
		s := jsoniter.NewStream(jsoniter.ConfigDefault, nil, 64)
		streamTree(s, v)
		require.NotEqual(t, string(codec.EncodeValue(nil, v)), string(s.Buffer()))
	}
}

func BenchmarkDecodeTree(b *testing.B) {
	data := []byte(podText)
	b.Run("codec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := codec.DecodeJSON(data, codec.Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json-iterator", func(b *testing.B) {
		b.ReportAllocs()
		it := jsoniter.ConfigDefault.BorrowIterator(nil)
		for b.Loop() {
			if it.ResetBytes(data); iterTree(it) == nil || it.Error != nil {
				b.Fatal(it.Error)
			}
		}
	})
}

func BenchmarkEncodeTree(b *testing.B) {
	tree := iterTree(jsoniter.ConfigDefault.BorrowIterator([]byte(podText))).(map[string]any)
	b.Run("codec", func(b *testing.B) {
		b.ReportAllocs()
		var dst []byte
		for b.Loop() {
			dst = codec.EncodeJSON(dst[:0], tree)
		}
	})
	b.Run("json-iterator", func(b *testing.B) {
		b.ReportAllocs()
		s := jsoniter.NewStream(jsoniter.ConfigDefault, nil, 4096)
		for b.Loop() {
			s.Reset(nil)
			streamTree(s, tree)
		}
	})
}

func BenchmarkFindField(b *testing.B) {
	data := []byte(podText)
	b.Run("codec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if codec.FindField(data, "spec", "nodeName") == nil {
				b.Fatal()
			}
		}
	})
	b.Run("json-iterator", func(b *testing.B) {
		b.ReportAllocs()
		it := jsoniter.ConfigDefault.BorrowIterator(nil)
		for b.Loop() {
			if iterFind(it, data, "spec", "nodeName") == nil {
				b.Fatal()
			}
		}
	})
}
