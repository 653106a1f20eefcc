package schema

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
)

const leanDoc = `{"type":"object","required":["spec"],"properties":{
	"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.a != self.b","message":"differ","fieldPath":".a"}],"properties":{
		"a":{"type":"string","pattern":"^[a-z]+$","maxLength":9,"default":"x","enum":["x","y"]},
		"b":{"type":"string","pattern":"^[a-z]+$"},
		"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}},
		"more":{"type":"object","additionalProperties":{"type":"number","minimum":0,"exclusiveMinimum":true}},
		"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"nullable":true,"default":{"deep":[1,{"x":null}]}}}}}}`

func TestCompactPreservesSchemas(t *testing.T) {
	s, causes := OpenAPI(tree(t, leanDoc), names.Kubernetes, nil)
	require.Empty(t, causes)
	assert.Equal(t, s, Compact(s)[0])
	assert.Equal(t, []*Schema{nil}, Compact(nil))
}

func TestCompactSharesEqualSchemas(t *testing.T) {
	part := func(words, doc string) string {
		return `{"type":"object","description":"` + doc + `","properties":{"name":{"type":"string"` + words + `,"description":"of ` + doc + `"}}}`
	}
	s, causes := OpenAPI(tree(t, `{"type":"object","properties":{"a":`+part(``, "a")+`,"b":`+part(``, "b")+`,"c":`+part(`,"default":"1"`, "c")+
		`,"d":`+part(`,"x-kubernetes-int-or-string":true`, "d")+`}}`), names.Kubernetes, nil)
	require.Empty(t, causes)
	both := Compact(s, s)
	assert.Same(t, both[0], both[1])
	field := func(name string) *Schema { return both[0].Struct.Field(name).Schema }
	assert.Same(t, field("a"), field("b"))
	assert.NotSame(t, field("a"), field("c"))
	assert.NotSame(t, field("a"), field("d"))
	assert.Empty(t, field("a").Struct.Field("name").Schema.Doc)
}

// TestCompactComparesEveryField fails if Schema gets a field that appendKey ignores.
func TestCompactComparesEveryField(t *testing.T) {
	one, word := int64(1), ""
	samples := []any{true, "word", map[string]any{word: word}, uint8(1), 1, &one, new(float64), &Schema{}, &Struct{}, []*Schema{{}}, []string{word}, []any{word}, []Rule{{}}}
	var l compactor
	says := func(s *Schema) string { return string(l.appendKey(nil, reflect.ValueOf(s).Elem())) }
	seen := map[string]string{says(&Schema{}): "nothing"}
	of := reflect.TypeFor[Schema]()
	for i := range of.NumField() {
		f := of.Field(i)
		switch f.Name {
		case "re", "reasons", "unique", "gated": // follows from Pattern; of Go structs
			continue
		}
		if !f.IsExported() {
			assert.Contains(t, []reflect.Kind{reflect.Bool, reflect.Int}, f.Type.Kind(), f.Name)
			continue
		}
		var s Schema
		for _, sample := range append([]any{[]any{"default"}}, samples...) {
			if v := reflect.ValueOf(sample); v.CanConvert(f.Type) && v.Kind() == f.Type.Kind() || f.Name == "Default" {
				reflect.ValueOf(&s).Elem().Field(i).Set(v.Convert(f.Type))
				break
			}
		}
		require.NotEqual(t, Schema{}, s, f.Name)
		assert.Empty(t, seen[says(&s)], f.Name)
		seen[says(&s)] = f.Name
	}
	for _, v := range []any{nil, int64(1), 1.0, "1", true, []any{}, []any{"1"}, []any{[]any{}, "1"}, map[string]any{}, map[string]any{"1": nil}} {
		text := says(&Schema{Enum: []any{v}})
		assert.Empty(t, seen[text], "%T", v)
		seen[text] = fmt.Sprintf("%T", v)
	}
}

// podLike returns the schema of a kind that repeats a struct of many fields in many places,
// each with different documentation.
func podLike(places int) string {
	var form strings.Builder
	for i := range 40 {
		fmt.Fprintf(&form, `,"part%d":{"type":"object","description":"Part %d, told at length: %s","properties":{"name":{"type":"string","maxLength":%d},"port":{"type":"integer","format":"int32"}}}`,
			i, i, strings.Repeat("what it is for, ", 20), i)
	}
	doc := `{"type":"object","properties":{`
	for i := range places {
		if i > 0 {
			doc += ","
		}
		doc += fmt.Sprintf(`"place%d":{"type":"object","description":"Place %d","properties":{%s}}`, i, i, form.String()[1:])
	}
	return doc + `}}`
}

// TestCompactSize checks that the memory for a compacted definition depends on its distinct
// schemas, not on the length of its text.
func TestCompactSize(t *testing.T) {
	kept := func(places int) int64 {
		const times = 20
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		all := make([][]*Schema, times)
		for i := range all {
			s, causes := OpenAPI(tree(t, podLike(places)), names.Kubernetes, nil)
			require.Empty(t, causes)
			all[i] = Compact(s)
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(all)
		return (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / times
	}
	text, few, many := len(podLike(30)), kept(3), kept(30)
	assert.Less(t, many, int64(text)/5, "bytes of a definition of %d", text)
	assert.Less(t, many, 2*few, "30 places and 3 of the same form")
}
