package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
)

// deployment returns the kind Deployment and a request body with three containers and ten variables
// each.
func deployment(b *testing.B) (*resource.Version, []byte) {
	b.Helper()
	var v *resource.Version
	for _, k := range builtin.Kinds() {
		if k.Kind != "Deployment" {
			continue
		}
		t, err := resource.Compile(k, names.Kubernetes)
		if err != nil {
			b.Fatal(err)
		}
		v = t.Versions[0]
	}
	var containers []string
	for c := range 3 {
		var env []string
		for e := range 10 {
			env = append(env, fmt.Sprintf(`{"name":"VAR_%d","value":"some text"}`, e))
		}
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"example.com/image:%d","ports":[{"containerPort":80%d}],`+
			`"resources":{"requests":{"cpu":"100m","memory":"64Mi"}},"env":[%s]}`, c, c, c, strings.Join(env, ",")))
	}
	return v, fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}},`+
		`"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[%s]}}}}`, strings.Join(containers, ","))
}

func decodeStrict(b *testing.B, v *resource.Version, body []byte) *meta.Object {
	tree, duplicates, err := codec.DecodeJSON(body, codec.Limits{})
	if err != nil || len(duplicates) > 0 {
		b.Fatal(err, duplicates)
	}
	obj := meta.NewObject(tree)
	if unknown, faults := v.Normalize(obj); len(unknown)+len(faults) > 0 {
		b.Fatal(unknown, faults)
	}
	return obj
}

// BenchmarkDecodeStrict measures decoding that reports unknown and duplicate fields.
func BenchmarkDecodeStrict(b *testing.B) {
	v, body := deployment(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		decodeStrict(b, v, body)
	}
}

// BenchmarkProtobuf measures the protobuf encoding and decoding of an object with all defaults.
func BenchmarkProtobuf(b *testing.B) {
	v, body := deployment(b)
	obj := decodeStrict(b, v, body)
	if err := v.Defaults(v.NewChange(b.Context(), obj, nil, "")); err != nil {
		b.Fatal(err)
	}
	message := v.Proto().Append(nil, obj.Tree())
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(message)))
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = v.Proto().Append(buf[:0], obj.Tree())
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(message)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Proto().Decode(message, codec.Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
