package documents_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/internal/documents"
)

const root = "../../.."

// TestBlocksAreChecked: each block has a known language, and a reason if it is not run.
func TestBlocksAreChecked(t *testing.T) {
	all, err := documents.Read(root)
	require.NoError(t, err)
	assert.NotEmpty(t, all)
	for _, b := range all {
		instruction, _, _ := strings.Cut(b.Note, ": ")
		switch b.Lang {
		case "go":
			assert.Contains(t, []string{"", "continues"}, b.Note, b)
		case "console", "sh":
			assert.Contains(t, []string{"", "after", "not run"}, instruction, b)
		case "":
			assert.NotContains(t, b.Text, "$ ", "%s: a console block says so", b)
		default:
			assert.Fail(t, "no check for this language", "%s: %s", b, b.Lang)
		}
	}
}

// TestGoCompiles compiles the Go blocks that use no package of Kubernetes, and checks that all other Go
// blocks belong to the module examples/operator, which compiles them.
func TestGoCompiles(t *testing.T) {
	all, err := documents.Read(root)
	require.NoError(t, err)
	own, err := documents.Module{Dir: "."}.Compile(root, all)
	require.NoError(t, err)
	assert.NotZero(t, own, "no document has a Go block without packages of Kubernetes")
	begins := 0
	for _, b := range all {
		if b.Lang == "go" && b.Note != "continues" {
			begins++
		}
	}
	assert.Equal(t, begins, own+documents.Module{Kubernetes: true}.Count(all), "each block is compiled once")
}
