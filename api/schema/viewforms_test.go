package schema

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// TestViewFormsMatchJSON checks that the types which a View converts without JSON text read and
// write the same values as through JSON.
func TestViewFormsMatchJSON(t *testing.T) {
	fresh := []func() any{
		func() any { return new(meta.Time) }, func() any { return new(meta.MicroTime) },
		func() any { return new(meta.Quantity) }, func() any { return new(meta.IntOrString) },
	}
	for _, make := range fresh {
		for _, v := range []any{
			"2024-01-02T03:04:05Z", "2024-01-02T03:04:05.678901+02:00", "0001-01-01T00:00:00Z", "yesterday", "",
			"1500m", "1Gi", "80%", "http", int64(0), int64(-7), int64(1) << 40, 1.5, true, map[string]any{}, []any{"a"},
		} {
			text, err := json.Marshal(v)
			require.NoError(t, err)
			want, got := make(), make()
			err = json.Unmarshal(text, want)
			if !readKnown(v, got) {
				continue // the JSON text decides
			}
			require.NoError(t, err, "%T %v", got, v)
			require.Equal(t, want, got, "%T %v", got, v)
			known, ok := writeKnown(got)
			require.True(t, ok)
			through, err := viaJSON(got)
			require.NoError(t, err)
			require.Equal(t, through, known, "%T %v", got, v)
		}
	}
	require.False(t, readKnown("x", new(string)))
}
