package manifests_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/manifests"
)

// TestParseFindsDocuments checks that all documents are read, with all kinds of separators.
func TestParseFindsDocuments(t *testing.T) {
	for name, row := range map[string]struct {
		in   string
		want string // names
	}{
		"none":                            {"", ""},
		"comments":                        {"# a\n---\n# b\n...\n", ""},
		"separators":                      {"---\nkind: a\n---\n# nothing\n---\nkind: b\n---\n", "a b"},
		"a stream of JSON":                {`{"kind":"a"}{"kind":"b"}` + "\n" + `{"kind":"c"}`, "a b c"},
		"JSON after comments":             {"# c\n" + `{"kind":"a"}` + "\n" + `{"kind":"b"}`, "a b"},
		"JSON and YAML":                   {`{"kind":"a"} {"kind":"b"}` + "\n---\nkind: c\n---\n" + `{"kind":"d"}`, "a b c d"},
		"behind the separator":            {`--- {"kind":"a"}` + "\n" + `--- {kind: b}` + "\n---\t{kind: c}\n--- # c\nkind: d\n", "a b c d"},
		"a stream behind the separator":   {`--- {"kind":"a"} {"kind":"b"}`, "a b"},
		"a tag behind the separator":      {"--- !!map\nkind: a\n", "a"},
		"the end of a document":           {"kind: a\n...\nkind: b\n...\n# c\n---\nkind: c\n", "a b c"},
		"null, as templates leave it":     {"null\n---\nkind: a\n---\n~\n--- null\n---\nkind: b\n---\nnull\n", "a b"},
		"directives":                      {"%YAML 1.1\n---\nkind: a\n...\n%YAML 1.1\n---\nkind: b\n", "a b"},
		"a separator in a text":           {"kind: a\nx: |\n  ---\n  y\n", "a"},
		"carriage returns":                {"kind: a\r\n---\r\nkind: b\r\n", "a b"},
		"a byte order mark":               {"\ufeff---\nkind: a\n---\nkind: b\n", "a b"},
		"JSON after a byte order mark":    {"\ufeff" + `{"kind":"a"}{"kind":"b"}`, "a b"},
		"flow style over lines":           {"{kind: a,\n x: 1}\n", "a"},
		"JSON with a comment":             {`{"kind":"a"} # c`, "a"},
		"JSON over lines, with tabs":      {"{\n\t\"kind\":\"a\"\n}\n{\n\t\"kind\":\"b\"\n}\n", "a b"},
		"keys that a merge repeats":       {"kind: a\nx: &x {b: 1}\ny: {<<: *x, b: 2}\nz:\n  b: 2\n  << : *x\n", "a"},
		"the same key in other documents": {"kind: a\n---\nkind: a\n", "a a"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifests.Parse([]byte(row.in))
			require.NoError(t, err)
			var kinds []string
			for _, o := range objects {
				kinds = append(kinds, o.Kind())
			}
			assert.Equal(t, row.want, strings.Join(kinds, " "))
		})
	}
}

// TestParseRejectsInvalidFiles checks that errors name the document and the line.
func TestParseRejectsInvalidFiles(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'm'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n"
	}
	for name, row := range map[string]struct{ in, want string }{
		"a repeated key":             {"kind: a\n---\n# c\nkind: b\nspec:\n  x: 1\n  x: 2\n", `document 2: line 7: key "x" already set in map`},
		"repeated keys":              {"kind: a\nkind: b\nspec: 1\nspec: 2\n", `document 1: line 2: key "kind" already set in map; line 4: key "spec" already set in map`},
		"a repeated key in JSON":     {"{\"kind\":\"a\"}\n{\"kind\":\"b\",\"spec\":{\"x\":1,\"x\":2}}\n", `document 2: line 2: duplicate field "spec.x"`},
		"a repeated key and a merge": {"kind: a\nx: &x {b: 1}\ny: {<<: *x, b: 2, c: 3, c: 4}\n", `line 3: key "c" already set in map`},
		"bad YAML":                   {"kind: a\n---\nkind: b\nx: [\n", "document 2: the body is no valid YAML: yaml: line 4:"},
		"bad JSON":                   {"{\"kind\":\"a\"}\n{\"kind\":\n", "document 1: the body is no valid YAML"},
		"content behind JSON":        {"{\"kind\":\"a\"}\n}\n", "document 1"},
		"a list":                     {"- a\n", "document 1"},
		"aliases that expand":        {bomb, "more than"},
		"depth":                      {"a: " + strings.Repeat("[", 1001) + strings.Repeat("]", 1001), "1000 levels deep"},
		"depth of JSON":              {`{"a":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + "}", "1000 levels deep"},
		"a separator after U+2028":   {"kind: a\u2028---\u2028kind: b", "document 1: line 1: the body is no valid YAML: more than one document"},
		"a separator after a return": {"kind: a\r---\rkind: b", "document 1: line 1: the body is no valid YAML: more than one document"},
		"UTF-16":                     {"\xff\xfek\x00:\x00 \x00a\x00", "UTF-8"},
		"documents":                  {strings.Repeat("{}", 100_001), "more than 100000 documents"},
		"size":                       {strings.Repeat(" ", 64<<20+1), "more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifests.Parse([]byte(row.in))
			require.ErrorContains(t, err, row.want)
			require.Less(t, len(err.Error()), 500)
		})
	}
}

func TestReadFiltersKinds(t *testing.T) {
	files := fstest.MapFS{
		"a.yaml":       {Data: []byte("kind: a\n---\nkind: b\n")},
		"below/b.json": {Data: []byte(`{"kind":"a"}{"kind":"c"}`)},
		"c.txt":        {Data: []byte("- x")},
		"d.yml":        {Data: []byte("kind: a\nkind: b\n")},
	}
	_, err := manifests.Read(files)
	require.ErrorContains(t, err, `d.yml: document 1: line 2: key "kind" already set in map`)
	delete(files, "d.yml")
	objects, err := manifests.Read(files, "c", "b")
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, "b", objects[0].Kind())
	assert.Equal(t, "c", objects[1].Kind())
}

// TestReadRejectsPipes checks that pipes are not opened, because reading would block without a
// writer.
func TestReadRejectsPipes(t *testing.T) {
	_, err := manifests.Read(fstest.MapFS{"a.yaml": {Mode: fs.ModeNamedPipe}, "b.yaml": {Data: []byte("kind: b")}})
	require.EqualError(t, err, "a.yaml: not a regular file")
}
