package storagetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sentences returns the constants of contract.go by name.
func sentences(t *testing.T) map[string]sentence {
	f, err := parser.ParseFile(token.NewFileSet(), "contract.go", nil, 0)
	require.NoError(t, err)
	list := map[string]sentence{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := v.Type.(*ast.Ident); ok && of.Name == "sentence" {
			text := v.Values[0].(*ast.BasicLit).Value
			list[v.Names[0].Name] = sentence(strings.Trim(text, `"`))
		}
		return true
	})
	require.Greater(t, len(list), 20)
	return list
}

// TestSentencesMatchComments checks that the comments of package storage contain the sentences verbatim.
func TestSentencesMatchComments(t *testing.T) {
	var text strings.Builder
	for _, file := range []string{"../storage.go", "../retention.go", "../import.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, c := range f.Comments {
			text.WriteString(strings.Join(strings.Fields(c.Text()), " ") + " ")
		}
	}
	for name, s := range sentences(t) {
		_, words, found := strings.Cut(string(s), ": ")
		assert.True(t, found, name)
		assert.Contains(t, text.String(), words, name)
	}
}
