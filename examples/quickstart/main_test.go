package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	require.Contains(t, lines[0], `refused: Widget.example.com "cog" is invalid: spec.color: Unsupported value: "blue"`)
	require.Equal(t, []string{
		"ADDED cog: green, size 3",
		"MODIFIED cog: red, size 3",
		"DELETED cog: red, size 3",
	}, lines[1:])
}
