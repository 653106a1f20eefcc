package diff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/builtin/internal/diff"
)

func TestLines(t *testing.T) {
	type m = map[string]any
	before := m{"a": 1, "b": []string{"x"}, "c": nil, "d": 4, "e": "<", "f": 6, "g": 7, "h": 8, "i": 9, "j": 10, "k": 11}
	after := m{"a": 2, "b": []string{"x"}, "c": nil, "d": 4, "e": "<", "f": 6, "g": 7, "h": 8, "i": 9, "j": m{"l": 1}, "k": 11}
	want := "@@ -1,5 +1,5 @@\n {\n- \"a\": 1,\n+ \"a\": 2,\n  \"b\": [\n   \"x\"\n  ],\n" +
		"@@ -10,6 +10,8 @@\n  \"g\": 7,\n  \"h\": 8,\n  \"i\": 9,\n- \"j\": 10,\n+ \"j\": {\n+  \"l\": 1\n+ },\n  \"k\": 11\n }\n"
	assert.Equal(t, want, diff.Lines(before, after))
	assert.Empty(t, diff.Lines(before, before))
	assert.Empty(t, diff.Lines(func() {}, func() {}))
	assert.Contains(t, diff.Lines("<a>", "<b>"), "-\"<a>\"\n+\"<b>\"\n")

	var one, other []int
	for i := range 100_000 {
		one, other = append(one, i), append(other, -i)
	}
	assert.Less(t, len(diff.Lines(one, other)), 5<<10)
	assert.Less(t, len(diff.Lines(strings.Repeat("x", 1<<20), "")), 5<<10)
}

// TestHunkPositions checks that the lines of each hunk are at the positions that its header gives, in
// both texts.
func TestHunkPositions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		list := func() []int {
			out := make([]int, random.IntN(30))
			for i := range out {
				out[i] = random.IntN(4)
			}
			return out
		}
		a, b := list(), list()
		text := diff.Lines(a, b)
		old, now := indented(t, a), indented(t, b)
		if fmt.Sprint(a) == fmt.Sprint(b) {
			require.Empty(t, text)
			continue
		}
		require.NotEmpty(t, text)
		var i, j, removed, added, left int
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			var m, n int
			if k, _ := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &i, &m, &j, &n); k == 4 {
				require.Zero(t, left)
				left = m + n
				continue
			}
			if line[0] != '+' {
				require.Equal(t, old[i-1], line[1:], text)
				i, left = i+1, left-1
			}
			if line[0] != '-' {
				require.Equal(t, now[j-1], line[1:], text)
				j, left = j+1, left-1
			}
			switch line[0] {
			case '-':
				removed++
			case '+':
				added++
			}
		}
		require.Zero(t, left)
		require.Equal(t, len(old)-removed, len(now)-added, text)
	}
}

func indented(t *testing.T, v any) []string {
	text, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return strings.Split(string(text), "\n")
}
