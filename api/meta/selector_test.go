package meta_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func lookup(m map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

func TestLabelSelectorMatches(t *testing.T) {
	objects := map[string]map[string]string{
		"a": {"app": "web", "tier": "1"},
		"b": {"app": "db", "tier": "2"},
		"c": {"app": "web", "gone": ""},
		"d": {},
		"e": {"tier": "x"},
	}
	for _, row := range []struct{ selector, want string }{
		{"", "abcde"},
		{"  ", "abcde"},
		{"app=web", "ac"},
		{"app==web", "ac"},
		{" app = web ", "ac"},
		{"app!=web", "bde"},
		{"app in (web,db),tier", "ab"},
		{"app in(web)", "ac"},
		{"app in ( web , db )", "abc"},
		{"app notin (web)", "bde"},
		{"!gone", "abde"},
		{"gone", "c"},
		{"! gone", "abde"},
		{"gone=", "c"},
		{"gone in ()", "c"},
		{"gone in (,x)", "c"},
		{"gone=,app=web", "c"},
		{"tier>1", "b"},
		{"tier<2", "a"},
		{"tier>0", "ab"},
		{"tier,tier!=1", "be"},
		{"app=web,app=db", ""},
		{"in=x", ""},
		{"!in", "abcde"},
		{"a.b/c!=1", "abcde"},
	} {
		s, err := meta.ParseLabelSelector(row.selector)
		require.NoError(t, err, row.selector)
		got := ""
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if s.Matches(lookup(objects[name])) {
				got += name
			}
		}
		require.Equal(t, row.want, got, row.selector)
		again, err := meta.ParseLabelSelector(s.String())
		require.NoError(t, err, s.String())
		require.Equal(t, s.String(), again.String())
	}
}

func TestParseLabelSelectorErrors(t *testing.T) {
	for _, text := range []string{
		"app in web", "=x", "a b", "app=web,", ",", ",a", "a,,b", "!", "!a=b", "a=b=c", "a===b", "a in (", "a in (b", "a in (b,",
		"a in (b c)", "a in b)", "a>x", "a>", "a<1.5", "a>99999999999999999999", "a=_", "a=" + strings.Repeat("x", 64), "/a=b",
		"a/b/c=d", "A_/b=c", "a=é", "a notin", "(a)", "a=(b)", "a in (b=c)", "a in ((b))", "a!b", "a=!b", "a=b!",
		strings.Repeat("a,", 2000) + "a", strings.Repeat("a", 70000), "a in (" + strings.Repeat("b,", 20000) + "b)",
	} {
		_, err := meta.ParseLabelSelector(text)
		require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), "%.80s", text)
		require.Less(t, len(err.Error()), 500)
	}
}

func TestLabelSelectorFromObject(t *testing.T) {
	s, err := meta.LabelSelectorAsSelector(map[string]any{
		"matchLabels": map[string]any{"b": "2", "a": "1"},
		"matchExpressions": []any{
			map[string]any{"key": "c", "operator": "In", "values": []any{"y", "x", "x"}},
			map[string]any{"key": "d", "operator": "DoesNotExist"},
			map[string]any{"key": "e", "operator": "Exists"},
			map[string]any{"key": "f", "operator": "NotIn", "values": []any{"z"}},
		},
	})
	require.NoError(t, err)
	require.Equal(t, "a=1,b=2,c in (x,y),!d,e,f notin (z)", s.String())

	nothing, err := meta.LabelSelectorAsSelector(nil)
	require.NoError(t, err)
	require.False(t, nothing.Matches(lookup(nil)))
	require.False(t, nothing.Empty())
	all, err := meta.LabelSelectorAsSelector(map[string]any{})
	require.NoError(t, err)
	require.True(t, all.Empty())

	for _, bad := range []map[string]any{
		{"matchLabels": map[string]any{"a": int64(1)}},
		{"matchLabels": map[string]any{"a b": "1"}},
		{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Gt", "values": []any{"1"}}}},
		{"matchExpressions": []any{map[string]any{"key": "a", "operator": "In"}}},
		{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Exists", "values": []any{"1"}}}},
		{"matchExpressions": []any{"x"}},
	} {
		_, err := meta.LabelSelectorAsSelector(bad)
		require.Error(t, err, "%v", bad)
	}
}

func TestFieldSelector(t *testing.T) {
	for _, row := range []struct {
		text string
		want []meta.FieldRequirement
	}{
		{"", nil},
		{"a=b", []meta.FieldRequirement{{Field: "a", Value: "b"}}},
		{"a==b,c!=d", []meta.FieldRequirement{{Field: "a", Value: "b"}, {Field: "c", Value: "d", Not: true}}},
		{"a=", []meta.FieldRequirement{{Field: "a"}}},
		{"a!=", []meta.FieldRequirement{{Field: "a", Not: true}}},
		{`a=x\,y\=z\\`, []meta.FieldRequirement{{Field: "a", Value: `x,y=z\`}}},
		{"a=b,", []meta.FieldRequirement{{Field: "a", Value: "b"}}},
		{"metadata.name=x", []meta.FieldRequirement{{Field: "metadata.name", Value: "x"}}},
		{"a=b!", []meta.FieldRequirement{{Field: "a", Value: "b!"}}},
	} {
		s, err := meta.ParseFieldSelector(row.text)
		require.NoError(t, err, row.text)
		require.Equal(t, row.want, s.Requirements(), row.text)
		again, err := meta.ParseFieldSelector(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
	}
	for _, text := range []string{"a", "a,b", `a=b\x`, `a=b\`, "a=b=c", "!", "a!", strings.Repeat("a=b,", 1001), strings.Repeat("a", 70000)} {
		_, err := meta.ParseFieldSelector(text)
		require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), "%.80s", text)
	}
	s, _ := meta.ParseFieldSelector("a!=x,a=y")
	v, ok := s.Value("a")
	require.True(t, ok)
	require.Equal(t, "y", v)
	_, ok = s.Value("b")
	require.False(t, ok)
	require.True(t, s.Matches(func(string) string { return "y" }))
	require.False(t, s.Matches(func(string) string { return "x" }))
}

func FuzzLabelSelector(f *testing.F) {
	for _, s := range []string{"a=b", "a in (b,c),!d", "x>1,y notin (),z!=", "a.b/c==d", ","} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := meta.ParseLabelSelector(text)
		if err != nil {
			return
		}
		again, err := meta.ParseLabelSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q -> %q -> %v, %v", text, s, again, err)
		}
	})
}

func FuzzFieldSelector(f *testing.F) {
	for _, s := range []string{"a=b", `a=b\,c\=d\\,e!=f`, "a==b,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := meta.ParseFieldSelector(text)
		if err != nil {
			return
		}
		again, err := meta.ParseFieldSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q -> %q -> %v, %v", text, s, again, err)
		}
	})
}

func ExampleParseLabelSelector() {
	s, err := meta.ParseLabelSelector("app in (web,api),!canary")
	labels := map[string]string{"app": "web"}
	fmt.Println(s, err, s.Matches(func(key string) (string, bool) { v, ok := labels[key]; return v, ok }))
	// Output: app in (api,web),!canary <nil> true
}
