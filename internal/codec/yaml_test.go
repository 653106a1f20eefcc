package codec_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

func TestDecodeYAML(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: \"1\"\n  z: |\n    two\n    lines\n",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","z":"two\nlines\n"}}`},
		{"{apiVersion: v1, data: {x: 'yes'}}", `{"apiVersion":"v1","data":{"x":"yes"}}`},
		{`{"a":1}`, `{"a":1}`},
		{"name: y\nb: off\nc: 0x10\nd: 1_000\ne: 010\nf: 1e3\ng: ~\n", `{"b":false,"c":16,"d":1000,"e":8,"f":1000,"g":null,"name":true}`},
		{"1: a\ntrue: b\n", `{"1":"a","true":"b"}`},
		{"t: 2001-01-01T00:00:00Z\n", `{"t":"2001-01-01T00:00:00Z"}`},
		{"k: 9223372036854775807\nm: 18446744073709551615", `{"k":9223372036854775807,"m":18446744073709552000}`},
		{"a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n", `{"a":{"b":1},"c":{"b":1},"d":{"b":1,"e":2}}`},
		{"# comment\n---\na: 1\n---\n# end\n", `{"a":1}`},
		{"%YAML 1.1\n---\na: 1\n...\n", `{"a":1}`},
		{"a: |\n  ---\n  b\n", `{"a":"---\nb\n"}`},
		{"a: 1\n---\n", `{"a":1}`},
		{"a: 1\r\n---\r\nnull\r\n", `{"a":1}`},
		{"\ufeffa: 1\n...\n", `{"a":1}`},
		{"{a: 1}\n---\n", `{"a":1}`},
		{"{a: 1}\n...\n", `{"a":1}`},
		{"{a: 1} # end", `{"a":1}`},
	} {
		tree, dup, err := codec.DecodeYAML([]byte(row.text), codec.Limits{})
		require.NoError(t, err, row.text)
		require.Empty(t, dup)
		require.Equal(t, row.want, string(codec.EncodeJSON(nil, tree)), row.text)
	}
}

// TestDecodeYAMLAliases: aliases may repeat a list many times, up to a limit.
func TestDecodeYAMLAliases(t *testing.T) {
	repeated := func(times int) error {
		text := "a: &a [" + strings.Repeat("x,", 100) + "]\nb: [" + strings.Repeat("*a,", times) + "]\n"
		_, _, err := codec.DecodeYAML([]byte(text), codec.Limits{})
		return err
	}
	require.NoError(t, repeated(100))
	require.ErrorContains(t, repeated(300), "aliases expand to more than")
}

// bomb has 9¹² values.
var bomb = func() string {
	text := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'm'; c++ {
		text += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ","))
	}
	return text
}()

func TestDecodeYAMLErrors(t *testing.T) {
	many := func(end string) (text string) {
		for i := range 200 {
			text += fmt.Sprintf("%%TAG !t%d! x", i) + end
		}
		return text + "---" + end + "a: 1" + end
	}
	megabyte := "a: &a {k: " + strings.Repeat("x", 1<<20) + "}\n"
	long := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", 1000), ",") + "]\n"
	for _, text := range []string{
		long, "a: [b", "a: 1\n---\nb: 2\n", "---\n---\na: 1\n", "--- {a: 1}\n--- {b: 2}\n", "{a: 1}\n{b: 2}\n", "{a: 1}\n}", "{a: 1}\nb", "a: 1\r---\rb: 2", "a: 1\u2028---\u2028b: 2", "---\n---\na: 1\n---\nb: 1", "a: .nan", "a: *x", "\ta: 1", "- a", "word", "3", bomb,
		strings.Repeat("[", 20000), "a: " + strings.Repeat("[", 1001) + strings.Repeat("]", 1001), "a: \"\\z\"", "a: 1\na: [b", "? [a, b]\n: c",
		many("\n"), many("\r"), many("\u0085"), many("\u2028"), many("\u2029"), "\ufeff" + many("\n"),
		megabyte + "b:\n" + strings.Repeat("- {<<: *a}\n", 1000), megabyte + "b:\n" + strings.Repeat("- {<<: [*a]}\n", 1000),
		megabyte + "? [" + strings.Repeat("*a, ", 1000) + "]\n: x\n", "a: &a " + strings.Repeat("x", 1<<20) + "\nb:\n" + strings.Repeat("- {*a : 1}\n", 1000),
	} {
		_, _, err := codec.DecodeYAML([]byte(text), codec.Limits{})
		require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), "%.60s: %v", text, err)
		require.Less(t, len(err.Error()), 400)
	}
	for _, text := range []string{"null", "", " \n", "# nothing"} {
		_, _, err := codec.DecodeYAML([]byte(text), codec.Limits{})
		require.ErrorIs(t, err, codec.ErrNull)
	}
	_, _, err := codec.DecodeYAML([]byte("a: 1"), codec.Limits{Bytes: 2})
	require.Equal(t, meta.ReasonRequestEntityTooLarge, meta.ReasonOf(err))
}

