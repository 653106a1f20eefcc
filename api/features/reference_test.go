package features

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGatesMatchReference compares the gates of the newest release with the recorded gates of
// kube-apiserver: each gate has the stage and default of the reference, and each gate of the
// reference that is missing here is in a group with the reason.
func TestGatesMatchReference(t *testing.T) {
	record, err := os.ReadFile("testdata/gates.txt")
	require.NoError(t, err)
	set, err := New("", nil)
	require.NoError(t, err)
	optional := map[string]State{}
	for _, g := range set.All() {
		if g.Stage == "ALPHA" || g.Stage == "BETA" {
			optional[g.Name] = g
		}
	}
	group, seen := "", map[string]bool{}
	for line := range strings.Lines(string(record)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			group = ""
			continue
		case words[0] == "#":
			group += strings.TrimPrefix(strings.TrimSpace(line), "#")
			continue
		}
		require.Len(t, words, 3, line)
		name, stage, on := words[0], words[1], words[2] == "true"
		require.False(t, seen[name], "%s stands twice", name)
		seen[name] = true
		require.NotEmpty(t, group, "%s stands in no group", name)
		g, ours := optional[name]
		require.Equal(t, strings.Contains(group, "package features"), ours, "%s: %s", name, group)
		if ours {
			assert.Equal(t, stage, g.Stage, name)
			assert.Equal(t, on, g.Default, name)
		}
	}
	for name := range optional {
		assert.True(t, seen[name], "the reference has no gate %s", name)
	}
	assert.Len(t, seen, 164)
}
