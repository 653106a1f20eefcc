package schema

import (
	"encoding/json"
	"reflect"
	"testing"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// benchObject is a canonical object of some size.
func benchObject(b *testing.B) (*Schema, *View, map[string]any) {
	s := gadgetSchema(b)
	view, err := NewView(reflect.TypeFor[gadget](), names.Kubernetes)
	if err != nil {
		b.Fatal(err)
	}
	g := gadget{TypeMeta: meta.TypeMeta{Kind: "Gadget", APIVersion: "example.com/v1"}}
	g.Name, g.Namespace, g.UID = "a", "default", "0b2b4bd8-2f5d-4f1c-8c65-000000000000"
	g.Labels = map[string]string{"app": "x", "tier": "y"}
	g.Finalizers = []string{"example.com/a"}
	g.Spec = gadgetSpec{Size: 3, Color: "red", Args: []string{"a", "b", "c"}, Data: map[string]string{"k": "v"}, Raw: []byte("abc"), Code: "ab"}
	for range 30 {
		g.Spec.Parts = append(g.Spec.Parts, part{Name: "n", N: new(int64)})
	}
	m, err := view.From(g)
	if err != nil {
		b.Fatal(err)
	}
	return s, view, m
}

func BenchmarkNormalize(b *testing.B) {
	s, _, m := benchObject(b)
	b.ReportAllocs()
	for b.Loop() {
		if unknown, faults := s.Normalize(m); len(unknown)+len(faults) > 0 {
			b.Fatal(unknown, faults)
		}
	}
}

func BenchmarkFillDefaults(b *testing.B) {
	s, _, m := benchObject(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.FillDefaults(m)
	}
}

func BenchmarkValidate(b *testing.B) {
	s, _, m := benchObject(b)
	for i, p := range m["spec"].(map[string]any)["parts"].([]any) {
		p.(map[string]any)["name"] = string(rune('a' + i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if causes := s.Validate(m, m); len(causes) > 0 {
			b.Fatal(causes)
		}
	}
}

// BenchmarkView reads a tree into the struct and back; the limit beside it is
// encoding/json on the same value.
func BenchmarkView(b *testing.B) {
	_, view, m := benchObject(b)
	b.Run("view", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var g gadget
			if err := view.Into(m, &g); err != nil {
				b.Fatal(err)
			}
			if _, err := view.From(&g); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var g gadget
			text, err := json.Marshal(m)
			if err != nil {
				b.Fatal(err)
			}
			if err := json.Unmarshal(text, &g); err != nil {
				b.Fatal(err)
			}
			if text, err = json.Marshal(g); err != nil {
				b.Fatal(err)
			}
			if err := json.Unmarshal(text, new(map[string]any)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkGo(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Go(reflect.TypeFor[gadget](), names.Kubernetes); err != nil {
			b.Fatal(err)
		}
	}
}