// TestDecodeYAMLRejectsLargeTextBeforeExpansion: a text beyond the limits is rejected before it is expanded.
func TestDecodeYAMLRejectsLargeTextBeforeExpansion(t *testing.T) {
	for name, text := range map[string]string{
		"a bomb":         bomb,
		"merges":         "a: &a {k: " + strings.Repeat("x", 1<<20) + "}\nb:\n" + strings.Repeat("- {<<: *a}\n", 1000),
		"repeated keys":  "a: &a " + strings.Repeat("x", 1<<20) + "\nb: {" + strings.Repeat("*a : 1, ", 1000) + "}\n",
		"keys in merges": "a: &a " + strings.Repeat("x", 1<<20) + "\nb: {<<: {[" + strings.Repeat("*a, ", 1000) + "]: 1}}\n",
		"keys":           "a: &a " + strings.Repeat("x", 1<<20) + "\n? [" + strings.Repeat("*a, ", 1000) + "]\n: x\n",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := codec.DecodeYAML([]byte(text), codec.Limits{})
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), name)
	}
}

func TestDecodeYAMLDuplicates(t *testing.T) {
	tree, dup, err := codec.DecodeYAML([]byte("metadata:\n  labels: {a: 1, a: 2}\nspec:\n- {k: 1}\n- {k: 1, k: 2}\nmetadata: {name: x}\n"), codec.Limits{})
	require.NoError(t, err)
	require.Equal(t, []string{`line 2: key "a" already set in map`, `line 5: key "k" already set in map`, `line 6: key "metadata" already set in map`}, dup)
	require.Equal(t, `{"metadata":{"name":"x"},"spec":[{"k":1},{"k":2}]}`, string(codec.EncodeJSON(nil, tree)))
}

func TestEncodeYAML(t *testing.T) {
	out, err := codec.EncodeYAML([]byte(`{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Success","details":{"name":"a","kind":"configmaps"},"items":[{"b":"true","a":"1","t":"2001-01-01T00:00:00Z","s":"two\nlines\n","big":9223372036854775807}]}`))
	require.NoError(t, err)
	require.Equal(t, `apiVersion: v1
details:
  kind: configmaps
  name: a
items:
- a: "1"
  b: "true"
  big: 9223372036854775807
  s: |
    two
    lines
  t: "2001-01-01T00:00:00Z"
kind: Status
metadata: {}
status: Success
`, string(out))
}

func FuzzDecodeYAML(f *testing.F) {
	for _, s := range []string{"a: 1\nb: [x, {y: z}]\n", "a: &x {b: 1}\nc: *x\n", "{a: b, a: c}", "--- a: 1\n", "a: |\n  x\n", "? a\n: b", "!!binary aGk=: 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, _, err := codec.DecodeYAML(data, codec.Limits{Bytes: 4096})
		if err != nil {
			return
		}
		if _, _, err := codec.DecodeJSON(codec.EncodeJSON(nil, tree), codec.Limits{}); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
	})
}

func TestWholeFloatsAreIntegersInYAML(t *testing.T) {
	for text, want := range map[string]any{
		"3.0": int64(3), "3e0": int64(3), "30e-1": int64(3), "-0.0": int64(0), "1e18": int64(1e18), "9007199254740992.0": int64(1 << 53),
		"3.5": 3.5, "1e19": 1e19, "9223372036854775808": float64(1 << 63), "18446744073709551615": float64(1 << 64),
	} {
		for _, doc := range []string{`{"a":[%s]}`, "a: [%s]"} { // JSON, and YAML that is not JSON
			tree, _, err := codec.DecodeYAML(fmt.Appendf(nil, doc, text), codec.Limits{})
			require.NoError(t, err, text)
			require.Equal(t, map[string]any{"a": []any{want}}, tree, text)
		}
		tree, _, err := codec.DecodeJSON(fmt.Appendf(nil, `{"a":%s}`, text), codec.Limits{WholeFloats: true})
		require.NoError(t, err, text)
		require.Equal(t, map[string]any{"a": want}, tree, text)
	}
	tree, _, err := codec.DecodeJSON([]byte(`{"a":3.0}`), codec.Limits{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": 3.0}, tree)
}
