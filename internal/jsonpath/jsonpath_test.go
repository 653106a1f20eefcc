package jsonpath_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/jsonpath"
)

func object() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "x", "b": "y"}},
		"spec":     map[string]any{"replicas": int64(3), "ratio": 0.5, "null": nil, "list": []any{"a", "b", int64(1)}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "n": int64(1)},
			map[string]any{"type": "Other", "status": "False", "n": int64(2), "on": true},
		}},
	}
}

func TestAllReturnsValuesAtPath(t *testing.T) {
	for path, want := range map[string][]any{
		".spec.replicas":             {int64(3)},
		"{.spec.replicas}":           {int64(3)},
		"$.spec.ratio":               {0.5},
		".spec.null":                 {nil},
		".spec.missing":              nil,
		".spec.replicas.deeper":      nil,
		".spec.list[0]":              {"a"},
		".spec.list[-1]":             {int64(1)},
		".spec.list[7]":              nil,
		".spec.list[-7]":             nil,
		".spec.list[*]":              {"a", "b", int64(1)},
		".spec.list[1:]":             {"b", int64(1)},
		".spec.list[-1:]":            {int64(1)},
		".spec.list[:2]":             {"a", "b"},
		".spec.list[0:-1]":           {"a", "b"},
		".spec.list[::2]":            {"a", int64(1)},
		".spec.list[1:1]":            nil,
		".spec.list[2:9]":            nil,
		".spec.list[-9:]":            nil,
		".spec.list[0,2]":            {"a", int64(1)},
		".spec.list[-1:, 0]":         {int64(1), "a"},
		".status.conditions[].type":  {"Ready"},
		".status.conditions[-1:].n":  {int64(2)},
		".spec['ratio','replicas']":  {0.5, int64(3)},
		".status..type":              {"Ready", "Other"},
		"..n":                        {int64(1), int64(2)},
		".spec..[0]":                 {"a"},
		".spec..missing":             nil,
		".spec.replicas..a":          nil,
		`.metadata.labels['a.b/c']`:  {"x"},
		`.metadata.labels["a.b/c"]`:  {"x"},
		`.metadata.labels.a\.b/c`:    {"x"},
		`.metadata.labels.*`:         {"x", "y"},
		".status.conditions[*].type": {"Ready", "Other"},
		`.status.conditions[?(@.type=="Ready")].status`:   {"True"},
		`.status.conditions[?(@.type == 'Other')].status`: {"False"},
		`.status.conditions[?(@.type!="Ready")].n`:        {int64(2)},
		`.status.conditions[?(@.n>=2)].type`:              {"Other"},
		`.status.conditions[?(@.n<2)].type`:               {"Ready"},
		`.status.conditions[?(@.n<=1.5)].type`:            {"Ready"},
		`.status.conditions[?(@.n>1)].type`:               {"Other"},
		`.status.conditions[?(@.type>1)].type`:            nil,
		`.status.conditions[?(@.on)].type`:                {"Other"},
		`.status.conditions[?(@.on==true)].type`:          {"Other"},
		`.status.conditions[?(@.on==null)].type`:          nil,
		".":                                               {object()},
	} {
		p, err := jsonpath.Parse(path)
		require.NoError(t, err, path)
		assert.Equal(t, want, p.All(object()), path)
		first, ok := p.First(object())
		assert.Equal(t, len(want) > 0, ok, path)
		if ok {
			assert.Equal(t, want[0], first, path)
		}
		assert.Equal(t, path, p.String())
	}
}

func TestFiltersCompareNumbersExactly(t *testing.T) {
	p, err := jsonpath.Parse(`.items[?(@.n==9007199254740993)].name`)
	require.NoError(t, err)
	item := func(name string, n any) map[string]any { return map[string]any{"name": name, "n": n} }
	root := map[string]any{"items": []any{item("a", int64(9007199254740992)), item("b", int64(9007199254740993)), item("c", 9007199254740992.0)}}
	assert.Equal(t, []any{"b"}, p.All(root))
}

func TestParseErrors(t *testing.T) {
	for _, path := range []string{"", "a", ".a[", ".a[x]", ".a[::0]", "." + strings.Repeat("[0,0]", 7), ".a[1:2:3:4]", ".a[0,", ".a[0 1]", ".a['x',0", ".a..b..c", ".a...b", ".a..", ".a.", ".a[?(b==1)]", ".a[?(@.b==c)]", ".a[?(@.b==1]", ".a[0]b[", ".a['x", ".a['x'", ".a b",
		strings.Repeat(".a", 100), "." + strings.Repeat("a", 5000), ".a[99999999999]", "{}", "$"} {
		_, err := jsonpath.Parse(path)
		assert.Error(t, err, "%.30q", path)
	}
}

func TestFieldsOfPathWithoutIndex(t *testing.T) {
	p, err := jsonpath.Parse(`.spec.a\.b`)
	require.NoError(t, err)
	fields, ok := p.Fields()
	assert.True(t, ok)
	assert.Equal(t, []string{"spec", "a.b"}, fields)
	p, err = jsonpath.Parse(".spec[0]")
	require.NoError(t, err)
	_, ok = p.Fields()
	assert.False(t, ok)
}

func ExampleParse() {
	p, err := jsonpath.Parse(`.status.conditions[?(@.type=="Ready")].status`)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, ok := p.First(object())
	fmt.Println(v, ok)
	// Output: True true
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{".a.b[0]", `.c[?(@.t=="R")].s`, "{$.a['x'][*]}", `.a\.b.*`, ".[0][-1]", `.a[?(@.x<=1e3)]`, ".a..b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := jsonpath.Parse(text)
		if err != nil {
			return
		}
		all := p.All(object())
		first, ok := p.First(object())
		if ok != (len(all) > 0) {
			t.Fatalf("First finds %v, All finds %d", ok, len(all))
		}
		if ok && fmt.Sprint(first) != fmt.Sprint(all[0]) {
			t.Fatalf("First finds %v, All begins with %v", first, all[0])
		}
	})
}
