package schema

import (
	"reflect"
	"testing"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// FuzzNormalize: normalizing twice changes nothing, and a tree without faults converts to the Go
// struct and back unchanged.
func FuzzNormalize(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"G","metadata":{"name":"a","labels":{"l":null},"managedFields":[{"fieldsV1":{"f:a":{}}}]},"spec":{"flag":false,"self":{"raw":"YQ=="},"parts":[{"name":"x"}],"at":"2024-01-02T03:04:05Z"}}`)
	f.Add(`{"metadata":{"labels":{"a":null},"creationTimestamp":null},"spec":{"args":[null],"free":{"x":null},"anything":null,"code":"abcd","micro":"2024-01-02T03:04:05.1234567+02:00"}}`)
	s, err := Go(reflect.TypeFor[gadget](), names.Orch)
	if err != nil {
		f.Fatal(err)
	}
	view, err := NewView(reflect.TypeFor[gadget](), names.Orch)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in string) {
		m, ok := decode(in)
		if !ok {
			return
		}
		_, faults := s.Normalize(m)
		_ = s.FillDefaults(m)
		s.Validate(m, m)
		if len(faults) > 0 {
			return
		}
		once := text(t, m)
		unknown, faults := s.Normalize(m)
		_ = s.FillDefaults(m)
		if len(unknown)+len(faults) > 0 || text(t, m) != once {
			t.Fatalf("conformed twice: %s\nonce: %s", text(t, m), once)
		}
		var v gadget
		if err := view.Into(m, &v); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		back, err := view.From(&v)
		if err != nil {
			t.Fatal(err)
		}
		if !meta.Equal(back, m) {
			t.Fatalf("through the struct: %s\nbefore: %s", text(t, back), once)
		}
	})
}

func decode(in string) (map[string]any, bool) {
	v, err := meta.ParseJSON([]byte(in))
	m, ok := v.(map[string]any)
	return m, ok && err == nil
}

func FuzzTag(f *testing.F) {
	f.Add(`required,default=5,enum=a|b,pattern=^a\,b$`)
	f.Add(`items.maxLength=3,values.pattern=\d+,listMapKeys=a\|b|c`)
	f.Fuzz(func(t *testing.T, text string) {
		field := &Field{Schema: &Schema{Type: Array, Items: &Schema{Type: Object, Values: &Schema{Type: Integer}}}}
		parsed := parseTag(text)
		if errs := parsed.apply(field); len(errs) > len(parsed) {
			t.Fatal("more faults than words")
		}
	})
}
